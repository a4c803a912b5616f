"""Texts with changed words."""

import collections
import re
import types

import numpy as np
import pytest
from small_texts import VOCABULARY

import keras_bert_suite as kbs

TEXTS = [
    "The plot, it's good; very good (and not dull)!",
    "这部电影很好看。It was fine",
    "...",
    "ok",
]


def words_of(text):
    return re.findall(r"[一-鿿]|[A-Za-z']+", text)


def make_many(text, **arguments):
    return [kbs.edit_words([text], seed, **arguments)[0] for seed in range(60)]


@pytest.mark.parametrize("text", TEXTS[:2])
def test_words_are_swapped_or_deleted(text):
    before = collections.Counter(words_of(text))
    kinds = collections.Counter()
    for edited in make_many(text):
        after = collections.Counter(words_of(edited))
        if after == before:
            # What is between the words stays in its place.
            assert re.split(r"[一-鿿]|[A-Za-z']+", edited) == re.split(r"[一-鿿]|[A-Za-z']+", text)
            kinds["swap"] += edited != text
        else:
            assert after < before and (before - after).total() == 1 and "  " not in edited
            marks, marks_before = (re.sub(r"[\w' ]", "", text) for text in (edited, text))
            assert marks == marks_before
            kinds["delete"] += 1
    assert kinds["swap"] > 10 and kinds["delete"] > 10


def test_the_rate_is_a_share_of_the_words():
    text = " ".join(f"w{i}" for i in range(20))
    lost = {20 - len(edited.split()) for edited in make_many(text, rate=0.25)}
    assert lost == {0, 5}
    # One word is always left. Two words that are swapped twice are as before.
    found = {kbs.edit_words(["one two"], seed, rate=1.0)[0] for seed in range(20)}
    assert found == {"one two", "one", "two"}


def test_a_text_without_words_and_a_single_word_stay():
    assert kbs.edit_words(["", "...", "ok!"], 3) == ["", "...", "ok!"]


def test_synonyms():
    found = make_many("A Good film", synonyms={"good": ["great", "fine"]})
    assert {"A Great film", "A Fine film"} <= {*found}
    inserted = [edited for edited in found if len(edited.split()) == 4]
    assert inserted and all({*edited.split()} & {"great", "fine"} for edited in inserted)


def test_chinese_words():
    found = make_many("我喜欢北京", word_segmenter=lambda text: ["我", "喜欢", "北京"])
    assert {*found} >= {"北京喜欢我", "喜欢北京", "我喜欢"}
    assert all("喜欢" in edited or edited == "我北京" for edited in found)
    # A mark is no word: it stays where it is.
    found = make_many("我，北京。", word_segmenter=lambda text: ["我", "，", "北京", "。"])
    assert "北京，我。" in found and all(edited[-1] == "。" and "，" in edited for edited in found)


class Guesses:
    """A masked LM that guesses the same words in the place of each mask."""

    def __init__(self, guesses, most=None):
        self.preprocessor = types.SimpleNamespace(tokenizer=kbs.WordPieceTokenizer(VOCABULARY))
        self.guesses, self.most, self.asked = guesses, most, []

    def predict(self, texts, top_k, whole_words, verbose):
        assert whole_words
        self.asked += texts
        counts = [text.count("[MASK]") for text in texts]
        guesses = self.guesses[:top_k]
        return [[guesses] * min(count, self.most or count) for count in counts]


def test_guesses_take_the_place_of_words():
    model = Guesses([("great", 0.6), ("awful", 0.2), (".", 0.1), ("film", 0.1)])
    texts = ["Good, film!", "", "a good film was not the plot"]
    found = [kbs.replace_words(texts, seed, masked_lm=model, rate=0.3) for seed in range(40)]
    firsts = {row[0] for row in found}
    # The case of a word stays. Neither the word itself nor a mark takes its place.
    assert firsts == {"Great, film!", "Awful, film!", "Film, film!", "Good, great!", "Good, awful!"}
    assert {row[1] for row in found} == {""}
    changed = [
        sum(a != b for a, b in zip(row[2].split(), texts[2].split(), strict=True)) for row in found
    ]
    assert max(changed) == 2
    assert all(text.count("[MASK]") in (1, 2) for text in model.asked)


def test_the_probabilities_decide():
    model = Guesses([("great", 0.9), ("awful", 0.1)])
    found = [kbs.replace_words(["good"], seed, masked_lm=model)[0] for seed in range(200)]
    assert 5 < found.count("awful") < 40 and found.count("great") + found.count("awful") == 200


@pytest.mark.parametrize(
    ("guesses", "top_k", "wanted"),
    [
        ("great awful dull", 1, {"great"}),
        ("great awful dull", 2, {"great", "awful"}),
        # The word itself is none of the guesses, and a mark takes no word's place.
        ("good great awful", 1, {"great"}),
        ("great good awful dull", 2, {"great", "awful"}),
        (", great", 1, {"good"}),
    ],
)
def test_words_are_drawn_from_the_best_guesses(guesses, top_k, wanted):
    words = guesses.split()
    model = Guesses([(word, 1 / len(words)) for word in words])
    found = {
        kbs.replace_words(["good"], seed, masked_lm=model, top_k=top_k)[0] for seed in range(40)
    }
    assert found == wanted


def test_guesses_for_chinese_words():
    """A mask for each character of a word; without a segmenter each character is a word."""
    model = Guesses([("dull", 1.0)])

    def replace(**arguments):
        return {
            kbs.replace_words(["我喜欢"], seed, masked_lm=model, **arguments)[0]
            for seed in range(20)
        }

    assert replace() == {"dull喜欢", "我dull欢", "我喜dull"}
    assert replace(word_segmenter=lambda text: ["我", "喜欢"]) == {"dull喜欢", "我dulldull"}


def test_masks_without_guesses_keep_their_words():
    model = Guesses([("great", 1.0)], most=1)
    assert kbs.replace_words(["good film"], masked_lm=model, rate=1.0) == ["great film"]
    assert kbs.replace_words(["a [MASK]"], masked_lm=model) == ["a [MASK]"]


def test_batches_change_in_each_epoch_and_keep_their_labels():
    texts = [f"t{i} " + " ".join("abcdef"[: i % 5 + 2]) for i in range(10)]
    rows = kbs.AugmentedRows(
        (texts, texts), list(range(10)), lambda part, rng: [f"{t} x{rng.random()}" for t in part], 4
    )
    assert len(rows) == 3
    epochs = [[rows[epoch * 3 + batch] for batch in range(3)] for epoch in range(2)]
    for batches in epochs:
        labels = [label for _, y in batches for label in y]
        assert sorted(labels) == list(range(10))
        for (firsts, seconds), y in batches:
            for first, second, label in zip(firsts, seconds, y, strict=True):
                assert first.startswith(texts[label]) and second.startswith(texts[label])
                assert ("x" in first) == ("x" in second)
    seen = [[text for (firsts, _), _ in batches for text in firsts] for batches in epochs]
    assert 0 < sum("x" in text for text in seen[0]) < 10
    assert seen[0] != seen[1]
    assert rows[4] == epochs[1][1], "a training that resumes sees the same batch"
    assert list(rows[::2]) == epochs[0][::2]


def test_the_seed_decides_the_order_and_the_changes():
    def read(seed, share, batch_size):
        rows = kbs.AugmentedRows(
            ["good"] * 9,
            range(9),
            lambda part, rng: [str(rng.random()) for _ in part],
            batch_size,
            share=share,
            seed=seed,
        )
        return [rows[i] for i in range(2 * len(rows))]

    # Without changes only the order of the labels is left; in one batch, only the changes.
    for share, batch_size in ((0.0, 2), (1.0, 9)):
        first, second, again = (read(seed, share, batch_size) for seed in (0, 1, 0))
        assert first == again
        column = 0 if share else 1
        assert [batch[column] for batch in first] != [batch[column] for batch in second]
        # The second half of the batches is another epoch.
        assert [batch[column] for batch in first[: len(first) // 2]] != [
            batch[column] for batch in first[len(first) // 2 :]
        ]


def test_all_rows_or_none():
    for share, number in ((0.0, 0), (1.0, 5)):
        rows = kbs.AugmentedRows(
            {"a": np.array(["good"] * 5)},
            range(5),
            lambda part, rng: ["x"] * len(part),
            share=share,
        )
        x, _ = rows[0]
        assert x["a"].count("x") == number


@pytest.mark.parametrize(
    ("texts", "error"),
    [
        ("a good film", "a list of strings, got the string 'a good film'. Put it in a list"),
        (["a film", None], "got None .NoneType. at row 1"),
        ([("a film", "a plot")], "Pairs of texts must come as a tuple"),
    ],
)
def test_what_is_no_list_of_texts(texts, error):
    with pytest.raises(ValueError, match=error):
        kbs.edit_words(texts)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"rate": 2}, "rate must be from 0 to 1, got 2"),
        ({"rate": float("nan")}, "rate must be from 0 to 1, got nan"),
        ({"rate": "a"}, "rate must be from 0 to 1, got 'a'"),
        ({"synonyms": {"good": "great"}}, "synonyms of 'good' must be a list .* got 'great'"),
        ({"synonyms": {"good": {"great"}}}, "synonyms of 'good' must be .* and sort a set"),
        ({"synonyms": ["great"]}, "synonyms must be a dict of a word"),
        ({"masked_lm": Guesses([]), "rate": -1}, "rate must be from 0 to 1, got -1"),
        ({"masked_lm": Guesses([]), "top_k": 0}, "top_k must be an integer of at least 1, got 0"),
        ({"masked_lm": 3}, "masked_lm must be a MaskedLM .*, got an? int"),
    ],
)
def test_bad_arguments(arguments, error):
    augment = kbs.replace_words if "masked_lm" in arguments else kbs.edit_words
    with pytest.raises(ValueError, match=error):
        augment(["a good film"], **arguments)


def test_packed_arrays_are_refused():
    with pytest.raises(ValueError, match="x must be columns of strings"):
        kbs.AugmentedRows({"token_ids": np.zeros((2, 3), "int32")}, [0, 1], kbs.edit_words)


@pytest.mark.parametrize(
    ("x", "y"),
    [
        (["a b", "c d"], [0, 1, 1]),
        (["a b", "c d"], {"first": [0, 1], "second": [0]}),
        ((["a b", "c d"], ["e"]), (0, 1)),
    ],
)
def test_columns_of_other_lengths_are_refused(x, y):
    """Rows that were left out of the texts alone would shift the labels."""
    with pytest.raises(ValueError, match="the same number of rows, got 2 and "):
        kbs.AugmentedRows(x, y, kbs.edit_words)


def test_a_tuple_of_labels_is_one_column():
    rows = kbs.AugmentedRows(["a b", "c d"], ("no", "yes"), kbs.edit_words, share=0.0)
    assert sorted(zip(*rows[0], strict=True)) == [("a b", "no"), ("c d", "yes")]
    assert kbs.AugmentedRows(["a b"], None, kbs.edit_words, share=0.0)[0] == (["a b"], None)
