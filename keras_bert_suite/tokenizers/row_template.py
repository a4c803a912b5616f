"""Where the special tokens of a packed row stand."""

import dataclasses
from collections.abc import Sequence
from typing import Any, Self

from keras_bert_suite.argument_checks import check_choice, check_integer

PLACES = ("first", "last")
SIDES = ("right", "left")


@dataclasses.dataclass(frozen=True)
class RowTemplate:
    """Where the special tokens and the padding of a row stand. A tokenizer gives it.

    | model | row |
    | --- | --- |
    | BERT | `[CLS] A [SEP] B [SEP]`, then padding |
    | RoBERTa | `<s> A </s></s> B </s>`, then padding |
    | XLNet | padding, then `A <sep> B <sep> <cls>` |
    | static vectors | `A B`, then padding |

    Some positions are known before it is known how far the rows of a batch are padded. They are
    counted from the origin of a row: its first place, or behind its last place if padding is on the
    left. So position -1 is then the last place.

    Attributes:
        start_token_id: int, the token whose state stands for the row: [CLS], the summary token.
        end_token_id: int, the token after each text.
        pad_token_id: int.
        num_separators: int, how many end tokens stand between two texts.
        has_segment_ids: bool, whether the texts of a row are told apart by `segment_ids`.
        summary_place: "first" or "last", the place of the summary token among the tokens of a row.
        summary_segment: int, its segment; None for the segment of the text beside it.
        padding_side: "right" or "left".
        segment_ids: tuple of the segment of each text; None for 0, 1, 2 and so on.
        has_special_tokens: bool, whether there are a summary token, and an end token after each
            text. A row without them and without text is all padding.

    Raises:
        ValueError: if the place or the side is another; or if there are `segment_ids` that are
            below 0, or where texts are not told apart by them.
    """

    start_token_id: int
    end_token_id: int
    pad_token_id: int
    num_separators: int = 1
    has_segment_ids: bool = True
    summary_place: str = "first"
    summary_segment: int | None = None
    padding_side: str = "right"
    segment_ids: tuple[int, ...] | None = None
    has_special_tokens: bool = True

    def __post_init__(self) -> None:
        check_choice("summary_place", self.summary_place, PLACES)
        check_choice("padding_side", self.padding_side, SIDES)
        if self.segment_ids is None:
            return
        for segment in self.segment_ids:
            check_integer("an entry of segment_ids", segment)
        if not self.has_segment_ids:
            raise ValueError(
                f"segment_ids={self.segment_ids} are for models that tell the texts of a row apart "
                "by segments. The models of this tokenizer see separators alone. Leave them out."
            )

    def list_segments(self, num_texts: int) -> Sequence[int]:
        """The segment of each text of a row. Raises ValueError if they are for another number."""
        if self.segment_ids is None:
            return range(num_texts)
        if len(self.segment_ids) != num_texts:
            raise ValueError(
                f"segment_ids={self.segment_ids} are for rows of {len(self.segment_ids)} texts, "
                f"got rows of {num_texts}. Name the segment of each text, or set segment_ids=None."
            )
        return self.segment_ids

    def count_tokens(self, lengths: Any) -> Any:
        """The tokens of a row, special tokens included. `lengths`: see `find_text`."""
        return sum(lengths) + self.count_special_tokens(len(lengths))

    def count_special_tokens(self, num_texts: int) -> int:
        """The special tokens of a row of texts."""
        return (
            count_special_tokens(num_texts, self.num_separators) if self.has_special_tokens else 0
        )

    def find_origin(self, row_length: Any) -> Any:
        """The position of the origin in rows that are padded to `row_length` places."""
        return row_length if self.padding_side == "left" else 0

    def find_text(self, lengths: Any) -> Any:
        """The position of the first token of the last text, counted from the origin.

        Args:
            lengths: list of the number of tokens of each text of a row, int or int array (B,).
        """
        texts, num_texts = sum(lengths[:-1]), len(lengths)
        before = texts + (num_texts - 1) * self.num_between + self.num_leading
        return before - self.find_origin(self.count_tokens(lengths))

    def find_summary(self, lengths: Any) -> Any:
        """The position of the summary token, counted from the origin. `lengths`: see `find_text`.

        >>> RowTemplate(2, 3, 0).find_summary([5, 7])
        0

        Raises:
            ValueError: if there is no such token.
        """
        if not self.has_special_tokens:
            raise ValueError(
                "Rows without special tokens have no token that stands for a row. Use a "
                "SegmentPacker with add_special_tokens=True."
            )
        num_tokens = self.count_tokens(lengths)
        place = 0 if self.summary_place == "first" else num_tokens - 1
        return place - self.find_origin(num_tokens)

    @property
    def num_leading(self) -> int:
        """int, the special tokens before the first text."""
        return int(self.has_special_tokens and self.summary_place == "first")

    @property
    def num_between(self) -> int:
        """int, the special tokens between two texts."""
        return self.num_separators if self.has_special_tokens else 0

    def number_places(self) -> Self:
        """A template to pack numbers of tokens instead of ids. Special tokens are -1."""
        return dataclasses.replace(self, start_token_id=-1, end_token_id=-1, pad_token_id=-1)


def count_special_tokens(num_segments: int, num_separators: int) -> int:
    """Counts the special tokens of a row with `num_separators` end tokens between two texts."""
    return 2 + (num_segments - 1) * num_separators
