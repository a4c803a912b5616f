"""Tokenizers from files and folders of every kind."""

import json
import re

import keras_hub
import pytest
import transformers
from small_byte_pairs import MERGES, make_vocabulary
from small_sentence_pieces import make_albert, make_xlm_roberta
from small_texts import ONE_LAYER, VOCABULARY
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

import keras_bert_suite as kbs
from keras_bert_suite.checkpoints import save_keras_hub, write_tokenizer

TEXTS = ["the good film", " Low  café, 2009,", "bad"]
BERT_TOKENS = ["[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"]

TOKENIZERS = {
    "word pieces": lambda: kbs.WordPieceTokenizer(VOCABULARY),
    "cased word pieces": lambda: kbs.WordPieceTokenizer(VOCABULARY, lowercase=False),
    "byte pairs": lambda: kbs.BytePairTokenizer(make_vocabulary(), MERGES),
    "ModernBERT": lambda: kbs.ModernBertTokenizer(make_vocabulary(special=BERT_TOKENS), MERGES),
    "ALBERT": lambda: kbs.AlbertTokenizer(make_albert()),
    "XLM-RoBERTa": lambda: kbs.XLMRobertaTokenizer(make_xlm_roberta()),
}
#: The file that transformers reads of each kind, by which it is opened.
FILES = {
    "word pieces": "vocab.txt",
    "byte pairs": "vocab.json",
    "ModernBERT": "tokenizer.json",
    "ALBERT": "spiece.model",
    "XLM-RoBERTa": "sentencepiece.bpe.model",
}


def check_same(opened, tokenizer):
    assert type(opened) is type(tokenizer)
    assert opened.settings == tokenizer.settings
    assert opened.get_vocabulary() == tokenizer.get_vocabulary()
    assert opened.tokenize(TEXTS) == tokenizer.tokenize(TEXTS)


@pytest.mark.parametrize("kind", FILES)
def test_files(tmp_path, kind):
    tokenizer = TOKENIZERS[kind]()
    write_tokenizer(tokenizer, 64, tmp_path)
    check_same(kbs.open_tokenizer(tmp_path / FILES[kind]), tokenizer)
    # A folder without a configuration.
    check_same(kbs.open_tokenizer(str(tmp_path)), tokenizer)


@pytest.mark.parametrize(
    ("model_type", "kind"),
    [
        ("bert", "cased word pieces"),
        ("roberta", "byte pairs"),
        ("modernbert", "ModernBERT"),
        ("albert", "ALBERT"),
        ("albert", "word pieces"),
        ("xlm-roberta", "XLM-RoBERTa"),
    ],
)
def test_checkpoints_without_weights(tmp_path, model_type, kind):
    tokenizer = TOKENIZERS[kind]()
    write_tokenizer(tokenizer, 64, tmp_path)
    (tmp_path / "config.json").write_text(json.dumps({"model_type": model_type}))
    check_same(kbs.open_tokenizer(tmp_path), tokenizer)


def test_the_folders_of_google(tmp_path):
    (tmp_path / "albert_config.json").write_text("{}")
    (tmp_path / "30k-clean.model").write_bytes(make_albert())
    check_same(kbs.open_tokenizer(tmp_path), kbs.AlbertTokenizer(make_albert()))


@pytest.mark.parametrize(
    ("cls", "vocabulary", "settings", "others"),
    [
        (
            kbs.WordPieceTokenizer,
            (VOCABULARY,),
            {"lowercase": False, "max_word_length": 7},
            {"lowercase": True, "strip_accents": False},
        ),
        (
            kbs.BytePairTokenizer,
            (make_vocabulary(), MERGES),
            {"add_prefix_space": True},
            {"add_prefix_space": False},
        ),
        pytest.param(
            kbs.AlbertTokenizer,
            (make_albert(),),
            {"lowercase": False, "strip_accents": False},
            {"strip_accents": True},
            marks=pytest.mark.long("texts"),  # It makes tables for seconds, as the next test does.
        ),
        (kbs.XLMRobertaTokenizer, (make_xlm_roberta(),), {}, {"added_tokens": []}),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_the_settings_beside_a_vocabulary(tmp_path, cls, vocabulary, settings, others):
    """A folder with a tokenizer_config.json, and without the configuration of a model."""
    tokenizer = cls(*vocabulary, added_tokens=["covid-19"], **settings)
    write_tokenizer(tokenizer, 64, tmp_path)
    opened = kbs.open_tokenizer(tmp_path)
    check_same(opened, tokenizer)
    assert opened.tokenize("Bad covid-19") == tokenizer.tokenize("Bad covid-19")
    # An argument goes before the file.
    wanted = cls(*vocabulary, **{"added_tokens": ["covid-19"], **settings, **others})
    check_same(kbs.open_tokenizer(tmp_path, **others), wanted)


@pytest.mark.parametrize(
    ("kind", "settings", "added"),
    [
        ("AlbertTokenizer", {"do_lower_case": True, "keep_accents": True}, {}),
        ("AlbertTokenizer", {"do_lower_case": False, "keep_accents": False}, {}),
        ("RobertaTokenizer", {"add_prefix_space": True}, {}),
        ("RobertaTokenizer", None, {"<e1>": len(make_vocabulary())}),
        ("BertTokenizer", None, {"<e1>": len(VOCABULARY)}),
    ],
)
def test_settings_of_a_folder_that_has_no_config_json(tmp_path, kind, settings, added):
    """`save_pretrained` of a tokenizer of transformers writes no config.json."""
    tokenizer = {"Bert": "word pieces", "Roberta": "byte pairs", "Albert": "ALBERT"}
    tokenizer = TOKENIZERS[tokenizer[kind.removesuffix("Tokenizer")]]()
    for name, content in tokenizer.hugging_face_files().items():
        (tmp_path / name).write_bytes(content)
    if settings:
        config = {"tokenizer_class": kind, **settings}
        (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    if added:
        (tmp_path / "added_tokens.json").write_text(json.dumps(added))
    theirs = getattr(transformers, kind).from_pretrained(str(tmp_path))
    texts = ["the good <e1> film", "Low café"]
    ours = kbs.open_tokenizer(tmp_path).tokenize(texts)
    assert ours == theirs(texts, add_special_tokens=False)["input_ids"]
    assert ours != tokenizer.tokenize(texts)


def test_a_preset(tmp_path):
    tokenizer = kbs.AlbertTokenizer(make_albert(), lowercase=False)
    sizes = {"num_layers": 1, "num_heads": 1, "hidden_dim": 4, "intermediate_dim": 4}
    backbone = kbs.AlbertBackbone(tokenizer.vocabulary_size(), **sizes, embedding_dim=4)
    pretrainer = kbs.Pretrainer(backbone, preprocessor=kbs.SegmentPacker(tokenizer, 16))
    pretrainer.save_to_preset(str(tmp_path / "preset"))
    check_same(kbs.open_tokenizer(tmp_path / "preset"), tokenizer)
    changed = kbs.open_tokenizer(tmp_path / "preset", lowercase=True)
    check_same(changed, kbs.AlbertTokenizer(make_albert()))


@pytest.mark.parametrize(
    ("model", "special", "kind"),
    [
        (models.BPE, ["<s>", "<pad>", "</s>", "<unk>", "<mask>"], "BytePairTokenizer"),
        (models.BPE, BERT_TOKENS, "ModernBertTokenizer"),
    ],
)
def test_a_tokenizer_json_alone(tmp_path, model, special, kind):
    ids = make_vocabulary(special=special)
    theirs = Tokenizer(model(ids, [tuple(merge.split()) for merge in MERGES]))
    theirs.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    theirs.save(str(tmp_path / "tokenizer.json"))
    ours = kbs.open_tokenizer(tmp_path / "tokenizer.json")
    assert type(ours).__name__ == kind
    assert ours.tokenize(TEXTS) == [theirs.encode(text).ids for text in TEXTS]


def test_a_tokenizer_json_of_word_pieces_alone(tmp_path):
    ids = {piece: number for number, piece in enumerate(VOCABULARY)}
    theirs = Tokenizer(models.WordPiece(ids, unk_token="[UNK]"))
    theirs.normalizer = normalizers.BertNormalizer()
    theirs.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    theirs.save(str(tmp_path / "tokenizer.json"))
    ours = kbs.open_tokenizer(tmp_path / "tokenizer.json")
    assert type(ours) is kbs.WordPieceTokenizer
    assert ours.tokenize(TEXTS) == [theirs.encode(text).ids for text in TEXTS]


def test_settings(tmp_path):
    (tmp_path / "vocab.txt").write_text("\n".join(VOCABULARY) + "\n")
    assert kbs.open_tokenizer(tmp_path / "vocab.txt", lowercase=False).lowercase is False
    TOKENIZERS["byte pairs"]().save_assets(tmp_path)
    with pytest.raises(ValueError, match="arguments passed to BytePairTokenizer: .*'lowercase'"):
        kbs.open_tokenizer(tmp_path / "vocab.json", lowercase=False)


def write_merges(path, text):
    TOKENIZERS["byte pairs"]().save_assets(path)
    (path / "merges.txt").write_text(text)


BAD_FILES = {
    "vocab.model": (b"no model at all", "vocab.model of 15 bytes is no SentencePiece model"),
    "cut.model": (make_albert()[:-400], "is no SentencePiece model, or is damaged"),
    "none.model": (
        make_albert(special=["<unk>"]),
        r"begins with '<unk>', .* Wanted '<unk>', '<s>', '</s>'",
    ),
    "unpadded.model": (
        make_albert(special=["<unk>", "[CLS]", "[SEP]"]),
        r"lacks '<pad>' \(pad_token\)",
    ),
    "broken.json": (b'{"a": ', "broken.json is not JSON"),
    "list.json": (b"[1]", "list.json must hold a JSON object, got list"),
    "words.json": (b'{"a": "b"}', "ids of the 1 pieces .* must count up from 0"),
    "tokenizer.json": (
        b'{"model": {"type": "WordLevel", "vocab": {}}}',
        "a model of type 'WordLevel', wanted 'WordPiece', 'BPE', 'Unigram'",
    ),
    "other.json": (b'{"model": {"type": "BPE"}}', "Rename it to tokenizer.json"),
    "image.png": (b"\x89PNG\0\0", "image.png is no text file. Wanted a vocab.txt"),
    "words.txt": (b"a\nb\n", r"The vocabulary .*words.txt of 2 pieces lacks '\[UNK\]'"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_files_that_are_no_tokenizer(tmp_path, name):
    content, message = BAD_FILES[name]
    (tmp_path / name).write_bytes(content)
    (tmp_path / "merges.txt").write_text("")
    with pytest.raises(ValueError, match=message):
        kbs.open_tokenizer(tmp_path / name)


def test_a_tokenizer_json_without_known_special_tokens(tmp_path):
    content = {"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}}
    (tmp_path / "tokenizer.json").write_text(json.dumps(content))
    with pytest.raises(ValueError, match=r"none of the special tokens '<s>' and '\[CLS\]'"):
        kbs.open_tokenizer(tmp_path / "tokenizer.json")


@pytest.mark.parametrize("line", ["lower", "l o w", " low", "low "])
def test_broken_lines_of_merges(tmp_path, monkeypatch, line):
    write_merges(tmp_path, f"#version: 0.2\nh e\n\n{line}\nl o\n")
    message = re.escape("merges.txt, line 4: A merge is two pieces with one space between them, ")
    with pytest.raises(ValueError, match=message + f"got '{line}'") as error:
        kbs.open_tokenizer(tmp_path / "vocab.json")
    assert str(error.value).startswith(str(tmp_path / "merges.txt"))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=message) as error:
        kbs.open_tokenizer("vocab.json")
    assert str(error.value).startswith(str(tmp_path / "merges.txt"))


def test_the_name_of_a_folder_in_a_message_is_no_name_of_a_file(tmp_path, monkeypatch):
    tokenizer = Tokenizer(models.BPE(make_vocabulary(), []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    content = json.loads(tokenizer.to_str())
    content["model"]["merges"] = [["bad"]]
    (tmp_path / "pieces").mkdir()
    (tmp_path / "pieces" / "tokenizer.json").write_text(json.dumps(content))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=r"^pieces/tokenizer.json cannot be read: .*two pieces"):
        kbs.open_tokenizer("pieces/tokenizer.json")


def test_nothing_there(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"absent\.txt"):
        kbs.open_tokenizer(tmp_path / "absent.txt")
    TOKENIZERS["byte pairs"]().save_assets(tmp_path)
    (tmp_path / "merges.txt").unlink()
    with pytest.raises(FileNotFoundError, match=r"vocab\.json has no merges\.txt beside it\. Copy"):
        kbs.open_tokenizer(tmp_path / "vocab.json")
    (tmp_path / "vocab.json").unlink()
    (tmp_path / "thesis.pdf").touch()
    with pytest.raises(FileNotFoundError, match=r"no tokenizer: found thesis.pdf, wanted"):
        kbs.open_tokenizer(tmp_path)


def test_a_preset_of_keras_hub(tmp_path):
    tokenizer = TOKENIZERS["cased word pieces"]()
    backbone = kbs.BertBackbone(**ONE_LAYER)
    save_keras_hub(backbone, tmp_path / "bert", tokenizer, sequence_length=16)
    opened = kbs.open_tokenizer(tmp_path / "bert")
    assert type(opened) is kbs.WordPieceTokenizer and not opened.lowercase
    assert opened.get_vocabulary() == tokenizer.get_vocabulary()
    assert opened.tokenize([*TEXTS, "Café"]) == tokenizer.tokenize([*TEXTS, "Café"])
    theirs = keras_hub.models.GPT2Backbone(4, 1, 1, 4, 4)
    theirs.save_to_preset(str(tmp_path / "other"))
    pieces = {"a": 0, "b": 1, "ab": 2, "<|endoftext|>": 3}
    keras_hub.models.GPT2Tokenizer(pieces, ["a b"]).save_to_preset(str(tmp_path / "other"))
    message = "other has a GPT2Tokenizer of another package, wanted one of .*WordPieceTokenizer"
    with pytest.raises(ValueError, match=message):
        kbs.open_tokenizer(tmp_path / "other")


def test_a_folder_of_mbart_without_weights(tmp_path):
    (tmp_path / "sentencepiece.bpe.model").write_bytes(make_xlm_roberta())
    config = {"tokenizer_class": "MBartTokenizer", "src_lang": "de_DE", "tgt_lang": "ro_RO"}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    check_same(
        kbs.open_tokenizer(tmp_path),
        kbs.MBartTokenizer(make_xlm_roberta(), source_language="de_DE", target_language="ro_RO"),
    )
