"""Reads the files of allenai/bilm-tf, the original code of ELMo."""

from keras_bert_suite.checkpoints.checkpoint import Checkpoint
from keras_bert_suite.checkpoints.model_types.config_values import ConfigValues
from keras_bert_suite.checkpoints.model_types.elmo import ELMO
from keras_bert_suite.checkpoints.tensor_files import HDF5File
from keras_bert_suite.files.messages import list_directory, list_names, shorten

#: The ends of the names of both files, such as elmo_2x4096_512_2048cnn_2xhighway_options.json.
OPTIONS, WEIGHTS = "*options.json", "*weights.hdf5"

#: The ids that the code gives to characters, for training, and one more for padding.
_NUM_CHARACTERS = (261, 262)


def is_elmo(path):
    """Whether a directory holds the options or the weights of an ELMo, and no config.json."""
    is_named = any(True for name in (OPTIONS, WEIGHTS) for _ in path.glob(name))
    return is_named and not (path / "config.json").is_file()


class ElmoCheckpoint(Checkpoint):
    """A directory with an options.json and a weights.hdf5.

    Raises:
        FileNotFoundError: if one of the files is missing.
        ValueError: if there are several, if the options describe a model that `ElmoBackbone` does
            not compute, or if the file of weights is damaged or not that of an ELMo.
    """

    model_type = ELMO
    name_table = ELMO.names
    tokenizer_class = ELMO.tokenizer

    def __init__(self, path):
        self.path = path
        self.backbone_config = _read_options(_find_file(path, OPTIONS))
        weights = _find_file(path, WEIGHTS)
        self._tensors = HDF5File(weights)
        _check_names(weights, self._tensors.shapes)

    @property
    def tokenizer_config(self):
        return {"max_characters": self.backbone_config["characters"]["max_characters"]}


def _find_file(path, pattern):
    found = sorted(path.glob(pattern))
    if len(found) > 1:
        raise ValueError(
            f"{path} has {list_names(file.name for file in found)}. Put the options and the "
            "weights of one model into a folder of their own."
        )
    if not found:
        raise FileNotFoundError(
            f"{path} holds no ELMo: found {list_directory(path)}, wanted {OPTIONS} and {WEIGHTS}. "
            "Copy both files of the model into the folder."
        )
    return found[0]


def _read_options(path):
    """The arguments of `ElmoBackbone`."""
    lstm, characters = ConfigValues(path, "lstm"), ConfigValues(path, "char_cnn")
    units, width = lstm.read("size", "dim"), lstm.read("size", "projection_dim")
    if units <= width:
        raise ValueError(
            f"'projection_dim' in {path} is {width} and 'dim' is {units}. The original code makes "
            "no projection then, and such a model cannot be read."
        )
    table = characters.get("embedding")
    if not isinstance(table, dict) or type(table.get("dim")) is not int or table["dim"] < 1:
        raise ValueError(f"'embedding' in {path} must have a positive integer 'dim', got {table}.")
    has_highways = characters.get("n_highway") not in (None, 0)
    characters.check_dials([("n_characters", _NUM_CHARACTERS)])
    return {
        "vocabulary_size": None,
        "num_layers": lstm.read("size", "n_layers", 1),
        "units": units,
        "projection_dim": width,
        "cell_clip": _read_clip(lstm, "cell_clip"),
        "projection_clip": _read_clip(lstm, "proj_clip"),
        "skip_connections": lstm.read("flag", "use_skip_connections"),
        "characters": {
            "filters": _read_filters(path, characters.get("filters")),
            "embedding_dim": table["dim"],
            "num_highways": characters.read("size", "n_highway") if has_highways else 0,
            "activation": characters.choice("activation", {"relu": "relu", "tanh": "tanh"}),
            "max_characters": characters.read("size", "max_characters_per_token"),
        },
    }


def _read_clip(config, name):
    return None if config.get(name) is None else config.read("positive", name)


def _read_filters(path, filters):
    is_list = isinstance(filters, list) and filters
    if not is_list or not all(
        isinstance(row, list) and len(row) == 2 and all(type(n) is int and n > 0 for n in row)
        for row in filters
    ):
        raise ValueError(
            f"'filters' in {path} must be a list of pairs of positive integers, width and number, "
            f"got {shorten(repr(filters))}."
        )
    return filters


def _check_names(path, shapes):
    """Raises a ValueError if a file of HDF5 has none of the names of the original code."""
    known = [name for name in shapes if ELMO.names.our_path(name) is not None]
    if not known:
        raise ValueError(
            f"{path} is no file of ELMo's weights: it has {list_names(shapes) or 'no arrays'}, "
            "wanted char_embed, CNN/W_cnn_0, RNN_0/RNN/MultiRNNCell/Cell0/LSTMCell/W_0 and so on. "
            "Take the weights.hdf5 that belongs to the options.json. A file of Keras is opened "
            "with its model."
        )
