"""config.json of every age and origin: what it is of, and what its labels are."""

import numpy as np
import pytest
import torch
import transformers
from checkpoints.wild_files import TOLERANCE, build_classifier, check_encoder, edit_config
from peer_weights import run_transformers, to_numpy
from safetensors.numpy import save_file

from keras_bert_suite.checkpoints import classifier_arguments, open_checkpoint, save_hugging_face
from keras_bert_suite.checkpoints.model_types.table import MODEL_TYPES
from keras_bert_suite.models import BertBackbone
from keras_bert_suite.tasks import TextClassifier


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


@pytest.mark.parametrize(
    "config_class, model_class",
    [
        ("AlbertConfig", "AlbertModel"),
        ("DistilBertConfig", "DistilBertModel"),
        ("RobertaConfig", "RobertaForMaskedLM"),
        ("RobertaConfig", "RobertaModel"),
        ("ElectraConfig", "ElectraForPreTraining"),
    ],
)
def test_others_are_refused_by_name(tmp_path, config_class, model_class):
    sizes = {"vocab_size": 24, "hidden_size": 8, "num_attention_heads": 2}
    sizes |= {"num_hidden_layers": 1, "intermediate_size": 16, "embedding_size": 8}
    sizes |= {"dim": 8, "hidden_dim": 16, "transformer.layer": 1, "n_heads": 2}
    config = getattr(transformers, config_class)
    known = config().to_dict()
    sizes = {name: size for name, size in sizes.items() if name in known}
    if config_class == "RobertaConfig":
        sizes["type_vocab_size"] = 1
    getattr(transformers, model_class)(config(**sizes)).save_pretrained(tmp_path)
    model_type = config.model_type
    edit_config(tmp_path, model_type=None, architectures=None)
    with pytest.raises(ValueError, match="no model_type, .*no BERT: .*Add the model_type") as error:
        open_checkpoint(tmp_path)
    assert len(str(error.value)) < 1100
    edit_config(tmp_path, model_type=model_type)
    if model_type in MODEL_TYPES:
        assert open_checkpoint(tmp_path).model_type.name == model_type
    else:
        with pytest.raises(ValueError, match=f"model_type '{model_type}', wanted 'bert'"):
            open_checkpoint(tmp_path)


def test_no_encoder_at_all(save_peer):
    _, path = save_peer()
    edit_config(path, model_type=None)
    save_file({"weight": np.zeros(3, "float32")}, path / "model.safetensors")
    with pytest.raises(ValueError, match="holds no BERT: wanted a .* got weight and"):
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
    assert classifier_arguments(open_checkpoint(tmp_path / "again"))["dropout"] == 0.4
    edit_config(path, classifier_dropout=None)
    assert classifier_arguments(open_checkpoint(path))["dropout"] == 0.2  # hidden_dropout_prob


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"problem_type": "ranking"}, "problem_type is 'ranking', wanted one of single_label"),
        ({"architectures": None}, r'add "architectures": \["BertForSequenceClassification"\]'),
        (
            {"id2label": {"0": "a"}, "problem_type": "single_label_classification"},
            r"of shape \(1, 8\), wanted \(labels, hidden_size\) with at least 2 labels",
        ),
    ],
)
def test_a_layer_that_no_classifier_has_is_refused(save_peer, changes, message):
    labels = changes.get("id2label", {"0": "a", "1": "b"})
    _, path = save_peer("BertForSequenceClassification", config={"id2label": labels})
    edit_config(path, **changes)
    checkpoint = open_checkpoint(path)
    with pytest.raises(ValueError, match=f"(?s){message}.*Pass `num_classes`"):
        classifier_arguments(checkpoint)
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
        ("is_decoder", True),
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
