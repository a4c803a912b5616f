"""KerasHub opens what we write, and computes the same."""

import json

import keras_hub
import numpy as np
import pytest
from checkpoints.small_model import PIECES
from checkpoints.wild_files import TOLERANCE
from peer_weights import randomize, to_numpy
from small_byte_pairs import MERGES, make_vocabulary
from small_sentence_pieces import make_albert as make_sentence_pieces
from tables import short_for

from keras_bert_suite import (
    AlbertBackbone,
    AlbertTokenizer,
    BertBackbone,
    BytePairTokenizer,
    DistilBertBackbone,
    ElectraBackbone,
    RobertaBackbone,
    SegmentPacker,
    SentencePieceTokenizer,
    TextClassifier,
    TokenClassifier,
    WordPieceTokenizer,
)
from keras_bert_suite.checkpoints import save_keras_hub

SIZES = {"num_layers": 2, "num_heads": 2, "hidden_dim": 8, "intermediate_dim": 16}
TEXTS = ["a b C d", "s r ab"]


def make_bert(**kwargs):
    backbone = BertBackbone(
        **{**SIZES, "vocabulary_size": 24, "max_sequence_length": 12, "dropout": 0.2, **kwargs}
    )
    return randomize(backbone), WordPieceTokenizer(PIECES)


def make_roberta():
    vocabulary = make_vocabulary()
    backbone = RobertaBackbone(
        **SIZES, vocabulary_size=len(vocabulary), max_sequence_length=12, layer_norm_epsilon=1e-5
    )
    return randomize(backbone), BytePairTokenizer(vocabulary, MERGES, add_prefix_space=True)


def make_distil_bert():
    backbone = DistilBertBackbone(**SIZES, vocabulary_size=24, max_sequence_length=12)
    return randomize(backbone), WordPieceTokenizer(PIECES)


def make_albert():
    tokenizer = SentencePieceTokenizer(make_sentence_pieces())
    backbone = AlbertBackbone(
        **{**SIZES, "num_layers": 4},
        vocabulary_size=tokenizer.vocabulary_size(),
        max_sequence_length=12,
        embedding_dim=4,
        num_groups=2,
        activation="gelu_tanh",
    )
    return randomize(backbone), tokenizer


FAMILIES = {
    "Bert": make_bert,
    "Roberta": make_roberta,
    "DistilBert": make_distil_bert,
    "Albert": make_albert,
}


def check_preset(path):
    """No class in it is ours."""
    for file in path.glob("*.json"):
        text = file.read_text(encoding="utf-8")
        assert "keras_bert_suite" not in text, file
        json.loads(text)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_backbone(family, tmp_path):
    backbone, tokenizer = FAMILIES[family]()
    save_keras_hub(backbone, tmp_path / "preset", tokenizer, sequence_length=10)
    check_preset(tmp_path / "preset")
    peer = getattr(keras_hub.models, f"{family}Backbone").from_preset(str(tmp_path / "preset"))
    packer = keras_hub.models.TextClassifierPreprocessor.from_preset(str(tmp_path / "preset"))
    packed = {name: np.asarray(array) for name, array in packer(TEXTS, y=None).items()}
    ours = SegmentPacker(tokenizer, 10, padding_lengths=(10,))(TEXTS)
    for name in peer.input:
        np.testing.assert_array_equal(packed[name], ours[name])
    wanted, got = backbone(ours), peer(packed)
    got = got["sequence_output"] if isinstance(got, dict) else got
    real = ours["padding_mask"].astype(bool)
    wanted, got = to_numpy(wanted["sequence_output"])[real], to_numpy(got)[real]
    np.testing.assert_allclose(got, wanted, atol=TOLERANCE)


@pytest.mark.parametrize(
    ("family", "activation"),
    short_for(
        [(family, activation) for family in FAMILIES for activation in (None, "softmax")],
        *((family, "softmax" if family == "Bert" else None) for family in FAMILIES),
        part="combinations",
    ),
)
def test_a_classifier(family, activation, tmp_path):
    backbone, tokenizer = FAMILIES[family]()
    packer = SegmentPacker(tokenizer, 10, padding_lengths=(10,))
    classifier = TextClassifier(
        backbone, 3, preprocessor=packer, activation=activation, dropout=0.3
    )
    randomize(classifier)
    save_keras_hub(classifier, tmp_path / "preset", tokenizer, sequence_length=10)
    check_preset(tmp_path / "preset")
    peer = getattr(keras_hub.models, f"{family}TextClassifier").from_preset(
        str(tmp_path / "preset")
    )
    assert peer.dropout == 0.3
    wanted = classifier.predict(TEXTS, verbose=0)
    np.testing.assert_allclose(peer.predict(TEXTS, verbose=0), wanted, atol=TOLERANCE)
    again = TextClassifier.from_preset(tmp_path / "preset")
    np.testing.assert_allclose(again.predict(TEXTS, verbose=0), wanted, atol=TOLERANCE)


def test_the_exact_gelu_is_told(tmp_path):
    backbone, tokenizer = make_bert(activation="gelu_erf")
    with pytest.warns(UserWarning, match="trained with another GELU than the gelu_tanh"):
        save_keras_hub(backbone, tmp_path / "preset", tokenizer)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"layer_norm_epsilon": 1e-5}, "layer_norm_epsilon=1e-12, got 1e-05"),
        ({"embedding_dim": 4}, "embedding_dim=8, got 4"),
        ({"activation": "relu"}, "has no activation 'relu'"),
    ],
)
def test_other_backbones_are_refused(change, message, tmp_path):
    backbone, tokenizer = make_bert(**change)
    with pytest.raises(ValueError, match=message):
        save_keras_hub(backbone, tmp_path / "preset", tokenizer)
    assert not (tmp_path / "preset").exists()


def test_other_models_and_tokenizers_are_refused(tmp_path):
    backbone, tokenizer = make_bert()
    tagger = TokenClassifier(backbone, num_classes=2)
    with pytest.raises(ValueError, match="cannot hold these weights .*token_classifier"):
        save_keras_hub(tagger, tmp_path / "preset", tokenizer)
    electra = ElectraBackbone(**SIZES, vocabulary_size=24)
    with pytest.raises(ValueError, match="no model that computes the same as ElectraBackbone"):
        save_keras_hub(electra, tmp_path / "preset", tokenizer)
    labels = TextClassifier(backbone, 2, problem_type="multi_label_classification")
    with pytest.raises(ValueError, match="classes that exclude each other"):
        save_keras_hub(labels, tmp_path / "preset", tokenizer)
    with pytest.raises(ValueError, match="its WordPieceTokenizer, got a BytePairTokenizer"):
        save_keras_hub(backbone, tmp_path / "preset", make_roberta()[1])
    other = WordPieceTokenizer(
        ["<unk>" if piece == "[UNK]" else piece for piece in PIECES], unknown_token="<unk>"
    )
    with pytest.raises(
        ValueError, match="cannot hold unknown_token='<unk>' of the tokenizer; wanted unk"
    ):
        save_keras_hub(backbone, tmp_path / "preset", other)
    albert, _ = make_albert()
    with pytest.raises(ValueError, match="its SentencePieceTokenizer, got an AlbertTokenizer"):
        save_keras_hub(albert, tmp_path / "preset", AlbertTokenizer(make_sentence_pieces()))
    several = AlbertBackbone(**SIZES, vocabulary_size=24, num_inner_repetitions=2)
    with pytest.raises(ValueError, match="cannot hold .*transformer_layer_0_1"):
        save_keras_hub(several, tmp_path / "preset")
    roberta, _ = make_roberta()
    for setting in ({"normalization": "NFC"}, {"added_tokens": ["Ġgood"]}):
        (name,) = setting
        other = BytePairTokenizer(make_vocabulary(), MERGES, **setting)
        with pytest.raises(ValueError, match=f"cannot hold {name}="):
            save_keras_hub(roberta, tmp_path / "preset", other)
    assert not (tmp_path / "preset").exists()
