"""Texts of tokens and of words are written as a reader writes them."""

import numpy as np
import pytest

from keras_bert_suite.tasks.answers.entities import make_entity
from keras_bert_suite.tokenizers import WordPieceTokenizer
from keras_bert_suite.tokenizers.joining import join_words

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


def test_a_graph_joins_as_python_does():
    tf = pytest.importorskip("tensorflow")
    from keras_bert_suite.serving.target_answers import join_tokens

    words = [
        "new",
        "IBM",
        "怎",
        "么",
        "か",
        "저는",
        "3",
        ".",
        "(",
        ")",
        "'",
        "’",
        "？",
        "...",
        "[",
        "”",
    ]
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *words, "##s", "##好", "##)", "##("]
    tokenizer = WordPieceTokenizer(pieces, added_tokens=["[E1]", "##x-y"])
    rng = np.random.default_rng(0)
    ids = rng.integers(0, tokenizer.vocabulary_size(), (500, 9)).astype("int32")
    counts = rng.integers(0, 10, 500)
    is_kept = np.arange(9) < counts[:, None]
    got = join_tokens(tokenizer, tf.constant(ids), tf.constant(is_kept)).numpy()
    wanted = [
        tokenizer.detokenize(row[:count].tolist()) for row, count in zip(ids, counts, strict=True)
    ]
    assert [text.decode() for text in got] == wanted


def test_rows_of_words_and_of_characters():
    def text_of(words):
        return make_entity(None, words, None, "PER", 0, len(words), 1.0).text

    assert text_of(["New", "York"]) == "New York"
    assert text_of(["北", "京", "IBM"]) == "北京IBM"
    assert text_of([*"Tom在IBM"]) == "Tom在IBM"
    assert join_words(["a", "b"]) == "a b"
