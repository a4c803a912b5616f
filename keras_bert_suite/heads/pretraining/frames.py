"""Batches of frames, some of which are hidden already."""

from keras_bert_suite.heads.base.frame_data import FrameReader
from keras_bert_suite.heads.base.labels import Labels
from keras_bert_suite.heads.pretraining.data import PretrainingData


class HiddenFrames(Labels):
    """The numbers of hidden frames, float32 (B, P, D)."""

    output_kind = "numbers"


class FramePretrainingData(FrameReader, PretrainingData):
    """Batches of arrays by name, as `FrameBatches` makes them.

    Args:
        packer, encoder: as for `PretrainingData`.
        num_codes: int, the number of codes; None if the numbers of frames are predicted.
    """

    def __init__(self, packer, encoder, num_codes=None):
        super().__init__(packer, encoder, outputs=("mfm",))
        if num_codes is None:
            self.labels = HiddenFrames()

    def pack(self, rows, labelled=False):
        if not rows.is_packed:
            raise ValueError(
                "A FramePretrainer takes batches whose spans are hidden, got rows of frames. Make "
                "them with FrameBatches, or pack with a FramePacker and hide with a FrameMasker."
            )
        return super().pack(rows, labelled)
