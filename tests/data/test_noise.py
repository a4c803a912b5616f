"""Noise in texts, and rows that are trained on with it."""

import collections
import itertools

import numpy as np
import pypinyin
import pytest

import keras_bert_suite as kbs
from keras_bert_suite.data.noise.keys import find_key_neighbors
from keras_bert_suite.data.noise.kinds import KINDS, SPACE_KINDS
from keras_bert_suite.data.noise.look_alikes import HOMOGLYPHS, OCR_CONFUSIONS
from keras_bert_suite.data.noise.pinyin import find_homophones, find_pinyin_neighbors

TEXT = "Great acting, and a dull plot of 90 minutes!"
CHINESE = "这部电影很好看"
LETTERS = "abcdefghijklmnopqrstuvwxyz"

#: The characters of level 1 of GB 2312.
COMMON = "".join(
    bytes([row, column]).decode("gb2312", "ignore")
    for row in range(0xB0, 0xD8)
    for column in range(0xA1, 0xFF)
)


def find_results(kind, text):
    """All texts that one edit of a kind makes of a text."""
    return {
        text[:start] + choice + text[end:]
        for start, end, choices in KINDS[kind](text)
        for choice in choices
    }


def test_one_edit_of_each_kind():
    """By the definitions: all texts are listed that the words of a kind describe."""
    word = "good"
    assert find_results("swap", word) == {"ogod", "godo"}
    assert find_results("delete", word) == {"ood", "god", "goo"}
    assert find_results("insert", word) == {
        word[:i] + letter + word[i:] for i in range(1, 5) for letter in LETTERS
    }
    beside = {"g": "tbfh", "o": "lip", "d": "ecsf"}
    assert find_results("keyboard", word) == {
        word[:i] + key + word[i + 1 :] for i in range(4) for key in beside[word[i]]
    }
    assert find_results("added_space", word) == {"g ood", "go od", "goo d"}
    assert find_results("lost_space", " one  two, three ") == {
        " onetwo, three ",
        " one  two,three ",
    }
    assert find_results("ocr", "rn") == {"m", "kn", "rh"}
    assert find_results("homoglyph", "ok") == {"оk", "οk"}
    assert "国王" not in find_results("homophone", "国王") and "国亡" in find_results(
        "homophone", "国王"
    )


def test_words_of_one_letter_are_not_deleted_and_marks_are_no_letters():
    assert find_results("delete", "a b, c_d") == find_results("swap", "a b, c_d") == set()
    assert find_results("insert", "电") == {"电电"}
    assert find_results("insert", "7") == {f"7{digit}" for digit in "0123456789"}


def test_keys_are_beside_each_other_both_ways_and_keep_their_case():
    pairs = {(a, b) for a in LETTERS for b in find_key_neighbors(a)}
    assert {(b, a) for a, b in pairs} == pairs and len(pairs) == 2 * (9 + 8 + 6 + 9 + 7)
    assert find_key_neighbors("S") == ("W", "X", "A", "D")
    assert find_key_neighbors("1") == find_key_neighbors("é") == find_key_neighbors("ss") == ()


def read_pinyin(character):
    """The syllables of a character, without tones."""
    (found,) = pypinyin.pinyin(character, style=pypinyin.Style.NORMAL, heteronym=True)
    return set(found)


def test_homophones_sound_alike():
    """Against pypinyin: a group has a pinyin in common, and no two groups are torn."""
    assert len(COMMON) == 3755
    seen, groups = set(), []
    for character in COMMON:
        if character not in seen:
            groups.append([character, *find_homophones(character)])
            seen.update(groups[-1])
    assert sum(map(len, groups)) == len(seen) == 3755
    shared = [set.intersection(*map(read_pinyin, group)) for group in groups]
    assert all(shared)
    # Two neighbours of one group would have one syllable.
    names = [min(found) if len(found) == 1 else tuple(sorted(found)) for found in shared]
    assert len(set(names)) == len(names)


def test_pinyin_neighbors_differ_by_one_key():
    for character in COMMON[::37]:
        for other in find_pinyin_neighbors(character):
            pairs = itertools.product(read_pinyin(character), read_pinyin(other))
            assert any(
                len(a) == len(b)
                and [y in find_key_neighbors(x) for x, y in zip(a, b, strict=True) if x != y]
                == [True]
                for a, b in pairs
            ), (character, other)
    assert "很" in find_pinyin_neighbors("根") and find_pinyin_neighbors("龘") == ()


def test_look_alikes():
    others = [other for found in HOMOGLYPHS.values() for other in found]
    assert all(letter.isascii() for letter in HOMOGLYPHS)
    assert all(not other.isascii() and other.isalpha() for other in others)
    assert len({*others}) >= len(others) - 1  # The Cyrillic O is drawn like O and like 0.
    assert all(text not in found for text, found in OCR_CONFUSIONS.items())


@pytest.mark.parametrize("kind", KINDS)
def test_the_rate_is_the_share_of_the_places(kind):
    """Of places that cannot overlap each is changed with the probability of the rate."""
    text = " ".join(["ab"] * 3000) if kind != "homophone" else "好" * 3000
    noise = kbs.TextNoise(kind, rate=0.1)
    apart = [(start, end) for start, end, _ in KINDS[kind](text)]
    (changed,) = noise([text], 5)
    assert noise.count_places(text) == len(apart)
    if kind in ("keyboard", "homophone", "homoglyph", "ocr"):
        count = sum(a != b for a, b in zip(text, changed, strict=True))
    elif kind == "swap":
        count = changed.count("ba")
    else:
        count = abs(len(changed) - len(text))
    expected, spread = 0.1 * len(apart), (0.09 * len(apart)) ** 0.5
    assert abs(count - expected) < 4 * spread
    assert kbs.TextNoise(kind, rate=0.0)([text]) == [text]


def test_kinds_share_the_rate_of_a_text():
    text = "ab " * 2000
    one, two = (
        sum(a != b for a, b in zip(text, kbs.TextNoise(k, 0.2)([text])[0], strict=True))
        for k in ("homoglyph", ["homoglyph", "keyboard", "homophone"])
    )
    # There is no Chinese character, so half of the rate is left for each of the other two.
    assert 700 < one < 900 and 700 < two < 900


def test_a_text_depends_on_the_seed_and_its_index_alone():
    noise = kbs.TextNoise([*KINDS], rate=0.3)
    texts = [TEXT, CHINESE, "", TEXT]
    found = noise(texts, 7)
    assert found[1] == noise(["x", CHINESE], 7)[1] and found[2] == ""
    assert found[0] != found[3] and found != noise(texts, 8)
    assert found == noise(texts, [7]) and found != noise(texts, [7, 1])


def test_each_word_of_a_row_stays_a_word():
    """The labels of the words then still stand at their words."""
    words = [*TEXT.split(), "a", CHINESE]
    noise = kbs.TextNoise([kind for kind in KINDS if kind not in SPACE_KINDS], rate=1.0)
    for seed in range(20):
        (row,) = noise([words], seed)
        assert len(row) == len(words) and all(row)
        assert all(not any(map(str.isspace, word)) for word in row)
    assert kbs.TextNoise("delete", rate=1.0)([["of", "9"]]) == [["of", "9"]]
    changed = collections.Counter(
        i
        for seed in range(60)
        for i, pair in enumerate(
            zip(kbs.TextNoise("swap", 0.1)([words], seed)[0], words, strict=True)
        )
        if pair[0] != pair[1]
    )
    assert set(changed) == {i for i, word in enumerate(words) if len(word.strip(",!")) > 1}


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: kbs.TextNoise("typos"), "kinds must be one of keyboard, swap, .*, got 'typos'"),
        (lambda: kbs.TextNoise([]), "kinds must be one or more of keyboard, .*, got none"),
        (lambda: kbs.TextNoise(3), "kinds must be a list of some of keyboard, .*, got 3"),
        (lambda: kbs.TextNoise(None), "kinds must be a list of some of keyboard, .*, got None"),
        (lambda: kbs.AugmentedRows(["a"], [0], 3), "augment must be a function.*, got 3"),
        (lambda: kbs.TextNoise("swap", rate=2), "rate must be from 0 to 1, got 2"),
        (lambda: kbs.TextNoise("swap")("a film"), "a list of strings, got the string 'a film'"),
        (lambda: kbs.TextNoise("swap")(["a", None]), "got None .NoneType. at row 1"),
        (
            lambda: kbs.TextNoise(["swap", "lost_space"])([["a", "b"]]),
            "The kind lost_space changes the number of words, and row 0 is a list of words",
        ),
    ],
)
def test_bad_input(make, error):
    with pytest.raises(ValueError, match=error):
        make()


def read_epoch(rows, epoch):
    """dict of label -> text of one epoch."""
    batches = [rows[epoch * len(rows) + batch] for batch in range(len(rows))]
    return {label: text for x, y in batches for text, label in zip(x, y, strict=True)}


@pytest.mark.parametrize("form", [str, str.split])
def test_a_row_depends_on_the_seed_the_epoch_and_its_index(form):
    """So the batch size changes no text."""
    texts = [form(f"{TEXT} {'very ' * i}good") for i in range(11)]

    def make(batch_size, **arguments):
        noise = kbs.TextNoise(["swap", "delete"], rate=0.2)
        return kbs.AugmentedRows(texts, list(range(11)), noise, batch_size, **arguments)

    first = read_epoch(make(3), 1)
    assert first == read_epoch(make(5), 1) != read_epoch(make(3), 2)
    assert first != read_epoch(make(3, seed=1), 1)
    changed = [label for label, text in first.items() if text != texts[label]]
    assert 0 < len(changed) < 11
    assert read_epoch(make(3, share=0.0), 1) == dict(enumerate(texts))
    assert all(type(text) is type(texts[0]) for text in first.values())


def test_rows_of_words_are_for_noise_alone():
    rows = [["a", "film"], ["good"]]
    kbs.AugmentedRows(rows, [[0, 0], [1]], kbs.TextNoise("swap"))
    with pytest.raises(ValueError, match="x must be columns of strings"):
        kbs.AugmentedRows(rows, [[0, 0], [1]], kbs.edit_words)
    with pytest.raises(ValueError, match="x must be columns of strings"):
        kbs.AugmentedRows(np.zeros((2, 3)), [0, 1], kbs.TextNoise("swap"))


@pytest.mark.parametrize("share", [2, -1, float("nan")])
def test_a_share_of_rows_is_from_0_to_1(share):
    with pytest.raises(ValueError, match="share must be from 0 to 1, got"):
        kbs.AugmentedRows(["a text"], [0], kbs.TextNoise("swap"), share=share)
