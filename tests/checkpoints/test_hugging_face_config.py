"""config.json of every age and origin: what it is of, and what its labels are."""

import numpy as np
import pytest
import torch
from checkpoints.wild_files import TOLERANCE, build_classifier, check_encoder, edit_config
from peer_weights import run_transformers, to_numpy

from keras_bert_suite.checkpoints import head_arguments, open_checkpoint, save_hugging_face
from keras_bert_suite.heads import TextClassifier
from keras_bert_suite.models import BertBackbone


def test_bert(save_peer, inputs):
    peer, path = save_peer("BertForPreTraining")
    edit_config(path, model_type=None, architectures=None, pruned_heads={}, torchscript=False)
    check_encoder(BertBackbone.from_preset(path), peer.bert, inputs)


def test_bert_without_a_prefix(save_peer, inputs):
    peer, path = save_peer("BertModel")
    edit_config(path, model_type=None, architectures=None)
    check_encoder(BertBackbone.from_preset(path), peer, inputs)


def test_names_of_a_data_parallel_model(save_peer, inputs):
    """`torch.save(model.state_dict())` of a BERT that was trained on several GPUs."""
    peer, path = save_peer("BertForPreTraining")
    edit_config(path, model_type=None, architectures=None)
    (path / "model.safetensors").unlink()
    state = torch.nn.DataParallel(peer).state_dict()
    assert all(name.startswith("module.") for name in state)
    torch.save(state, path / "pytorch_model.bin")
    check_encoder(BertBackbone.from_preset(path), peer.bert, inputs)


def test_bert_config_of_2018_beside_pytorch_weights(save_peer, inputs):
    peer, path = save_peer("BertForPreTraining")
    edit_config(path, model_type=None, architectures=None, layer_norm_eps=None)
    (path / "config.json").rename(path / "bert_config.json")
    (path / "model.safetensors").unlink()
    peer.config.layer_norm_eps = 1e-12
    for module in peer.modules():
        if isinstance(module, torch.nn.LayerNorm):
            module.eps = 1e-12
    torch.save(peer.state_dict(), path / "pytorch_model.bin")
    check_encoder(BertBackbone.from_preset(path), peer.bert, inputs)


def test_a_roberta_without_a_model_type_is_refused(save_peer):
    _, path = save_peer(config={"type_vocab_size": 1})
    edit_config(path, model_type=None)
    with pytest.raises(ValueError, match="no model_type, .*Add the model_type: one of bert, ro"):
        open_checkpoint(path)
    edit_config(path, model_type="blip")
    with pytest.raises(ValueError, match="model_type 'blip', wanted 'bert'"):
        open_checkpoint(path)


def test_fifty_labels_with_two_names(save_peer, inputs):
    labels = {i: f"LABEL_{i}" for i in range(50)}
    peer, path = save_peer("BertForSequenceClassification", config={"id2label": labels})
    edit_config(path, num_labels=50, id2label={"0": "LABEL_0", "1": "LABEL_1"})
    checkpoint = open_checkpoint(path)
    assert checkpoint.label_names == list(labels.values())
    with torch.no_grad():
        expected = run_transformers(peer, inputs).logits.numpy()
    got = to_numpy(build_classifier(checkpoint)(inputs))
    np.testing.assert_allclose(got, expected, atol=TOLERANCE)


def test_dropout_of_the_layer(save_peer, tmp_path):
    _, path = save_peer("BertForSequenceClassification", config={"classifier_dropout": 0.4})
    model = build_classifier(open_checkpoint(path))
    assert model.dropout == 0.4
    save_hugging_face(model, tmp_path / "again")
    assert head_arguments(open_checkpoint(tmp_path / "again"), "classifier")["dropout"] == 0.4
    edit_config(path, classifier_dropout=None)
    # hidden_dropout_prob
    assert head_arguments(open_checkpoint(path), "classifier")["dropout"] == 0.2


@pytest.mark.parametrize(
    "changes",
    [
        {"problem_type": "ranking"},
        {"architectures": None},
        {"id2label": {"0": "a"}, "problem_type": "single_label_classification"},
    ],
)
def test_a_layer_that_no_classifier_has_is_refused(save_peer, changes):
    labels = changes.get("id2label", {"0": "a", "1": "b"})
    _, path = save_peer("BertForSequenceClassification", config={"id2label": labels})
    edit_config(path, **changes)
    checkpoint = open_checkpoint(path)
    with pytest.raises(ValueError, match="layer for texts. Pass `num_classes`"):
        head_arguments(checkpoint, "classifier")
    with pytest.warns(UserWarning, match="does not have: classifier"):
        BertBackbone.from_preset(path)
    with pytest.raises(ValueError, match="Pass `num_classes`"):
        TextClassifier.from_preset(path)
    with pytest.warns(UserWarning, match="does not have: classifier"):  # the remedy
        assert TextClassifier.from_preset(path, num_classes=3).num_classes == 3


@pytest.mark.parametrize(
    "dial, value",
    [
        ("position_embedding_type", "alibi"),
        ("add_cross_attention", True),
        ("pruned_heads", {"0": [1]}),
        ("quantization_config", {"bits": 4}),
        ("feed_forward_type", "geglu"),
        ("alibi_starting_size", 512),
        ("auto_map", {"AutoModel": "modeling_jina.JinaBertModel"}),
    ],
)
def test_dials_that_change_the_computation(save_peer, dial, value):
    _, path = save_peer()
    edit_config(path, **{dial: value})
    with pytest.raises(ValueError, match=f"'{dial}' in .*config.json"):
        open_checkpoint(path)


def test_dials_that_do_not(save_peer):
    _, path = save_peer()
    changes = {"use_cache": False, "chunk_size_feed_forward": 2, "pruned_heads": {}}
    changes |= {"output_past": True, "auto_map": {"AutoTokenizer": "x.Y"}, "gradient_x": 1}
    edit_config(path, **changes)
    assert open_checkpoint(path).label_names is None
