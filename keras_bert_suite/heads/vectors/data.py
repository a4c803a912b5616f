"""Rows of texts whose vectors are compared, with scores or a label for each row or none."""

import dataclasses
import warnings

import numpy as np

from keras_bert_suite.data.input_dataset import is_dataset
from keras_bert_suite.data.row_orders import shuffled_by_label, shuffled_without_duplicates
from keras_bert_suite.data.text_lists import find_texts, spread_lists
from keras_bert_suite.heads.base.input_checks import default_names, order_columns, read_names
from keras_bert_suite.heads.base.text_data import TextData
from keras_bert_suite.heads.vectors.labels import Scores
from keras_bert_suite.preprocessing.text_rows import (
    interleave_packed,
    interleave_texts,
    number_texts,
    split_packed,
)
from keras_bert_suite.tokenizers.text_inputs import decode_text

#: The name of each column of negatives that came as lists.
NEGATIVES = "negatives[]"


class EmbeddingData(TextData):
    """Rows of one or several texts. Training packs the texts of a row one after the other.

    `column_names` are the columns of training, and None until the first rows of several texts name
    them. `has_dropout` says whether training gives equal texts different vectors; `compile` sets
    it.
    """

    has_dropout = True
    packed_axes: tuple[tuple[str, ...], ...] = (("rows", "tokens"), ("rows", "texts", "tokens"))

    def __init__(self, packer, encoder, input_names=None, column_names=None):
        super().__init__(packer, encoder, Scores(), input_names)
        self.column_names = read_names(column_names)

    def read_columns(self, x, y, sample_weight):
        columns = _spread_negatives(x)
        rows = super().read_columns(columns, y, sample_weight)
        if columns is not x:
            names = [*default_names(len(x) - 1), *[NEGATIVES] * (len(columns) - len(x) + 1)]
            rows = dataclasses.replace(rows, input_names=tuple(names))
        return rows

    def order(self, inputs, names):
        if names and NEGATIVES in names:
            return inputs
        return tuple(inputs[i] for i in order_columns(len(inputs), names, self.column_names))

    def keep_names(self, inputs, names):
        if names and NEGATIVES in names:
            return  # Other rows may have other numbers of negatives.
        if len(inputs) > 1 and self.column_names is None:
            self.column_names = names or default_names(len(inputs))

    def check_training(self, rows, batch_size):
        """Raises a ValueError if the loss compares rows, and a batch has nothing to compare."""
        loss = self.labels.loss
        columns = split_packed(rows.inputs) if rows.is_packed else rows.inputs
        if loss is None:
            return
        if loss.scores_texts:
            _check_candidates(loss, rows.labels, len(columns))
        if not loss.compares_rows(len(columns)):
            return
        name, num_rows = type(loss).__name__, len(rows)
        if min(batch_size, num_rows) == 1:
            raise ValueError(
                f"{name} compares the rows of a batch, and a batch has one row here, so the loss "
                f"would be 0: batch_size={batch_size}, {num_rows} rows. Pass more of both; or take "
                "a loss of single rows: Triplet() on (anchor, positive, negative), or "
                "CosineRegression() on pairs with scores."
            )
        if loss.takes_labels:
            return _check_labels(loss, rows.labels, batch_size)
        if loss.takes_scores and (rows.labels == rows.labels[0]).all():
            raise ValueError(
                f"{name} learns from the order of the scores, got the score {rows.labels[0]} for "
                f"all of {num_rows} rows, so the loss would be 0. Pass rows with different scores; "
                "or, if all pairs match, compile with InBatchNegatives() and pass no scores."
            )
        if num_rows % batch_size == 1:
            warnings.warn(
                f"{name} compares the rows of a batch, and the last batch of each epoch has one "
                f"row: 1 of {num_rows} rows teaches nothing. Choose another batch_size than "
                f"{batch_size}.",
                stacklevel=2,
            )

    def order_rows(self, rows, batch_size, seed):
        loss = self.labels.loss
        if loss is not None and loss.rows_per_label is not None and rows.labels is not None:
            return shuffled_by_label(rows.labels, loss.rows_per_label, seed)
        if rows.is_packed or loss is None or not loss.distinct_texts:
            return None
        return shuffled_without_duplicates(rows.inputs, batch_size, seed)

    def pack(self, rows, labelled=False):
        """Packs single texts for prediction, or the texts of rows one after the other.

        The result is (packed arrays (B S, L), labels, weights). In training without scores, numbers
        of the texts, int32 (B, S), take the place of labels. Equal texts have equal numbers. -1
        stands where a row has fewer texts.
        """
        if not labelled:
            if not rows.is_packed and len(rows.inputs) > 1:
                raise ValueError(
                    f"predict takes single texts, got rows of {len(rows.inputs)} texts. Call it "
                    "for each column, or compare columns with "
                    "`similarity_pairwise(first_texts, second_texts)`."
                )
            return super().pack(rows)
        columns = split_packed(rows.inputs) if rows.is_packed else rows.inputs
        labels, loss = rows.labels, self.labels.loss
        if loss is not None:
            loss.check_rows(len(columns), labels is not None)
            if len(columns) == 1 and loss.pairs_texts:
                columns = columns * 2  # The text and its positive.
                self._check_views()
        if rows.is_packed:
            packed = interleave_packed(columns)
        else:
            packed = self.pack_texts((interleave_texts(columns),))
        are_texts = None
        if rows.sources is not None and not rows.is_packed:
            are_texts = find_texts(columns).T
            if loss is not None and not are_texts.all():
                loss.check_gaps()
        if labels is None:
            labels = self.number_parts(packed, len(columns))
            if are_texts is not None:
                labels = np.where(are_texts, labels, np.int32(-1))
        return packed, labels, rows.weights

    def number_parts(self, packed, number):
        """int32 (B, S), numbers of the S texts of each row. Equal texts have equal numbers."""
        return number_texts(packed["token_ids"], number)

    def _check_views(self):
        """Checks that a text and its positive, which is the same text, have different vectors."""
        if not self.has_dropout:
            raise ValueError(
                "Single texts are their own positives (SimCSE), and differ only by dropout. All "
                "dropout rates of this embedder are 0. Build it on a backbone with dropout, such "
                "as BertBackbone.from_preset(folder, dropout=0.1); or pass pairs."
            )


def _check_candidates(loss, scores, num_texts):
    """Raises a ValueError unless there is a score (N, S - 1) for each text after the first."""
    loss.check_rows(num_texts, scores is not None)
    if scores.shape[1] != num_texts - 1:
        raise ValueError(
            f"{type(loss).__name__} takes a score for each of the {num_texts - 1} texts after the "
            f"first of a row, got scores of shape {scores.shape}."
        )


def _check_labels(loss, labels, batch_size):
    """Raises a ValueError if the labels int32 (N,) of a `fit` make no triplets in its batches."""
    name, size = type(loss).__name__, loss.rows_per_label
    counts = np.bincount(labels)
    if batch_size % size or batch_size < 2 * size:
        raise ValueError(
            f"{name} puts {size} rows of a label into a batch together, of two labels or more, got "
            f"batch_size={batch_size}. Choose a multiple of {size} of at least {2 * size}, or "
            "another rows_per_label of the loss."
        )
    if len(counts) < 2 or counts.max() < 2:
        raise ValueError(
            f"{name} compares texts of the same label and of other labels, got {len(labels)} rows "
            f"with {len(counts)} labels, at most {counts.max()} rows of a label. Pass two labels "
            "or more, and two rows or more of a label."
        )


def _spread_negatives(x):
    """Columns of texts, of a tuple whose last column has lists of texts, the negatives of a row."""
    if not isinstance(x, tuple) or len(x) < 3:
        return x
    *columns, last = x
    lists = last.tolist() if hasattr(last, "tolist") else list(last)
    if not lists or not any(isinstance(row, (list, tuple)) for row in lists):
        return x
    for number, row in enumerate(lists):
        if not isinstance(row, (list, tuple)):
            raise ValueError(
                f"The negatives of row {number} are {str(row)[:40]!r}, wanted a list of texts, as "
                "in other rows. It may be empty."
            )
    return (*columns, *spread_lists(lists, "negatives"))


def add_prompt(prompts, name, x):
    """Puts a named prompt before each text, list of str. `x` must hold texts in memory."""
    if name not in prompts:
        raise ValueError(
            f"prompt must be one of {', '.join(map(repr, prompts)) or 'none'}, the prompts of this "
            f"embedder, got {name!r}. Set `embedder.prompts[{name!r}]`."
        )
    if isinstance(x, dict | tuple | str) or is_dataset(x):
        raise ValueError(
            f"prompt={name!r} is put before the texts of a list, an array or a Series, got "
            f"{type(x).__name__}. Put {prompts[name]!r} before the texts yourself."
        )
    return [prompts[name] + decode_text(text) for text in x]
