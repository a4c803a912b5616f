"""What is special about single members of the family: sizes, and settings of ERNIE and DistilBERT.

`test_family.py` has what each member must do.
"""

import keras
import keras_hub
import numpy as np
import pytest
import torch
import transformers
from family import MEMBERS, run_peer
from peer_weights import to_numpy

from keras_bert_suite import (
    AlbertBackbone,
    BertBackbone,
    DistilBertBackbone,
    ElectraBackbone,
    ErnieBackbone,
    RobertaBackbone,
    RoFormerBackbone,
    TextClassifier,
)
from keras_bert_suite.checkpoints import save_google_tf1, save_hugging_face

#: The names of sizes in the configurations of transformers.
NAMES = {
    "num_layers": "num_hidden_layers",
    "num_heads": "num_attention_heads",
    "hidden_dim": "hidden_size",
    "intermediate_dim": "intermediate_size",
    "embedding_dim": "embedding_size",
}
#: In millions: transformers' counts, without pooler and heads. The papers give 66, and for the
#: discriminators 14, 110 and 335.
PUBLISHED = {
    (DistilBertBackbone, "base"): 66.4,
    (ElectraBackbone, "small"): 13.5,
    (ElectraBackbone, "base"): 108.9,
    (ElectraBackbone, "large"): 334.1,
}


def count_parameters(cls, num_layers, **sizes):
    """By linearity, from one and two layers and a vocabulary of one: nothing large is built."""
    with keras.device("meta"):
        one, two = (cls(1, num_layers=n, **sizes) for n in (1, 2))
    layer = two.count_params() - one.count_params()
    encoder = one.count_params() - one.pooler.count_params()
    return encoder + (num_layers - 1) * layer + (30522 - 1) * one.embedding_dim


@pytest.mark.parametrize(("cls", "size"), PUBLISHED)
def test_named_sizes_have_the_published_parameters(cls, size):
    sizes = cls.sizes[size]
    if cls is DistilBertBackbone:
        config, model = transformers.DistilBertConfig(), transformers.DistilBertModel
    else:
        theirs = {NAMES[name]: value for name, value in sizes.items()}
        theirs.setdefault("embedding_size", theirs["hidden_size"])
        config, model = transformers.ElectraConfig(**theirs), transformers.ElectraModel
    with torch.device("meta"):
        peer = model(config)
    count = count_parameters(cls, **sizes)
    assert count == sum(parameter.numel() for parameter in peer.parameters())
    assert round(count / 1e6, 1) == PUBLISHED[cls, size]


@pytest.mark.parametrize(
    ("cls", "prefix"),
    [
        (BertBackbone, "Bert"),
        (AlbertBackbone, "Albert"),
        (DistilBertBackbone, "DistilBert"),
        (ElectraBackbone, "Electra"),
        (ErnieBackbone, "Ernie"),
        (RobertaBackbone, "Roberta"),
        (RoFormerBackbone, "RoFormer"),
    ],
)
def test_rates_and_epsilons_are_the_published_ones(cls, prefix):
    sizes = {"num_layers": 1, "num_heads": 2, "hidden_dim": 4, "intermediate_dim": 8}
    backbone = cls(9, **sizes)
    config = getattr(transformers, f"{prefix}Config")().to_dict()
    wanted = {
        "dropout": config.get("hidden_dropout_prob", config.get("dropout")),
        "attention_dropout": config.get(
            "attention_probs_dropout_prob", config.get("attention_dropout")
        ),
        "initializer_range": config["initializer_range"],
        "layer_norm_epsilon": config.get("layer_norm_eps", 1e-12),
    }
    if cls is RobertaBackbone:  # That of fairseq, which is a constant in KerasHub.
        norm = keras_hub.models.RobertaBackbone(9, **sizes).get_layer("embeddings_layer_norm")
        wanted["layer_norm_epsilon"] = norm.epsilon
    assert {name: getattr(backbone, name) for name in wanted} == wanted


def test_ernie_without_tasks_equals_transformers(tmp_path):
    """ERNIE 1.0 has a position more than a power of two, and ReLU."""
    member = MEMBERS["ernie"]
    peer = member.save_peer(
        tmp_path / "peer", use_task_id=False, hidden_act="relu", max_position_embeddings=17
    )
    backbone = ErnieBackbone.from_preset(tmp_path / "peer")
    assert backbone.num_task_types == 0
    inputs = member.make_inputs()
    seen = inputs["padding_mask"] == 1
    wanted = run_peer(peer, inputs).last_hidden_state.detach().numpy()[seen]
    got = to_numpy(backbone(inputs)["sequence_output"])[seen]
    np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-5)
    save_hugging_face(backbone, tmp_path / "again")
    again = transformers.AutoModel.from_pretrained(tmp_path / "again")
    assert not again.config.use_task_id


def test_another_task_of_ernie_equals_transformers(tmp_path):
    member = MEMBERS["ernie"]
    peer = member.save_peer(tmp_path / "peer")
    backbone = ErnieBackbone.from_preset(tmp_path / "peer", task_id=2)
    inputs = member.make_inputs()
    seen = inputs["padding_mask"] == 1
    arrays = [inputs[name] for name in ("token_ids", "segment_ids", "padding_mask")]
    ids, segments, mask = (torch.from_numpy(array).long() for array in arrays)
    theirs = peer(ids, mask, segments, task_type_ids=torch.full_like(ids, 2))
    got = to_numpy(backbone(inputs)["sequence_output"])[seen]
    wanted = theirs.last_hidden_state.detach().numpy()[seen]
    np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-5)
    with pytest.raises(ValueError, match="below num_task_types=3, got 3"):
        ErnieBackbone.from_preset(tmp_path / "peer", task_id=3)
    with pytest.raises(ValueError, match="ERNIE has task_id=0, got 2"):
        save_hugging_face(backbone, tmp_path / "again")


@pytest.mark.parametrize("dropout", [0.2, 0.5])
def test_dropout_before_the_head_of_distil_bert(dropout, tmp_path):
    """transformers has 0.2 where config.json has no such field, and we write no needless field."""
    member = MEMBERS["distilbert"]
    member.save_peer(tmp_path / "peer", "ForSequenceClassification", seq_classif_dropout=dropout)
    classifier = TextClassifier.from_preset(tmp_path / "peer")
    assert classifier.dropout == dropout
    save_hugging_face(classifier, tmp_path / "again")
    config = transformers.AutoConfig.from_pretrained(tmp_path / "again")
    assert config.seq_classif_dropout == dropout


@pytest.mark.parametrize("cls", [DistilBertBackbone, ElectraBackbone, ErnieBackbone])
def test_googles_format_holds_a_bert_alone(cls, tmp_path):
    sizes = {"num_layers": 1, "num_heads": 2, "hidden_dim": 8, "intermediate_dim": 16}
    with pytest.raises(
        ValueError, match=f"hold a BertBackbone or AlbertBackbone, got an? {cls.__name__}"
    ):
        save_google_tf1(cls(24, **sizes), tmp_path / "google")
    assert not (tmp_path / "google").exists()


def test_constants_of_distil_bert(tmp_path):
    sizes = {"num_layers": 1, "num_heads": 2, "hidden_dim": 8, "intermediate_dim": 16}
    for change, message in (
        ({"layer_norm_epsilon": 1e-5}, "has layer_norm_epsilon=1e-12, got 1e-05"),
        ({"num_segments": 2}, "has num_segments=0, got 2"),
    ):
        with pytest.raises(ValueError, match=message):
            save_hugging_face(DistilBertBackbone(24, **sizes, **change), tmp_path / "again")
