"""Changes to files that a library of today wrote, until they are as people have them."""

import json

import numpy as np
import torch
from peer_weights import run_transformers, to_numpy
from safetensors.numpy import load_file, save_file

from keras_bert_suite.checkpoints import head_arguments, load_weights
from keras_bert_suite.heads import TextClassifier
from keras_bert_suite.models import BertBackbone

TOLERANCE = 1e-5


def edit_config(path, **changes):
    """Changes fields of a config.json; None removes a field."""
    file = path / "config.json"
    config = {**json.loads(file.read_text()), **changes}
    file.write_text(json.dumps({name: v for name, v in config.items() if v is not None}))


def edit_tensors(path, change):
    tensors = load_file(path / "model.safetensors")
    change(tensors)
    save_file(tensors, path / "model.safetensors")


def check_encoder(backbone, peer, inputs):
    with torch.no_grad():
        expected = run_transformers(peer, inputs).last_hidden_state.numpy()
    got = to_numpy(backbone(inputs)["sequence_output"])
    np.testing.assert_allclose(got, expected, atol=TOLERANCE)


def build_classifier(checkpoint):
    """The `TextClassifier` that a checkpoint holds."""
    arguments = head_arguments(checkpoint, "classifier")
    model = TextClassifier(BertBackbone(**checkpoint.backbone_config), **arguments)
    load_weights(model, checkpoint)
    return model
