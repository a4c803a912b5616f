"""SentencePiece tokenizers as layers: files, settings, special tokens, presets, damage."""

import pickle
import random

import pytest
from sentencepiece import SentencePieceProcessor
from sentencepiece.sentencepiece_model_pb2 import ModelProto
from small_sentence_pieces import (
    ALBERT_TOKENS,
    DEFINED,
    PIECES,
    XLM_ROBERTA_TOKENS,
    XLNET_DEFINED,
    XLNET_TOKENS,
    charsmap,
    make_albert,
    make_xlm_roberta,
    make_xlnet,
)

from keras_bert_suite import (
    AlbertTokenizer,
    SentencePieceTokenizer,
    XLMRobertaTokenizer,
    XLNetTokenizer,
    open_tokenizer,
)
from keras_bert_suite.tokenizers.row_template import RowTemplate

TEXT = "the good film, café 2009, ½!"
MODELS = {
    AlbertTokenizer: make_albert(),
    SentencePieceTokenizer: make_albert(),
    XLMRobertaTokenizer: make_xlm_roberta(),
    XLNetTokenizer: make_xlnet(),
}
FILES = {
    AlbertTokenizer: "spiece.model",
    SentencePieceTokenizer: "spiece.model",
    XLMRobertaTokenizer: "sentencepiece.bpe.model",
    XLNetTokenizer: "spiece.model",
}


@pytest.fixture(params=list(MODELS), ids=lambda cls: cls.__name__)
def tokenizer(request):
    return request.param(MODELS[request.param])


def test_ids_of_albert_are_those_of_the_file():
    tokenizer = AlbertTokenizer(MODELS[AlbertTokenizer])
    assert tokenizer.get_vocabulary() == [*ALBERT_TOKENS, *DEFINED, *PIECES]
    assert tokenizer.special_token_ids == [1, 2, 3, 0, 4]
    # The name of the unknown piece ends with punctuation, and says nothing of its text.
    assert not tokenizer.find_endings()[tokenizer.unknown_token_id]
    assert tokenizer.find_endings()[tokenizer.token_to_id("!")]
    assert tokenizer.row_template == RowTemplate(2, 3, 0, 1, True)


def test_ids_of_xlm_roberta_are_those_of_fairseq():
    tokenizer = XLMRobertaTokenizer(MODELS[XLMRobertaTokenizer])
    assert tokenizer.get_vocabulary() == ["<s>", "<pad>", "</s>", "<unk>", *PIECES, "<mask>"]
    assert tokenizer.special_token_ids == [3, 0, 2, 1, len(PIECES) + 4]
    assert tokenizer.row_template == RowTemplate(0, 2, 1, 2, False)
    assert tokenizer.find_ordinary().sum() == len(PIECES)
    continues = tokenizer.find_continuations()
    assert not continues[tokenizer.token_to_id("▁good")] and continues[tokenizer.token_to_id("low")]


def test_ids_and_rows_of_xlnet(tmp_path, run_engine):
    (tmp_path / "spiece.model").write_bytes(MODELS[XLNetTokenizer])
    tokenizer = open_tokenizer(tmp_path / "spiece.model")
    assert type(tokenizer) is XLNetTokenizer
    assert tokenizer.get_vocabulary() == [*XLNET_TOKENS, *XLNET_DEFINED, *PIECES]
    assert tokenizer.row_template == RowTemplate(3, 4, 5, 1, True, "last", 2, "left")
    # The end of a paragraph is a piece that a text may hold, and no other special piece is.
    (ids,) = run_engine(tokenizer, ["The <eop> <eod> <cls> <mask> film"])
    assert ids.count(8) == 1 and not set(ids) & {1, 2, 3, 4, 5, 6, 7}
    assert tokenizer.tokenize("the") != tokenizer.tokenize("The")
    assert tokenizer.with_lowercase(True).tokenize("The") == tokenizer.tokenize("the")


def test_the_file_is_written_as_it_was_read(tokenizer, tmp_path):
    tokenizer.save_assets(tmp_path)
    name = FILES[type(tokenizer)]
    assert (tmp_path / name).read_bytes() == MODELS[type(tokenizer)]
    again = type(tokenizer)(tmp_path / name)
    assert again.tokenize(TEXT) == tokenizer.tokenize(TEXT)


def test_config_and_pickle(tokenizer):
    config = {**tokenizer.get_config(), "vocabulary": MODELS[type(tokenizer)]}
    assert type(tokenizer).from_config(config).tokenize(TEXT) == tokenizer.tokenize(TEXT)
    again = pickle.loads(pickle.dumps(tokenizer))
    assert again.tokenize(TEXT) == tokenizer.tokenize(TEXT)
    cased = AlbertTokenizer(MODELS[AlbertTokenizer], lowercase=False)
    again = pickle.loads(pickle.dumps(cased))
    assert again.tokenize("The") == cased.tokenize("The") != cased.tokenize("the")


def test_saved_as_a_preset(tokenizer, tmp_path):
    tokenizer.save_to_preset(str(tmp_path))
    assert [p.name for p in (tmp_path / "assets" / "tokenizer").iterdir()] == [
        FILES[type(tokenizer)]
    ]
    again = type(tokenizer)()
    again.load_assets(tmp_path / "assets" / "tokenizer")
    assert again.tokenize(TEXT) == tokenizer.tokenize(TEXT)


def test_detokenize(tokenizer):
    ids = tokenizer.tokenize(["the good film!", "low"])
    assert tokenizer.detokenize(ids) == ["the good film!", "low"]
    assert tokenizer.detokenize([tokenizer.start_token_id, *ids[1]]) == (
        f"{tokenizer.start_token} low"
    )


def test_lowercase_is_of_albert():
    albert = AlbertTokenizer(MODELS[AlbertTokenizer])
    cased = albert.with_lowercase(False)
    assert cased.tokenize("the") == albert.tokenize("The") != cased.tokenize("The")
    with pytest.raises(ValueError, match="keeps upper and lower case.*Drop `lowercase`"):
        XLMRobertaTokenizer(MODELS[XLMRobertaTokenizer]).with_lowercase(True)


def test_a_text_holds_no_special_token(run_engine):
    model = make_albert(defined=(*DEFINED, "<x>"))
    tokenizer = AlbertTokenizer(model, mask_token="<x>")
    assert tokenizer.mask_token_id == 5 + len(DEFINED)
    (ids,) = run_engine(tokenizer, ["[CLS] <x> <pad>"])
    assert not set(ids) & {tokenizer.mask_token_id, *range(1), *range(2, 5)}
    assert tokenizer.split_at_masks("a <x>, b") == ["a ", ", b"]


def test_special_tokens_that_are_absent():
    with pytest.raises(
        ValueError, match=r"lacks '\[CLS\]' \(start_token\), '\[SEP\]'.*start_token=\.\.\."
    ):
        AlbertTokenizer(MODELS[XLMRobertaTokenizer])
    with pytest.raises(ValueError, match="begins with '<pad>', '<unk>', .*Use the sentencepiece.b"):
        XLMRobertaTokenizer(MODELS[AlbertTokenizer])
    for piece in ("<pad>", "<mask>"):
        model = make_albert(XLM_ROBERTA_TOKENS, [*PIECES, piece], defined=())
        with pytest.raises(
            ValueError, match="which XLM-RoBERTa adds, .*Use the sentencepiece.bpe."
        ):
            XLMRobertaTokenizer(model)


def test_pieces_that_are_not_used(run_engine):
    """The library leaves them out of every text, and keeps their ids."""
    model = ModelProto.FromString(MODELS[AlbertTokenizer])
    (place,) = (i for i, piece in enumerate(model.pieces) if piece.piece == "▁good")
    model.pieces[place].type = model.SentencePiece.UNUSED
    content = model.SerializeToString()
    texts = ["the good film", "good un low"]
    wanted = SentencePieceProcessor(model_proto=content).encode(texts)
    assert not any(place in row for row in wanted)
    assert run_engine(AlbertTokenizer(content), texts) == wanted


def change(**fields):
    model = ModelProto.FromString(MODELS[AlbertTokenizer])
    for name, value in fields.items():
        specs = model.normalizer_spec, model.trainer_spec
        setattr(next(spec for spec in specs if hasattr(spec, name)), name, value)
    return model.SerializeToString()


def without(field):
    model = ModelProto.FromString(MODELS[AlbertTokenizer])
    model.ClearField(field)
    return model.SerializeToString()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "0 bytes is no SentencePiece model, or is damaged: it has no pieces. Download"),
        (b"[PAD]\n[UNK]\n[CLS]\n", "is no SentencePiece model"),
        (b"\x80\x02}q\x00.", "is no SentencePiece model"),
        (MODELS[AlbertTokenizer][:900], "is no SentencePiece model"),
        (MODELS[AlbertTokenizer][:-10], "is no SentencePiece model"),
        (change(model_type=2), "has model_type BPE; only UNIGRAM can be read"),
        (change(byte_fallback=True), "has byte_fallback True; only False can be read"),
        *(
            (change(**{name: not needed}), f"has {name} {not needed}; only {needed} can be read")
            for name, needed in {
                "treat_whitespace_as_suffix": False,
                "escape_whitespaces": True,
                "remove_extra_whitespaces": True,
                "add_dummy_prefix": True,
            }.items()
        ),
        (change(precompiled_charsmap=charsmap()[:5000]), "rules for characters are damaged"),
        (change(precompiled_charsmap=b"\0\4\0\0" + b"\xff" * 1024), "rules for characters are d"),
        (make_albert(pieces=["a", "a"]), "not one unknown piece and others"),
        (without("trainer_spec"), "damaged: its end is missing"),
        (without("normalizer_spec"), "damaged: its end is missing"),
        (make_albert(pieces=[]), "damaged: its pieces have no scores"),
        (make_albert([*ALBERT_TOKENS, ""]), "not one unknown piece and others"),
    ],
)
def test_files_that_cannot_be_meant(tmp_path, content, message):
    path = tmp_path / "spiece.model"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=f"SentencePiece model .*spiece.model .*{message}"):
        AlbertTokenizer(path)


def test_what_is_no_file():
    with pytest.raises(ValueError, match="path of a .model file or its bytes, got list"):
        AlbertTokenizer(["[CLS]"])
    with pytest.raises(FileNotFoundError):
        AlbertTokenizer("nowhere.model")
    with pytest.raises(ValueError, match="No vocabulary has been set for AlbertTokenizer"):
        AlbertTokenizer().tokenize("a")


@pytest.mark.parametrize("size", [None, 1024])
def test_damage_never_ends_the_interpreter(size):
    """A wrong model is refused, or tokenizes: it may have other pieces, but no wild pointers."""
    rng = random.Random(0)
    for _ in range(150):
        content = bytearray(MODELS[XLMRobertaTokenizer])
        for _ in range(rng.randint(1, 8)):
            content[rng.randrange(size or len(content))] = rng.randrange(256)
        try:
            XLMRobertaTokenizer(bytes(content)).tokenize_with_offsets(f"{TEXT} \u0301가ｶﾞ\x01龥")
        except ValueError as error:
            assert "SentencePiece model" in str(error)
