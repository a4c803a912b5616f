"""Reads Hugging Face's checkpoints."""

from dataclasses import replace

from keras_bert_suite.checkpoints.checkpoint import Checkpoint
from keras_bert_suite.checkpoints.hugging_face.config import (
    find_model_type,
    has_head,
    read_classifier,
    read_multiple_choice,
    read_token_classifier,
)
from keras_bert_suite.checkpoints.model_types import activation_names
from keras_bert_suite.checkpoints.model_types.config_fields import read_fields
from keras_bert_suite.checkpoints.model_types.config_values import ConfigValues, read_json
from keras_bert_suite.checkpoints.name_tables.bert import part_of
from keras_bert_suite.checkpoints.tensor_files import SafetensorsFile, ShardedFiles, TorchFile
from keras_bert_suite.checkpoints.tokenizer_files.settings import CONFIG_FILE
from keras_bert_suite.files.messages import list_directory

#: The files that may hold the weights, as (name, function that opens it). The first file found is
#: read.
WEIGHT_FILES = (
    ("model.safetensors", SafetensorsFile),
    ("model.safetensors.index.json", lambda path: ShardedFiles(path, SafetensorsFile)),
    ("pytorch_model.bin", TorchFile),
    ("pytorch_model.bin.index.json", lambda path: ShardedFiles(path, TorchFile)),
)

#: Our paths of the kernel of the layer `classifier`. Not every name table has both.
_CLASSIFIER_KERNELS = ("classifier/kernel", "token_classifier/kernel")


class HuggingFaceCheckpoint(Checkpoint):
    """A directory with a config.json, weights and, in most cases, a tokenizer.

    Args:
        path: `pathlib.Path` of the directory.

    Attributes: see `Checkpoint`.

    Raises:
        FileNotFoundError: if there are no weights.
        ValueError: if config.json describes a model that this package cannot build, or the
            weights are damaged.
    """

    def __init__(self, path):
        self.path = path
        self.has_modules = (path / "modules.json").is_file()
        config = ConfigValues(find_config(path))
        self.decoder_start_token_id = config.get("decoder_start_token_id")
        self._tensors = _open_weights(path)
        shapes = self._tensors.shapes()
        self.model_type = kind = find_model_type(config)
        self.backbone_config = {
            **read_fields(config, kind.fields, activation_names.HUGGING_FACE, kind.position_offset),
            **kind.read_more(config),
        }
        _check_decoder(config, shapes, kind.names)
        self.name_table, classifier = _find_classifier(kind, shapes)
        encoder_dropout = self.backbone_config.get("dropout", 0.0)
        dropouts = {
            head: config.read("rate", name, encoder_dropout if default is None else default)
            for head, (name, default) in kind.head_dropouts.items()
        }
        self.classifier_config = read_classifier(config, classifier, dropouts["classifier"])
        self.sequence_length = self._read_sequence_length()
        self.token_classifier_config = read_token_classifier(
            config, classifier, dropouts["token_classifier"]
        )
        if kind.has_our_choices(config):
            self.multiple_choice_config = read_multiple_choice(
                config, classifier, dropouts["choice_scorer"]
            )
        if classifier is not None:
            # A layer with the name "classifier" may be a head that this package does not have.
            heads = {"classifier": self.classifier_config is not None}
            heads["token_classifier"] = self.token_classifier_config is not None
            heads["choice_scorer"] = self.multiple_choice_config is not None
            # Some kinds of model have a layer of another name for answers.
            heads["span_labeler"] = has_head(config, "ForQuestionAnswering")
            self.name_table = _without_heads(
                self.name_table, {head for head, is_there in heads.items() if not is_there}
            )

    def _read_sequence_length(self):
        path = self.path / "sentence_bert_config.json"
        length = read_json(path).get("max_seq_length") if path.is_file() else None
        if length is None:
            # transformers, and without that number Sentence Transformers, cuts to it.
            path = self.path / CONFIG_FILE
            length = read_json(path).get("model_max_length") if path.is_file() else None
        longest = self.encoder_config["max_sequence_length"]
        return min(length, longest) if type(length) is int and length > 0 else None

    @property
    def tokenizer_config(self):
        return self.model_type.find_tokenizer(self.path)[1](self.path)

    @property
    def tokenizer_class(self):
        return self.model_type.find_tokenizer(self.path)[0]


def find_config(path):
    """The path of config.json in a directory. Checkpoints of 2018 call it bert_config.json."""
    old = path / "bert_config.json"
    return old if old.is_file() and not (path / "config.json").is_file() else path / "config.json"


def _find_classifier(kind, shapes):
    """(name table; shape of the kernel of the classification layer, or None) of a checkpoint."""
    for table in (kind.classifier_names or kind.names, kind.names):
        for path in _CLASSIFIER_KERNELS:
            row = table.their_name(path)
            if row is not None and row[0] in shapes:
                return table, shapes[row[0]]
    return kind.names, None


def _without_heads(table, absent):
    """A name table in which the layer of the classifier belongs to none of the `absent` heads."""
    kernels = map(table.their_name, _CLASSIFIER_KERNELS)
    layer = part_of(next(row[0] for row in kernels if row is not None))
    rows = [
        row
        for row in table.rows
        if row[0].partition("/")[0] not in absent or part_of(row[1]) != layer
    ]
    return replace(table, rows=tuple(rows))


def _check_decoder(config, shapes, names):
    """Checks that there is a decoder matrix if the configuration says that it is not tied."""
    if not names.copies:
        return
    decoder = names.copies[0][0]
    head, _ = names.their_name("masked_lm/bias")
    if config.get("tie_word_embeddings") is False and head in shapes and decoder not in shapes:
        raise ValueError(
            f"'tie_word_embeddings' in {config.path} is False, but the weights have no {decoder}. "
            "Save the model again with the decoder, or if the decoder is the token embedding, set "
            '"tie_word_embeddings": true.'
        )


def _open_weights(path):
    for name, open_file in WEIGHT_FILES:
        if (path / name).is_file():
            return open_file(path / name)
    raise FileNotFoundError(
        f"{path} has a {find_config(path).name} but no weights: found {list_directory(path)}, "
        f"wanted one of {', '.join(name for name, _ in WEIGHT_FILES)}. Download model.safetensors "
        "too."
    )
