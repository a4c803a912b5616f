"""Turns texts into padded batches of token ids."""

import dataclasses
from collections.abc import Sequence
from typing import Any, Literal

import keras
import keras_hub
import numpy as np

from keras_bert_suite.annotations import Config, Inputs, Labels, Tensor
from keras_bert_suite.argument_checks import check_choice, check_foreign_arguments
from keras_bert_suite.models import BertBackbone
from keras_bert_suite.preprocessing.character_packing import pack_characters
from keras_bert_suite.preprocessing.length_advice import LengthAdvice, advise_length
from keras_bert_suite.preprocessing.packing import (
    TRUNCATIONS,
    choose_namespace,
    count_places,
    pack_segments,
    tokenize_segments,
)
from keras_bert_suite.preprocessing.padding_lengths import list_lengths
from keras_bert_suite.preprocessing.preset_packer import DEFAULT_LENGTH, PresetPacker
from keras_bert_suite.preprocessing.windows import choose_stride, number_tokens, slide_windows
from keras_bert_suite.tokenizers import CharacterTokenizer, WordPieceTokenizer
from keras_bert_suite.tokenizers.row_template import RowTemplate
from keras_bert_suite.tokenizers.text_inputs import as_written


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class SegmentPacker(PresetPacker):
    """Tokenizes one or several texts of each row, and packs them as BERT reads them.

    A row is `[CLS] A [SEP]`, `[CLS] A [SEP] B [SEP]` and so on, for RoBERTa
    `<s> A </s></s> B </s>`, as the `row_template` of the tokenizer says. It is truncated to
    `sequence_length`, then padded. A batch is padded to its longest row, so short batches cost
    little. Where each length is compiled, this length is rounded up to one of a small set of
    lengths, so the compiler sees few shapes.

    Python strings are packed in NumPy, without TensorFlow. A TensorFlow string tensor is packed by
    TensorFlow ops, also inside a graph. Both give the same arrays.

    Args:
        tokenizer: a tokenizer of this package, such as `WordPieceTokenizer`. It says which special
            tokens stand around the texts.
        sequence_length: int, the maximum sequence length, with special tokens.
        truncation: how a row that is too long is cut:
            "longest_first": the longest segment loses a token, again and again (Google's rule).
            "only_first", "only_second": this segment loses its tokens first.
            "head", "tail": as "longest_first"; each segment keeps its beginning, or its end.
            "head_tail": as "longest_first"; each segment keeps `head_length` tokens of its
            beginning, and the rest from its end (Sun et al., 2019,
            https://arxiv.org/abs/1905.05583).
        head_length: int, for "head_tail". None is a quarter of `sequence_length`, as the 128 of
            512 of Sun et al.
        padding_lengths: "auto", ascending ints, or None. The lengths to which a batch may be
            padded; `sequence_length` is always among them. None pads to the longest row.
            `(sequence_length,)` pads every batch to the same length. "auto" is None where a
            step takes batches of any length (PyTorch, TensorFlow on a CPU). Where each length is
            compiled (JAX, TensorFlow on an accelerator), "auto" is 16, 24, 32, 48, 64, 96
            and so on. Under JAX on a CPU, a `fit` of up to 500 batches in memory leaves out the
            lengths that cost more to compile than they save.
        segment_ids: ints, the segment of each text of a row. None counts the texts from 0. Most
            BERTs were trained with two segments, so for rows of three texts: (0, 1, 1).
        add_special_tokens: bool, whether special tokens stand around the texts. Static vectors, see
            `StaticBackbone`, are read without them. Encoders that were trained with them need them.

    Example:
    ```python
    packer = SegmentPacker(WordPieceTokenizer("vocab.txt"), sequence_length=128)
    packer(["first text"])
    packer.pack(["first text"], ["second text"])
    dataset.map(packer)  # elements (texts, labels), or ((first_texts, second_texts), labels)
    ```
    """

    backbone_cls: type = BertBackbone
    tokenizer_cls: type = WordPieceTokenizer

    def __init__(
        self,
        tokenizer: keras_hub.tokenizers.Tokenizer,
        sequence_length: int = DEFAULT_LENGTH,
        truncation: str = "longest_first",
        head_length: int | None = None,
        padding_lengths: Literal["auto"] | Sequence[int] | None = "auto",
        segment_ids: Sequence[int] | None = None,
        add_special_tokens: bool = True,
        **kwargs: Any,
    ) -> None:
        check_choice("truncation", truncation, TRUNCATIONS)
        check_foreign_arguments(type(self), kwargs)
        super().__init__(tokenizer, sequence_length, **kwargs)
        self.built = True  # as a `TextTokenizer` is
        self.truncation = truncation
        self.head_length = head_length
        self.padding_lengths = padding_lengths
        #: ints, the lengths of a `fit` that is running, in the place of "auto"; None for no others.
        self.run_lengths: tuple[int, ...] | None = None
        self.segment_ids = segment_ids
        self.add_special_tokens = add_special_tokens

    @property
    def head_length(self) -> int:
        """int, how many tokens of the beginning "head_tail" keeps."""
        return self.sequence_length // 4 if self._head_length is None else self._head_length

    @head_length.setter
    def head_length(self, value: int | None) -> None:
        self._head_length = value

    @property
    def row_template(self) -> RowTemplate:
        """The `RowTemplate` of the tokenizer, with the settings of this packer."""
        settings: dict[str, Any] = {"has_special_tokens": self.add_special_tokens}
        if self.segment_ids is not None:
            settings["segment_ids"] = tuple(self.segment_ids)
        return dataclasses.replace(self.tokenizer.row_template, **settings)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        # Keras' own `__call__` would convert the strings to tensors of the backend.
        if len(args) == 1 and not kwargs and type(args[0]) is tuple and len(args[0]) in (2, 3):
            args = args[0]
        return self.call(*args, **kwargs)

    def call(self, x: Inputs, y: Labels = None, sample_weight: Labels = None) -> Any:
        """Packs a batch of texts. Labels and sample weights pass through.

        Every KerasHub preprocessor has these arguments, so a packer can be mapped over a dataset.

        Args:
            x: the texts of one segment, or a tuple of the texts of several segments; each as
                `pack` takes them. If a tuple of two or three is the only argument, it is an
                element of a dataset, `(x, y)` or `(x, y, sample_weight)`, as in KerasHub. So
                pairs without labels are packed with `pack`.
            y: labels, or None.
            sample_weight: weights of the rows, or None.

        Returns:
            dict of int32 (B, L), as `pack` returns it; with labels a tuple `(packed, y)`, with
            weights `(packed, y, sample_weight)`.

        Raises:
            ValueError: as `pack`.
        """
        segments = x if isinstance(x, tuple) else (x,)
        packed = as_written(self.pack)(*segments)
        return keras.utils.pack_x_y_sample_weight(packed, y, sample_weight)

    def pack(self, *segments: Any) -> dict[str, Tensor]:
        """Packs a batch of texts.

        Args:
            *segments: for each segment the texts of all rows: a list or array of B
                strings, or a TensorFlow string tensor (B,). One string, or a scalar
                tensor, is a row without a batch; it is padded to `sequence_length`,
                so that rows can be batched later.

        Returns:
            dict of int32 (B, L), without a batch (L,): `token_ids`, `segment_ids` (not for
            RoBERTa), `padding_mask`. NumPy arrays, or TensorFlow tensors for tensors.

        Raises:
            ValueError: if the segments differ in their number of rows, there are none, they are
                more or fewer than the `segment_ids`, or `sequence_length` has no place for a token
                beside the special tokens.
        """
        xp, ragged, batched = tokenize_segments(self.tokenizer, segments)
        packed = self._pack(xp, ragged, batched)
        return packed if batched else {name: array[0] for name, array in packed.items()}

    def pack_windows(
        self, *segments: Any, stride: int | None = None, query_length: int | None = None
    ) -> dict[str, Tensor]:
        """Packs documents that are longer than a row as several windows that overlap.

        The last segment is the document. The segments before it, such as a question, are repeated
        in each window. Every token of the document is in a window. The last window is the first
        window that reaches the end, so no window lies within another, as in Google's
        `run_squad.py` and in Hugging Face's tokenizers. A row without text is one window.

        `truncation` is not used: only the segments before the document are cut, to `query_length`.

        ```python
        packer = SegmentPacker(tokenizer, sequence_length=7)
        packer.pack_windows(["who ?"], ["a b c"], stride=1, query_length=2)
        # [CLS] who ? [SEP] a b [SEP]      token_indices  -1 0 1 -1 0 1 -1      row_ids  0
        # [CLS] who ? [SEP] b c [SEP]                     -1 0 1 -1 1 2 -1               0
        ```

        Args:
            *segments: as for `pack`. One string, or a scalar tensor, is one row; its windows are
                padded to `sequence_length`.
            stride: int, the tokens from the start of a window to the start of the next window,
                Google's `doc_stride`. (Hugging Face's `stride` is the overlap: the room for the
                document minus our stride.) None is a third of `sequence_length`, such as Google's
                128 of 384. It is at most half of the room for the document.
            query_length: int, the maximum number of tokens to keep of each segment before the
                document, from its beginning. None is 64 as in Google's code, which is enough for
                nearly every question. In a short row it is less, so that a third is left for the
                document.

        Returns:
            dict of int32 (N, L), for N >= B windows in the order of the rows: `token_ids`,
            `segment_ids` (not for RoBERTa), `padding_mask`, and `token_indices`, the index of each
            token among the tokens of its segment and row, -1 on special tokens and padding. With
            this index, the result of `tokenize_with_offsets` gives the token's position in the
            text. `row_ids`, int32 (N,), is the row each window comes from. NumPy arrays, or
            TensorFlow tensors for tensors.

        Raises:
            ValueError: as `pack`; if `query_length` is less than 1 or leaves no room for the
                document; if `stride` is less than 1, or more than this room, so that tokens would
                be lost. The check assumes that each query has `query_length` tokens, so it does
                not depend on the texts.
        """
        budget = self.count_places(len(segments))
        stride, query_length = choose_stride(
            self.sequence_length, budget, len(segments) - 1, stride, query_length
        )
        xp, ragged, batched = tokenize_segments(self.tokenizer, segments)
        windows, row_ids = slide_windows(xp, ragged, budget, stride, query_length)
        numbered = [
            (number_tokens(xp, segment), starts, lengths)
            for segment, (_, starts, lengths) in zip(ragged, windows, strict=True)
        ]
        return {**self.pack_numbered(windows, numbered, batched), "row_ids": row_ids}

    def pack_tokens(
        self, ids: Any, starts: Any, lengths: Any, queries: Sequence[Any] = ()
    ) -> dict[str, Tensor]:
        """Packs texts that are tokenized already.

        Args:
            ids: int32 (T,), token ids.
            starts, lengths: int32 (B,), where in `ids` each row begins, and how many tokens it
                has. All three are NumPy arrays, or all three are TensorFlow tensors.
            queries: triples `(ids, starts, lengths)` of further texts that stand before the text
                in each row, such as a question.

        Returns:
            dict of int32 (B, L), as from `pack`, and `token_indices`, the position of each token in
            `ids`, -1 on special tokens, padding and tokens of queries.
        """
        xp = choose_namespace(ids)
        places = (xp.cast(xp.arange(xp.shape(ids)[0])), starts, lengths)
        no_places = [(xp.zeros_like(query) - 1, *where) for query, *where in queries]
        return self.pack_numbered([*queries, (ids, starts, lengths)], [*no_places, places])

    def suggest_sequence_length(self, *segments: Any, coverage: float = 0.99) -> LengthAdvice:
        """Finds the smallest sequence length that leaves most rows whole.

        A sample of some thousand rows is enough for a large corpus.

        ```python
        advice = packer.suggest_sequence_length(texts)
        print(advice)
        packer.sequence_length = advice.sequence_length
        ```

        Args:
            *segments: as for `pack`, not inside a graph.
            coverage: float, the share of rows that must stay whole.

        Returns:
            `LengthAdvice`.
        """
        _, ragged, _ = tokenize_segments(self.tokenizer, segments)
        lengths = [np.asarray(lengths, "int64") for _, _, lengths in ragged]
        lengths = self.row_template.count_tokens(lengths)
        return advise_length(lengths, coverage, [self.sequence_length])

    def allowed_lengths(self, batched: bool = True) -> tuple[int, ...] | None:
        """The lengths to which a batch may be padded, ascending; None allows any length."""
        if not batched:
            return (self.sequence_length,)
        return self.run_lengths or list_lengths(self.sequence_length, self.padding_lengths)

    def count_places(self, num_segments: int = 1) -> int:
        """int, how many tokens the `num_segments` texts of a row may have together."""
        return count_places(self.sequence_length, num_segments, template=self.row_template)

    def _pack(self, xp, ragged, batched, template=None):
        settings = {
            "sequence_length": self.sequence_length,
            "template": template or self.row_template,
            "truncation": self.truncation,
            "head_length": self.head_length,
            "allowed_lengths": self.allowed_lengths(batched),
        }
        if template is None and isinstance(self.tokenizer, CharacterTokenizer):
            return pack_characters(xp, ragged, self.tokenizer, **settings)
        return pack_segments(xp, ragged, **settings)

    def pack_numbered(
        self, ragged: Sequence[Any], numbers: Sequence[Any], batched: bool = True
    ) -> dict[str, Tensor]:
        """Packs texts that are tokenized, and a number of each token beside it.

        Args:
            ragged: triples `(ids, starts, lengths)`, as for `pack_tokens`, one for each text of a
                row.
            numbers: as `ragged`, with int32 numbers instead of ids.
            batched: bool, False pads to `sequence_length`.

        Returns:
            dict of int32 (B, L), as from `pack`, and `token_indices`, the numbers of the tokens, -1
            on special tokens and padding.
        """
        xp, template = choose_namespace(ragged[0][0]), self.row_template.number_places()
        indices = self._pack(xp, numbers, batched, template)["token_ids"]
        return {**self._pack(xp, ragged, batched), "token_indices": indices}

    def get_config(self) -> Config:
        config = super().get_config()
        del config["truncate"]  # KerasHub's argument for `truncation`.
        return {
            **config,
            "sequence_length": self.sequence_length,
            "truncation": self.truncation,
            "head_length": self._head_length,
            "padding_lengths": self.padding_lengths,
            "segment_ids": self.segment_ids and list(self.segment_ids),
            "add_special_tokens": self.add_special_tokens,
        }
