"""Added tokens: both engines give the ids of transformers, with the same offsets."""

import json
import random

import pytest
import transformers
from small_byte_pairs import MERGES, make_vocabulary
from small_sentence_pieces import make_albert, make_xlm_roberta
from tokenizers import AddedToken, Tokenizer
from tokenizers.models import WordLevel

from keras_bert_suite.checkpoints.tokenizer_files.added_tokens import read_added_tokens
from keras_bert_suite.tokenizers import (
    AlbertTokenizer,
    BytePairTokenizer,
    WordPieceTokenizer,
    XLMRobertaTokenizer,
    added_tokens,
)

PIECES = [
    *("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "co", "##vid", "covid", "-", "19", "a", "cat"),
    *("##s", "con", "##cat", "你", "好", "吗", "我", "[", "]", "e", "1", "/", "x", "##x", "σ", "ς"),
]
MARKERS = ["[E1]", "[/E1]"]
#: Parts of the texts. They differ in case, accents, spaces, and in what stands beside a token.
PARTS = [
    *(*MARKERS, "[e1]", "covid-19", "COVID-19", "cat", "cats", "con", "concat", "你好", "我", "吗"),
    *("é", "e\u0301", "\u200b", "x", "X", "İ", "Σ", "ΣΑΣ", " ", "  ", "\t", "\u3000", "\u2003"),
    *(" the", "good", " low", "low", "lower", "\n", "一", "ｌ"),
]
FLAGS = [
    {},
    {"single_word": True},
    {"normalized": False},
    {"normalized": False, "single_word": True, "lstrip": True},
    {"lstrip": True, "rstrip": True},
    {"normalized": False, "rstrip": True},
]


def make_word_pieces(path):
    theirs = transformers.BertTokenizer(vocab={piece: i for i, piece in enumerate(PIECES)})
    ours = WordPieceTokenizer(PIECES, max_word_length=100)
    return ours, theirs, ["covid-19", "cat", "你好", "x", "Ａ", "ΣΑ", "low"]


def make_byte_pairs(path, add_prefix_space=False):
    merges = [tuple(merge.split()) for merge in MERGES]
    arguments = {"add_prefix_space": add_prefix_space}
    theirs = transformers.RobertaTokenizer(vocab=make_vocabulary(), merges=merges, **arguments)
    ours = BytePairTokenizer(make_vocabulary(), MERGES, **arguments)
    return ours, theirs, ["covid-19", "low", "é", "cat"]


def make_byte_pairs_with_spaces(path):
    return make_byte_pairs(path, add_prefix_space=True)


def make_sentence_pieces(path):
    ours = XLMRobertaTokenizer(make_xlm_roberta())
    ours.save_assets(path)
    theirs = transformers.XLMRobertaTokenizer.from_pretrained(path)
    return ours, theirs, ["covid-19", "low", "é", "cat"]


def add_tokens(ours, theirs, tokens, flags):
    ours.add_tokens(MARKERS, special=True)
    theirs.add_tokens(MARKERS, special_tokens=True)
    ours.add_tokens([{"content": token, **flags} for token in tokens])
    theirs.add_tokens([AddedToken(token, **flags) for token in tokens])
    assert ours.vocabulary_size() == len(theirs)
    assert [ours.token_to_id(t) for t in tokens] == theirs.convert_tokens_to_ids(tokens)


def make_texts(count):
    rng = random.Random(0)
    return ["", *("".join(rng.choices(PARTS, k=rng.randint(1, 9))) for _ in range(count))]


def check_offsets(tokenizer, texts):
    """Both engines have the same ids, offsets and beginnings of words."""
    import tensorflow as tf

    rows = tokenizer.tokenize_with_offsets(texts)
    columns = (column.to_list() for column in tokenizer.tokenize_with_offsets(tf.constant(texts)))
    for text, (ids, offsets, begins), *graph in zip(texts, rows, *columns, strict=True):
        in_bytes = [[len(text[:place].encode()) for place in span] for span in offsets]
        starts, ends = [start for start, _ in in_bytes], [end for _, end in in_bytes]
        assert graph == [ids, starts, ends, begins], text


#: TensorFlow traces each case.
SHORT = [
    *((make_word_pieces, flags) for flags in ({}, FLAGS[3])),
    *((make, FLAGS[3]) for make in (make_byte_pairs_with_spaces, make_sentence_pieces)),
]


@pytest.mark.parametrize(
    ("make", "flags"),
    [
        pytest.param(
            make,
            flags,
            id=f"{'-'.join(flags) or 'plain'}-{make.__name__}",
            marks=() if (make, flags) in SHORT else pytest.mark.long("texts"),
        )
        for flags in FLAGS
        for make in (
            *(make_word_pieces, make_byte_pairs),
            *(make_byte_pairs_with_spaces, make_sentence_pieces),
        )
    ],
)
def test_both_engines_equal_transformers(tmp_path, make, flags):
    tf = pytest.importorskip("tensorflow")
    pytest.importorskip("tensorflow_text")
    ours, theirs, tokens = make(tmp_path)
    add_tokens(ours, theirs, tokens, flags)
    texts = make_texts(300)
    wanted = theirs(texts, add_special_tokens=False)["input_ids"]
    assert ours.tokenize(texts) == wanted
    assert ours.tokenize(tf.constant(texts)).to_list() == wanted
    ids, lengths = ours.tokenize_flat(texts)
    assert ids.tolist() == [id for row in wanted for id in row]
    assert lengths.tolist() == list(map(len, wanted))
    check_offsets(ours, texts)
    again = type(ours).from_config(ours.get_config())
    again.set_vocabulary(*make_files(ours, tmp_path))
    assert again.tokenize(texts[:50]) == wanted[:50]


@pytest.mark.parametrize("flag", ["special", "single_word", "lstrip", "rstrip", "normalized"])
def test_each_flag_alone_is_kept_everywhere(tmp_path, flag):
    usual = added_tokens.AddedToken("covid-19").flags()
    token = added_tokens.AddedToken("covid-19", **{flag: not usual[flag]})
    assert token.flags()[flag] is not usual[flag]
    assert added_tokens.AddedToken.read(token.describe()) == token
    rust = Tokenizer(WordLevel({"covid-19": 0}, unk_token="covid-19"))
    added_tokens.add_tokens(rust, [token])
    (written,) = json.loads(rust.to_str())["added_tokens"]
    assert {name: written[name] for name in usual} == token.flags()
    fields = {name: value for name, value in token.flags().items() if name != "content"}
    for config, fast in (
        ({"added_tokens_decoder": {"0": {"content": "covid-19", **fields}}}, {}),
        ({}, {"added_tokens": [written]}),
    ):
        read = read_added_tokens(tmp_path, config, fast)
        assert read == {"covid-19": {"content": "covid-19", "id": 0, **fields}}


def test_spaces_behind_a_token_alone():
    pytest.importorskip("tensorflow_text")
    ours, theirs, tokens = make_byte_pairs(None)
    add_tokens(ours, theirs, tokens, {"normalized": False, "rstrip": True})
    texts = [" low covid-19  lower", "cat cat ", "good covid-19"]
    assert ours.tokenize(texts) == theirs(texts, add_special_tokens=False)["input_ids"]
    check_offsets(ours, texts)


def test_of_tokens_with_one_beginning_the_longest_is_found():
    pytest.importorskip("tensorflow_text")
    ours, theirs, _ = make_word_pieces(None)
    add_tokens(ours, theirs, ["co-", "co-19", "co-1"], {})
    texts = ["co-19 a co-1", "co-co-19", "a co-x"]
    assert ours.tokenize(texts) == theirs(texts, add_special_tokens=False)["input_ids"]
    check_offsets(ours, texts)


def test_normalized_tokens_of_albert(tmp_path):
    """On texts without what Google's code and transformers read differently."""
    ours = AlbertTokenizer(make_albert())
    ours.save_assets(tmp_path)
    theirs = transformers.AlbertTokenizer.from_pretrained(tmp_path)
    add_tokens(ours, theirs, ["cat", "é"], {})
    texts = ["A CAT, a Cat, cats", "caf\u00c9 cafe cat"]
    assert ours.tokenize(texts) == theirs(texts, add_special_tokens=False)["input_ids"]


def make_files(tokenizer, path):
    tokenizer.save_assets(path)
    return [path / name for name in tokenizer.asset_names]


def test_words_of_byte_pairs(tmp_path):
    ours, theirs, tokens = make_byte_pairs_with_spaces(tmp_path)
    add_tokens(ours, theirs, tokens, {})
    # Words have a space before them in any case.
    added = [token.describe() for token in ours.added_tokens]
    ours = BytePairTokenizer(make_vocabulary(), MERGES, added_tokens=added)
    words = ["[E1]", "a", "the", "low", "x[E1]", "covid-19x", ""]
    wanted = theirs(words, is_split_into_words=True, add_special_tokens=False)["input_ids"]
    assert ours.tokenize_words(words)[0].tolist() == wanted


@pytest.mark.parametrize("make", [make_byte_pairs, make_sentence_pieces])
def test_the_text_beside_an_added_token_is_other_words(tmp_path, make):
    tokenizer, *_ = make(tmp_path)
    tokenizer.add_tokens(["covid-19"])
    ids, _, begins = tokenizer.tokenize_with_offsets("xcovid-19low")
    place = ids.index(tokenizer.token_to_id("covid-19"))
    assert begins[place] and begins[place + 1]
    # What masks whole words has these tables alone.
    continues, ends = tokenizer.find_continuations()[ids], tokenizer.find_endings()[ids]
    assert not continues[place] and ends[place]


def test_texts_cannot_hold_the_special_tokens():
    tokenizer = WordPieceTokenizer(PIECES, added_tokens=["[E1]"])
    special = {tokenizer.token_to_id(token) for token in tokenizer.special_tokens}
    special.remove(tokenizer.unknown_token_id)
    assert not special & {*tokenizer.tokenize("[CLS] [SEP][E1][MASK] [PAD]")}
    with pytest.raises(ValueError, match=r"No text may hold a special token.*\[SEP\]"):
        tokenizer.add_tokens(["[SEP]"])


def test_a_piece_and_a_word_of_the_same_letters():
    """An added token that is no piece of the model is no part of other words."""
    tokenizer = WordPieceTokenizer(PIECES)
    assert tokenizer.add_tokens([{"content": "conca", "single_word": True}, "covid"]) == 1
    con, cat, conca = map(tokenizer.token_to_id, ("con", "##cat", "conca"))
    assert tokenizer.tokenize("concat conca") == [con, cat, conca]


@pytest.mark.parametrize(
    "tokens, message",
    [
        (["x", "x"], r"distinct, got \['x'\]"),
        ("covid-19", "are a list of str, got the str 'covid-19'"),
        ([""], "one character or more, got ''"),
        ([{"content": "covid-19", "id": 7}], "has the id 7, but its place is 28"),
    ],
)
def test_tokens_that_cannot_be_meant(tokens, message):
    with pytest.raises(ValueError, match=message):
        WordPieceTokenizer(PIECES, added_tokens=tokens)


def test_one_token_is_a_list_of_one():
    tokenizer, other = WordPieceTokenizer(PIECES), WordPieceTokenizer(PIECES)
    assert tokenizer.add_tokens("covid-19") == other.add_tokens(["covid-19"]) == 1
    assert tokenizer.tokenize("covid-19 cat") == other.tokenize("covid-19 cat")


def test_spaces_of_a_token_of_sentence_pieces():
    token = {"content": "new york", "normalized": False}
    tokenizer = XLMRobertaTokenizer(make_xlm_roberta(), added_tokens=[token])
    assert tokenizer.token_to_id("new york") in tokenizer.tokenize("in new york")
    message = r"Spaces of a normalized .* \['new york'\] with spaces. Pass .*\"normalized\": False"
    with pytest.raises(ValueError, match=message):
        XLMRobertaTokenizer(make_xlm_roberta(), added_tokens=["low", "new york"])


def test_random_tokens_are_no_markers():
    tokenizer = WordPieceTokenizer(PIECES)
    tokenizer.add_tokens(MARKERS, special=True)
    tokenizer.add_tokens(["covid-19", "##x-ray"])
    ordinary, continues = tokenizer.find_ordinary(), tokenizer.find_continuations()
    assert ordinary[-4:].tolist() == [False, False, True, True]
    assert not continues[-4:].any()
