"""Reads presets of KerasHub's BERT, RoBERTa, XLM-RoBERTa, DistilBERT and ALBERT."""

import numpy as np

from keras_bert_suite.checkpoints.checkpoint import Checkpoint
from keras_bert_suite.checkpoints.model_types.config_values import ConfigValues, read_json
from keras_bert_suite.checkpoints.model_types.table import MODEL_TYPES
from keras_bert_suite.checkpoints.tensor_files import HDF5File

#: The activation of a classifier of KerasHub -> `activation` of `TextClassifier`.
_ACTIVATIONS = {None: None, "linear": None, "softmax": "softmax"}


def is_keras_hub_preset(path):
    """Whether a directory holds a preset that this module reads.

    It reads presets of KerasHub's own backbones and tasks. KerasHub reads a preset of a task of
    ours, so that it gets the backbone that it was saved with.

    Args:
        path: `pathlib.Path` of a directory with a config.json.
    """
    task = path / "task.json"
    return _find_type(path) is not None and (
        not task.is_file() or _class_of(read_json(task))[0] == "keras_hub"
    )


def _find_type(path):
    """The `ModelType` of KerasHub's backbone in a directory, or None."""
    package, name = _class_of(read_json(path / "config.json"))
    named = (kind for kind in MODEL_TYPES.values() if kind.keras_hub is not None)
    kinds = [kind for kind in named if kind.keras_hub.backbone == name]
    return kinds[0] if kinds and package == "keras_hub" else None


def _class_of(config):
    """(package, class) of a serialized object. KerasNLP is KerasHub's former name."""
    package, _, name = str(config.get("registered_name")).partition(">")
    return package.replace("keras_nlp", "keras_hub"), name


class KerasHubCheckpoint(Checkpoint):
    """A directory that `save_to_preset` of KerasHub's backbone, or a task on it, wrote.

    Args:
        path: `pathlib.Path` of the directory.

    Attributes: see `Checkpoint`. The names of labels are the ids of the classes.

    Raises:
        ValueError: if a configuration has a wrong value, or the weights are damaged or missing.
    """

    def __init__(self, path):
        self.path = path
        self.model_type = kind = _find_type(path)
        self.name_table = kind.keras_hub.names
        config = ConfigValues(path / "config.json", "config")
        self.backbone_config = _read_backbone(config, kind.keras_hub)
        self.sequence_length = _read_sequence_length(path)
        self._files = {"": HDF5File(path / "model.weights.h5")}
        task = path / "task.json"
        if task.is_file():
            name = _class_of(read_json(task))[1]
            if name == kind.keras_hub.classifier:
                self.heads = _read_classifier(ConfigValues(task, "config"))
            if (path / "task.weights.h5").is_file():
                # A head with an unknown activation is not the classifier of the table.
                known = self.heads or name != kind.keras_hub.classifier
                unknown = "" if known else "other "
                self._files[f"{unknown}{name}/"] = HDF5File(path / "task.weights.h5")

    @property
    def tokenizer_config(self):
        if self.tokenizer_class == "BytePairTokenizer":
            return self._read_byte_pairs()
        if self.tokenizer_class in ("XLMRobertaTokenizer", "SentencePieceTokenizer"):
            return self._read_sentence_pieces()
        config, (vocabulary,) = self._find_tokenizer("vocabulary.txt")
        config.check_dials(
            (
                ("split", (True,)),
                ("suffix_indicator", ("##",)),
                ("special_tokens_in_strings", (False,)),
            )
        )
        lowercase = config.read("flag", "lowercase", False)
        strip_accents = config.read("flag", "strip_accents", False)
        arguments = {"vocabulary": str(vocabulary), "lowercase": lowercase}
        if strip_accents != lowercase:
            arguments["strip_accents"] = strip_accents
        unknown_token = config.get("oov_token")
        if unknown_token not in (None, "[UNK]"):
            arguments["unknown_token"] = str(unknown_token)
        return arguments

    @property
    def tokenizer_class(self):
        return self.model_type.keras_hub.tokenizer

    def _read_byte_pairs(self):
        config, files = self._find_tokenizer("vocabulary.json", "merges.txt")
        config.check_dials((("sequence_length", ()),))
        arguments = dict(zip(("vocabulary", "merges"), map(str, files), strict=True))
        if config.read("flag", "add_prefix_space", False):
            arguments["add_prefix_space"] = True
        return arguments

    def _read_sentence_pieces(self):
        config, (proto,) = self._find_tokenizer("vocabulary.spm")
        config.check_dials((("sequence_length", ()), ("add_bos", (False,)), ("add_eos", (False,))))
        return {"vocabulary": str(proto)}

    def _find_tokenizer(self, *names):
        """The `ConfigValues` of the tokenizer, and the paths of its files."""
        config_path = self.path / "tokenizer.json"
        files = [self.path / "assets" / "tokenizer" / name for name in names]
        for file in (config_path, *files):
            if not file.is_file():
                raise FileNotFoundError(
                    f"{self.path} has no {file.relative_to(self.path)}. Save the preset again "
                    "with its preprocessor, or pass a tokenizer of your own."
                )
        return ConfigValues(config_path, "config"), files

    def tensor_shapes(self):
        """dict of tensor name -> shape. The axis of attention heads is merged, as in ours."""
        shapes = {
            prefix + name: _merge_heads(name, shape)
            for prefix, file in self._files.items()
            for name, shape in file.shapes().items()
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


def _read_backbone(config, model):
    built_in = model.built_in
    dropout = config.read("rate", "dropout")
    return {
        "vocabulary_size": config.read("size", "vocabulary_size"),
        "num_layers": config.read("size", "num_layers"),
        "num_heads": config.read("size", "num_heads"),
        "hidden_dim": config.read("size", "hidden_dim"),
        "intermediate_dim": config.read("size", "intermediate_dim"),
        "dropout": dropout,
        "attention_dropout": dropout,
        "max_sequence_length": config.read("size", "max_sequence_length"),
        **(
            {}
            if "num_segments" in built_in
            else {"num_segments": config.read("size", "num_segments")}
        ),
        **{name: config.read("size", name) for name in model.sizes},
        **built_in,
    }


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
