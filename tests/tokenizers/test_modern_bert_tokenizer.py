"""ModernBERT's tokenizer beside transformers' fast tokenizer with the same tokenizer.json."""

import gzip
import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_byte_pairs import MERGES, make_vocabulary, train
from tokenizer_checks import SAMPLES, check_engines, list_edges, random_texts
from tokenizers.normalizers import NFC
from transformers import AutoTokenizer

from keras_bert_suite import BytePairTokenizer, ModernBertTokenizer
from keras_bert_suite.checkpoints.tokenizer_files.word_piece import write_tokenizer
from keras_bert_suite.tokenizers.byte_pair.canonical_composition import (
    JOINING,
    LEADING,
    REPLACED,
    compose,
    compose_with_spans,
)
from keras_bert_suite.tokenizers.unicode_rules import parse_ranges

SPECIAL = ["[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"]
#: Tokens as ModernBERT has them: masked names, runs of spaces, unused pieces. The longest counts,
#: although it is not listed first.
ADDED = ["|||IP_ADDRESS|||", *(" " * n for n in range(2, 9)), "[unused0]", "[unused10]", "é|"]

CHANGING = [
    chr(code)
    for table in (LEADING, JOINING, REPLACED)
    for first, last in parse_ranges(table)
    for code in range(first, min(last, first + 40) + 1)
]
UNITS = [*ADDED, *SPECIAL, " the", "'s", " good", "\n ", "e\u0301|", "|||IP_", "a\u0327\u0301"]

texts_strategy = st.lists(
    st.lists(
        st.one_of(
            st.sampled_from(CHANGING),
            st.sampled_from(UNITS),
            st.sampled_from(list("ae o'1|[]\t\n\u3000 \u0301\u0345\u1161\u11a8\uac00\U00011938")),
            st.characters(exclude_categories=["Cs"]),
        )
    ).map("".join),
    min_size=8,
    max_size=8,
)


def make_pair(vocabulary, merges, path):
    """Our tokenizer, and that of transformers from the files that ours writes."""
    transformers = pytest.importorskip("transformers")
    names = dict.fromkeys([*SPECIAL, *ADDED])
    ids = [piece for piece in vocabulary if piece not in names]
    ids = {piece: index for index, piece in enumerate([*ids, *names])}
    ours = ModernBertTokenizer(ids, merges, added_tokens=ADDED)
    write_tokenizer(ours, 64, path)
    theirs = transformers.AutoTokenizer.from_pretrained(path)
    assert theirs.is_fast
    return ours, theirs


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    return make_pair(make_vocabulary(special=()), MERGES, tmp_path_factory.mktemp("small"))


def check_pair(ours, theirs, texts):
    """Both engines give the ids of transformers, and agree about offsets and word starts."""
    # "[MASK]" in a text is not special to us.
    expected = theirs(texts, add_special_tokens=False, split_special_tokens=True)["input_ids"]
    check_engines(ours, texts, expected)


@settings(max_examples=6, derandomize=True)
@given(texts=texts_strategy)
def test_both_engines_equal_transformers(texts, pair):
    check_pair(*pair, texts)


@pytest.mark.long("texts")
def test_a_hundred_thousand_random_strings(pair):
    letters = [*CHANGING, *UNITS, *"ae o'1|[]\t\n\u3000 ", *map(chr, range(0x20, 0x250))]
    for batch in random_texts(100_000, letters):
        check_pair(*pair, batch)


@pytest.mark.parametrize("step", SAMPLES)
def test_texts_in_the_wild(shared_data, tmp_path, step):
    with gzip.open(shared_data / "golden" / "wild.jsonl.gz", "rt") as file:
        texts = [json.loads(line)["text"] for line in file][::step]
    check_pair(*make_pair(*train(texts, 3000), tmp_path), texts)


def test_pairs_of_texts_and_special_tokens(pair):
    ours, theirs = pair
    wanted = theirs(" good", "the  low")["input_ids"]
    first, second = ours.tokenize([" good", "the  low"])
    start, end = ours.start_token_id, ours.end_token_id
    assert [start, *first, end, *second, end] == wanted
    assert ours.row_template.num_separators == 1
    assert theirs.mask_token_id == ours.mask_token_id
    masked = theirs("low [MASK] low", add_special_tokens=False)["input_ids"]
    before, after = map(ours.tokenize, ours.split_at_masks("low [MASK] low"))
    assert [*before, ours.mask_token_id, *after] == masked


@pytest.mark.parametrize("step", SAMPLES)
def test_composition_is_that_of_the_rust_library(step):
    theirs = NFC().normalize_str
    rng = random.Random(0)
    codes = {*range(0, 0x110000, step), *list_edges(LEADING, JOINING, REPLACED)}
    texts = [chr(code) for code in codes if not 0xD800 <= code <= 0xDFFF]
    texts += ["".join(rng.choices(CHANGING, k=rng.randint(2, 6))) for _ in range(20_000 // step)]
    for text in texts:
        assert compose(text) == theirs(text), ascii(text)


def test_offsets_of_composed_characters():
    assert compose_with_spans("ae\u0301b\u0327") == (
        "a\u00e9b\u0327",
        [(0, 1), (1, 3), (3, 4), (4, 5)],
    )
    tokenizer = ModernBertTokenizer(make_vocabulary(special=SPECIAL), MERGES)
    _, offsets, _ = tokenizer.tokenize_with_offsets("lo e\u0301\ud800 lo")
    assert offsets == [(0, 2), (3, 3), (3, 6), (7, 7), (7, 9)]


def test_files_are_read_back(pair, tmp_path):
    ours, _ = pair
    write_tokenizer(ours, 64, tmp_path)
    from keras_bert_suite.checkpoints.tokenizer_files.byte_pair import read_modern_bert_tokenizer

    again = ModernBertTokenizer(**read_modern_bert_tokenizer(tmp_path))
    config = {**ours.get_config(), "name": None}
    assert {**again.get_config(), "name": None} == config
    assert again.get_vocabulary() == ours.get_vocabulary()
    path = tmp_path / "tokenizer.json"
    fast = json.loads(path.read_text())
    for change, message in (
        ({"normalizer": {"type": "Lowercase"}}, "normalizer .* 'Lowercase', wanted 'NFC'"),
        ({"pre_tokenizer": {"type": "Whitespace"}}, "pre_tokenizer .* wanted 'ByteLevel'"),
        (
            {"added_tokens": [{"content": "  ", "id": 9, "rstrip": True, "normalized": True}]},
            "contradict each other about the added token '  ': .*rstrip True",
        ),
    ):
        path.write_text(json.dumps({**fast, **change}))
        with pytest.raises(ValueError, match=message):
            read_modern_bert_tokenizer(tmp_path)
    path.unlink()
    with pytest.raises(FileNotFoundError, match="has no tokenizer.json"):
        read_modern_bert_tokenizer(tmp_path)


@pytest.mark.parametrize("takes_space", [True, False])
def test_a_written_mask_takes_the_space_before_it_or_not(tmp_path, takes_space):
    ours = ModernBertTokenizer(
        make_vocabulary(special=SPECIAL), MERGES, mask_takes_space=takes_space
    )
    write_tokenizer(ours, 64, tmp_path)
    theirs = AutoTokenizer.from_pretrained(tmp_path)
    wanted = theirs("low  [MASK] low", add_special_tokens=False)["input_ids"]
    before, after = map(ours.tokenize, ours.split_at_masks("low  [MASK] low"))
    assert [*before, ours.mask_token_id, *after] == wanted


def test_what_is_no_ordinary_piece(pair):
    ours, _ = pair
    ordinary, vocabulary = ours.find_ordinary(), ours.get_vocabulary()
    assert {t for t, o in zip(vocabulary, ordinary, strict=True) if not o} == {*SPECIAL, *ADDED}
    continues = ours.find_continuations()
    assert not continues[list(map(ours.token_to_id, ADDED))].any()
    assert continues[ours.token_to_id("lo")]
    text = "the  good é|\n"
    assert ours.detokenize(ours.tokenize(text)) == text


def test_arguments_that_cannot_be_meant():
    arguments = make_vocabulary(), MERGES
    with pytest.raises(ValueError, match="normalization must be None or 'NFC', got 'NFKC'"):
        BytePairTokenizer(*arguments, normalization="NFKC")
