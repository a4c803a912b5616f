"""`prepare` with every kind of tokenizer, `pretrain` with its model, and the flags of masks."""

import json
import re

import pytest
from cli.small_files import save_tiny_checkpoint
from small_byte_pairs import MERGES, make_vocabulary
from small_sentence_pieces import make_albert, make_xlm_roberta
from small_texts import ONE_LAYER, VOCABULARY, make_reviews

import keras_bert_suite as kbs
from keras_bert_cli import pretrain
from keras_bert_cli.command_flags import Flags, UsageError
from keras_bert_cli.masker_flags import read_lexicon, read_similar_words
from keras_bert_cli.new_models import MODELS, find_backbone, make_backbone, takes
from keras_bert_suite.checkpoints import write_tokenizer
from keras_bert_suite.checkpoints.model_types.table import ALL_TYPES
from keras_bert_suite.corpus import TokenCorpus

BERT_TOKENS = ["[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"]
PRETRAIN = ("pretrain", "--corpus=shards", "--output=run", "--size=tiny", "--evaluation_batches=1")
PRETRAIN += ("--batch_size=4", "--sequence_length=32", "--steps=2", "--report_every=1")


@pytest.fixture
def workshop(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    documents = [make_reviews(6, seed)[0] for seed in range(20)]
    texts = "\n\n".join("\n".join(document) for document in documents)
    (tmp_path / "corpus.txt").write_text(texts + "\n")
    return tmp_path


def prepare(run, vocabulary, *flags):
    arguments = ("--input=corpus.txt", "--output=shards", "--workers=1", *flags)
    return run("prepare", f"--vocab={vocabulary}", *arguments)


def check_run(run, *flags):
    """Pretrains, and returns the task that was written."""
    status, _, err = run(*PRETRAIN, *flags)
    assert (status, err) == (0, "")
    return kbs.Pretrainer.from_preset("run/model")


def test_a_sentence_piece_model_and_an_albert(run, workshop):
    (workshop / "own.model").write_bytes(make_albert())
    assert prepare(run, "own.model", "--nostrip_accents")[::2] == (0, "")
    pretrainer = check_run(run, "--mode=sop")
    assert type(pretrainer.backbone) is kbs.AlbertBackbone
    assert pretrainer.backbone.num_layers == 2
    assert pretrainer.preprocessor.tokenizer.strip_accents is False


def test_a_sentence_piece_model_and_a_roberta(run, workshop):
    (workshop / "own.model").write_bytes(make_xlm_roberta())
    assert prepare(run, "own.model")[::2] == (0, "")
    pretrainer = check_run(run, "--mode=full_sentences")
    assert type(pretrainer.backbone) is kbs.RobertaBackbone
    assert type(pretrainer.preprocessor.tokenizer) is kbs.XLMRobertaTokenizer
    status, _, err = run(*PRETRAIN, "--output=other", "--model=bert")
    assert status == 2 and "cannot train a BertBackbone with an XLMRobertaTokenizer; choose" in err
    assert "--model among roberta, distilbert, modernbert, longformer, elmo, or prepare" in err
    for objective in ("unilm", "replaced_tokens"):  # They fix the model.
        status, _, err = run(*PRETRAIN, "--output=other", f"--objective={objective}")
        assert status == 2 and "XLMRobertaTokenizer; prepare the corpus with a vocab.txt" in err
    assert not (workshop / "other").exists()


def test_a_tokenizer_json_and_a_modern_bert(run, workshop):
    tokenizer = kbs.ModernBertTokenizer(make_vocabulary(special=BERT_TOKENS), MERGES)
    (workshop / "tokenizer").mkdir()
    write_tokenizer(tokenizer, 64, workshop / "tokenizer")
    assert prepare(run, "tokenizer/tokenizer.json")[::2] == (0, "")
    flags = ("--mode=full_sentences", "--masking_rate=0.3", "--dropout=0.1")
    pretrainer = check_run(run, *flags)
    assert type(pretrainer.backbone) is kbs.ModernBertBackbone
    assert pretrainer.backbone.mlp_dropout == 0.1
    status, _, err = run(*PRETRAIN, "--output=other", "--objective=left_to_right")
    message = "left_to_right cannot train a ModernBertBackbone with a ModernBertTokenizer; choose"
    assert status == 2 and f"{message} --model among roberta, distilbert, or" in err
    assert not (workshop / "other").exists()
    status, _, err = prepare(run, "tokenizer/tokenizer.json", "--lowercase", "--output=other")
    assert status == 2 and "--lowercase is for a vocab.txt or an ALBERT" in err


def test_a_checkpoint_and_another_kind_of_model(run, workshop):
    """With 40% of the tokens masked, none of them random; and ERNIE's and MacBERT's masks."""
    save_tiny_checkpoint(workshop / "checkpoint")
    assert prepare(run, "checkpoint")[::2] == (0, "")
    assert kbs.open_tokenizer("shards").get_vocabulary() == VOCABULARY
    (workshop / "lexicon.txt").write_text("good film\n\nbad plot\n")
    (workshop / "similar.tsv").write_text("good\tdull\nfilm\tplot\n")
    masks = ("--masking_rate=0.4", "--mask_token_rate=1", "--random_token_rate=0")
    files = ("--lexicon=lexicon.txt", "--similar_words=similar.tsv", "--rarity=0.5")
    shares = ("--unit=ngram", "--ngram_shares=0.4,0.3,0.2,0.1")
    pretrainer = check_run(run, "--model=nezha", *masks, *files, *shares)
    assert type(pretrainer.backbone) is kbs.NezhaBackbone
    settings = json.loads((workshop / "run" / "settings.json").read_text())
    assert settings["mask_token_rate"] == 1 and settings["max_predictions"] is None
    (workshop / "lexicon.txt").write_text("dull film\n")
    status, _, err = run(*PRETRAIN, "--model=nezha", *masks, *files, *shares)
    assert status == 1 and "other settings: --lexicon (SHA-256) was " in err


def test_the_kinds_are_those_of_checkpoints():
    backbones = [ALL_TYPES[name].backbone for name in MODELS]
    assert len(set(backbones)) == len(backbones)
    # An encoder-decoder is made of the arguments of a BERT, and static vectors are not pretrained.
    others = {kind.backbone for kind in ALL_TYPES.values()}
    others -= {"BertEncoderDecoder", "StaticBackbone"}
    assert set(backbones) == others


@pytest.mark.parametrize("kind", MODELS)
def test_the_kinds_that_take_a_pattern(kind):
    objective, cls = kbs.objectives.get("left_to_right"), find_backbone(kind)
    arguments = objective.backbone_arguments
    if kind in objective.models:
        assert cls(**ONE_LAYER, **arguments).attention_pattern == "left_to_right"
    elif takes(cls, "attention_pattern") or takes(cls, "num_heads"):
        with pytest.raises((TypeError, ValueError), match="attention_pattern"):
            cls(**ONE_LAYER, **arguments)


@pytest.mark.parametrize(
    ("kind", "length", "positions"),
    [("bert", 128, 512), ("bert", 600, 600), ("roformer", 128, 1536), ("longformer", 64, 4096)],
)
def test_a_new_model_has_the_positions_of_its_kind(kind, length, positions):
    flags = ["--corpus=shards", "--output=run", "--steps=1", "--size=tiny", f"--model={kind}"]
    values = Flags("pretrain", pretrain).parse([*flags, f"--sequence_length={length}"])
    tokenizer = kbs.WordPieceTokenizer(VOCABULARY)
    backbone = make_backbone(values, kbs.objectives.get("masked_lm"), tokenizer)
    assert backbone.max_sequence_length == positions
    if kind == "longformer":
        assert backbone.separator_id == tokenizer.end_token_id == 3
        assert backbone.global_tokens == "none"


def test_files_of_masks_may_begin_with_a_byte_order_mark(tmp_path):
    (tmp_path / "lexicon.txt").write_text("good film\n", "utf-8-sig")
    (tmp_path / "similar.tsv").write_text("good\tdull\n", "utf-8-sig")
    assert read_lexicon(tmp_path / "lexicon.txt") == ["good film"]
    assert read_similar_words(tmp_path / "similar.tsv") == {"good": "dull"}


def make_masker(values, corpus, tokenizer):
    (masker,) = pretrain.make_maskers(values, kbs.objectives.get("masked_lm"), corpus, tokenizer)
    return masker


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--lexicon=bad.tsv"], 'has no use for phrases; choose "word", "span" or "ngram"'),
        (["--ngram_shares=1,2"], "--ngram_shares needs --unit=ngram"),
        (["--unit=ngram", "--ngram_shares=1,0"], "ngram_shares must be positive numbers"),
        (["--mask_token_rate=1"], "must not sum to more than 1, got 1.0 and 0.1"),
        (["--unit=word", "--lexicon=absent.txt"], "No such file or directory: 'absent.txt'"),
        (["--unit=word", "--lexicon=empty.txt"], "empty.txt is empty"),
        (["--unit=word", "--similar_words=empty.txt"], "empty.txt is empty"),
        (["--unit=word", "--similar_words=bad.tsv"], "bad.tsv, line 2: wanted a word, a tab"),
    ],
)
def test_bad_flags_of_masks(workshop, flags, message):
    (workshop / "empty.txt").write_text("")
    (workshop / "bad.tsv").write_text("good\tdull\nfilm plot\n")
    values = Flags("pretrain", pretrain).parse([*PRETRAIN[1:], *flags])
    with pytest.raises((UsageError, ValueError, FileNotFoundError), match=re.escape(message)):
        make_masker(values, None, kbs.WordPieceTokenizer(VOCABULARY))


CHINESE = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"这部电影很好看不！", "a", "good"]


@pytest.mark.parametrize(
    ("texts", "flags", "segmenter"),
    [
        (["这部电影很好看"], [], "error"),
        (["这部电影很好看", "good a good"], [], "error"),
        (["这部电影", "good a good a good a"], [], None),
        (["这部电影很好看"], ["--unit=token"], None),
        (["这部电影很好看"], ["--unit=span"], None),
        (["这部电影很好看"], ["--word_segmenter=none"], None),
        (["这部电影很好看"], ["--word_segmenter=jieba"], "jieba"),
    ],
)
def test_words_of_a_chinese_corpus(texts, flags, segmenter):
    tokenizer = kbs.WordPieceTokenizer(CHINESE)
    corpus = TokenCorpus.from_documents([[tokenizer.tokenize(text)] for text in texts])
    values = Flags("pretrain", pretrain).parse([*PRETRAIN[1:], "--unit=word", *flags])
    if segmenter == "error":
        with pytest.raises(UsageError, match="would mask each character alone"):
            make_masker(values, corpus, tokenizer)
    else:
        assert make_masker(values, corpus, tokenizer).word_segmenter == segmenter


@pytest.mark.parametrize(("objective", "has_lexicon"), [("masked_lm", True), ("denoising", False)])
def test_the_advice_for_chinese_words_names_flags_of_the_objective(objective, has_lexicon):
    tokenizer = kbs.WordPieceTokenizer(CHINESE)
    corpus = TokenCorpus.from_documents([[tokenizer.tokenize("这部电影很好看")]])
    flags = [*PRETRAIN[1:], f"--objective={objective}", "--unit=word"]
    values = Flags("pretrain", pretrain).parse(flags)
    with pytest.raises(UsageError, match="--word_segmenter=jieba") as refused:
        pretrain.make_maskers(values, kbs.objectives.get(objective), corpus, tokenizer)
    assert ("--lexicon" in str(refused.value)) == has_lexicon


@pytest.mark.parametrize("name", ["broken.model", "thesis.png"])
def test_files_that_are_no_tokenizer(run, workshop, name):
    (workshop / name).write_bytes(b"\0 no tokenizer")
    status, _, err = prepare(run, name)
    assert status == 1 and name in err
    assert not (workshop / "shards").exists()
