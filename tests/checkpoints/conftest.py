"""A tiny BERT of transformers, saved, for the tests of this folder."""

from pathlib import Path

import keras
import numpy as np
import pytest
import transformers
from checkpoints.small_model import PIECES, THEIR_SIZES
from peer_weights import to_numpy, transformers_peer

from keras_bert_suite.models import BertBackbone

TINY = {
    **THEIR_SIZES,
    "type_vocab_size": 3,
    "layer_norm_eps": 1e-3,
    "hidden_dropout_prob": 0.2,
    "attention_probs_dropout_prob": 0.3,
}


@pytest.fixture
def save_peer(tmp_path):
    """Function: randomises a transformers model, saves it, returns (model, directory)."""

    def save(model_name="BertModel", config=(), directory="peer", dtype=None, **kwargs):
        config = transformers.BertConfig(**{**TINY, **dict(config)})
        model = transformers_peer(getattr(transformers, model_name), config)
        path = tmp_path / directory
        if dtype:
            model = model.to(dtype)
        model.save_pretrained(path, **kwargs)
        (path / "vocab.txt").write_text("\n".join(PIECES) + "\n")
        return model.float(), path

    return save


@pytest.fixture
def inputs():
    """Token ids, segments and a mask with padding, each int32 (3, 10)."""
    rng = np.random.default_rng(0)
    mask = np.ones((3, 10), "int32")
    mask[0, 6:] = 0
    return {
        "token_ids": rng.integers(0, 15, (3, 10)).astype("int32"),
        "segment_ids": rng.integers(0, 2, (3, 10)).astype("int32"),
        "padding_mask": mask,
    }


@pytest.fixture
def toy():
    """Directory of the TensorFlow 1 checkpoint."""
    return Path(__file__).resolve().parents[1] / "checkpoints" / "google_tf1_toy"


@pytest.fixture
def make_classifier():
    """Function: a backbone's arguments -> a model with a new classifier on it."""

    def make(backbone_config, num_classes):
        backbone = BertBackbone(**backbone_config)
        outputs = keras.layers.Dense(num_classes, name="classifier")(
            backbone.output["pooled_output"]
        )
        model = keras.Model(backbone.input, outputs)
        model.backbone = backbone
        return model

    return make


@pytest.fixture
def values_of():
    """Function: the weights of a Keras model as {path: array}."""
    return lambda model: {weight.path: to_numpy(weight) for weight in model.weights}
