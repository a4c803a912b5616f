"""Rows of one or several texts, with a label for each row."""

import dataclasses
import threading
from collections.abc import Mapping

import numpy as np

from keras_bert_suite.argument_checks import with_article
from keras_bert_suite.data.arrays import holds_texts, leave_tensorflow
from keras_bert_suite.data.input_dataset import unpack_batch
from keras_bert_suite.data.rows import HOW_TO_COLLATE, Rows
from keras_bert_suite.heads.base.conditions import ConditionColumn
from keras_bert_suite.heads.base.feature_columns import FEATURES
from keras_bert_suite.heads.base.features import Features
from keras_bert_suite.heads.base.input_checks import (
    check_num_texts,
    check_packed,
    default_names,
    order_columns,
    read_names,
)
from keras_bert_suite.models.frame_inputs import CONDITION
from keras_bert_suite.preprocessing import SegmentPacker
from keras_bert_suite.preprocessing.keras_hub_packer import find_segment_packer
from keras_bert_suite.tokenizers.text_inputs import is_tf_tensor

#: A preprocessor of KerasHub is built in its first call, so two threads must not call it at once.
_KERAS_HUB_LOCK = threading.Lock()

#: The most characters that are tokenized only to be counted.
_MOST_CHARACTERS = 100_000_000


class TextData:
    """Reads the rows of a user, and packs batches of them. The base of the other kinds.

    Data flows one way: `read` or `read_batch`, then `window`, then `pack`.

    Args:
        packer: `SegmentPacker`, a preprocessor of KerasHub, or None for packed arrays only.
        encoder: `EncoderInputs` of the backbone.
        labels: `Labels`.
        input_names: the names of the texts of a row, or the name of a single text. None until the
            first rows for training name them.
        features: the argument `features` of a task, the columns beside the texts; or None.
    """

    #: Whether `window` and `pack` take tensors in graphs of TensorFlow.
    takes_graphs = True

    #: The ranks of the text columns of a batch, if they are not all 1.
    text_ranks: tuple[int, ...] | None = None

    #: The names of the axes of packed arrays. A task may take several kinds.
    packed_axes: tuple[tuple[str, ...], ...] = (("rows", "tokens"),)

    #: Whether texts are packed by the tokens that a `SegmentPacker` finds.
    needs_segment_packer = False

    def __init__(self, packer, encoder, labels, input_names=None, *, features=None):
        self.packer = packer
        self.encoder = encoder
        self.labels = labels
        self.input_names = read_names(input_names)
        self.features = Features.of(features)
        self.condition = ConditionColumn(encoder.condition_dim)

    @property
    def columns(self):
        """dict of the name of a column beside the texts -> its kind. The condition is the last."""
        features = {} if self.features is None else self.features.columns
        return features if self.condition.dim is None else {**features, CONDITION: self.condition}

    @property
    def packer(self):
        """The preprocessor that packs texts, or None.

        If a `SegmentPacker` is needed, it takes the place of a preprocessor of KerasHub with the
        same tokens, if the tokenizer is WordPiece, RoBERTa's byte pairs, or ALBERT's or
        XLM-RoBERTa's SentencePiece.
        """
        return self._packer

    @packer.setter
    def packer(self, packer):
        if self.needs_segment_packer:
            packer = find_segment_packer(packer) or packer
        self._packer = packer

    def read(self, x, y=None, sample_weight=None, labelled=False):
        """Reads rows in memory, as `fit` takes them, and checks them.

        Args:
            x: texts, columns of texts, or packed arrays, see `Rows.read`.
            y, sample_weight: labels and weights of the rows, or None.
            labelled: bool, whether the rows are for `fit` or `evaluate`. The first such rows set
                `input_names`.

        Returns:
            `Rows` with encoded labels.

        Raises:
            ValueError: if a text is missing or a label is unknown, naming its row; or if there are
                no rows or no labels to train on.
        """
        rows = self.read_columns(x, y, sample_weight)
        if labelled and not len(rows):
            raise ValueError("A task needs at least one row, got none.")
        if labelled and rows.labels is None and self.labels.are_needed:
            raise ValueError(
                f"A task needs a label for each row, got {len(rows)} rows and no labels. Pass the "
                "labels as `y`."
            )
        return self._complete(rows, labelled)

    def read_batch(self, x, y=None, sample_weight=None, labelled=False):
        """Reads one batch of a dataset, which may be tensors in a graph of TensorFlow.

        Args, Returns: as for `read`.
        """
        rows = self.read_batch_columns(x, y, sample_weight)
        if labelled and rows.labels is None and self.labels.are_needed and not rows.is_packed:
            names = ", ".join(rows.input_names or default_names(len(rows.inputs)))
            raise ValueError(f"A batch has the texts {names}, and no labels. {HOW_TO_COLLATE}")
        return self._complete(rows, labelled)

    def check_changed(self, columns, names):
        """Raises a ValueError if labels would not fit texts that noise or `AugmentedRows` changes.

        Args:
            columns: dict of the name or place of each changed column of texts -> the column.
            names: list of the names or places of all columns of texts, in their order.
        """

    def unpack(self, element):
        """The (x, y, sample_weight) of an element of a dataset."""
        return unpack_batch(element)

    def read_columns(self, x, y, sample_weight):
        """`Rows` of arrays with the same number of rows, whose labels are not encoded."""
        x, features = self.split_features(x)
        return Rows.read(x, self.labels.read(y), sample_weight, features)

    def read_batch_columns(self, x, y, sample_weight):
        """`Rows` of a batch, whose labels are not encoded."""
        x, features = self.split_features(x)
        rows = Rows.read_batch(x, self.labels.read_batch(y), sample_weight, features)
        if self.takes_graphs:
            return rows
        names = ("inputs", "labels", "weights", "features")
        columns = leave_tensorflow(tuple(getattr(rows, name) for name in names))
        return dataclasses.replace(rows, **dict(zip(names, columns, strict=True)))

    def split_features(self, x):
        """(`x` without the features and the condition, dict of these columns or None)."""
        is_packed = isinstance(x, Mapping) and any(name in x for name in self.encoder.names)
        is_empty = isinstance(x, list) and not x  # As `predict` of no batches reads it.
        if is_packed or is_empty:
            return x, None
        x, condition = self.condition.split(x)
        if self.features is None:
            return x, condition
        texts, features = self.features.split(x, self.input_names)
        return texts, {**features, **(condition or {})}

    def order(self, inputs, names):
        """Checks the text columns of rows, and puts them into the order of `input_names`.

        Args:
            inputs: tuple of text columns, arrays or tensors.
            names: tuple of their names, or None.

        Returns:
            tuple of text columns.
        """
        check_num_texts(len(inputs), self.encoder, self.input_names, self.packer)
        return tuple(inputs[i] for i in order_columns(len(inputs), names, self.input_names))

    def keep_names(self, inputs, names):
        """Stores the names of the text columns of the first rows for training."""
        if self.input_names is None:
            self.input_names = names or default_names(len(inputs))

    def encode(self, labels, inputs):
        """Turns a column of labels into labels for the loss.

        Args:
            labels: the labels of rows.
            inputs: the inputs of these rows, as `Rows` has them.
        """
        return self.labels.encode(labels)

    def window(self, rows):
        """Cuts rows into windows, one entry each.

        Returns:
            `Rows` with `sources`. Texts are cut by the packer, so here they are the rows.
        """
        return rows

    def check_training(self, rows, batch_size):
        """Raises a ValueError if all rows of a `fit` together, in memory, cannot be trained on."""

    def learn_rows(self, rows):
        """Notes of the rows of a `fit`, in memory, how rows are read after it.

        Returns:
            str, a hint for the user, or None.
        """
        if self.features is None or rows.is_packed:
            return None
        return self.features.learn(rows.features)

    def order_rows(self, rows, batch_size, seed):
        """The order of shuffled rows that the labels ask for, see `row_orders`; None for any."""
        return None

    def lengths(self, rows):
        """int64 (N,), by which entries of similar length share a batch; None for packed arrays.

        They are counted in tokens if our tokenizer can count them within some seconds, else in
        characters.
        """
        if rows.is_packed:
            return None
        lengths = sum(np.fromiter(map(len, column), np.int64) for column in rows.inputs)
        are_texts = isinstance(self.packer, SegmentPacker) and all(map(holds_texts, rows.inputs))
        if not are_texts or lengths.sum() > _MOST_CHARACTERS:
            return lengths
        count = self.packer.tokenizer.tokenize_flat
        return sum(count(column.tolist())[1] for column in rows.inputs)

    def pack(self, rows, labelled=False):
        """Packs a batch of entries for the model.

        Args:
            rows: `Rows` from `window`, or some of its entries.
            labelled: bool, whether the batch is for `fit` or `evaluate`.

        Returns:
            (dict of arrays (B, L) or of tensors, labels or None, weights or None).
        """
        inputs = rows.inputs if rows.is_packed else self.pack_texts(rows.inputs)
        inputs = self.add_columns(inputs, rows.features)
        if rows.labels is None:
            return inputs, None, rows.weights
        return inputs, *self.labels.weigh(rows.labels, rows.weights)

    def add_columns(self, inputs, columns):
        """The packed inputs of rows with their `features`, encoded, and their condition."""
        beside = {}
        if columns is not None and self.features is not None:
            beside[FEATURES] = self.features.encode(columns)
        if columns is not None and CONDITION in columns:
            beside[CONDITION] = columns[CONDITION]
        return {**inputs, **beside}

    def pack_texts(self, texts):
        """Packs texts without labels.

        Args:
            texts: tuple with one entry for each segment: B strings as a list or an array, or a
                TensorFlow string tensor (B,), also in a graph.

        Returns:
            dict of NumPy arrays (B, L), or of TensorFlow tensors for tensors.

        Raises:
            ValueError: if there is no preprocessor, or the task was trained on another number of
                texts in a row.
        """
        self.check_can_pack()
        check_num_texts(len(texts), self.encoder, self.input_names, self.packer)
        return self.pack_segments(texts)

    def pack_segments(self, texts):
        """As `pack_texts`, of any number of texts in a row."""
        pack = (
            self.packer.pack if isinstance(self.packer, SegmentPacker) else self._pack_by_keras_hub
        )
        return self.encoder.select(pack(*texts))

    def pack_tokens(self, windows):
        """Packs windows of tokens.

        Args:
            windows: object array of int32 arrays.

        Returns:
            `(inputs, indices)`: dict of the backbone's inputs (B, L), and int32 (B, L), the index
            of each token among the tokens of all windows; -1 on special tokens and padding.
        """
        lengths = np.fromiter(map(len, windows), "int32", len(windows))
        starts = np.cumsum(lengths, dtype="int32") - lengths
        no_tokens, _ = self.packer.tokenizer.tokenize_flat([])
        tokens = np.concatenate([no_tokens, *windows])
        packed = self.packer.pack_tokens(tokens, starts, lengths)
        return self.encoder.select(packed), packed["token_indices"]

    def check_can_pack(self):
        """Raises ValueError if there is no preprocessor that can pack the texts."""
        if self.packer is None:
            raise ValueError(
                "This task has no preprocessor to pack texts with. Set `preprocessor`, or pass "
                "packed arrays, a dictionary of token_ids, segment_ids and padding_mask."
            )
        if self.needs_segment_packer and not isinstance(self.packer, SegmentPacker):
            raise ValueError(
                f"This task has {with_article(self.packer)}, which does not say where in a text "
                "a token is. Set `preprocessor` to a SegmentPacker with the tokenizer of the "
                "backbone, WordPiece or byte pairs, or pass packed arrays."
            )

    def _pack_by_keras_hub(self, *texts):
        """Packs lists of strings as arrays, or tensors of strings as tensors."""
        # With `y`, KerasHub reads a tuple as segments, and not as an element of a dataset.
        if any(map(is_tf_tensor, texts)):
            return self.packer(texts if len(texts) > 1 else texts[0], y=None)
        texts = tuple(map(list, texts))
        with _KERAS_HUB_LOCK:
            packed = self.packer(texts if len(texts) > 1 else texts[0], y=None)
        return {name: np.asarray(array) for name, array in packed.items()}

    def _complete(self, rows, labelled):
        if rows.is_packed:
            check_packed(rows.inputs, self.encoder, self.packed_axes)
            self.condition.check_packed(rows.inputs)
            if self.features is not None and len(rows):
                self.features.check_packed(rows.inputs)
            inputs = rows.inputs
        else:
            inputs = self.order(rows.inputs, rows.input_names)
        labels = None if rows.labels is None else self.encode(rows.labels, inputs)
        # A wrong label is an error before the names are stored.
        if labelled and not rows.is_packed:
            self.keep_names(inputs, rows.input_names)
        return dataclasses.replace(rows, inputs=inputs, labels=labels)
