"""Reads Hugging Face's checkpoints."""

import re
from collections.abc import Mapping
from dataclasses import replace

from keras_bert_suite.checkpoints.checkpoint import Checkpoint
from keras_bert_suite.checkpoints.head_types.records import FINE_TUNED, HEADS_BY_LAYER, TEXTS
from keras_bert_suite.checkpoints.hugging_face.generation_settings import (
    read_generation_settings,
)
from keras_bert_suite.checkpoints.hugging_face.sentence_transformers import find_dense
from keras_bert_suite.checkpoints.hugging_face.tensorflow_file import TensorFlowFile
from keras_bert_suite.checkpoints.model_types import activation_names
from keras_bert_suite.checkpoints.model_types.config_fields import DIALS, read_fields
from keras_bert_suite.checkpoints.model_types.config_values import ConfigValues, read_json
from keras_bert_suite.checkpoints.model_types.name_table import PYTORCH, part_of
from keras_bert_suite.checkpoints.model_types.table import MODEL_TYPES, find_type
from keras_bert_suite.checkpoints.tensor_files import (
    JoinedFiles,
    RenamedTensors,
    SafetensorsFile,
    ShardedFiles,
    TorchFile,
)
from keras_bert_suite.checkpoints.tokenizer_files.settings import CONFIG_FILE
from keras_bert_suite.files.messages import list_directory, list_names

#: The files that may hold the weights, as (name, function that opens it). The first file found is
#: read.
WEIGHT_FILES = (
    ("model.safetensors", SafetensorsFile),
    ("model.safetensors.index.json", lambda path: ShardedFiles(path, SafetensorsFile)),
    ("pytorch_model.bin", TorchFile),
    ("pytorch_model.bin.index.json", lambda path: ShardedFiles(path, TorchFile)),
    ("tf_model.h5", TensorFlowFile),
)

#: The layers behind the pooling of sentence-transformers.
DENSE = PYTORCH.rows(("sentence_dense_{i}", "dense_{i}.linear"))

#: The layer that heads of many classes of transformers have. Only the class says what it is for.
ANY_HEAD = "classifier"

#: The prefixes of DataParallel and `torch.compile` before the names of the wrapped module.
_WRAPPERS = re.compile(r"(?<![^.])(module|_orig_mod)\.")
#: Names of the model in a wrapper, such as a LightningModule.
_OWNER = "model."


class HuggingFaceCheckpoint(Checkpoint):
    """A directory with a config.json, weights and, in most cases, a tokenizer.

    Args:
        path: `pathlib.Path`.
        rename: as for `open_checkpoint`.

    Raises:
        FileNotFoundError: if there are no weights.
        ValueError: if config.json describes a model that this package cannot build, or the
            weights are damaged.
    """

    def __init__(self, path, rename=None):
        self.path = path
        self.has_modules = (path / "modules.json").is_file()
        dense = find_dense(path) if self.has_modules else []
        config = ConfigValues(find_config(path))
        self.decoder_start_token_id = config.get("decoder_start_token_id")
        self.generation_settings = read_generation_settings(path, config)
        self.names_class = bool(config.get("architectures"))
        self.model_type = kind = find_type(config)
        _check_computation(config, kind)
        self._tensors = _unwrap_names(open_weights(path), kind.names)
        if rename:
            self._tensors = _rename(self._tensors, rename, path)
        shapes = self._tensors.shapes
        self.backbone_config = {
            **read_fields(config, kind.fields, activation_names.HUGGING_FACE, kind.position_offset),
            **kind.read_more(config),
            **_read_pattern(config, kind),
        }
        _check_decoder(config, shapes, kind.names)
        # A checkpoint with the layers of a classifier of texts may have other names.
        name, _ = kind.classifier_names.their_name(TEXTS.path) or (None, None)
        names = kind.classifier_names if name in shapes else kind.names
        self.name_table = kind.fit_names(names, self.backbone_config.get("num_heads"))
        self.heads = self._read_heads(config, shapes)
        self.name_table = _without_heads(self.name_table, self.heads, shapes)
        if dense:
            files = {f"dense_{i}.": open_weights(folder) for i, folder in enumerate(dense)}
            self._tensors = JoinedFiles({"": self._tensors, **files})
            self.name_table = replace(self.name_table, rows=(*self.name_table.rows, *DENSE))
        self.sequence_length = self._read_sequence_length()
        self.tokenizer_class, self._read_tokenizer = kind.find_tokenizer(path)

    def _read_heads(self, config, shapes):
        """dict of the layer of each fine-tuned head -> arguments of its task."""
        kind, heads = self.model_type, {}
        for head in FINE_TUNED:
            name, _ = self.name_table.their_name(head.path) or (None, None)
            shape = shapes.get(name, ())
            classes = config.get("architectures")
            classes = map(str, classes) if isinstance(classes, list) else ()
            ending = kind.find_ending(head)
            if len(shape) != 2 or not any(name.endswith(ending) for name in classes):
                continue
            encoder_dropout = self.backbone_config.get("dropout", 0.0)
            dropout = config.read("rate", *kind.find_dropout(head.layer, encoder_dropout))
            arguments = head.read(config, shape[0], dropout)
            if arguments is not None:
                heads[head.layer] = arguments
        return heads

    def _read_sequence_length(self):
        path = self.path / "sentence_bert_config.json"
        length = read_json(path).get("max_seq_length") if path.is_file() else None
        if length is None:
            # transformers, and without that number Sentence Transformers, cuts to it.
            path = self.path / CONFIG_FILE
            length = read_json(path).get("model_max_length") if path.is_file() else None
        if type(length) is not int or length < 1:
            return None
        # A model without a table of positions may have no number of positions.
        longest = self.encoder_config.get("max_sequence_length")
        return length if longest is None else min(length, longest)

    @property
    def tokenizer_config(self):
        return self._read_tokenizer(self.path)


def find_config(path):
    """The path of config.json in a directory. Checkpoints of 2018 call it bert_config.json."""
    old = path / "bert_config.json"
    return old if old.is_file() and not (path / "config.json").is_file() else path / "config.json"


def _check_computation(config, kind):
    """Raises ValueError unless our backbones can compute the model of config.json."""
    # Only files since 2020 have a `model_type`. RoBERTa's tensors may have BERT's names.
    if config.get("model_type") is None and config.get("type_vocab_size") == 1:
        raise ValueError(
            f"{config.path} has no model_type, and one type of segments, as a RoBERTa. Add the "
            f"model_type: one of {', '.join(MODEL_TYPES)}."
        )
    understood = {field.name for field in kind.fields}
    if kind.causal_class and "is_decoder" in kind.causal_fields:
        understood.add("is_decoder")
    config.check_dials(dial for dial in (*DIALS, *kind.dials) if dial[0] not in understood)
    code = config.get("auto_map")
    if isinstance(code, dict) and any(str(name).startswith("AutoModel") for name in code):
        raise ValueError(
            f"'auto_map' in {config.path} names code of the model's own, which is never run. If "
            f"it computes a plain {kind.title}, remove 'auto_map'."
        )


def _read_pattern(config, kind):
    """dict of the attention pattern of a model that reads from left to right; else empty."""
    if not kind.causal_class:
        return {}
    is_causal = all(
        (config.read("flag", name, False) if value is True else config.get(name)) == value
        for name, value in kind.causal_fields.items()
    )
    return {"attention_pattern": "left_to_right"} if is_causal else {}


def _without_heads(table, heads, shapes):
    """A name table in which the layer `classifier` of a file belongs to the heads of the file.

    It may be a head that this package does not have.
    """
    absent = {layer for layer in HEADS_BY_LAYER if layer not in heads}

    def is_wrong(path, name):
        layer = path.partition("/")[0]
        return layer in absent and part_of(name) == ANY_HEAD and name in shapes

    return replace(table, rows=tuple(row for row in table.rows if not is_wrong(*row[:2])))


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


def open_weights(path):
    """The tensors of a folder, in the first of `WEIGHT_FILES` that is there."""
    for name, open_file in WEIGHT_FILES:
        if (path / name).is_file():
            return open_file(path / name)
    raise FileNotFoundError(
        f"{path} has a {find_config(path).name} but no weights: found {list_directory(path)}, "
        f"wanted one of {', '.join(name for name, _ in WEIGHT_FILES)}. Download model.safetensors "
        "too."
    )


def _unwrap_names(tensors, table):
    """The tensors of a file, under the names that the model in it has by itself.

    `table` is the `NameTable` of the model. Some models have names that begin with "model.".
    """
    names = [*tensors.shapes]
    candidates = [names]
    while (shorter := _shorten(candidates[-1])) != candidates[-1]:
        candidates.append(shorter)
    # Names that become equal were not of one wrapped model.
    candidates = [candidate for candidate in candidates if len({*candidate}) == len(names)]
    if len(candidates) == 1:
        return tensors
    # Of names that are known alike the shorter ones are plain: readers of heads compare them.
    best = max(reversed(candidates), key=lambda candidate: _count_known(candidate, table))
    return RenamedTensors(tensors, dict(zip(best, names, strict=True)))


def _rename(tensors, rename, path):
    """The tensors of a file with other beginnings of their names; see `open_checkpoint`."""
    if not isinstance(rename, Mapping) or not all(
        isinstance(part, str) for pair in rename.items() for part in pair
    ):
        raise ValueError(
            "rename must be a dict of beginnings of names, str -> str, such as "
            f"{{'encoder.': 'bert.', 'wrapper.': ''}}, got {rename!r}."
        )
    prefixes = sorted(rename, key=len, reverse=True)
    new_names, used = {}, set()
    for name in tensors.shapes:
        prefix = next((prefix for prefix in prefixes if name.startswith(prefix)), None)
        new = name if prefix is None else rename[prefix] + name.removeprefix(prefix)
        used.add(prefix)
        if new in new_names:
            raise ValueError(
                f"rename={rename!r} gives {new_names[new]} and {name} of {path} the same name, "
                f"{new}. Rename one of them otherwise."
            )
        new_names[new] = name
    if idle := [prefix for prefix in prefixes if prefix not in used]:
        raise ValueError(
            f"rename has {idle[0]!r}, with which the name of no tensor in {path} begins. They "
            f"begin with {list_names(dict.fromkeys(part_of(name) for name in tensors.shapes))}."
        )
    return RenamedTensors(tensors, new_names)


def _shorten(names):
    shorter = [_WRAPPERS.sub("", name) for name in names]
    if shorter == names and all(name.startswith(_OWNER) for name in names):
        return [name.removeprefix(_OWNER) for name in names]
    return shorter


def _count_known(names, table):
    return sum(table.our_path(table.spell(name)) is not None for name in names)
