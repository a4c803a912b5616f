"""Reads checkpoints of google-research/bert, albert and electra, and of others in their format."""

import numpy as np

from keras_bert_suite.checkpoints.checkpoint import Checkpoint
from keras_bert_suite.checkpoints.google_tf1.related_models import (
    NAMED_MODELS,
    find_model,
    more_arguments,
)
from keras_bert_suite.checkpoints.google_tf1.released_models import GELU_APPROXIMATE
from keras_bert_suite.checkpoints.google_tf1.tensor_bundle import TensorBundle
from keras_bert_suite.checkpoints.head_types.records import TEXTS
from keras_bert_suite.checkpoints.model_types import activation_names
from keras_bert_suite.checkpoints.model_types.config_fields import read_fields
from keras_bert_suite.checkpoints.model_types.config_values import ConfigValues
from keras_bert_suite.files.messages import list_names

#: The epsilon that is built into tf.contrib's layer_norm.
LAYER_NORM_EPSILON = 1e-12


class GoogleCheckpoint(Checkpoint):
    """A bert_config.json, albert_config.json or electra_config.json, and a TensorFlow 1 checkpoint.

    `prefix` is the `pathlib.Path` of the checkpoint's files, such as
    `uncased_L-12_H-768_A-12/bert_model.ckpt`. The names of labels are the ids of the classes.

    Raises:
        FileNotFoundError: if the configuration or a part of the checkpoint is missing.
        ValueError: if the configuration does not describe a model that is known, or the files are
            damaged.
    """

    def __init__(self, prefix):
        self.path = prefix
        model, path = _find_config(prefix)
        config = ConfigValues(path)
        tensors = TensorBundle(prefix)
        self._model = model = find_model(model, config, tensors.shapes)
        self.model_type, self._tensors = model.kind, model.open_tensors(tensors)
        shapes = self._tensors.shapes
        self.backbone_config = {**_read_config(config, model), **more_arguments(model, shapes)}
        self.name_table = model.kind.fit_names(model.names, self.backbone_config["num_heads"])
        num_classes = _count_classes(self.name_table, shapes)
        if num_classes > 1:  # One output is a regression.
            self.heads = {"classifier": {"label_names": [str(i) for i in range(num_classes)]}}

    @property
    def tokenizer_config(self):
        return self._model.read_tokenizer(self.path.parent)[1]

    @property
    def tokenizer_class(self):
        return self._model.read_tokenizer(self.path.parent)[0]


def _count_classes(names, shapes):
    """The number of outputs of the head for texts, 0 without a head."""
    theirs, transform = names.their_name(TEXTS.path) or (None, None)
    found = [shape for name, shape in shapes.items() if names.spell(name) == theirs]
    if not found or len(found[0]) != 2:
        return 0
    return transform(np.broadcast_to(np.uint8(0), found[0])).shape[-1]


def _find_config(prefix):
    """(`GoogleModel`, path of its configuration). The file may have more in its name."""
    found = [
        (model, path)
        for model in NAMED_MODELS
        for path in sorted(prefix.parent.glob(f"{model.config}*.json"))
    ]
    found = [(model, path) for model, path in found if path.stem == model.config] or found
    if len(found) == 1:
        return found[0]
    wanted = [f"{model.config}.json" for model in NAMED_MODELS]
    if found:
        raise ValueError(
            f"{prefix.parent} has {list_names(path.name for _, path in found)}. Rename the file "
            f"that belongs to {prefix.name} to {found[0][0].config}.json, and move the others."
        )
    raise FileNotFoundError(
        f"{prefix.parent} has the checkpoint {prefix.name} but no {' or '.join(wanted)}. Copy the "
        "configuration and the vocabulary from the checkpoint that was fine-tuned."
    )


def _read_config(config, model):
    config.check_dials(model.dials)
    kwargs = read_fields(config, model.fields, activation_names.GOOGLE)
    kwargs["layer_norm_epsilon"] = LAYER_NORM_EPSILON
    for field in model.fields:
        if field.kind == "width" and kwargs[field.argument] == kwargs["hidden_dim"]:
            del kwargs[field.argument]
    if config.get("hidden_act") == "gelu":
        is_exact = config.get(GELU_APPROXIMATE) is False
        kwargs["activation"] = "gelu_erf" if is_exact else model.gelu
    return {**kwargs, **model.read_more(config)}
