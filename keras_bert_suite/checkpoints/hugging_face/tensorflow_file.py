"""Reads the weights that transformers' classes for TensorFlow saved."""

import re

import numpy as np

from keras_bert_suite.checkpoints.tensor_files import HDF5File

#: The last part of a name in TensorFlow -> that in PyTorch. Other parts are alike.
_ENDINGS = {"kernel": "weight", "embeddings": "weight", "gamma": "weight", "beta": "bias"}


class TensorFlowFile:
    """The tensors of one `tf_model.h5`, under PyTorch's names and in PyTorch's shapes.

    Versions of transformers before 5 saved it, from a class such as `TFBertModel`.

    >>> pytorch_name("bert/tf_bert_model/bert/encoder/layer_._0/output/dense/kernel:0")
    'bert.encoder.layer.0.output.dense.weight'

    Args:
        path: `pathlib.Path`.

    Raises:
        ValueError: if the file is cut short or damaged.
    """

    def __init__(self, path):
        self._file = HDF5File(path)
        self._names = {pytorch_name(name): name for name in self._file.shapes}
        self.shapes = {
            name: shape[::-1] if _is_kernel(place) else shape
            for name, place in self._names.items()
            for shape in [self._file.shapes[place]]
        }

    def tensor(self, name):
        """The tensor called `name` as a NumPy array."""
        place = self._names[name]
        tensor = self._file.tensor(place)
        return np.transpose(tensor) if _is_kernel(place) else tensor


def pytorch_name(name):
    """PyTorch's name of a tensor in a `tf_model.h5`.

    Args:
        name: str, the path of the dataset: the group of a layer, then the name of the variable. It
            begins with the name of the whole model.
    """
    parts = name.removesuffix(":0").split("/")[2:]
    # "layer_._0" is an entry of a list, and "mlm___cls" is called "cls" in PyTorch.
    parts = [re.sub(r".*___", "", part).replace("_._", ".") for part in parts]
    return ".".join([*parts[:-1], *(_ENDINGS.get(part, part) for part in parts[-1:])])


def _is_kernel(name):
    return name.endswith("/kernel:0")
