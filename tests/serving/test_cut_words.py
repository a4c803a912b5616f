"""A graph of TensorFlow cuts texts into the words that Python finds."""

import random

import pytest
from small_byte_pairs import MERGES, make_vocabulary
from small_sentence_pieces import make_xlm_roberta
from small_texts import VOCABULARY
from tables import short_for

from keras_bert_suite import (
    BytePairTokenizer,
    WordCutting,
    WordPieceTokenizer,
    XLMRobertaTokenizer,
)
from keras_bert_suite.heads.tags.served_words import find_words
from keras_bert_suite.heads.tags.windows import tokenize_rows

tf = pytest.importorskip("tensorflow")
pytest.importorskip("tensorflow_text")

pytestmark = pytest.mark.backend("tensorflow")

ROWS = [
    "Coca-Cola and AT&T moved to St. Louis .".split(),
    "He did n't pay € 3.5 or 5% to John 's O'Neill at http://x.com/a ...".split(),
]
CUTTINGS = {
    "no rules": WordCutting(),
    "learned": WordCutting.learn(ROWS),
    "characters": WordCutting(["letters", "numbers"]),
    "all of it": WordCutting(["numbers"], {"<letter> - <letter>": "++", " € ": "++"}, True),
}
TEXTS = [
    *(
        "Coca-Cola",
        "the U.S., St. Louis.",
        "It isn't.",
        "don't5 日本don’T",
        "O'Neill's http://a.b/c",
    ),
    *("", " ", "\u0301a \u200b", "100€😀", "iPhone15于1998年", "\u200b"),
]


def draw_texts(number):
    generator = random.Random(0)
    alphabet = "ab1T n't.,-'&€ 😀中京\u200b\u0301\u3000St"
    return [
        "".join(generator.choice(alphabet) for _ in range(generator.randrange(14)))
        for _ in range(number)
    ]


TOKENIZERS = {
    "word pieces": lambda: WordPieceTokenizer(VOCABULARY),
    "sentence pieces": lambda: XLMRobertaTokenizer(make_xlm_roberta()),
    "byte pairs": lambda: BytePairTokenizer(make_vocabulary(), MERGES, added_tokens=["St"]),
}
CUT = [
    *((name, "word pieces") for name in CUTTINGS),
    *(("learned", kind) for kind in ("sentence pieces", "byte pairs")),
]


@pytest.mark.parametrize(
    ("name", "kind"),
    short_for(
        CUT,
        *((name, "word pieces") for name in ("learned", "all of it")),
        ("learned", "sentence pieces"),
        part="serving",
    ),
)
def test_words_and_tokens(name, kind):
    """On random strings: the words, their places in bytes, and their tokens."""
    texts, cutting, tokenizer = [*TEXTS, *draw_texts(800)], CUTTINGS[name], TOKENIZERS[kind]()
    wanted = tokenize_rows(tokenizer, texts, cutting)
    found = tf.function(lambda texts: to_dict(find_words(tokenizer, texts, cutting)))(
        tf.constant(texts)
    )
    assert found["ids"].values.numpy().tolist() == wanted.ids.tolist()
    assert found["ids"].row_lengths().numpy().tolist() == wanted.lengths.tolist()
    assert found["first_tokens"].numpy().tolist() == wanted.first_tokens.tolist()
    places = [
        (row, len(text[:start].encode()), len(text[:end].encode()))
        for row, (text, spans) in enumerate(zip(texts, wanted.characters, strict=True))
        for start, end in spans
    ]
    columns = (found[name].numpy().tolist() for name in ("rows", "starts", "ends"))
    assert list(zip(*columns, strict=True)) == places


def to_dict(words):
    return vars(words)


def test_no_text():
    for texts in ([], ["", " "]):
        words = find_words(
            WordPieceTokenizer(VOCABULARY), tf.constant(texts, tf.string), CUTTINGS["learned"]
        )
        assert words.rows.shape == (0,) and words.ids.row_lengths().numpy().sum() == 0
