"""More rows from few: texts with changed words, whose labels are taken to be the same."""

import functools
import inspect
import re
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from typing import Any

import grain
import numpy as np

from keras_bert_suite.argument_checks import check_integer, check_share, with_article
from keras_bert_suite.data.arrays import check_same_rows, holds_texts, name_columns, take_rows
from keras_bert_suite.data.row_orders import find_batch, shuffled_by_length
from keras_bert_suite.data.rows import read_texts
from keras_bert_suite.tokenizers.joining import join_words
from keras_bert_suite.tokenizers.unicode_rules import CJK, parse_ranges

_CJK = "".join(f"{chr(first)}-{chr(last)}" for first, last in parse_ranges(CJK))
#: A Chinese character, or a word of letters, digits and the marks inside of it.
_WORD = re.compile(rf"([{_CJK}]|[^\W{_CJK}]+(?:['’-][^\W{_CJK}]+)*)")


def edit_words(
    texts: Sequence[str],
    seed: int | np.random.Generator = 0,
    *,
    rate: float = 0.1,
    synonyms: Mapping[str, Sequence[str]] | None = None,
    word_segmenter: Callable[[str], list[str]] | None = None,
) -> list[str]:
    """Makes a new text of each text, by one of the operations of EDA, drawn for each text.

    Words are swapped or deleted. With `synonyms`, words are also replaced, or synonyms of words are
    put in at random places. Use it where rows are few. To change a text in other ways in each
    epoch, see `AugmentedRows`.

    >>> edit_words(["a gripping , funny film"], seed=1)
    ['a funny , gripping film']

    Args:
        texts: N str. A text without words stays as it is.
        seed: int, or a generator.
        rate: float, the share of the words of a text that is changed. It is at least one word.
        synonyms: dict of a word in lower case -> its synonyms; or None.
        word_segmenter: function from a str to the list of its words, such as `jieba.lcut`. None
            takes a Chinese character for a word.

    Returns:
        list of N str.

    Raises:
        ValueError: if a text is no string, `rate` is not from 0 to 1, or the synonyms of a word are
            no list.

    Source: Wei and Zou, 2019 (https://arxiv.org/abs/1901.11196), section 2. Unlike there, words
    keep their case, punctuation stays, and the words that synonyms replace may be stop words.
    """
    check_share("rate", rate)
    rng = np.random.default_rng(seed)
    operations = [_swap, _delete]
    if synonyms:
        if not hasattr(synonyms, "get"):
            raise ValueError(
                "synonyms must be a dict of a word -> the list of its synonyms, got "
                f"{synonyms!r:.80}."
            )
        operations += [_replace_by_synonyms, functools.partial(_replace_by_synonyms, insert=True)]
    edited = []
    for text in read_texts(texts):
        parts = split_words(text, word_segmenter)
        if len(parts) > 1:
            number = max(1, round(rate * (len(parts) // 2)))
            parts = operations[rng.integers(len(operations))](parts, number, rng, synonyms)
        edited.append("".join(parts))
    return edited


def replace_words(
    texts: Sequence[str],
    seed: int | np.random.Generator = 0,
    *,
    masked_lm: Any,
    rate: float = 0.15,
    top_k: int = 5,
    word_segmenter: Callable[[str], list[str]] | None = None,
) -> list[str]:
    """Makes a new text of each text: a masked LM guesses other words in the place of some.

    The model sees the text and not its label, so it may put "bad" in the place of "good". Adapt it
    to your texts first, see `MaskedLM`, and read some of the new texts.

    Args:
        texts, seed, word_segmenter: as for `edit_words`.
        masked_lm: `MaskedLM` of single texts.
        rate: float, the share of the words of a text that is replaced. It is at least one word.
        top_k: int. A word is drawn from the model's `top_k` guesses by their probabilities, without
            the word itself. A word of several Chinese characters is guessed character by character.

    Returns:
        list of N str.

    Raises:
        ValueError: if a text is no string, `rate` is not from 0 to 1, `top_k` is below 1, or
            `masked_lm` is no `MaskedLM` with a preprocessor.

    Source: Kobayashi, 2018 (https://arxiv.org/abs/1805.06201), with BERT as in Wu et al., 2019
    (https://arxiv.org/abs/1812.06705).
    """
    check_share("rate", rate)
    check_integer("top_k", top_k, at_least=1)
    check_masked_lm(masked_lm)
    rng = np.random.default_rng(seed)
    tokenizer = masked_lm.preprocessor.tokenizer
    texts = read_texts(texts)
    rows, places, masked = [split_words(text, word_segmenter) for text in texts], {}, []
    for row, parts in enumerate(rows):
        words = range(1, len(parts), 2)
        if not len(words) or tokenizer.mask_token in texts[row]:
            continue
        number = max(1, round(rate * len(words)))
        chosen = sorted(rng.choice(words, number, replace=False).tolist())
        places[row] = [(i, part) for i in chosen for part in _find_masked_parts(parts[i])]
        hidden = list(parts)
        for i in chosen:
            hidden[i] = tokenizer.mask_token * len(_find_masked_parts(parts[i]))
        masked.append("".join(hidden))
    guesses = []
    if masked:
        guesses = masked_lm.predict(masked, top_k=top_k + 1, whole_words=True, verbose=0)
    for (row, slots), found in zip(places.items(), guesses, strict=True):
        # Masks beyond the row of the model have no guesses.
        pairs = zip(slots, found, strict=False)
        drawn = [_draw(part, slot, top_k, tokenizer, rng) for (_, part), slot in pairs]
        drawn += [part for _, part in slots[len(drawn) :]]
        for i in {i for i, _ in slots}:
            rows[row][i] = "".join(w for (j, _), w in zip(slots, drawn, strict=True) if i == j)
    return ["".join(parts) for parts in rows]


class AugmentedRows(grain.MapDataset):
    """Batches of rows for `fit`, in which a share of the texts is changed anew in each epoch.

    Labels stay as they are. Rows come in a fresh order in each epoch, and rows of similar length
    share a batch. The same seed gives the same batches, also in a training that resumes. With a
    `TextNoise`, a row depends only on the seed, the epoch and the index of the row.

    ```python
    classifier.fit(kbs.AugmentedRows(texts, labels, kbs.edit_words), epochs=10)

    augment = functools.partial(kbs.replace_words, masked_lm=masked_lm)
    classifier.fit(kbs.AugmentedRows(texts, labels, augment), epochs=10)
    ```

    Args:
        x: texts as for `fit`: a column, or a tuple, dict or DataFrame of columns. For a
            `TextNoise`, also lists of words.
        y: labels as for `fit`.
        augment: function(texts, rng) -> texts, such as `edit_words` or a `TextNoise`.
        batch_size: int.
        share: float, the probability that a row of a batch is changed.
        seed: int.
        features: names of the columns of `x` that are no texts and stay as they are, such as
            `classifier.features`. Call `classifier.learn_features(x)` before `fit`.

    Raises:
        ValueError: if `x` has no texts, or the columns of `x` and `y` differ in their rows; from
            `fit`, if the labels of a task point at places of texts that are changed.
    """

    def __init__(
        self,
        x: Any,
        y: Any,
        augment: Callable[[list[str], np.random.Generator], list[str]],
        batch_size: int = 32,
        *,
        share: float = 0.5,
        seed: int = 0,
        features: Collection[str] | None = None,
    ) -> None:
        super().__init__()
        check_integer("batch_size", batch_size, at_least=1)
        check_share("share", share)
        if not callable(augment):
            raise ValueError(
                "augment must be a function(texts, rng) that returns texts, such as edit_words or "
                f"TextNoise('swap'), got {augment!r}."
            )
        self.features = frozenset(features or ())
        self.x, self.y, self.augment = name_columns(x), y, augment
        self.batch_size, self.share, self.seed = batch_size, share, seed
        self._by_row = getattr(augment, "by_row", False)
        may_hold = holds_rows if self._by_row else holds_texts
        if not all(map(may_hold, self._texts_of(self.x))):
            raise ValueError(
                "AugmentedRows changes texts, so x must be columns of strings, and `features` the "
                "names of its other columns."
            )
        check_same_rows(self.x, y)
        lengths = np.sum([[len(text) for text in c] for c in self._texts_of(self.x)], axis=0)
        self._order = shuffled_by_length(lengths, batch_size, seed)
        self._num_batches = -(-len(lengths) // batch_size)

    def __len__(self) -> int:
        return self._num_batches

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self.slice(index)
        epoch, batch = find_batch(index, self._num_batches)
        entries = self._order(epoch)[batch * self.batch_size : (batch + 1) * self.batch_size]
        x = take_rows(self.x, entries)
        if self._by_row:
            for i, entry in enumerate(entries):
                self._change(x, [i], np.random.default_rng([self.seed, epoch, entry]))
        else:
            self._change(x, range(len(entries)), np.random.default_rng([self.seed, epoch, batch]))
        return x, take_rows(self.y, entries)

    def _change(self, x, places, rng):
        """Changes a share of the rows of a batch that are at these places."""
        chosen = [
            i
            for i, drawn in zip(places, rng.random(len(places)), strict=True)
            if drawn < self.share
        ]
        for column in self._texts_of(x):
            changed = self.augment([column[i] for i in chosen], rng)
            for i, text in zip(chosen, changed, strict=True):
                column[i] = text

    def check_task(self, task: Any) -> None:
        """Raises a ValueError if the labels of a task point at places of the changed texts."""
        names = list(self.x) if isinstance(self.x, dict) else [*range(len(self._texts_of(self.x)))]
        changed = [name for name in names if name not in self.features]
        columns = dict(zip(changed, self._texts_of(self.x), strict=True))
        task.data.check_changed(columns, names)

    def _texts_of(self, x):
        if isinstance(x, dict):
            return [column for name, column in x.items() if name not in self.features]
        return x if isinstance(x, tuple) else [x]


def holds_rows(column):
    """Whether a column holds texts, or lists of words."""
    is_words = len(column) and all(isinstance(row, (list, tuple)) for row in column)
    return all(map(holds_texts, filter(len, column))) if is_words else holds_texts(column)


def split_words(text, word_segmenter):
    """The parts of a text that join to it: parts at odd places are words."""
    if word_segmenter is None:
        return _WORD.split(text)
    parts = [""]
    for token in word_segmenter(text):
        if any(map(str.isalnum, token)):
            parts += [token, ""]
        else:
            parts[-1] += token
    return parts


def _draw_words(parts, number, rng):
    """The places of `number` different words, or of all of them."""
    words = np.arange(1, len(parts), 2)
    return rng.choice(words, min(number, len(words)), replace=False).tolist()


def _swap(parts, number, rng, synonyms):
    for _ in range(number):
        first, *second = _draw_words(parts, 2, rng)
        for other in second:
            parts[first], parts[other] = parts[other], parts[first]
    return parts


def _delete(parts, number, rng, synonyms):
    """Deletes words, but not the last that is left, with the space before them."""
    number = min(number, len(parts) // 2 - 1)
    for i in sorted(_draw_words(parts, number, rng), reverse=True):
        after = parts[i + 1]
        has_space = not after or after[0].isspace()
        before = parts[i - 1].rstrip() if has_space and i > 1 else parts[i - 1]
        parts[i - 1 : i + 2] = [before + (after if i > 1 else after.lstrip())]
    return parts


def _replace_by_synonyms(parts, number, rng, synonyms, insert=False):
    """Puts synonyms in the place of words, or after any words."""
    known = [i for i in range(1, len(parts), 2) if synonyms.get(parts[i].lower())]
    for i in rng.permutation(known)[:number]:
        choices = synonyms.get(parts[i].lower())
        if isinstance(choices, (str, bytes, Set)) or not hasattr(choices, "__getitem__"):
            raise ValueError(
                f"The synonyms of {parts[i].lower()!r} must be a list of words, got "
                f"{choices!r:.80}. Put a single one into a list, and sort a set, so that a seed "
                "gives the same texts."
            )
        synonym = choices[rng.integers(len(choices))]
        if insert:
            i = _draw_words(parts, 1, rng)[0]
            parts[i] = join_words([parts[i], synonym])
        else:
            parts[i] = keep_case(parts[i], synonym)
    return parts


def check_masked_lm(model: Any) -> None:
    """Raises a ValueError if a model does not guess words in the place of masks in texts."""
    predict = getattr(model, "predict", None)
    if predict is None or "whole_words" not in inspect.signature(predict).parameters:
        raise ValueError(
            f"masked_lm must be a MaskedLM of keras_bert_suite, got {with_article(model)}. Open "
            "one: MaskedLM.from_preset(checkpoint)."
        )
    if getattr(model.preprocessor, "tokenizer", None) is None:
        raise ValueError(
            f"masked_lm reads texts, got {with_article(model)} with the preprocessor "
            f"{model.preprocessor!r}. Set masked_lm.preprocessor to a SegmentPacker."
        )


def _find_masked_parts(word):
    """The meaning of each mask: the characters of a Chinese word, or the word."""
    return list(word) if re.fullmatch(f"[{_CJK}]+", word) else [word]


def _draw(word, guesses, top_k, tokenizer, rng):
    """One of the `top_k` best other guesses for a word, or the word itself if none is a word."""
    found = [(tokenizer.detokenize([tokenizer.token_to_id(t)]).strip(), p) for t, p in guesses]
    found = [(w, p) for w, p in found if w.lower() != word.lower()][:top_k]
    found = [(w, p) for w, p in found if _WORD.fullmatch(w)]
    if not found:
        return word
    words, weights = zip(*found, strict=True)
    weights = np.array(weights, "float64")
    drawn = words[rng.choice(len(words), p=weights / weights.sum())]
    return keep_case(word, drawn)


def keep_case(word, other):
    """Another word in the case of a word: with a capital if the word has one."""
    return other.capitalize() if word.istitle() and other.islower() else other
