"""Checkpoints of XLM-RoBERTa with their tokenizer, both ways, and ALBERT's tokenizer files."""

import json

import keras_hub
import numpy as np
import pytest
import torch
import transformers
from peer_weights import randomize, to_numpy, transformers_peer
from sentencepiece.sentencepiece_model_pb2 import ModelProto
from small_sentence_pieces import make_albert, make_xlm_roberta, make_xlnet

from keras_bert_suite import (
    AlbertTokenizer,
    BytePairTokenizer,
    MaskedLM,
    RobertaBackbone,
    SegmentPacker,
    TextClassifier,
    TokenClassifier,
    XLMRobertaTokenizer,
    XLNetTokenizer,
    open_tokenizer,
)
from keras_bert_suite.checkpoints import save_hugging_face, save_keras_hub, write_tokenizer
from keras_bert_suite.checkpoints.tokenizer_files.sentence_piece import (
    read_hugging_face_albert,
    read_hugging_face_xlnet,
)

TOKENIZER = XLMRobertaTokenizer(make_xlm_roberta())
TINY = {
    "vocab_size": TOKENIZER.vocabulary_size(),
    "hidden_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "max_position_embeddings": 34,
    "type_vocab_size": 1,
    "num_labels": 3,
}
TEXTS = ["the good film", " low  café 2009, ½", ""], ["aaaaa", "bad 一二!", "é"]


def save_peer(path, model_name="XLMRobertaForSequenceClassification"):
    config = transformers.XLMRobertaConfig(**TINY)
    model = transformers_peer(getattr(transformers, model_name), config)
    model.save_pretrained(path)
    TOKENIZER.save_assets(path)
    return model


def run_peer(peer, packed):
    ids, mask = (torch.from_numpy(packed[n]).long() for n in ("token_ids", "padding_mask"))
    with torch.no_grad():
        return peer(input_ids=ids, attention_mask=mask).logits.numpy()


def test_a_classifier_of_xlm_roberta(tmp_path):
    peer = save_peer(tmp_path / "theirs")
    classifier = TextClassifier.from_preset(tmp_path / "theirs")
    assert type(classifier.preprocessor.tokenizer) is XLMRobertaTokenizer
    packed = classifier.preprocessor.pack(*TEXTS)
    assert sorted(packed) == ["padding_mask", "token_ids"]
    np.testing.assert_allclose(to_numpy(classifier(packed)), run_peer(peer, packed), atol=1e-5)

    save_hugging_face(classifier, tmp_path / "again")
    content = (tmp_path / "again" / "sentencepiece.bpe.model").read_bytes()
    assert content == make_xlm_roberta()
    again = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path / "again")
    assert type(again) is transformers.XLMRobertaForSequenceClassification
    np.testing.assert_allclose(run_peer(again, packed), run_peer(peer, packed), atol=1e-6)
    config = json.loads((tmp_path / "again" / "config.json").read_text())
    assert config["architectures"] == ["XLMRobertaForSequenceClassification"]
    # The packer's arrays are what transformers makes of the files.
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "again")
    theirs = tokenizer(*TEXTS, padding=True, return_tensors="np")
    length = theirs["input_ids"].shape[1]
    np.testing.assert_array_equal(packed["token_ids"][:, :length], theirs["input_ids"])
    np.testing.assert_array_equal(packed["padding_mask"][:, :length], theirs["attention_mask"])


def test_heads_of_xlm_roberta(tmp_path):
    peer = save_peer(tmp_path / "tokens", "XLMRobertaForTokenClassification")
    tagger = TokenClassifier.from_preset(tmp_path / "tokens")
    packed = tagger.preprocessor.pack(TEXTS[0])
    np.testing.assert_allclose(to_numpy(tagger(packed)), run_peer(peer, packed), atol=1e-5)
    save_peer(tmp_path / "masks", "XLMRobertaForMaskedLM")
    guesses = MaskedLM.from_preset(tmp_path / "masks").predict(["the <mask> film"], verbose=0)
    assert len(guesses) == 1


def test_a_tokenizer_json_of_xlm_roberta(tmp_path):
    save_peer(tmp_path, "XLMRobertaModel")
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    (tmp_path / "sentencepiece.bpe.model").unlink()
    with pytest.raises(FileNotFoundError, match="no sentencepiece.bpe.model or tokenizer.json"):
        XLMRobertaTokenizer.from_preset(tmp_path)
    theirs.save_pretrained(tmp_path)
    assert not (tmp_path / "sentencepiece.bpe.model").exists()
    tokenizer = XLMRobertaTokenizer.from_preset(tmp_path)
    assert tokenizer.get_vocabulary() == TOKENIZER.get_vocabulary()
    texts = [*TEXTS[0], *TEXTS[1], "e\u0301ｶﾞ (x1,) <s>"]
    assert tokenizer.tokenize(texts) == TOKENIZER.tokenize(texts)
    # What is written is a file that all libraries read.
    tokenizer.save_assets(tmp_path)
    assert XLMRobertaTokenizer.from_preset(tmp_path).tokenize(texts) == TOKENIZER.tokenize(texts)

    file = tmp_path / "tokenizer.json"
    (tmp_path / "sentencepiece.bpe.model").unlink()
    content = json.loads(file.read_text("utf-8"))
    for field, value, message in (
        ("normalizer", {"type": "NFC"}, "normalizer in tokenizer.json is 'NFC'"),
        (
            *(
                "pre_tokenizer",
                {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"},
            ),
            "pre_tokenizer in tokenizer.json is 'Metaspace', wanted 'WhitespaceSplit'",
        ),
        ("model", {"type": "BPE"}, "model type in tokenizer.json is 'BPE'"),
        ("model", {"type": "Unigram", "vocab": 3}, "tokenizer.json cannot be read: TypeError"),
        ("model", {"type": "Unigram", "vocab": [["a", 0.5]]}, "must begin with <s>, <pad>"),
        (
            "normalizer",
            {"type": "Precompiled"},
            "tokenizer.json cannot be read: KeyError: 'precompiled_charsmap'",
        ),
    ):
        file.write_text(json.dumps({**content, "added_tokens": [], field: value}))
        with pytest.raises(ValueError, match=message):
            XLMRobertaTokenizer.from_preset(tmp_path)
    # Some files have <mask> as an added token alone.
    *pieces, mask = content["model"]["vocab"]
    model = {**content["model"], "vocab": pieces}
    added = {"id": len(pieces), "content": mask[0], "special": True, "lstrip": True}
    file.write_text(json.dumps({**content, "model": model, "added_tokens": [added]}))
    assert XLMRobertaTokenizer.from_preset(tmp_path).tokenize(texts) == TOKENIZER.tokenize(texts)
    added["id"] += 1
    file.write_text(json.dumps({**content, "model": model, "added_tokens": [added]}))
    message = f"'<mask>' .* has the id {len(pieces) + 1}, wanted {len(pieces)}. Put the .model file"
    with pytest.raises(ValueError, match=message):
        XLMRobertaTokenizer.from_preset(tmp_path)


def test_the_tokenizer_of_another_model_is_refused(tmp_path):
    save_peer(tmp_path, "XLMRobertaModel")
    with pytest.raises(ValueError, match="has an XLMRobertaTokenizer, .*Use XLMRobertaTokenizer"):
        BytePairTokenizer.from_preset(tmp_path)
    with pytest.raises(ValueError, match="keeps upper and lower case"):
        SegmentPacker.from_preset(tmp_path, lowercase=True)
    (tmp_path / "sentencepiece.bpe.model").write_bytes(b"version https://git-lfs.github.com\n")
    with pytest.raises(ValueError, match="is no SentencePiece model, or is damaged.*Download"):
        SegmentPacker.from_preset(tmp_path)


def test_files_of_albert(tmp_path):
    tokenizer = AlbertTokenizer(make_albert(), lowercase=False, start_token="[MASK]")
    write_tokenizer(tokenizer, 32, tmp_path)
    assert (tmp_path / "spiece.model").read_bytes() == make_albert()
    assert read_hugging_face_albert(tmp_path) == {
        "vocabulary": str(tmp_path / "spiece.model"),
        "lowercase": False,
        "strip_accents": True,
        "start_token": "[MASK]",
    }


def test_a_tokenizer_json_of_albert(tmp_path):
    ours = AlbertTokenizer(make_albert())
    write_tokenizer(ours, 32, tmp_path)
    theirs = transformers.AlbertTokenizer.from_pretrained(tmp_path)
    # transformers takes the pieces that were defined, such as "(", for special tokens.
    texts = ["The good film", "café LOW", "``low'' 9", "ΟΔΟ一二 ½"]
    encoded = theirs(texts, add_special_tokens=False)["input_ids"]
    assert encoded == ours.tokenize(texts)
    (tmp_path / "spiece.model").unlink()
    theirs.save_pretrained(tmp_path)
    again = AlbertTokenizer(**read_hugging_face_albert(tmp_path))
    assert again.get_vocabulary() == ours.get_vocabulary()
    texts += ["2009, 9,9 x1,", "[SEP] ΟΔΟΣ"]
    assert again.tokenize(texts) == ours.tokenize(texts)

    # A class without rules of its own, and its file alone says that case is kept.
    file, path = tmp_path / "tokenizer.json", tmp_path / "tokenizer_config.json"
    content, config = (json.loads(each.read_text("utf-8")) for each in (file, path))
    del config["do_lower_case"]
    steps = content["normalizer"]["normalizers"]
    kept = [step for step in steps if step["type"] != "Lowercase"]
    cased = {**content, "normalizer": {**content["normalizer"], "normalizers": kept}}
    file.write_text(json.dumps(cased))
    path.write_text(json.dumps({**config, "tokenizer_class": "PreTrainedTokenizerFast"}))
    found = read_hugging_face_albert(tmp_path)
    assert (len(kept), found["lowercase"], found["strip_accents"]) == (len(steps) - 1, False, True)
    file.write_text(json.dumps(content))
    assert read_hugging_face_albert(tmp_path)["lowercase"] is True

    # Older files of transformers have a score less 100 for pieces such as "9,".
    file = tmp_path / "tokenizer.json"
    content = json.loads(file.read_text("utf-8"))
    scores = dict(content["model"]["vocab"])
    content["model"]["vocab"] = [
        [piece, score - 100 * (piece in ("9,", "1,"))] for piece, score in scores.items()
    ]
    file.write_text(json.dumps(content))
    model = ModelProto.FromString(read_hugging_face_albert(tmp_path)["vocabulary"])
    found = {piece.piece: piece.score for piece in model.pieces}
    for piece in ("9,", "1,", "low"):
        assert found[piece] == pytest.approx(scores[piece], abs=1e-4)


def test_presets_of_keras_hub(tmp_path):
    tokenizer = keras_hub.models.XLMRobertaTokenizer(make_xlm_roberta())
    sizes = {"num_layers": 2, "num_heads": 2, "hidden_dim": 8, "intermediate_dim": 16}
    peer = keras_hub.models.XLMRobertaTextClassifier(
        keras_hub.models.XLMRobertaBackbone(
            vocabulary_size=TINY["vocab_size"], max_sequence_length=32, **sizes
        ),
        num_classes=3,
        preprocessor=keras_hub.models.XLMRobertaTextClassifierPreprocessor(
            tokenizer, sequence_length=32
        ),
    )
    randomize(peer)
    peer.save_to_preset(str(tmp_path / "theirs"))
    classifier = TextClassifier.from_preset(tmp_path / "theirs")
    assert type(classifier.backbone) is RobertaBackbone
    packed = classifier.preprocessor.pack(*TEXTS)
    np.testing.assert_allclose(to_numpy(classifier(packed)), to_numpy(peer(packed)), atol=1e-5)
    expected = to_numpy(peer.preprocessor(tuple(map(list, TEXTS)), y=None)["token_ids"])
    np.testing.assert_array_equal(packed["token_ids"], expected[:, : packed["token_ids"].shape[1]])
    # KerasHub opens by itself what is written for it.
    save_keras_hub(classifier, tmp_path / "again")
    again = keras_hub.models.TextClassifier.from_preset(str(tmp_path / "again"))
    assert type(again.backbone) is keras_hub.models.XLMRobertaBackbone
    np.testing.assert_allclose(to_numpy(again(packed)), to_numpy(peer(packed)), atol=1e-5)


def test_the_tokenizer_of_xlnet_both_ways(tmp_path):
    """Rows of transformers from our files, and ours from its tokenizer.json alone."""
    tokenizer = XLNetTokenizer(make_xlnet())
    packer = SegmentPacker(tokenizer, 24, padding_lengths=None)
    # Of a digit and a comma, the Rust tokenizer makes other pieces than the original code.
    texts = ["the good film", " low  café ½", ""], ["aaaaa", "bad 一二!", "é"]
    (tmp_path / "ours").mkdir()
    write_tokenizer(tokenizer, 24, tmp_path / "ours")
    assert type(open_tokenizer(tmp_path / "ours")) is XLNetTokenizer
    peer = transformers.XLNetTokenizer.from_pretrained(tmp_path / "ours")
    theirs = peer(*texts, padding=True, return_tensors="np")
    packed = packer.pack(*texts)
    np.testing.assert_array_equal(packed["token_ids"], theirs["input_ids"])
    np.testing.assert_array_equal(packed["padding_mask"], theirs["attention_mask"])
    # transformers pads with segment 3.
    segments = np.where(packed["padding_mask"], theirs["token_type_ids"], 0)
    np.testing.assert_array_equal(packed["segment_ids"], segments)
    peer.save_pretrained(tmp_path / "theirs")
    assert not (tmp_path / "theirs" / "spiece.model").exists()
    again = open_tokenizer(tmp_path / "theirs" / "tokenizer.json")
    assert type(again) is XLNetTokenizer and again.row_template == tokenizer.row_template
    assert again.tokenize(TEXTS[0]) == tokenizer.tokenize(TEXTS[0])


def test_a_tokenizer_of_xlnet_that_pads_on_the_right(tmp_path):
    write_tokenizer(XLNetTokenizer(make_xlnet()), 24, tmp_path)
    path = tmp_path / "tokenizer_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "padding_side": "right"}))
    with pytest.raises(ValueError, match="not XLNet's.*padding_side .* 'right', wanted 'left'"):
        read_hugging_face_xlnet(tmp_path)
