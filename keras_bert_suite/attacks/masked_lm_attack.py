"""Puts words in the place of others that a masked LM finds likely there."""

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from keras_bert_suite.argument_checks import check_integer, check_share
from keras_bert_suite.attacks.attack import Attack, Search, choose_worst
from keras_bert_suite.attacks.deep_word_bug import leave_out
from keras_bert_suite.attacks.stop_words import read_stop_words
from keras_bert_suite.data.arrays import as_array
from keras_bert_suite.data.augmentation import check_masked_lm, keep_case, split_words

#: Accepts changed texts: function(text, changed texts) -> a bool for each of them.
Accept = Callable[[str, list[str]], Sequence[bool]]


class MaskedLMAttack(Attack):
    """Replaces the words that decide by words that fit in, after BERT-ATTACK.

    Unlike a misspelling, the new text reads well, but it may mean something else: "a dull film" for
    "a great film" is no fault of the classifier. Read the changed texts of the report, and pass
    `accept` to leave out changed texts of another meaning.

    ```python
    def accept(text, changed):  # True for a vector that is close to that of the text
        vectors = embedder.predict([text, *changed], verbose=0)
        return vectors[1:] @ vectors[0] > 0.8

    attack = kbs.MaskedLMAttack(masked_lm, accept=accept)
    report = kbs.robustness(classifier, dev.x, dev.y, attacks=[attack])
    ```

    Args:
        masked_lm: `MaskedLM` of single texts. Its guesses are not counted as queries.
        top_k: int, how many guesses are tried for a word.
        share: float, the largest share of the words of a text that is replaced.
        stop_words: words in lower case that neither are replaced nor replace others. None for
            English ones of this package, negations among them.
        accept: function(text, changed texts) -> list of bool, or None for all.

    Raises:
        ValueError: for a `masked_lm` that is no `MaskedLM` with a preprocessor, a `top_k` below 1,
            a `share` that is not over 0 and at most 1, or stop words that are no list; from
            `kbs.robustness`, if `accept` does not return a bool for each changed text.

    Source: Li et al., 2020 (https://arxiv.org/abs/2004.09984), section 3. As there, a word counts
    by how much the probability of the label falls without it, words are replaced in this order, the
    first wrong answer ends the search, and otherwise the guess stays that lowers the probability
    most. The differences: a word is left out where there the mask token stands; the masked LM sees
    the mask token in the place of the word, and not the word; a guess is one token that is a word,
    so words of several tokens are replaced by one; and there is no filter by counter-fitted
    vectors, but `accept`.
    """

    name = "masked LM"

    def __init__(
        self,
        masked_lm: Any,
        *,
        top_k: int = 48,
        share: float = 0.4,
        stop_words: Collection[str] | None = None,
        accept: Accept | None = None,
    ) -> None:
        check_integer("top_k", top_k, at_least=1)
        check_share("share", share, positive=True)
        check_masked_lm(masked_lm)
        self.masked_lm, self.top_k, self.share, self.accept = masked_lm, top_k, share, accept
        self.stop_words = read_stop_words(stop_words)

    def prepare(self, texts: Sequence[str]) -> list[dict[int, list[str]]]:
        """dict of the place of a word in `split_words` -> the words that may replace it, by text.

        One prediction of the masked LM has all words of all texts.
        """
        rows = [split_words(text, None) for text in texts]
        tokenizer = self.masked_lm.preprocessor.tokenizer
        slots = [
            (row, place)
            for row, parts in enumerate(rows)
            for place in range(1, len(parts), 2)
            if parts[place].lower() not in self.stop_words
            and tokenizer.mask_token not in texts[row]
        ]
        masked = [
            "".join([*rows[row][:place], tokenizer.mask_token, *rows[row][place + 1 :]])
            for row, place in slots
        ]
        guesses = []
        if masked:
            guesses = self.masked_lm.predict(masked, top_k=self.top_k, whole_words=True, verbose=0)
        found: list[dict[int, list[str]]] = [{} for _ in texts]
        for (row, place), ranked in zip(slots, guesses, strict=True):
            # A mask beyond the row of the model has no guesses.
            tokens = [token for token, _ in ranked[0]] if ranked else []
            found[row][place] = self._list_words(rows[row][place], tokens, tokenizer)
        return found

    def search(
        self,
        text: str,
        label: int,
        probabilities: np.ndarray,
        prepared: Any,
        rng: np.random.Generator,
    ) -> Search:
        parts = split_words(text, None)
        places = [place for place, words in prepared.items() if words]
        if not places:
            return text, 0, label
        scores = score_importance(
            label, probabilities, *(yield [leave_out(parts, place) for place in places])
        )
        most = int(self.share * (len(parts) // 2))
        likely, changed, predicted = float(probabilities[label]), 0, label
        for i in np.argsort(-scores, kind="stable"):
            if changed >= most:
                break
            place = places[i]
            tried = ["".join([*parts[:place], w, *parts[place + 1 :]]) for w in prepared[place]]
            words = prepared[place]
            if self.accept is not None:
                kept = np.flatnonzero(_read_accepted(self.accept(text, tried), len(tried)))
                words, tried = [words[j] for j in kept], [tried[j] for j in kept]
            if not tried:
                continue
            best, found, lowest = choose_worst(label, (yield tried))
            if found != label or lowest < likely:
                parts[place], likely, predicted = words[best], lowest, found
                changed += 1
            if found != label:
                break
        return "".join(parts), changed, predicted

    def _list_words(self, word, tokens, tokenizer):
        """The guesses that are words, other than the word itself, in its case."""
        spelled = (tokenizer.detokenize([tokenizer.token_to_id(token)]).strip() for token in tokens)
        return [
            keep_case(word, guess)
            for guess in dict.fromkeys(spelled)
            if len(split_words(guess, None)) == 3
            and "".join(split_words(guess, None)[::2]) == ""
            and guess.lower() not in {word.lower(), *self.stop_words}
        ]


def _read_accepted(answer, number):
    """bool (N,), the answer of `accept` for N texts. Scores, which are no bool, are refused."""
    accepted = as_array(answer)
    if accepted.shape != (number,) or accepted.dtype.kind not in "biu":
        raise ValueError(
            f"accept must return a bool for each of {number} changed texts, got {answer!r:.80}. "
            "Compare scores with a limit, such as `scores > 0.8`."
        )
    return accepted.astype(bool)


def score_importance(
    label: int, probabilities: np.ndarray, ids: np.ndarray, found: np.ndarray
) -> np.ndarray:
    """float (N,), how much N words matter, from the answers (ids, probabilities) without each.

    It is the loss of probability of the label, and where the answer is another class also the gain
    of that class.
    """
    ids, found = np.asarray(ids), np.asarray(found, "float64")
    gained = found[np.arange(len(ids)), ids] - np.asarray(probabilities, "float64")[ids]
    return probabilities[label] - found[:, label] + np.where(ids != label, gained, 0.0)
