"""Batches of frames, some of which are hidden already."""

from keras_bert_suite.heads.base.frame_data import FrameReader
from keras_bert_suite.heads.pretraining.data import PretrainingData


class FramePretrainingData(FrameReader, PretrainingData):
    """Batches of arrays by name, as `FrameBatches` makes them."""

    def pack(self, rows, labelled=False):
        if not rows.is_packed:
            raise ValueError(
                "A FramePretrainer takes batches whose spans are hidden, got rows of frames. Make "
                "them with FrameBatches, or pack with a FramePacker and hide with a FrameMasker."
            )
        return super().pack(rows, labelled)
