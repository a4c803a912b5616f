"""Attacks, against transcriptions of their papers, on classifiers of a few lines."""

import collections
import itertools
import types
import zlib

import numpy as np
import pytest
from small_texts import ONE_LAYER, VOCABULARY

import keras_bert_suite as kbs
from keras_bert_suite.attacks.attack import attack_rows
from keras_bert_suite.attacks.deep_word_bug import edit_word, list_scored_texts, score_words
from keras_bert_suite.attacks.masked_lm_attack import score_importance
from keras_bert_suite.attacks.misspelling_attack import misspell
from keras_bert_suite.data.augmentation import split_words

KEYS = {"a": "qs", "s": "aw", "q": "a", "w": "qs"}


class Victim:
    """A classifier whose probabilities are hashes of texts. It notes what it is asked."""

    def __init__(self, bias=0.0):
        self.bias, self.asked, self.calls = bias, [], 0

    def likely(self, text):
        """The probability of class 0."""
        return min(1.0, zlib.crc32(text.encode()) / 2**32 * (1 - self.bias) + self.bias)

    def __call__(self, texts):
        self.calls += 1
        self.asked += texts
        likely = np.array([self.likely(text) for text in texts])
        probabilities = np.stack([likely, 1 - likely], axis=1)
        return (likely < 0.5).astype(int), probabilities


def count_edits(a, b):
    """The edit distance of two strings, in which a swap of neighbours counts as 1."""
    table = {(i, 0): i for i in range(len(a) + 1)} | {(0, j): j for j in range(len(b) + 1)}
    for i, j in itertools.product(range(1, len(a) + 1), range(1, len(b) + 1)):
        table[i, j] = min(
            table[i - 1, j] + 1,
            table[i, j - 1] + 1,
            table[i - 1, j - 1] + (a[i - 1] != b[j - 1]),
        )
        if i > 1 and j > 1 and a[i - 1] == b[j - 2] and a[i - 2] == b[j - 1]:
            table[i, j] = min(table[i, j], table[i - 2, j - 2] + 1)
    return table[len(a), len(b)]


def is_misspelling(word, other):
    """The rule of Pruthi et al.: one edit, the first and the last letter stay, a key is beside."""
    if count_edits(word, other) != 1 or (word[0], word[-1]) != (other[0], other[-1]):
        return False
    wrong = [pair for pair in zip(word, other, strict=False) if pair[0] != pair[1]]
    is_replaced = len(word) == len(other) and len(wrong) == 1
    return not is_replaced or wrong[0][1] in KEYS[wrong[0][0]]


@pytest.mark.parametrize("length", [3, 4])
def test_all_misspellings_of_a_word(length):
    """All strings of three letters are looked at; those that fit the rule are the misspellings."""
    strings = ["".join(s) for n in range(1, length + 2) for s in itertools.product("asw", repeat=n)]
    for word in map("".join, itertools.product("asw", repeat=length)):
        found = misspell(word)
        assert len(found) == len({*found})
        known = {other for other in found if {*other} <= {*"asw"}}
        near = [s for s in strings if abs(len(s) - length) < 2 and s[0] == word[0]]
        assert known == {other for other in near if is_misspelling(word, other)}, word


def list_by_hand(text, kinds):
    """The texts of all misspellings of one word of four letters or more of a text of words."""
    words = text.split()
    return [
        " ".join([*words[:i], other, *words[i + 1 :]])
        for i, word in enumerate(words)
        if len(word) >= 4 and word != "with"
        for other in misspell(word, kinds)
    ]


@pytest.mark.parametrize("kinds", [("swap",), ("delete", "keyboard"), ("insert",)])
@pytest.mark.parametrize("bias", [0.0, 0.45, 0.6])
def test_the_worst_misspelling_is_found(kinds, bias):
    """A row flips exactly if one of all its misspellings flips it."""
    victim = Victim(bias)
    texts = [f"the {word} film with acting" for word in ("dull", "great", "awful", "fine", "slow")]
    attempts = attack_rows(
        kbs.MisspellingAttack(kinds=kinds, stop_words=["with"]), victim, texts, [0] * len(texts)
    )
    was_right = 0
    for text, attempt in zip(texts, attempts, strict=True):
        others = list_by_hand(text, kinds)
        if victim.likely(text) < 0.5:
            assert (attempt.queries, attempt.changed_text) == (1, text) and attempt.is_flipped
            continue
        was_right += 1
        worst = min(others, key=victim.likely)
        assert attempt.is_flipped == (victim.likely(worst) < 0.5)
        assert attempt.changed_text in others and attempt.changed_words == 1
        if not attempt.is_flipped:
            assert attempt.changed_text == worst and attempt.queries == len(others) + 1
    assert was_right


def test_the_second_misspelling_goes_into_another_word_of_the_worst_text():
    victim = Victim(bias=0.5)  # Nothing flips.
    text = "dull film"
    (attempt,) = attack_rows(kbs.MisspellingAttack(2), victim, [text], [0])
    first = min(list_by_hand(text, ("swap", "delete", "insert", "keyboard")), key=victim.likely)
    place = [a == b for a, b in zip(first.split(), text.split(), strict=True)].index(True)
    words = first.split()
    seconds = [
        " ".join([*words[:place], other, *words[place + 1 :]]) for other in misspell(words[place])
    ]
    assert attempt.changed_text == min(seconds, key=victim.likely)
    assert attempt.changed_words == 2 and not attempt.is_flipped
    assert attempt.queries == len(victim.asked)
    (more,) = attack_rows(kbs.MisspellingAttack(3), victim, [text], [0])
    assert more.changed_words == 2, "there are two words"


def test_stop_words_short_words_and_case():
    attack = kbs.MisspellingAttack(kinds="insert")
    victim = Victim(bias=0.5)
    attack_rows(attack, victim, ["Would the FILM be bad?"], [0])
    assert all(text.startswith("Would the F") for text in victim.asked)
    assert all(text.isascii() and text.endswith("M be bad?") for text in victim.asked)
    assert len(victim.asked) == 1 + len({*misspell("FILM", ["insert"])})
    assert all(word.isupper() for word in misspell("FILM"))
    (attempt,) = attack_rows(attack, victim, ["bad to be"], [0])
    assert (attempt.queries, attempt.changed_words, attempt.is_flipped) == (1, 0, False)


def test_scores_of_words():
    """By the formulas of DeepWordBug, equations 1 to 4, with a word at a time."""
    text, victim = "a dull, slow film", Victim()
    words = ["a", "dull", "slow", "film"]
    parts = split_words(text, None)
    starts = [text.index(word) for word in words]
    ends = [start + len(word) for start, word in zip(starts, words, strict=True)]

    def likely(part):
        return victim.likely(part) if part else 1 / 2  # two classes

    heads = [
        likely(text[:end]) - likely(text[:before])
        for before, end in zip([0, *ends[:-1]], ends, strict=True)
    ]
    tails = [
        likely(text[start:]) - likely(text[after:])
        for start, after in zip(starts, [*starts[1:], len(text)], strict=True)
    ]
    wanted = {
        "head": heads,
        "tail": tails,
        "combined": [(head + tail) / 2 for head, tail in zip(heads, tails, strict=True)],
        "leave_out": [
            -np.log(victim.likely(rest))
            for rest in ("dull, slow film", "a, slow film", "a dull, film", "a dull, slow")
        ],
    }
    for score, values in wanted.items():
        asked = [victim.likely(part) for part in list_scored_texts(parts, score)]
        np.testing.assert_allclose(score_words(np.array(asked), score, 2), values, atol=1e-12)


def test_edits_of_deep_word_bug():
    """Each edit makes all words, and only those, that its definition allows."""
    word, rng = "abac", np.random.default_rng(0)
    others = "abcdefghijklmnopqrstuvwxyz"
    wanted = {
        "swap": {"baac", "aabc", "abca"},
        "delete": {"bac", "aac", "abc", "aba"},
        "insert": {word[:i] + x + word[i:] for i in range(5) for x in others},
        "substitute": {
            word[:i] + x + word[i + 1 :] for i in range(4) for x in others if x != word[i]
        },
    }
    for edit, words in wanted.items():
        found = {edit_word(word, [edit], rng) for _ in range(3000)}
        assert found == {(other, 2 if edit == "swap" else 1) for other in words}
    assert edit_word("a", ["swap"], rng) == edit_word("a", ["delete"], rng) == ("a", 0)
    assert edit_word("A", ["substitute"], rng)[0].isupper()
    drawn = collections.Counter(
        len(edit_word(word, ["delete", "insert"], rng)[0]) for _ in range(400)
    )
    assert drawn.keys() == {3, 5} and min(drawn.values()) > 140


@pytest.mark.parametrize("arguments", [{}, {"max_distance": 2}, {"max_words": 1}])
def test_deep_word_bug_edits_the_words_in_their_order(arguments):
    text, victim = "dull plot slow acting weak film", Victim(bias=0.5)
    attack = kbs.DeepWordBug(edits=["substitute", "delete"], **arguments)
    (attempt,) = attack_rows(attack, victim, [text], [0], seed=3)
    words, changed = text.split(), attempt.changed_text.split()
    places = [i for i, pair in enumerate(zip(words, changed, strict=True)) if pair[0] != pair[1]]
    parts = split_words(text, None)
    likely = np.array([victim.likely(part) for part in list_scored_texts(parts, "combined")])
    order = np.argsort(-score_words(likely, "combined", 2), kind="stable")
    count = {"max_distance": 2, "max_words": 1}.get(next(iter(arguments), ""), 6)
    assert sorted(order[:count]) == places and attempt.changed_words == count
    assert sum(count_edits(a, b) for a, b in zip(words, changed, strict=True)) == count
    assert attempt.queries == 1 + 12 + count
    # The same seed has the same edits, another has others.
    assert attack_rows(attack, victim, [text], [0], seed=3) == [attempt]
    assert attack_rows(attack, victim, [text], [0], seed=4) != [attempt]


def test_deep_word_bug_leaves_texts_that_it_cannot_edit():
    """A text without a word, and words of one letter, which have no neighbours to swap."""
    victim = Victim(bias=0.5)
    texts = ["... !", "a b"]
    found = attack_rows(kbs.DeepWordBug(edits=["swap"]), victim, texts, [0, 0])
    assert [(row.changed_text, row.changed_words) for row in found] == [(t, 0) for t in texts]
    assert [row.queries for row in found] == [1, 1 + 4]


def test_deep_word_bug_ends_at_the_first_wrong_answer():
    def ask(texts):
        likely = np.array([0.9 if "film" in text or len(text) < 24 else 0.2 for text in texts])
        return (likely < 0.5).astype(int), np.stack([likely, 1 - likely], axis=1)

    texts = ["dull plot slow acting weak film"] * 4
    attack = kbs.DeepWordBug(edits="substitute")
    for attempt in attack_rows(attack, ask, texts, [0] * 4):
        assert attempt.is_flipped and "film" not in attempt.changed_text
    assert len({a.changed_text for a in attack_rows(attack, ask, texts, [0] * 4)}) > 1


class Guesses:
    """A masked LM that guesses the same words in the place of each mask."""

    def __init__(self, *words):
        self.preprocessor = types.SimpleNamespace(tokenizer=kbs.WordPieceTokenizer(VOCABULARY))
        self.words, self.asked = words, []

    def predict(self, texts, top_k, whole_words, verbose):
        self.asked += texts
        assert whole_words and all(text.count("[MASK]") == 1 for text in texts)
        return [[[(word, 0.1) for word in self.words[:top_k]]] for _ in texts]


def test_importance_of_words():
    """By the formula of BERT-ATTACK's code, a word at a time."""
    rng = np.random.default_rng(0)
    original, without = rng.dirichlet(np.ones(3)), rng.dirichlet(np.ones(3), size=8)
    label = int(original.argmax())
    wanted = []
    for answer in without:
        gain = original[label] - answer[label]
        if answer.argmax() != label:
            gain += answer.max() - original[answer.argmax()]
        wanted.append(gain)
    assert len({answer.argmax() for answer in without}) == 3
    found = score_importance(label, original, without.argmax(axis=1), without)
    np.testing.assert_allclose(found, wanted, atol=1e-12)


def test_words_are_replaced_in_the_order_of_their_importance():
    words = ["Great", "plot", "fine", "acting", "good", "film"]
    model, victim = Guesses("dull", "not", ".", "film", "awful"), Victim(bias=0.5)
    text = " ".join(words)
    (attempt,) = attack_rows(kbs.MaskedLMAttack(model, share=0.5), victim, [text], [0])
    left_out = [" ".join([*words[:i], *words[i + 1 :]]) for i in range(6)]
    order = sorted(range(6), key=lambda i: victim.likely(left_out[i]))
    changed, likely, count = list(words), victim.likely(text), 0
    for i in order:
        if count == 3:
            break
        guesses = ["dull", "film", "awful"]  # neither stop words nor marks
        guesses = [g.capitalize() if i == 0 else g for g in guesses if g != words[i]]
        tried = [" ".join([*changed[:i], guess, *changed[i + 1 :]]) for guess in guesses]
        best = min(tried, key=victim.likely)
        if victim.likely(best) < likely:
            changed, likely, count = best.split(), victim.likely(best), count + 1
    assert attempt.changed_text == " ".join(changed) and attempt.changed_words == count > 0
    assert model.asked[0] == "[MASK] plot fine acting good film"
    assert len(model.asked) == 6, "guesses are made once, from the text itself"


def test_a_share_of_the_words_and_stop_words():
    model, victim = Guesses("dull", "awful"), Victim(bias=0.5)
    texts = ["the film was not good", "it was", "a [MASK] film"]
    attempts = attack_rows(kbs.MaskedLMAttack(model, share=0.2), victim, texts, [0] * 3)
    assert [attempt.changed_words for attempt in attempts[1:]] == [0, 0]
    assert attempts[0].changed_words <= 1 and attempts[0].queries == 1 + 2 + 2 * 2 - 2 * (
        attempts[0].changed_words and attempts[0].queries == 5
    )
    assert model.asked == ["the [MASK] was not good", "the film was not [MASK]"]


def test_changed_texts_that_are_not_accepted_are_not_asked_for():
    model, victim = Guesses("dull", "awful"), Victim(bias=0.5)
    seen = []

    def accept(text, changed):
        seen.append(text)
        return ["dull" not in other for other in changed]

    attack_rows(kbs.MaskedLMAttack(model, accept=accept, share=1.0), victim, ["good film"], [0])
    assert seen == ["good film"] * 2
    assert not any("dull" in text for text in victim.asked)


def test_searches_share_batches_and_change_nothing_by_it():
    texts = [f"the {word} film" for word in ("dull", "great", "awful", "fine", "slow", "weak")]
    labels = [0, 1, 0, 1, 0, 1]
    for attack in (
        kbs.MisspellingAttack(2),
        kbs.DeepWordBug(),
        kbs.MaskedLMAttack(Guesses("plot")),
    ):
        alone, together = Victim(), Victim()
        first = attack_rows(attack, alone, texts, labels, rows_at_once=1)
        assert first == attack_rows(attack, together, texts, labels)
        assert together.calls < alone.calls
        assert sum(attempt.queries for attempt in first) == len(together.asked) == len(alone.asked)


def make_classifier():
    return kbs.TextClassifier(kbs.BertBackbone(**ONE_LAYER), num_classes=2)


def attack_by(answer):
    """Attacks a text with two words that decide, and three guesses for each."""
    attack = kbs.MaskedLMAttack(
        Guesses("dull", "awful", "bad"), share=1.0, accept=lambda text, changed: answer
    )
    attack_rows(attack, Victim(bias=0.5), ["good film"], [0])


def make_silent():
    return kbs.MaskedLM(kbs.BertBackbone(**ONE_LAYER))


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: kbs.MisspellingAttack(0), "edits must be an integer of at least 1, got 0"),
        (lambda: kbs.MisspellingAttack(kinds="ocr"), "kinds must be one of swap, .*, got 'ocr'"),
        (lambda: kbs.MisspellingAttack(kinds=[]), "kinds must be one or more of swap, .* got none"),
        (
            lambda: kbs.MisspellingAttack(stop_words="good"),
            "must be a list of words .*, got 'good'",
        ),
        (lambda: kbs.DeepWordBug(edits=[]), "edits must be one or more of swap, .* got none"),
        (lambda: kbs.MaskedLMAttack(Guesses("dull"), stop_words="a"), "be a list of words .* 'a'"),
        (lambda: kbs.DeepWordBug("random"), "score must be one of combined, .*, got 'random'"),
        (lambda: kbs.DeepWordBug(edits="flip"), "edits must be one of swap, .*, got 'flip'"),
        (lambda: kbs.DeepWordBug(max_distance=0), "max_distance must be an integer of at least 1"),
        (lambda: kbs.MaskedLMAttack(None, top_k=0), "top_k must be an integer of at least 1"),
        (lambda: kbs.MaskedLMAttack(None, share=0), "share must be over 0 and at most 1, got 0"),
        (lambda: kbs.MaskedLMAttack(None), "must be a MaskedLM .*, got a NoneType. Open one"),
        (lambda: kbs.MaskedLMAttack(Victim()), "must be a MaskedLM .*, got a Victim. Open one"),
        (lambda: kbs.MaskedLMAttack(make_classifier()), "must be a MaskedLM .*got a TextClassif"),
        (lambda: attack_by(None), "a bool for each of 3 changed texts, got None. Compare"),
        (lambda: attack_by([True]), r"a bool for each of 3 changed texts, got \[True\]"),
        (lambda: attack_by([True] * 9), r"a bool for each of 3 changed texts, got \[True, "),
        (lambda: attack_by([0.1, 0.9, 0.3]), "3 changed texts, got .*such as `scores > 0.8`"),
        (lambda: kbs.MaskedLMAttack(make_silent()), "MaskedLM with the preprocessor None. Set"),
    ],
)
def test_bad_input(make, error):
    with pytest.raises(ValueError, match=error):
        make()
