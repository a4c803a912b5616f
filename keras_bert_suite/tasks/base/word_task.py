"""The common base of tasks whose rows are lists of words, or texts in which a task finds words."""

from typing import Any

import keras_hub
import numpy as np

from keras_bert_suite.annotations import Inputs, Labels
from keras_bert_suite.data.rows import Rows
from keras_bert_suite.data.word_rows import check_token_shapes, read_word_rows
from keras_bert_suite.models.model_inputs import select_inputs
from keras_bert_suite.preprocessing import SegmentPacker
from keras_bert_suite.tasks.base.idle_weights import IdleWeights, list_missing_poolers
from keras_bert_suite.tasks.base.labelled_task import LabelledTask
from keras_bert_suite.tasks.base.text_packing import check_can_pack


class WordTask(IdleWeights, LabelledTask):
    """A task on the sequence output of an encoder, whose long rows are cut into windows."""

    name: str
    backbone: keras_hub.models.Backbone

    global_tokens = "none"
    # Words are cut into windows in Python.
    preprocesses_in_graphs = False
    needs_segment_packer = True

    @classmethod
    def arguments_of(
        cls, checkpoint: Any, arguments: dict[str, Any]
    ) -> tuple[dict[str, Any], list[str]]:
        arguments, new_parts = super().arguments_of(checkpoint, arguments)
        return arguments, [*new_parts, *list_missing_poolers(checkpoint)]

    #: function(rows), which checks the shapes of the labels and weights of packed arrays.
    _check_shapes = staticmethod(check_token_shapes)

    def read_rows(self, x: Inputs, y: Labels = None, sample_weight: Labels = None) -> Rows:
        return read_word_rows(x, y, sample_weight, self._check_shapes)

    def read_batch(self, x: Inputs, y: Labels = None, sample_weight: Labels = None) -> Rows:
        if isinstance(x, list) and x and isinstance(x[0], tuple):
            raise ValueError(
                "A row must be a list of words, got a tuple, as the `default_collate` of PyTorch "
                "makes it of the first words of all rows. Pass the DataLoader a `collate_fn` that "
                "returns a list of rows and a list of their labels."
            )
        return self.read_rows(x, y, sample_weight)

    def unpack_batch(self, batch: Any) -> tuple[Any, Any, Any]:
        # A list of rows of words is a batch, as a list of texts is for other tasks.
        rows = isinstance(batch, list) and all(
            isinstance(row, list) and all(isinstance(word, (str, bytes)) for word in row)
            for row in batch
        )
        return (batch, None, None) if rows else super().unpack_batch(batch)

    def word_packer(self) -> SegmentPacker:
        """The preprocessor, which says which token belongs to which word.

        Raises:
            ValueError: if the preprocessor is missing, or is no `SegmentPacker`.
        """
        check_can_pack(self)
        return self.preprocessor

    def pack_windows(self, windows: Any) -> tuple[dict[str, Any], np.ndarray]:
        """Packs windows of tokens.

        Args:
            windows: object array of int32 arrays.

        Returns:
            `(inputs, places)`: dict of the backbone's inputs (B, L), and int32 (B, L), the place
            of each token among the tokens of all windows; -1 on special tokens and padding.
        """
        lengths = np.fromiter(map(len, windows), "int32", len(windows))
        starts = np.cumsum(lengths, dtype="int32") - lengths
        tokens = np.concatenate([np.zeros(0, "int32"), *windows])
        packed = self.preprocessor.pack_tokens(tokens, starts, lengths)
        return select_inputs(self.backbone, packed), packed["token_indices"]
