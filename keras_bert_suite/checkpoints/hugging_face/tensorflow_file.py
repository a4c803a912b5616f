"""Reads the weights that transformers' classes for TensorFlow saved."""

import re

import numpy as np

from keras_bert_suite.checkpoints.tensor_files import HDF5File, RenamedTensors

#: The last part of a name in TensorFlow -> that in PyTorch. Other parts are alike.
_ENDINGS = {"kernel": "weight", "embeddings": "weight", "gamma": "weight", "beta": "bias"}


class TensorFlowFile(RenamedTensors):
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
        file = HDF5File(path)
        super().__init__(file, {pytorch_name(name): name for name in file.shapes})
        for name in filter(self._is_kernel, self.shapes):
            self.shapes[name] = self.shapes[name][::-1]

    def tensor(self, name):
        """The tensor called `name` as a NumPy array."""
        tensor = super().tensor(name)
        return np.transpose(tensor) if self._is_kernel(name) else tensor

    def _is_kernel(self, name):
        return self._names[name].endswith("/kernel:0")


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
