"""`BytePairTokenizer` as a layer: files, settings, special tokens, presets."""

import json
import pickle

import keras
import pytest
from small_byte_pairs import MERGES, SPECIAL, make_vocabulary
from tokenizers import Tokenizer, models

from keras_bert_suite import BytePairTokenizer, WordPieceTokenizer
from keras_bert_suite.tokenizers.row_template import RowTemplate

TEXT = "lower the good café, 一!"


@pytest.fixture(scope="module")
def tokenizer():
    return BytePairTokenizer(make_vocabulary(), MERGES)


@pytest.fixture
def files(tokenizer, tmp_path):
    tokenizer.save_assets(tmp_path)
    return tmp_path / "vocab.json", tmp_path / "merges.txt"


def test_special_tokens_are_found_by_name(tokenizer):
    assert tokenizer.special_token_ids == [3, 0, 2, 1, 4]
    special = ["[U]", "[C]", "[S]", "[P]"]
    arguments = ("unknown_token", "start_token", "end_token", "pad_token")
    other = BytePairTokenizer(
        make_vocabulary(special=special), MERGES, **dict(zip(arguments, special, strict=True))
    )
    assert (other.start_token_id, other.pad_token_id, other.mask_token_id) == (1, 3, None)
    with pytest.raises(
        ValueError, match=r"lacks '<unk>' \(unknown_token\), '<s>'.*start_token=\.\.\."
    ):
        BytePairTokenizer(make_vocabulary(special=special), MERGES)


def test_files_are_written_as_transformers_reads_them(tokenizer, files):
    assert json.loads(files[0].read_text("utf-8")) == make_vocabulary()
    assert files[1].read_text("utf-8").split("\n") == ["#version: 0.2", *MERGES, ""]
    again = BytePairTokenizer(*files)
    assert again.tokenize(TEXT) == tokenizer.tokenize(TEXT)
    assert again.asset_contents() == tokenizer.asset_contents()


def test_merges_may_be_pairs_and_lines_may_end_as_on_windows(tokenizer, files):
    files[1].write_bytes(files[1].read_bytes().replace(b"\n", b"\r\n"))
    for merges in ([merge.split() for merge in MERGES], files[1]):
        assert BytePairTokenizer(files[0], merges).tokenize(TEXT) == tokenizer.tokenize(TEXT)


def test_merges_of_number_signs_are_no_comments(tmp_path):
    merges = ["# #", "## ##"]
    BytePairTokenizer(make_vocabulary(merges), merges).save_assets(tmp_path)
    files = [str(tmp_path / name) for name in ("vocab.json", "merges.txt")]
    theirs = Tokenizer(models.BPE.from_file(*files))
    assert BytePairTokenizer(*files).tokenize("#####") == theirs.encode("#####").ids


def test_detokenize_gives_the_text_back(tokenizer):
    assert tokenizer.detokenize(tokenizer.tokenize(TEXT)) == TEXT
    assert tokenizer.detokenize(tokenizer.tokenize([TEXT, " the"])) == [TEXT, " the"]
    assert tokenizer.detokenize([0, tokenizer.token_to_id("ä"), 2]) == "<s>\ufffd</s>"


def test_config_and_pickle(tokenizer):
    config = {**tokenizer.get_config(), "vocabulary": make_vocabulary(), "merges": MERGES}
    assert BytePairTokenizer.from_config(config).tokenize(TEXT) == tokenizer.tokenize(TEXT)
    prefixed = BytePairTokenizer(make_vocabulary(), MERGES, add_prefix_space=True)
    again = pickle.loads(pickle.dumps(prefixed))
    assert again.tokenize("the") == prefixed.tokenize("the") == [make_vocabulary()["Ġthe"]]


def test_saved_within_a_model(tokenizer, tmp_path):
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.tokenizer = tokenizer
    tokenizer.save_to_preset(str(tmp_path))
    assert sorted(p.name for p in (tmp_path / "assets" / "tokenizer").iterdir()) == [
        "merges.txt",
        "vocab.json",
    ]


def test_mask_takes_the_space_before_it(tokenizer):
    assert tokenizer.split_at_masks("a <mask>, <mask> b ") == ["a", ",", " b "]


@pytest.mark.parametrize(
    ("vocabulary", "merges", "message"),
    [
        (["<s>"], [], "must be a dict of pieces and their ids, got list.*WordPieceTokenizer"),
        ({}, [], "must be a dict of pieces and their ids, got dict"),
        ({"a": 1}, [], "must count up from 0 to 0"),
        ({"a": "0"}, [], "must count up from 0.*'a'"),
        (make_vocabulary(), ["a b c"], "two pieces with one space.*'a b c'"),
        (make_vocabulary(), ["x y"], "The merge 'x y' needs the piece 'xy', which"),
        (make_vocabulary(), None, "got no merges"),
    ],
)
def test_files_that_cannot_be_meant(vocabulary, merges, message):
    with pytest.raises(ValueError, match=message):
        BytePairTokenizer(vocabulary, merges)


def test_files_of_another_kind(tmp_path):
    path = tmp_path / "vocab.txt"
    path.write_text("\n".join(SPECIAL))
    with pytest.raises(ValueError, match="is not JSON .*WordPieceTokenizer"):
        BytePairTokenizer(path, [])
    path.write_text("null")
    with pytest.raises(ValueError, match="must be a dict .* got NoneType"):
        BytePairTokenizer(path, [])
    path.write_bytes(b'{"\xff": 0}')
    with pytest.raises(ValueError, match="is not UTF-8"):
        BytePairTokenizer(path, [])


def test_merges_that_were_cut_off(files):
    """Without them every word is bytes, which are other ids, and no error."""
    files[1].write_text("\n".join(MERGES[:6]))
    with pytest.warns(UserWarning, match="8 of the 12 pieces .* none of the 6 merges.*'Ġgood'"):
        tokenizer = BytePairTokenizer(*files)
    assert tokenizer.tokenize(" good") != [tokenizer.token_to_id("Ġgood")]


def test_settings_without_a_place_in_the_files_of_roberta():
    tokenizer = BytePairTokenizer(make_vocabulary(), MERGES, normalization="NFC")
    with pytest.raises(ValueError, match="does not compose text, got normalization='NFC'"):
        tokenizer.hugging_face_files()


def test_lowercase_is_of_word_pieces(tokenizer):
    with pytest.raises(ValueError, match="keeps upper and lower case.*Drop `lowercase`"):
        tokenizer.with_lowercase(True)


def test_each_tokenizer_answers_for_itself(tokenizer):
    word_piece = WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "##b", "[unused1]"])
    assert word_piece.row_template == RowTemplate(2, 3, 0, 1, True)
    assert tokenizer.row_template == RowTemplate(0, 2, 1, 2, False)
    assert word_piece.find_continuations().tolist() == [0, 0, 0, 0, 0, 1, 0]
    assert word_piece.find_ordinary().tolist() == [0, 0, 0, 0, 1, 1, 0]
    assert list(word_piece.asset_contents()) == ["vocab.txt"]
    continues = tokenizer.find_continuations()
    assert not continues[tokenizer.token_to_id("Ġgood")] and continues[tokenizer.token_to_id("lo")]
    assert tokenizer.find_ordinary().sum() == tokenizer.vocabulary_size() - len(SPECIAL)
