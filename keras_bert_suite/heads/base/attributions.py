"""What each token of a text has to do with an answer, also by words, as HTML and as a picture."""

import dataclasses
import html
from typing import Any, NamedTuple

import numpy as np

from keras_bert_suite.annotations import PathLike

#: The colours of scores that raise the target and that lower it: red, green, blue.
RAISES, LOWERS = (0, 114, 178), (213, 94, 0)


class WordScore(NamedTuple):
    """A word of a row, with the sum of the scores of its tokens.

    Attributes:
        word: str, as the text has it; or its tokens, where their places are not known.
        score: float.
        column, start, end: int, the text of the row and the characters `text[start:end]` of the
            word in it; None where they are not known.
    """

    word: str
    score: float
    column: int | None
    start: int | None
    end: int | None


@dataclasses.dataclass(frozen=True)
class Attribution:
    """The scores of the tokens of a row, special tokens included.

    Attributes:
        tokens: list of T str, the tokens as the vocabulary spells them.
        scores: float64 (T,).
        target: str, what the scores are about.
        texts: tuple of str, the texts of the row.
        places: list of T triples (column, start, end): the token is made of
            `texts[column][start:end]`. None for special tokens, and for all tokens of rows that a
            task packs in a way of its own.
        begins: list of T bool, whether a word begins at the token.
        output, baseline_output: float, the target for the row and for the baseline; None for
            attention. The scores of integrated gradients sum to their difference.
    """

    tokens: list[str]
    scores: np.ndarray
    target: str
    texts: tuple[str, ...]
    places: list[tuple[int, int, int] | None]
    begins: list[bool]
    output: float | None = None
    baseline_output: float | None = None

    @property
    def error(self) -> float:
        """float, how far the sum of the scores is from the difference of the outputs."""
        if self.output is None or self.baseline_output is None:
            raise ValueError("The scores of attention are no parts of a difference of outputs.")
        return float(abs(self.scores.sum() - (self.output - self.baseline_output)))

    def words(self) -> list[WordScore]:
        """The words of the row with their scores, the special tokens each by itself."""
        first = np.flatnonzero(self.begins).tolist()
        ends = [*first[1:], len(self.tokens)]
        return [self._join(begin, end) for begin, end in zip(first, ends, strict=True)]

    def _join(self, begin: int, end: int) -> WordScore:
        score = float(self.scores[begin:end].sum())
        places = [place for place in self.places[begin:end] if place is not None]
        if len(places) < end - begin:
            return WordScore("".join(self.tokens[begin:end]), score, None, None, None)
        column, start, stop = places[0][0], places[0][1], places[-1][2]
        return WordScore(self.texts[column][start:stop], score, column, start, stop)

    def to_html(self) -> str:
        """A page that shows the words of the row on coloured ground. It needs no other file.

        Blue words raise the target, and orange ones lower it. A word shows its score when the
        pointer is on it.
        """
        words = self.words()
        largest = max((abs(word.score) for word in words), default=0.0) or 1.0
        shown = " ".join(_color_word(word, largest) for word in words)
        facts = html.escape(self.target)
        if self.output is not None and self.baseline_output is not None:
            facts += f": {self.output:.4f}, of the baseline {self.baseline_output:.4f}"
        return (
            '<!DOCTYPE html>\n<html><head><meta charset="utf-8">'
            f"<title>{html.escape(self.target)}</title></head>\n"
            '<body style="font-family: sans-serif; line-height: 1.8">'
            f"<p>{facts}</p>\n<p>{shown}</p></body></html>\n"
        )

    def draw(self, path: PathLike | None = None) -> Any:
        """Draws a bar for each word. It needs matplotlib.

        Args:
            path: str or path of a PNG, or None.

        Returns:
            a figure of matplotlib, which a notebook shows.
        """
        from keras_bert_suite.pictures import draw_scores

        words = self.words()
        names = [word.word for word in words]
        colors = ["#{:02x}{:02x}{:02x}".format(*_choose_color(word.score)) for word in words]
        return draw_scores(names, [word.score for word in words], colors, self.target, path)


def _choose_color(score: float) -> tuple[int, int, int]:
    return RAISES if score >= 0 else LOWERS


def _color_word(word: WordScore, largest: float) -> str:
    red, green, blue = _choose_color(word.score)
    ground = f"rgba({red},{green},{blue},{0.6 * abs(word.score) / largest:.3f})"
    return (
        f'<span style="background: {ground}; padding: 0.15em; border-radius: 0.2em" '
        f'title="{word.score:.4g}">{html.escape(word.word)}</span>'
    )


def describe_row(data: Any, packed: Any, texts: tuple[str, ...]) -> dict[str, Any]:
    """The arguments `tokens`, `texts`, `places` and `begins` of an `Attribution`.

    Args:
        data: the part `data` of a task with a `SegmentPacker`.
        packed: dict of int (1, ..., L), the row as the task packs it.
        texts: its texts.
    """
    tokenizer = data.packer.tokenizer
    ids = packed["token_ids"].reshape(-1)[find_tokens(packed)]
    is_text = mark_text(tokenizer, ids)
    continues = tokenizer.find_continuations()[ids] & is_text & np.roll(is_text, 1)
    places = find_places(data.packer, packed, texts)
    return {
        "tokens": [tokenizer.id_to_token(int(token)) for token in ids],
        "texts": texts,
        "places": places or [None] * len(ids),
        "begins": (~continues).tolist() if len(ids) else [],
    }


def find_tokens(packed: Any) -> np.ndarray:
    """bool (N,), which places of a packed row are no padding, one window after the other."""
    return packed["padding_mask"].reshape(-1) != 0


def mark_text(tokenizer: Any, ids: np.ndarray) -> np.ndarray:
    """bool, whether ids are of texts. The unknown token is special, and stands for a text."""
    special = np.isin(ids, tokenizer.special_token_ids)
    return ~special | (ids == tokenizer.unknown_token_id)


def find_places(packer: Any, packed: Any, texts: tuple[str, ...]) -> list[Any] | None:
    """The `places` of an `Attribution`; None if the row is not packed as `packer` packs texts."""
    if packed["token_ids"].ndim != 2 or not texts:  # Words that were cut before are no texts.
        return None
    rows = packer.tokenizer.tokenize_with_offsets(list(texts))
    segments, numbers = [], []
    place_of: list[tuple[int, int, int]] = []
    for column, (ids, offsets, _) in enumerate(rows):
        size = np.array([len(ids)], "int32")
        first = len(place_of)
        segments.append((np.array(ids, "int32"), size * 0, size))
        numbers.append((np.arange(first, first + len(ids), dtype="int32"), size * 0, size))
        place_of += [(column, int(start), int(end)) for start, end in offsets]
    try:
        again = packer.pack_numbered(segments, numbers)
    except ValueError:  # The packer has no segment for so many texts.
        return None
    mask = again["padding_mask"][0] != 0
    found = packed["token_ids"][0][packed["padding_mask"][0] != 0]
    if not np.array_equal(again["token_ids"][0][mask], found):
        return None
    return [place_of[i] if i >= 0 else None for i in again["token_indices"][0][mask]]
