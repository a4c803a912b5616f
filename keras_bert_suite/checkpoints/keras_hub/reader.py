"""Reads presets of KerasHub's BERT, RoBERTa, XLM-RoBERTa, DistilBERT and ALBERT."""

import numpy as np

from keras_bert_suite.checkpoints.checkpoint import Checkpoint
from keras_bert_suite.checkpoints.keras_hub.released_models import KERAS_HUB_MODELS
from keras_bert_suite.checkpoints.model_types.config_values import ConfigValues, read_json
from keras_bert_suite.checkpoints.tensor_files import HDF5File

#: The activation of a classifier of KerasHub -> `activation` of `TextClassifier`.
_ACTIVATIONS = {None: None, "linear": None, "softmax": "softmax"}

#: Our class of a tokenizer -> (dict of its arguments that are files -> their names; its arguments
#: that are flags; the values of other settings of KerasHub's that our class has).
TOKENIZERS = {
    "WordPieceTokenizer": (
        {"vocabulary": "vocabulary.txt"},
        ("lowercase", "strip_accents"),
        {
            "split": (True,),
            "suffix_indicator": ("##",),
            "special_tokens_in_strings": (False,),
            "oov_token": ("[UNK]",),
        },
    ),
    "BytePairTokenizer": (
        {"vocabulary": "vocabulary.json", "merges": "merges.txt"},
        ("add_prefix_space",),
        {"sequence_length": ()},
    ),
    "XLMRobertaTokenizer": (
        {"vocabulary": "vocabulary.spm"},
        (),
        {"sequence_length": (), "add_bos": (False,), "add_eos": (False,)},
    ),
}
TOKENIZERS["SentencePieceTokenizer"] = TOKENIZERS["XLMRobertaTokenizer"]


def is_keras_hub_preset(path):
    """Whether a directory with a config.json holds a preset that this module reads.

    It reads presets of KerasHub's own backbones and tasks. KerasHub reads a preset of a task of
    ours, so that it gets the backbone that it was saved with.
    """
    task = path / "task.json"
    return _find_model(path) is not None and (
        not task.is_file() or _class_of(read_json(task))[0] == "keras_hub"
    )


def _find_model(path):
    """The `KerasHubModel` of the backbone in a directory, or None."""
    package, name = _class_of(read_json(path / "config.json"))
    models = KERAS_HUB_MODELS.values() if package == "keras_hub" else ()
    return next((model for model in models if model.backbone == name), None)


def _class_of(config):
    """(package, class) of a serialized object. KerasNLP is KerasHub's former name."""
    package, _, name = str(config.get("registered_name")).partition(">")
    return package.replace("keras_nlp", "keras_hub"), name


class KerasHubCheckpoint(Checkpoint):
    """A directory that `save_to_preset` of KerasHub's backbone, or a task on it, wrote.

    The names of labels are the ids of the classes.

    Raises:
        ValueError: if a configuration has a wrong value, or the weights are damaged or missing.
    """

    def __init__(self, path):
        self.path = path
        model = _find_model(path)
        self.model_type, self.name_table = model.kind, model.names
        self.tokenizer_class = model.tokenizer
        config = ConfigValues(path / "config.json", "config")
        self.backbone_config = {
            **{name: config.read("size", name) for name in model.sizes},
            **dict.fromkeys(("dropout", "attention_dropout"), config.read("rate", "dropout")),
            **model.built_in,
        }
        self.sequence_length = _read_sequence_length(path)
        self._files = {"": HDF5File(path / "model.weights.h5")}
        task = path / "task.json"
        if task.is_file():
            name = _class_of(read_json(task))[1]
            if name == model.classifier:
                self.heads = _read_classifier(ConfigValues(task, "config"))
            if (path / "task.weights.h5").is_file():
                # A head with an unknown activation is not the classifier of the table.
                known = self.heads or name != model.classifier
                unknown = "" if known else "other "
                self._files[f"{unknown}{name}/"] = HDF5File(path / "task.weights.h5")

    @property
    def tokenizer_config(self):
        directory, config_path = self.path / "assets" / "tokenizer", self.path / "tokenizer.json"
        names, flags, dials = TOKENIZERS[self.tokenizer_class]
        files = {argument: directory / name for argument, name in names.items()}
        for file in (config_path, *files.values()):
            if not file.is_file():
                raise FileNotFoundError(
                    f"{self.path} has no {file.relative_to(self.path)}. Save the preset again "
                    "with its preprocessor, or pass a tokenizer of your own."
                )
        config = ConfigValues(config_path, "config")
        config.check_dials(dials.items())
        return {
            **{argument: str(file) for argument, file in files.items()},
            **{flag: config.read("flag", flag, False) for flag in flags},
        }

    def tensor_shapes(self):
        """dict of tensor name -> shape. The axis of attention heads is merged, as in ours."""
        shapes = {
            prefix + name: _merge_heads(name, shape)
            for prefix, file in self._files.items()
            for name, shape in file.shapes.items()
        }
        # KerasHub's RoBERTa has no positions before the first token, and no segments.
        if self.model_type.position_offset:
            rows, width = shapes[self._positions]
            shapes[self._positions] = (rows + self.model_type.position_offset, width)
            shapes[self._segments] = (1, width)
        return shapes

    @property
    def _positions(self):
        return self.name_table.their_name("embeddings/position_embedding/embeddings")[0]

    @property
    def _segments(self):
        return self.name_table.their_name("embeddings/segment_embedding/embeddings")[0]

    def tensor(self, name):
        if self.model_type.position_offset and name == self._segments:
            return np.zeros_like(self._files[""].tensor(self._positions)[:1])
        if self.model_type.position_offset and name == self._positions:
            table = self._files[""].tensor(name)
            return np.pad(table, ((self.model_type.position_offset, 0), (0, 0)))
        file, inner = self.find(name)
        tensor = file.tensor(inner)
        return tensor.reshape(_merge_heads(inner, tensor.shape))

    def find(self, name):
        """(the `HDF5File` of the tensor called `name`, its name there)."""
        prefix = max((p for p in self._files if name.startswith(p)), key=len)
        return self._files[prefix], name.removeprefix(prefix)


def _merge_heads(name, shape):
    """Merges heads: (H, heads, D) and (heads, D, H) to (H, H), biases (heads, D) to (H,)."""
    if "/_self_attention_layer/" not in name:
        return shape
    if name.endswith("output_dense/vars/0") and len(shape) == 3:
        return (shape[0] * shape[1], shape[2])
    if name.endswith("_dense/vars/0") and len(shape) == 3:
        return (shape[0], shape[1] * shape[2])
    if name.endswith("_dense/vars/1") and len(shape) == 2:
        return (shape[0] * shape[1],)
    return shape


def _read_classifier(config):
    """`Checkpoint.heads` of a classifier. It is empty for another activation or one output."""
    activation = config.get("activation")
    num_classes = config.read("size", "num_classes")
    if isinstance(activation, (dict, list)) or activation not in _ACTIVATIONS or num_classes < 2:
        return {}
    arguments = {
        "label_names": [str(i) for i in range(num_classes)],
        "dropout": config.read("rate", "dropout"),
        "activation": _ACTIVATIONS[activation],
    }
    return {"classifier": arguments}


def _read_sequence_length(path):
    path = path / "preprocessor.json"
    if not path.is_file():
        return None
    config = ConfigValues(path, "config")
    # A round robin over the segments keeps as many tokens as our rule "longest_first".
    config.check_dials([("truncate", ("round_robin",))])
    return None if config.get("sequence_length") is None else config.read("size", "sequence_length")
