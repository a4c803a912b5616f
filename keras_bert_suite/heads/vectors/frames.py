"""Rows of one or several parts of frames, whose vectors are compared."""

from keras_bert_suite.heads.base.frame_data import FrameReader
from keras_bert_suite.heads.vectors.data import EmbeddingData
from keras_bert_suite.models.frame_inputs import FRAMES
from keras_bert_suite.preprocessing.text_rows import number_texts


class FrameEmbeddingData(FrameReader, EmbeddingData):
    """Rows of frames, or of S parts of frames: a tuple of S lists of arrays (n, D).

    Packed arrays have one part in a row. Arguments: as for `EmbeddingData`.
    """

    packed_axes = (("rows", "frames"),)

    def check_columns(self, columns):
        """Any number of parts is taken."""

    def keep_names(self, inputs, names):
        EmbeddingData.keep_names(self, inputs, names)

    def order_rows(self, rows, batch_size, seed):
        # Two recordings are not equal, as two texts are. Their labels may be.
        has_labels = getattr(self.labels.loss, "takes_labels", False)
        return super().order_rows(rows, batch_size, seed) if has_labels else None

    def number_parts(self, packed, number):
        frames = packed[FRAMES]
        return number_texts(frames.reshape(len(frames), -1), number)
