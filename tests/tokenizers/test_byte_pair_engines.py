"""The ids and the offsets, of both engines, held against the Rust library and transformers."""

import gzip
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_byte_pairs import MERGES, SPECIAL, make_vocabulary, train
from tables import left_out
from tokenizer_checks import SAMPLES, check_engines, in_graph, list_edges, random_texts
from tokenizers import Tokenizer, models, pre_tokenizers

from keras_bert_suite import BytePairTokenizer
from keras_bert_suite.tokenizers.byte_pair.cached_byte_pair import word_pattern
from keras_bert_suite.tokenizers.byte_pair.character_classes import LETTERS, NUMBERS, SPACES

#: Merges as no training makes them: the last but one comes before one that makes its part.
UNORDERED = ["a b", "ab c", "abc d", "c d", "b c", "a bc", "bc d", "d a", "abcd a", "a a", "aa a"]

#: Characters at the borders of the rules.
BORDERLINE = (
    list("the good filmé'’`sdtmvrel ABΣ0１½²ⅷ一龥が각️ \t\n\r\x0b\x0c\x1c\x1f")
    + list("\x00\x85\xa0\u1680\u2000\u2009\u200a\u200b\u2028\u2029\u202f\u205f\u3000\ufeff\ufffd")
    + list("\u0301\u093e\u0968६Ĵ\U0001f600\U00016d40\U0010ffff\ud7ff\ue000<>|/")
)
UNITS = ["'s", "'ll", "'re", "n't", " 's", "'S", "  ", " the", "aaaa", "abcdabcd", *SPECIAL]

texts_strategy = st.lists(
    st.lists(
        st.one_of(
            st.sampled_from(BORDERLINE),
            st.sampled_from(UNITS),
            st.characters(exclude_categories=["Cs"]),
        )
    ).map("".join),
    min_size=8,
    max_size=8,
)


@pytest.fixture(scope="module", params=[False, True], ids=["", "add_prefix_space"])
def add_prefix_space(request):
    return request.param


@pytest.fixture(
    scope="module",
    params=[
        pytest.param((MERGES, False), id="ordered"),
        pytest.param((UNORDERED, True), id="unordered, add_prefix_space"),
        pytest.param((MERGES, True), id="add_prefix_space", marks=left_out("texts")),
        pytest.param((UNORDERED, False), id="unordered", marks=left_out("texts")),
    ],
)
def pair(request):
    """Our tokenizer, and the Rust library's own with the same pieces."""
    merges, add_prefix_space = request.param
    vocabulary = make_vocabulary(merges)
    if merges is UNORDERED:  # A byte has the id 0, as in GPT-2.
        vocabulary = {p: (i - len(SPECIAL)) % len(vocabulary) for p, i in vocabulary.items()}
    theirs = Tokenizer(models.BPE(vocabulary, [tuple(m.split()) for m in merges]))
    theirs.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=add_prefix_space)
    return BytePairTokenizer(vocabulary, merges, add_prefix_space), theirs


@settings(max_examples=6, derandomize=True)
@given(texts=texts_strategy)
def test_both_engines_equal_the_rust_library(texts, pair):
    ours, theirs = pair
    check_engines(ours, texts, [theirs.encode(text).ids for text in texts])


@pytest.mark.long("texts")
def test_a_hundred_thousand_random_strings(add_prefix_space):
    vocabulary = make_vocabulary(MERGES)
    theirs = Tokenizer(models.BPE(vocabulary, [tuple(merge.split()) for merge in MERGES]))
    theirs.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=add_prefix_space)
    ours = BytePairTokenizer(vocabulary, MERGES, add_prefix_space)
    letters = [*BORDERLINE, *UNITS, *map(chr, range(0x20, 0x250))]
    for batch in random_texts(100_000, letters):
        check_engines(ours, batch, [theirs.encode(text).ids for text in batch])


@pytest.mark.parametrize("step", SAMPLES)
def test_texts_in_the_wild_have_the_ids_and_offsets_of_transformers(
    shared_data, add_prefix_space, step
):
    transformers = pytest.importorskip("transformers")
    with gzip.open(shared_data / "golden" / "wild.jsonl.gz", "rt") as file:
        texts = [json.loads(line)["text"] for line in file][::step]
    vocabulary, merges = train(texts, 3000)
    ours = BytePairTokenizer(vocabulary, merges, add_prefix_space)
    theirs = transformers.RobertaTokenizer(
        vocab=vocabulary, merges=list(map(tuple, merges)), add_prefix_space=add_prefix_space
    )
    # "<mask>" in a text is not special to us.
    encoded = theirs(
        texts,
        add_special_tokens=False,
        return_offsets_mapping=True,
        split_special_tokens=True,
    )
    check_engines(ours, texts, encoded["input_ids"])
    offsets = [row[1] for row in ours.tokenize_with_offsets(texts)]
    assert offsets == [list(map(tuple, row)) for row in encoded["offset_mapping"]]


def test_classes_of_characters_are_those_of_the_rust_library():
    theirs = pre_tokenizers.ByteLevel(add_prefix_space=False)
    for code in list_edges(LETTERS, NUMBERS, SPACES):
        # A word goes on for characters of one class.
        for text in (f"a{chr(code)}", f"1{chr(code)}", f"!{chr(code)}", f"\t{chr(code)}"):
            words = [text[start:end] for _, (start, end) in theirs.pre_tokenize_str(text)]
            assert word_pattern().findall(text) == words


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("", []),
        ("the good film", ["t", "he", "Ġgood", "Ġfilm"]),
        (" the", ["Ġthe"]),
        ("lower  low", ["lower", "Ġ", "Ġ", "low"]),
        ("  ", ["ĠĠ"]),
        ("é", ["Ã©"]),
        ("一", ["ä", "¸", "Ģ"]),
        ("aaaaa", ["aa", "aaa"]),
        ("<s>", ["<", "s", ">"]),
    ],
)
def test_pieces(run_engine, text, pieces):
    tokenizer = BytePairTokenizer(make_vocabulary(), MERGES)
    assert run_engine(tokenizer, [text]) == [[tokenizer.token_to_id(piece) for piece in pieces]]


def test_offsets_leave_the_space_out_and_the_first_of_two_spaces_is_a_word():
    tokenizer = BytePairTokenizer(make_vocabulary(), MERGES)
    text = "low bad  é 一"
    ids, offsets, word_starts = tokenizer.tokenize_with_offsets(text)
    assert [tokenizer.id_to_token(id) for id in ids][:4] == ["low", "Ġbad", "Ġ", "Ġ"]
    spans = [text[start:end] for start, end in offsets]
    assert spans == ["low", "bad", "", "", "é", "", "一", "一", "一"]
    assert word_starts == [True, True, True, True, False, True, False, False, False]


def test_word_starts_are_those_of_the_rust_library(pair):
    ours, theirs = pair
    texts = ["it's good, low.", " the  good\n\nfilm\t12ab ", "lower!?\u3000\xa0 \xe9t\xe9"]
    rows = ours.tokenize_with_offsets(texts)
    graph_rows = in_graph(ours, texts)[3]
    for text, (_, _, word_starts), in_a_graph in zip(texts, rows, graph_rows, strict=True):
        words = theirs.pre_tokenizer.pre_tokenize_str(text)
        lengths = [len(theirs.model.tokenize(word)) for word, _ in words]
        wanted = [place == 0 for length in lengths for place in range(length)]
        assert word_starts == in_a_graph == wanted


def test_what_is_no_text_vanishes(run_engine):
    tokenizer = BytePairTokenizer(make_vocabulary(), MERGES)
    good = [tokenizer.token_to_id("Ġgood")]
    assert tokenizer.tokenize(" go\ud800od") == good
    _, offsets, _ = tokenizer.tokenize_with_offsets("\udfff go\ud800od")
    assert offsets == [(2, 7)]
    assert run_engine(tokenizer, [b" g\xffo\xe2\x80o\xf0\x9f\x98\xed\xa0\x80\xc3d\xf8"]) == [good]


def test_bytes_without_a_piece_vanish(run_engine):
    vocabulary = {p: i for i, p in enumerate([*SPECIAL, "a", "b", "ab", "Ġ"])}
    tokenizer = BytePairTokenizer(vocabulary, ["a b"])
    # As in transformers: what is left of the word is merged.
    assert run_engine(tokenizer, ["azb zz", "z", "a\xe9"]) == [[7, 8], [], [5]]
    ids, offsets, _ = tokenizer.tokenize_with_offsets("azb zz")
    assert (ids, offsets) == ([7, 8], [(0, 3), (4, 4)])


def test_tensors_of_any_rank():
    tf = pytest.importorskip("tensorflow")
    tokenizer = BytePairTokenizer(make_vocabulary(), MERGES)
    low = tokenizer.token_to_id("low")
    assert tokenizer(tf.constant("low")).numpy().tolist() == [low]
    assert tokenizer(tf.constant([["low", ""]])).to_list() == [[[low], []]]
    assert tokenizer(tf.constant([], tf.string)).to_list() == []
    dataset = tf.data.Dataset.from_tensor_slices(["low", "lowlow"]).batch(2).map(tokenizer)
    assert next(iter(dataset)).to_list() == [[low], [low, low]]


def test_long_words_in_the_graph(run_engine):
    """One merge a step and word would take hours."""
    tokenizer = BytePairTokenizer(make_vocabulary(), MERGES)
    rows = run_engine(tokenizer, ["a" * 100_000, "一二三" * 30_000, " good" * 20_000])
    assert [len(row) for row in rows] == [50_000, 270_000, 20_000]
    assert np.unique(rows[2]).tolist() == [tokenizer.token_to_id("Ġgood")]


def test_merges_of_a_word_that_prevent_each_other(run_engine):
    """Few letters, so that in a long word each merge depends on those beside it."""
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list("abc"), size)) for size in (2000, *[30] * 400)]
    vocabulary, merges = train(words, 400)
    theirs = Tokenizer(models.BPE(vocabulary, [tuple(merge) for merge in merges]))
    theirs.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    rows = run_engine(BytePairTokenizer(vocabulary, merges), words)
    assert rows == [row.ids for row in theirs.encode_batch(words)]
