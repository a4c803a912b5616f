"""Rows of frames, vectors in the place of tokens, with a label for each row."""

from collections.abc import Mapping

import numpy as np

from keras_bert_suite.data.arrays import check_same_rows, leave_tensorflow, map_arrays
from keras_bert_suite.data.rows import Rows, check_weights, read_labels
from keras_bert_suite.heads.base.input_checks import check_frames
from keras_bert_suite.heads.base.text_data import TextData
from keras_bert_suite.models.frame_inputs import FRAMES


class FrameReader:
    """How data of frames differ from data of texts. A class has this mixin before a `TextData`.

    A row is an array (n, D). Rows are a list of them or an array (N, n, D), or packed arrays, a
    dict of `frames` (N, L, D) and `padding_mask` (N, L).
    """

    takes_graphs = False

    def read_columns(self, x, y, sample_weight):
        return self.read_frames(x, None if y is None else self.labels.read(y), sample_weight)

    def read_batch_columns(self, x, y, sample_weight):
        x, y, sample_weight = leave_tensorflow((x, y, sample_weight))
        y = None if y is None else self.labels.read_batch(y)
        return self.read_frames(x, y, sample_weight)

    def read_frames(self, x, y, sample_weight):
        """`Rows` of the arguments of `fit`, whose labels are a column that is not encoded."""
        if isinstance(x, Mapping):
            rows = Rows.read(self._complete_packed(x), y, sample_weight)
        else:
            self.check_can_pack()
            columns = x if isinstance(x, tuple) else (x,)
            self.check_columns(columns)
            inputs = tuple(map(self.packer.read_rows, columns))
            rows = Rows(inputs, read_labels(y), read_labels(sample_weight))
        map_arrays(check_weights, rows.weights)
        check_same_rows(rows.inputs, rows.labels, rows.weights)
        return rows

    def _complete_packed(self, x):
        """Packed arrays with the segment 0 for each frame, if the encoder has segments."""
        arrays = {name: np.asarray(array) for name, array in leave_tensorflow(dict(x)).items()}
        check_frames(arrays, self.encoder)
        if "segment_ids" in self.encoder.names and "segment_ids" not in arrays:
            arrays["segment_ids"] = np.zeros_like(arrays["padding_mask"])
        return arrays

    def check_columns(self, columns):
        """Raises a ValueError if a row has another number of parts than the task reads."""
        if len(columns) != 1:
            raise ValueError(
                f"x is a tuple of {len(columns)} columns, and a row of this task is one array of "
                "frames. Pass a list of arrays (n, D)."
            )

    def order(self, inputs, names):
        return inputs

    def keep_names(self, inputs, names):
        if self.input_names is None:
            self.input_names = (FRAMES,)

    def check_can_pack(self):
        if self.packer is None:
            raise ValueError(
                "This task has no preprocessor to pack rows with. Set `preprocessor` to a "
                f"FramePacker({self.encoder.frame_dim}), or pass packed arrays, a dictionary of "
                "frames and padding_mask."
            )

    def pack_texts(self, texts):
        """Packs rows of frames without labels: dict of the inputs of the encoder."""
        (rows,) = texts
        self.check_can_pack()
        return self.encoder.select(self.packer.pack(rows))

    def lengths(self, rows):
        """int64 (N,), the frames of each row, or of all parts of a row; None for packed arrays."""
        if rows.is_packed:
            return None
        return sum(np.fromiter(map(len, column), "int64") for column in rows.inputs)


class FrameData(FrameReader, TextData):
    """Rows of frames with a label for each row: a class, a set of labels, numbers.

    Args:
        packer: `FramePacker`, or None for packed arrays only.
        encoder: `EncoderInputs` of an encoder of frames.
        labels: `Labels`.
        input_names: the name of the frames in exports, "frames" by default.
        features: None. Columns beside frames are not read.
    """

    def __init__(self, packer, encoder, labels, input_names=None, *, features=None):
        if features is not None:
            raise ValueError(
                f"features={list(features)} are columns beside texts, and the backbone reads "
                "frames. Leave features out, or put their values into each frame."
            )
        super().__init__(packer, encoder, labels, input_names)
