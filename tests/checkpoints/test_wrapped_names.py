"""Weights that were saved from within a wrapper give the outputs of the model, heads included."""

import re

import numpy as np
import pytest
import torch
import transformers
from peer_weights import run_transformers, to_numpy, transformers_peer
from safetensors.torch import save_file

import keras_bert_suite as kbs
from keras_bert_suite.checkpoints import open_checkpoint

SIZES = {
    "hidden_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "max_position_embeddings": 16,
    "vocab_size": 24,
}

#: How users wrap a model: name -> function from a name to the name in the file.
WRAPPERS = {
    "DataParallel": lambda name: f"module.{name}",
    "torch.compile": lambda name: f"_orig_mod.{name}",
    "both": lambda name: f"module._orig_mod.{name}",
    "LightningModule": lambda name: f"model.{name}",
    "LightningModule, compiled": lambda name: f"model._orig_mod.{name}",
    "DataParallel of a LightningModule": lambda name: f"module.model.{name}",
    "DataParallel of the encoder": lambda name: re.sub(r"^bert\.", "bert.module.", name),
}

#: How users name the parts of a module of their own: name -> (pattern and replacement of names in
#: transformers, ...; the `rename` that undoes it).
OWN_NAMES = {
    "encoder": ([("bert", "model")], {"model.": ""}),
    "nested encoder": ([("bert", "net.bert")], {"net.": ""}),
    "encoder and head": (
        [("bert", "encoder"), ("classifier", "head")],
        {"encoder.": "bert.", "head.": "classifier."},
    ),
}

HEADS = {
    "BertForSequenceClassification": kbs.TextClassifier,
    "BertForTokenClassification": kbs.TokenClassifier,
    "BertForQuestionAnswering": kbs.QuestionAnswerer,
    "DistilBertForSequenceClassification": kbs.TextClassifier,
    "RobertaForSequenceClassification": kbs.TextClassifier,
    "ModernBertForSequenceClassification": kbs.TextClassifier,
}


def make_peer(class_name):
    cls = getattr(transformers, class_name)
    sizes = {**SIZES, "num_labels": 2 if "Question" in class_name else 3}
    if cls.config_class.model_type == "modernbert":
        sizes |= {"pad_token_id": 0, "cls_token_id": 2, "sep_token_id": 3, "classifier_bias": True}
    if cls.config_class.model_type == "roberta":
        sizes |= {"pad_token_id": 1, "type_vocab_size": 1, "max_position_embeddings": 18}
    return transformers_peer(cls, cls.config_class(**sizes))


@pytest.mark.parametrize("form", ["safetensors", "bin"])
@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_wrappers(wrapper, form, tmp_path):
    peer = make_peer("BertForSequenceClassification")
    check(peer, kbs.TextClassifier, WRAPPERS[wrapper], tmp_path, form)


@pytest.mark.filterwarnings("ignore:.* has heads")
@pytest.mark.parametrize("names", OWN_NAMES)
def test_own_names(names, tmp_path):
    changes, rename = OWN_NAMES[names]

    def spell(name):
        for old, new in changes:
            name = re.sub(rf"^{old}\.", f"{new}.", name)
        return name

    peer = make_peer("BertForSequenceClassification")
    check(peer, kbs.TextClassifier, spell, tmp_path, rename=rename)
    prefix = next(iter(rename))
    with pytest.raises(ValueError, match=rf"pass rename={{'{prefix}': ''}}"):
        kbs.BertBackbone.from_preset(tmp_path)
    assert kbs.BertBackbone.from_preset(tmp_path, rename={prefix: ""}).count_params()
    every = dict.fromkeys(open_checkpoint(tmp_path).tensor_shapes(), "one")
    for wrong, error in (
        ({"modle.": ""}, "'modle.', with which"),
        (every, "the same name, one"),
        ({prefix: None}, "rename must be a dict of beginnings"),
        ([(prefix, "")], "rename must be a dict of beginnings"),
    ):
        with pytest.raises(ValueError, match=error):
            open_checkpoint(tmp_path, wrong)


@pytest.mark.parametrize("wrapper", ["DataParallel", "LightningModule"])
@pytest.mark.parametrize("class_name", HEADS)
def test_heads(class_name, wrapper, tmp_path):
    check(make_peer(class_name), HEADS[class_name], WRAPPERS[wrapper], tmp_path)


def check(peer, task_cls, spell, path, form="safetensors", **arguments):
    peer.save_pretrained(path)
    (path / "model.safetensors").unlink()
    state = {spell(name): tensor for name, tensor in peer.state_dict().items()}
    assert all(old not in state for old in peer.state_dict() if "embed" in old)
    if form == "bin":
        torch.save(state, path / "pytorch_model.bin")
    else:
        save_file({name: t.contiguous() for name, t in state.items()}, path / "model.safetensors")
    task = task_cls.from_preset(path, preprocessor=None, **arguments)
    ids = np.random.default_rng(0).integers(5, 20, (3, 10)).astype("int32")
    inputs = {name: np.zeros_like(ids) for name in task.backbone.input}
    inputs |= {"token_ids": ids, "padding_mask": np.ones_like(ids)}
    with torch.no_grad():
        wanted = run_transformers(peer, {"segment_ids": np.zeros_like(ids), **inputs})
    got = to_numpy(task.predict_on_batch(inputs))
    if task_cls is kbs.QuestionAnswerer:
        wanted = torch.stack([wanted.start_logits, wanted.end_logits], dim=1)
    else:
        wanted = wanted.logits
    np.testing.assert_allclose(got, wanted.numpy(), atol=1e-5)


def test_names_that_begin_alike_by_chance(tmp_path):
    """They are read as they stand."""
    peer = make_peer("BertForSequenceClassification")
    peer.save_pretrained(tmp_path)
    state = peer.state_dict()
    extra = {"module.classifier.weight": state["classifier.weight"]}
    tensors = {name: tensor.contiguous().clone() for name, tensor in {**state, **extra}.items()}
    save_file(tensors, tmp_path / "model.safetensors")
    assert {*open_checkpoint(tmp_path).tensor_shapes()} == {*tensors}
