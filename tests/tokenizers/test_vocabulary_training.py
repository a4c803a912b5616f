"""Learning a vocabulary."""

import json
import os
import random
import subprocess
import sys

import pytest
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

from keras_bert_suite import WordPieceTokenizer, train_vocabulary
from keras_bert_suite.tokenizers.word_piece.vocabulary_training import list_alphabet

FOX = "The quick brown fox jumps over the lazy dog; the dog, unmoved, yawns: 'How quick!'"
# Pangrams in scripts with and without case, spaces and accents, and what is deleted.
TEXTS = [
    FOX,
    "Zażółć gęślą jaźń. Voix ambiguë d'un cœur, Ça et là.",
    "ΞΕΣΚΕΠΑΖΩ ΤΗΝ ΨΥΧΟΦΘΟΡΑ ΒΔΕΛΥΓΜΙΑ' ΟΔΟΣ",
    "我能吞下玻璃而不伤身体。我能。 \u200bab\ufeffc\x00 \u3000x",
    "한국어 한국 \ue000\u0378 😀😀 n\u0303o\u0323\u0302",
]
SPECIAL = ["[PAD]", "[unused0]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def test_merges_by_hand():
    # Of "##i ##n" and "##n ##g", 5 times each, the first in the order of the alphabet; then
    # "##in ##g" (5), "l ##o" before "##o ##w" (4), "lo ##w" (4), "low ##ing" (3), "s ##ing" (2).
    vocabulary = train_vocabulary(
        ["low lowing lowing lowing", "sing sing new"], size=100, num_unused=1
    )
    assert vocabulary[:6] == SPECIAL
    assert vocabulary[6:22] == [*"egilnosw", *(f"##{letter}" for letter in "egilnosw")]
    assert vocabulary[22:] == ["##in", "##ing", "lo", "low", "lowing", "sing"]


def test_layout_is_that_of_google():
    vocabulary = train_vocabulary([FOX], size=1000)
    unused = [f"[unused{i}]" for i in range(99)]
    assert vocabulary[:104] == ["[PAD]", *unused, "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    assert vocabulary[104:109] == ["!", "'", ",", ":", ";"]
    tokenizer = WordPieceTokenizer(vocabulary)
    assert tokenizer.special_token_ids == [100, 101, 102, 0, 103]
    assert train_vocabulary([FOX], size=1000, num_unused=0)[:2] == ["[PAD]", "[UNK]"]


@pytest.mark.parametrize("lowercase", [True, False])
@pytest.mark.parametrize("strip_accents", [None, True, False])
def test_no_word_of_the_corpus_is_unknown(lowercase, strip_accents, tmp_path):
    options = {"lowercase": lowercase, "strip_accents": strip_accents}
    vocabulary = train_vocabulary(TEXTS, size=600, **options)
    WordPieceTokenizer(vocabulary).save_assets(tmp_path)
    tokenizer = WordPieceTokenizer(tmp_path / "vocab.txt", **options)
    assert tokenizer.get_vocabulary() == vocabulary
    rows = tokenizer.tokenize(TEXTS)
    assert all(rows) and tokenizer.unknown_token_id not in sum(rows, [])
    # Nor is any other word of their letters.
    letters = [piece[2:] for piece in vocabulary if len(piece) == 3 and piece.startswith("##")]
    random.Random(0).shuffle(letters)
    assert tokenizer.unknown_token_id not in tokenizer.tokenize("".join(letters))


def test_rare_characters_are_dropped_and_no_others():
    texts = ["ab ab abc 一 一 一"]  # c occurs once, a, b and 一 three times
    vocabulary = train_vocabulary(texts, size=100, num_unused=1, limit_alphabet=3)
    assert vocabulary == [*SPECIAL, "a", "b", "一", "##a", "##b", "ab"]
    tokenizer = WordPieceTokenizer(vocabulary)
    assert [tokenizer.detokenize(ids) for ids in tokenizer.tokenize(["ab 一", "abc"])] == [
        "ab一",
        "[UNK]",
    ]
    # Equally frequent: the lower code point stays.
    assert train_vocabulary(["b a"], size=99, num_unused=1, limit_alphabet=1)[6:] == ["a", "##a"]


def test_alphabet_continues_words_where_it_can():
    assert list_alphabet("b一é!a。") == ["!", "a", "b", "é", "。", "一", "##a", "##b", "##é"]


def test_size_is_kept():
    assert len(train_vocabulary([FOX, FOX], size=180)) == 180
    smallest = 104 + 26 * 2 + 5
    assert len(train_vocabulary([FOX], size=smallest)) == smallest
    with pytest.raises(ValueError, match="size=160 is less than the 104 special .* are 161. Raise"):
        train_vocabulary([FOX], size=smallest - 1)


def test_min_frequency():
    texts = ["aba aba cdc"]
    assert "cdc" not in train_vocabulary(texts)
    assert {"aba", "cdc"} <= set(train_vocabulary(texts, min_frequency=1))
    assert "aba" not in train_vocabulary(texts, min_frequency=3)


def test_same_in_another_order():
    """The library hashes with new keys for every training."""
    texts = TEXTS + [word for text in TEXTS for word in text.split()]
    assert train_vocabulary(texts[::-1], size=400) == train_vocabulary(texts, size=400)


@pytest.mark.long("texts")
def test_same_in_another_process():
    script = (
        "import json, sys; from keras_bert_suite.tokenizers import train_vocabulary;"
        "print(json.dumps(train_vocabulary(json.load(sys.stdin), size=400)))"
    )
    texts = TEXTS + [word for text in TEXTS for word in text.split()]
    process = subprocess.run(
        [sys.executable, "-c", script],
        input=json.dumps(texts[::-1]),
        env={
            **os.environ,
            "PYTHONHASHSEED": "1",
            "RAYON_NUM_THREADS": "1",
            "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry),
        },
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(process.stdout.splitlines()[-1]) == train_vocabulary(texts, size=400)


def train_with_library(texts, size, special_tokens):
    """The Rust library from end to end, with its own splitting and counting."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(
        vocab_size=size, min_frequency=2, special_tokens=special_tokens, show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    return sorted(tokenizer.get_vocab(), key=tokenizer.get_vocab().get)


def test_equals_the_library_on_ascii():
    rng = random.Random(0)
    words = ["".join(rng.choices("etaoinshr", k=rng.randint(1, 9))) for _ in range(500)]
    texts = [" ".join(rng.choices(words, k=20)).capitalize() + "." for _ in range(200)]
    ours = train_vocabulary(texts, size=300)
    # The library numbers characters at random and breaks ties by number, unless it is
    # told the order.
    special = ours[: 104 + 1 + 9 + 9]
    assert ours == train_with_library(texts, 300, special)
    # Without, no vocabulary is like the last, but they share what is no tie.
    plain = set(train_with_library(texts, 300, ours[:104]))
    assert len(plain & set(ours)) > 290


def test_equals_the_library_on_real_text(shared_data):
    texts = (shared_data / "corpus" / "google_sample_text.txt").read_text("utf-8").splitlines()
    ours = train_vocabulary(texts, size=500)
    alphabet = [piece for piece in ours[104:] if len(piece.removeprefix("##")) == 1]
    assert ours == train_with_library(texts, 500, ours[:104] + alphabet)
    assert len(ours) == 500


@pytest.mark.parametrize(
    ("texts", "options", "message"),
    [
        ([], {}, "hold no word"),
        ([" \x00\t", ""], {}, "hold no word"),
        (["a" * 201], {}, "hold no word"),
        ("one text", {}, "Received a single one: 'one text'"),
        (["a", None], {}, "Received: None of type NoneType"),
        (["a"], {"size": 0}, "size must be an integer of at least 1, got 0"),
        (["a"], {"min_frequency": 0}, "min_frequency must be an integer of at least 1"),
        (["a"], {"num_unused": -1}, "num_unused must be an integer of at least 0"),
        (["a"], {"limit_alphabet": 0}, "limit_alphabet must be an integer of at least 1"),
    ],
)
def test_errors(texts, options, message):
    with pytest.raises(ValueError, match=message):
        train_vocabulary(texts, **options)
