"""Texts of tokens and of words are written as a reader writes them."""

import numpy as np
import pytest

from keras_bert_suite.heads.tags.entities import make_entity
from keras_bert_suite.tokenizers import WordPieceTokenizer
from keras_bert_suite.tokenizers.joining import correct_spaces, is_without_spaces, join_words

#: As they stand in newspapers and in datasets of their languages.
TEXTS = [
    "怎么开通花呗？",
    "我在IBM工作了3年，很好。",
    "私は学生です。",
    "저는 학생 입니다.",
    "i don't know, she said (twice): 5%!",
    "москва — столица россии.",
    "the price is $5.",
    "《三体》的作者",
    "new york",
    "",
    # Numbers, times, ranges.
    "增长3.5%",
    "3.5",
    "1.2.3",
    "华为1,299元",
    "a total of 1,299,000 people",
    "rooms 1, 2, 30",
    "12:30开会",
    "at 12:30:05",
    "2020-2021年",
    "2020–2021",
    "from 1914–1918",
    "3*4*5",
    # Words with marks within, and marks between words.
    "wi-fi",
    "and/or",
    "士/女",
    "on/off",
    "e_mail@example",
    "at&t and r&d",
    "johnson & johnson",
    "a rise of +5",
    "令x=1+2得解",
    "x = 1 + 2",
    "in the u.s. at 5 a.m.",
    "mr. smith",
    "don’t",
    "o'neill",
    "the students' work, not the teacher's",
    'she said "no way", twice',
    'the "one" and the "other"',
    "the 'one', not the other",
    '他说"ok"了',
    "c++语言",
    "c++ and c# at #1",
    # From reports about other libraries.
    "this thing costs £4.56",
    "(including once-a-week tapping)",
    "al-ain, united arab emirates 1996-12-06",
    "why isn't alex's text here? the house on the left is the smiths' house",
    "l'eure",
    "call 1-800-555-0199 at 9:30 p.m.",
]


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_is_given_back(text):
    characters = sorted({*text.lower()} - {" "})
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *characters, *(f"##{c}" for c in characters)]
    tokenizer = WordPieceTokenizer(pieces, strip_accents=False)
    ids = tokenizer.tokenize(text)
    assert tokenizer.unknown_token_id not in ids
    # The case of letters is lost.
    assert tokenizer.detokenize(ids).lower() == text.lower()


def make_rows(tokens, number):
    """A tokenizer of tokens, and random rows of their ids: (tokenizer, int32 (N, 12), counts)."""
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *tokens, "##s", "##3", "##好", "##)", "##("]
    tokenizer = WordPieceTokenizer(pieces, added_tokens=["[E1]", "##x-y"])
    rng = np.random.default_rng(0)
    ids = rng.integers(0, tokenizer.vocabulary_size(), (number, 12)).astype("int32")
    return tokenizer, ids, rng.integers(0, 13, number)


@pytest.mark.parametrize(
    "tokens",
    [
        ["new", "IBM", "怎", "么", "か", "저는", *"3.()'’？[”", "..."],
        [*"a b s t 1 23 456 京 . , : - – + = / & ' \" \\ _".split()],
        [*"s0京\"'.é", "don", "’"],
    ],
)
def test_a_graph_joins_as_python_does(tokens):
    tf = pytest.importorskip("tensorflow")
    from keras_bert_suite.heads.targets.served import join_tokens

    tokenizer, ids, counts = make_rows(tokens, 1000)
    is_kept = np.arange(ids.shape[1]) < counts[:, None]
    got = join_tokens(tokenizer, tf.constant(ids), tf.constant(is_kept)).numpy()
    wanted = [
        tokenizer.detokenize(row[:count].tolist()) for row, count in zip(ids, counts, strict=True)
    ]
    assert [text.decode() for text in got] == wanted


def test_a_graph_corrects_spaces_as_python_does():
    """Also of texts with control characters, which an added token may hold."""
    tf = pytest.importorskip("tensorflow")
    from keras_bert_suite.heads.targets.served import correct_spaces as correct_in_graph

    rng = np.random.default_rng(0)
    characters = [*"ab13 京か .,:-+=/&'\"#“ßé½\x00\x1f\t\u3000\u200b😀", "  "]
    texts = ["".join(rng.choice(characters, 10)) for _ in range(3000)]
    wanted = [correct_spaces(text) for text in texts]
    assert [text.decode() for text in correct_in_graph(tf.constant(texts)).numpy()] == wanted


def test_only_spaces_are_corrected():
    """All the other characters of the words stay, in their order."""
    rng = np.random.default_rng(0)
    words = [*"a b s 1 23 456 京 か . , : - – + = / & ' ’ \" ( ) ~ don café".split()]
    for _ in range(2000):
        row = rng.choice(words, rng.integers(1, 12))
        assert join_words(row).replace(" ", "") == "".join(row)


def test_a_letter_is_no_word_of_a_script_with_spaces():
    assert is_without_spaces("令x = y") and not is_without_spaces("令xy = ab")


def test_rows_of_words_and_of_characters():
    def text_of(words):
        return make_entity(None, words, None, "PER", 0, len(words), 1.0).text

    assert text_of(["New", "York"]) == "New York"
    assert text_of(["北", "京", "IBM"]) == "北京IBM"
    assert text_of([*"Tom在IBM"]) == "Tom在IBM"
    assert join_words(["a", "b"]) == "a b"
