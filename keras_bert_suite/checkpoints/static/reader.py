"""Reads the static vectors of sentence-transformers and of model2vec."""

from dataclasses import replace

import numpy as np

from keras_bert_suite.checkpoints.checkpoint import Checkpoint
from keras_bert_suite.checkpoints.hugging_face.reader import DENSE, open_weights
from keras_bert_suite.checkpoints.hugging_face.sentence_transformers import (
    STATIC_MODULE,
    find_dense,
    read_modules,
)
from keras_bert_suite.checkpoints.model_types.config_values import ConfigValues, read_json
from keras_bert_suite.checkpoints.model_types.static import STATIC
from keras_bert_suite.checkpoints.tensor_files import JoinedFiles
from keras_bert_suite.checkpoints.tokenizer_files.find_kind import read_json_tokenizer
from keras_bert_suite.checkpoints.tokenizer_files.settings import FAST_FILE, name_missing
from keras_bert_suite.checkpoints.tokenizer_files.word_piece import read_hugging_face_tokenizer
from keras_bert_suite.files.messages import list_names

#: The length to which texts are cut where nothing cuts them, as model2vec has it.
UNCUT_LENGTH = 1_000_000

#: The names of the table in the files of both libraries.
_TABLE, _MODEL2VEC_TABLE = "embedding.weight", "embeddings"


def is_static(path):
    """Whether a directory, `pathlib.Path`, holds static vectors."""
    return _find_folder(path) is not None


def _find_folder(path):
    """The folder of the table and the tokenizer in a directory, or None."""
    if (path / "modules.json").is_file():
        kind, folder = next(iter(read_modules(path)), (None, None))
        return folder if kind == STATIC_MODULE else None
    config = path / "config.json"
    is_model2vec = config.is_file() and read_json(config).get("model_type") == "model2vec"
    return path if is_model2vec else None


class StaticCheckpoint(Checkpoint):
    """A directory with a table of vectors and a tokenizer.json.

    Raises:
        FileNotFoundError: if one of them is missing.
        ValueError: if one of them is damaged, or there is no table of vectors.
    """

    model_type = STATIC
    add_special_tokens = False

    def __init__(self, path):
        self.path, self._folder = path, _find_folder(path)
        self.has_modules = (path / "modules.json").is_file()
        if not self.has_modules:
            config = ConfigValues(path / "config.json")
            self.embedder_settings = {"normalize": config.read("flag", "normalize", False)}
        table = _Table(self._folder)
        vocabulary_size, hidden_dim = table.shapes[_TABLE]
        self.backbone_config = {"vocabulary_size": vocabulary_size, "hidden_dim": hidden_dim}
        dense = find_dense(path) if self.has_modules else []
        files = {f"dense_{i}.": open_weights(folder) for i, folder in enumerate(dense)}
        self._tensors = JoinedFiles({"": table, **files})
        rows = (*STATIC.names.rows, *DENSE) if dense else STATIC.names.rows
        self.name_table = replace(STATIC.names, rows=rows)
        if not (self._folder / FAST_FILE).is_file():
            raise name_missing(self._folder, FAST_FILE)
        self._fast = read_json(self._folder / FAST_FILE)
        cut = self._fast.get("truncation") or {}
        self.sequence_length = cut.get("max_length", UNCUT_LENGTH)
        model = self._fast.get("model") or {}
        self._is_word_piece = model.get("type", "WordPiece") == "WordPiece"

    @property
    def tokenizer_class(self):
        return "WordPieceTokenizer" if self._is_word_piece else self._read_other()[0]

    @property
    def tokenizer_config(self):
        if not self._is_word_piece:
            return self._read_other()[1]
        arguments = read_hugging_face_tokenizer(self._folder, follows_file=True)
        # model2vec leaves the tokens out of the vocabulary that no row has.
        pieces = {*self._fast["model"]["vocab"]}
        unknown = arguments.get("unknown_token", "[UNK]")
        absent = {
            name: unknown
            for name, usual in (
                *(("start_token", "[CLS]"), ("end_token", "[SEP]")),
                ("pad_token", "[PAD]"),
            )
            if arguments.get(name, usual) not in pieces
        }
        return {**arguments, **absent}

    def _read_other(self):
        return read_json_tokenizer(self._folder / FAST_FILE)


class _Table:
    """The table of vectors in a folder, as a file of tensors with this one.

    model2vec may have fewer vectors than tokens, and a weight for each token.
    """

    def __init__(self, folder):
        self._file = open_weights(folder)
        shapes = self._file.shapes
        self._name = next((name for name in (_TABLE, _MODEL2VEC_TABLE) if name in shapes), None)
        if self._name is None or len(shapes[self._name]) != 2:
            raise ValueError(
                f"{folder} has no table of vectors, {_TABLE!r} or {_MODEL2VEC_TABLE!r} (V, H): "
                f"found {list_names(f'{name} {shape}' for name, shape in shapes.items())}."
            )
        number, width = shapes[self._name]
        if self._has("mapping"):
            (number,) = shapes["mapping"]
        self.shapes = {_TABLE: (number, width)}
        if self._name == _TABLE:
            self.shapes = {**shapes}

    def _has(self, name):
        return self._name == _MODEL2VEC_TABLE and name in self._file.shapes

    def tensor(self, name):
        """The tensor called `name`, float32."""
        if name != _TABLE:
            return self._file.tensor(name)
        table = np.asarray(self._file.tensor(self._name), "float32")
        if self._has("mapping"):
            table = table[self._file.tensor("mapping")]
        if self._has("weights"):
            table = table * np.asarray(self._file.tensor("weights"), "float32")[:, None]
        return table
