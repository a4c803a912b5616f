"""Reads files of weights: safetensors and PyTorch's, whole or in shards, and HDF5."""

import json
from pathlib import Path

import ml_dtypes
import numpy as np

from keras_bert_suite.files.atomic_file import parse_json
from keras_bert_suite.files.messages import damaged, list_names, reading, shorten

_SAFETENSORS_DTYPES = {
    "F64": "float64",
    "F32": "float32",
    "F16": "float16",
    "BF16": ml_dtypes.bfloat16,
    "I64": "int64",
    "I32": "int32",
    "I16": "int16",
    "I8": "int8",
    "U8": "uint8",
    "BOOL": "bool",
}

#: The errors of h5py for damaged files.
_HDF5_ERRORS = (OSError, RuntimeError, ValueError, KeyError, TypeError)


class SafetensorsFile:
    """The tensors of one `.safetensors` file, as views of the file.

    As all classes of this module, it has `shapes`, a dict of name -> shape, and a method `tensor`,
    and a damaged file is a ValueError.

    Source: https://huggingface.co/docs/safetensors
    """

    def __init__(self, path):
        import safetensors

        self.path = path
        try:
            # This checks the header, and that the tensors cover the file exactly. The library's
            # NumPy reader would copy each tensor, so `tensor` maps the file instead.
            with safetensors.safe_open(path, framework="np"):
                pass
        except safetensors.SafetensorError as error:
            raise damaged(path, error) from error
        with open(path, "rb") as file:
            header_size = int.from_bytes(file.read(8), "little")
            self._entries = json.loads(file.read(header_size))
        self._entries.pop("__metadata__", None)
        self._data_begin = 8 + header_size
        self.shapes = {name: tuple(entry["shape"]) for name, entry in self._entries.items()}

    def tensor(self, name):
        """The tensor called `name`, a read-only array in its stored dtype."""
        entry = self._entries[name]
        with reading(self.path):
            dtype = np.dtype(_SAFETENSORS_DTYPES[entry["dtype"]])
            begin = self._data_begin + entry["data_offsets"][0]
            return np.memmap(self.path, dtype, "r", begin, tuple(entry["shape"]))


def _holds_tensors(value):
    import torch

    return isinstance(value, dict) and all(
        isinstance(part, torch.Tensor) for part in value.values()
    )


class TorchFile:
    """The tensors of one `pytorch_model.bin`. Pickled code in it is not run."""

    def __init__(self, path):
        import zipfile

        try:
            import torch
        except ImportError as error:
            raise ImportError(
                f"Reading {path} needs PyTorch: `pip install torch`, or download the "
                "checkpoint's model.safetensors instead."
            ) from error

        self.path = path
        try:
            # Files of PyTorch before 1.6 are not zip archives, and cannot be memory-mapped.
            self._tensors = torch.load(
                path, map_location="cpu", weights_only=True, mmap=zipfile.is_zipfile(path)
            )
        except Exception as error:  # PyTorch raises errors of many types here.
            reason = str(error).partition("\n")[0].rstrip(".") or type(error).__name__
            raise ValueError(
                f"{path} cannot be read as PyTorch tensors: {shorten(reason)}. If its download was "
                "cut short, download it again. If it holds pickled objects, which are never run "
                "here, take the checkpoint's model.safetensors."
            ) from error
        if not _holds_tensors(self._tensors):
            parts = self._tensors if isinstance(self._tensors, dict) else {}
            inner = next((name for name, part in parts.items() if _holds_tensors(part)), None)
            advice = (
                "Save the model with `save_pretrained` of transformers."
                if inner is None
                else f"Write the part with the weights alone to a folder of its own: "
                f"torch.save(torch.load({path.name!r})[{inner!r}], 'new/{path.name}')."
            )
            raise ValueError(f"{path} does not hold a dictionary of tensors. {advice}")
        self.shapes = {name: tuple(tensor.shape) for name, tensor in self._tensors.items()}

    def tensor(self, name):
        """The tensor called `name` as a NumPy array; a bfloat16 tensor is cast to float32."""
        import torch

        tensor = self._tensors[name].detach()
        return (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy()


class ShardedFiles:
    """The tensors of all files that an index, `*.index.json`, lists, opened by `open_file`."""

    def __init__(self, index_path, open_file):
        with reading(index_path):
            weight_map = parse_json(index_path.read_bytes())["weight_map"]
            names = sorted(set(weight_map.values()))
            strangers = [name for name in names if Path(name).name != name or len(name) > 255]
            if strangers:
                raise ValueError(f"shards outside of its directory: {list_names(strangers)}")
        missing = [name for name in names if not (index_path.parent / name).is_file()]
        if missing:
            raise FileNotFoundError(
                f"{index_path} lists files that {index_path.parent} does not have: "
                f"{list_names(missing)}. Download them too."
            )
        files = {name: open_file(index_path.parent / name) for name in names}
        self._files = {tensor: files[name] for tensor, name in weight_map.items()}
        self.shapes = {}
        for tensor, file in self._files.items():
            if tensor not in file.shapes:
                reason = f"it lacks {shorten(tensor)}, which {index_path.name} promises"
                raise damaged(file.path, reason)
            self.shapes[tensor] = file.shapes[tensor]

    def tensor(self, name):
        """The tensor called `name`, from the shard that holds it."""
        return self._files[name].tensor(name)


class HDF5File:
    """The arrays of one file of HDF5, such as Keras' `.weights.h5`. It refers to no other file."""

    def __init__(self, path):
        import h5py

        self.path = path
        self.shapes = {}

        def visit(name, item):  # h5py does not call it for links to other files.
            if isinstance(item, h5py.Dataset):
                if item.is_virtual or item.external:
                    raise ValueError(f"{shorten(name)} lies in another file")
                self.shapes[name] = tuple(item.shape or ())

        try:
            with h5py.File(self.path, "r") as file:
                file.visititems(visit)
        except _HDF5_ERRORS as error:  # raised by h5py, or by `visit`
            raise damaged(path, error) from error

    def tensor(self, name):
        """The tensor called `name` as a NumPy array."""
        import h5py

        try:
            with h5py.File(self.path, "r") as file:
                return file[name][()]
        except _HDF5_ERRORS as error:
            raise damaged(self.path, f"{shorten(name)}: {error}") from error


class JoinedFiles:
    """The tensors of several files, dict of a prefix before the names of each -> the file."""

    def __init__(self, files):
        self._places = {
            prefix + name: (file, name) for prefix, file in files.items() for name in file.shapes
        }
        self.shapes = {name: file.shapes[inner] for name, (file, inner) in self._places.items()}

    def tensor(self, name):
        """The tensor called `name`."""
        file, inner = self._places[name]
        return file.tensor(inner)


class RenamedTensors:
    """Tensors of a file under other names, dict of name -> the name in the file."""

    def __init__(self, tensors, names):
        self._tensors = tensors
        self._names = names
        self.shapes = {name: tensors.shapes[old] for name, old in names.items()}

    def tensor(self, name):
        """The tensor called `name`."""
        return self._tensors.tensor(self._names[name])
