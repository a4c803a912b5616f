"""Hugging Face's BERT checkpoints."""

from keras_bert_suite.checkpoints.config_values import ConfigValues, read_backbone_config, read_json
from keras_bert_suite.checkpoints.name_tables import HUGGING_FACE
from keras_bert_suite.checkpoints.tensor_files import SafetensorsFile, ShardedFiles, TorchFile
from keras_bert_suite.checkpoints.tokenizer_files import read_hugging_face_tokenizer

#: `hidden_act` -> our name. Their "gelu" is the exact one.
ACTIVATIONS = {
    "gelu": "gelu_erf",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "relu": "relu",
    "silu": "silu",
    "swish": "silu",
    "tanh": "tanh",
}

#: Where the weights may be, the first one found is read: (name, opened by).
WEIGHT_FILES = (
    ("model.safetensors", SafetensorsFile),
    ("model.safetensors.index.json", lambda path: ShardedFiles(path, SafetensorsFile)),
    ("pytorch_model.bin", TorchFile),
    ("pytorch_model.bin.index.json", lambda path: ShardedFiles(path, TorchFile)),
)


class HuggingFaceCheckpoint:
    """A directory with a config.json, weights and mostly a tokenizer.

    Args:
        path: `pathlib.Path` of the directory.

    Attributes:
        path: the same.
        name_table: `NameTable` of its tensors.
        backbone_config: dict of keyword arguments of `BertBackbone`.
        label_names: list of str in id order if it is a classifier of texts, else None.
        sequence_length: int, the length Sentence Transformers cuts texts to, or None.

    Raises:
        FileNotFoundError: if there are no weights.
        ValueError: if config.json is not that of a BERT this package can build, or the
            weights are damaged.
    """

    name_table = HUGGING_FACE

    def __init__(self, path):
        self.path = path
        config = ConfigValues(path / "config.json")
        _check_is_plain_bert(config)
        self.backbone_config = read_backbone_config(
            config, ACTIVATIONS, config.positive("layer_norm_eps", default=1e-12)
        )
        self.label_names = _read_label_names(config)
        self.sequence_length = _read_sequence_length(path)
        self._tensors = _open_weights(path)

    @property
    def tokenizer_config(self):
        """dict of arguments of `WordPieceTokenizer`; see `read_hugging_face_tokenizer`."""
        return read_hugging_face_tokenizer(self.path)

    def tensor_shapes(self):
        """dict of tensor name -> shape, read from headers."""
        return self._tensors.shapes()

    def tensor(self, name):
        """The tensor called `name`, as NumPy array in its stored dtype."""
        return self._tensors.tensor(name)


def _check_is_plain_bert(config):
    model_type = config.get("model_type")
    if model_type != "bert":
        raise ValueError(
            f"{config.path} has model_type {model_type!r}, wanted 'bert'. If it is an old file of "
            'a BERT, add "model_type": "bert" to it; other architectures cannot be read.'
        )
    for name, wanted in (
        ("position_embedding_type", "absolute"),
        ("is_decoder", False),
        ("add_cross_attention", False),
    ):
        got = config.get(name, wanted)
        if got != wanted:
            raise ValueError(
                f"{name!r} in {config.path} is {got!r}; only {wanted!r} can be read, for the "
                "model would compute something else."
            )


def _read_label_names(config):
    architectures = config.get("architectures") or []
    if not any(str(name).endswith("ForSequenceClassification") for name in architectures):
        return None
    # transformers does not write its default, two labels of these names.
    labels = config.get("id2label", {"0": "LABEL_0", "1": "LABEL_1"})
    try:
        names = {int(key): name for key, name in labels.items()}
    except (AttributeError, ValueError):
        names = {}
    if sorted(names) != list(range(len(names))) or not names:
        raise ValueError(
            f"'id2label' in {config.path} must map 0 to n - 1 to names, got {labels!r}."
        )
    return [str(names[i]) for i in range(len(names))]


def _read_sequence_length(path):
    path = path / "sentence_bert_config.json"
    length = read_json(path).get("max_seq_length") if path.is_file() else None
    if length is not None and (type(length) is not int or length <= 0):
        raise ValueError(f"'max_seq_length' in {path} must be a positive integer, got {length!r}.")
    return length


def _open_weights(path):
    for name, open_file in WEIGHT_FILES:
        if (path / name).is_file():
            return open_file(path / name)
    raise FileNotFoundError(
        f"{path} has a config.json but no weights: found {list_directory(path)}, wanted one of "
        f"{', '.join(name for name, _ in WEIGHT_FILES)}. Download model.safetensors too."
    )


def list_directory(path):
    """The names in a directory, for an error message."""
    names = sorted(file.name for file in path.iterdir())
    return ", ".join(names[:20] + ["..."] * (len(names) > 20)) or "nothing"
