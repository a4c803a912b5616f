"""Writes and reads the folder of an adapter: its weights, those of the head, and what they fit."""

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import keras
import numpy as np

from keras_bert_suite.annotations import Config, PathLike
from keras_bert_suite.argument_checks import check_path, with_article
from keras_bert_suite.checkpoints import PEFT_CONFIG
from keras_bert_suite.checkpoints.tensor_files import SafetensorsFile
from keras_bert_suite.files.atomic_directory import atomic_directory
from keras_bert_suite.files.atomic_file import parse_json, write_json
from keras_bert_suite.files.checksums import check_checksums, write_checksums
from keras_bert_suite.files.messages import list_names, reading
from keras_bert_suite.files.safetensors_file import write_safetensors
from keras_bert_suite.models.adaptations.adaptation import Adaptation
from keras_bert_suite.models.adaptations.adapted_encoder import find_digest
from keras_bert_suite.preprocessing import SegmentPacker

CONFIG_FILE, WEIGHTS_FILE = "adapter.json", "adapter.safetensors"

_OR_NULL = type(None)

#: The entries of the description that are read, by their places, and what JSON value each is.
_ENTRIES: dict[str, tuple[type, ...]] = {
    "adaptation": (dict,),
    "trained": (list,),
    "base": (dict,),
    "base.class": (str,),
    "base.sizes": (dict,),
    "base.settings": (dict,),
    "base.name": (str, _OR_NULL),
    "base.sha256": (str,),
    "base.left_out": (list,),
    "base.dtype": (str,),
    "base.is_quantized": (bool,),
    "task": (dict,),
    "task.class_name": (str,),
    "task.registered_name": (str,),
    "task.config": (dict,),
    "preprocessor": (dict, _OR_NULL),
    "preprocessor.config": (dict,),
    "preprocessor.lowercase": (bool, _OR_NULL),
}


def write_folder(task: Any, name: str, path: PathLike) -> None:
    """Writes the folder of an adapter of a task; see `AdaptedTask.save_adapter`."""
    check_same_base(task, name)
    encoder = task.backbone
    adapter = encoder.adapters[name]
    weights = {**encoder.weights_of_adapter(name), **list_head_weights(task)}
    description = {
        "adaptation": keras.saving.serialize_keras_object(adapter.adaptation),
        "trained": list(adapter.trained),
        "base": {
            "class": type(encoder).__name__,
            "sizes": _list_sizes(encoder),
            "settings": _list_settings(encoder),
            "name": task.card.get("base"),
            "sha256": adapter.digest,
            "left_out": list(adapter.left_out),
            "dtype": encoder.dtype_policy.name,
            "is_quantized": is_quantized(encoder),
        },
        "task": describe_task(task),
        "preprocessor": describe_packer(task.preprocessor),
    }
    with atomic_directory(path) as directory:
        write_json(directory / CONFIG_FILE, description)
        tensors = {
            path: np.ascontiguousarray(
                keras.ops.convert_to_numpy(keras.ops.cast(weight, "float32"))
            )
            for path, weight in weights.items()
        }
        write_safetensors(directory / WEIGHTS_FILE, tensors)
        write_checksums(directory)


def check_same_base(task: Any, name: str) -> None:
    """Raises a ValueError if the encoder got other weights after an adapter was added to it."""
    encoder = task.backbone
    method = encoder.adapters[name].resized_by
    if method is not None:
        raise ValueError(
            f"The adapter {name!r} was added before `{method}` made this "
            f"{type(encoder).__name__}, so no base has the weights that it is for. Resize first, "
            "and `adapt` the copy; or save the whole task by `save_to_preset`, or after "
            "`merge_adapter`."
        )


def is_of_peft(path: PathLike) -> bool:
    """Whether the folder of an adapter is one of peft.

    Raises:
        ValueError: if it is no str or path.
    """
    check_path("An adapter, the folder that `save_adapter` has written,", path)
    return (Path(path).expanduser() / PEFT_CONFIG).is_file()


def read_folder(path: PathLike) -> tuple[Config, SafetensorsFile]:
    """The description and the tensors of a folder of an adapter.

    Raises:
        ValueError: if the folder holds no adapter, or is damaged.
    """
    folder = Path(path).expanduser()
    if not (folder / CONFIG_FILE).is_file():
        raise ValueError(
            f"{folder} holds no adapter: it has no {CONFIG_FILE}. Pass a folder that "
            "`save_adapter` has written, or one of peft with an adapter_config.json."
        )
    check_checksums(folder)
    with reading(folder / CONFIG_FILE):
        description = parse_json((folder / CONFIG_FILE).read_bytes())
        _check_entries(description)
    return description, SafetensorsFile(folder / WEIGHTS_FILE)


def _check_entries(description: Config) -> None:
    """Raises a ValueError that names the first entry which is missing or of another type."""
    for place, types in _ENTRIES.items():
        parent, _, name = place.rpartition(".")
        entries = description[parent] if parent else description
        if entries is None:  # A task without a preprocessor of this package.
            continue
        if name not in entries:
            raise ValueError(f"it has no entry {place}")
        value = entries[name]
        if not isinstance(value, types):
            wanted = " or ".join("null" if t is _OR_NULL else t.__name__ for t in types)
            raise ValueError(f"{place} must be of the type {wanted}, got {value!r}")
        wrong = [x for x in value if not isinstance(x, str)] if isinstance(value, list) else []
        if wrong:
            raise ValueError(f"{place} must be a list of paths of weights, got {wrong[0]!r} in it")


@contextlib.contextmanager
def building_from(path: PathLike, entry: str) -> Iterator[None]:
    """Lets errors of a type, a key or an attribute name an entry of the description of a folder.

    ValueErrors stay as they are: they say what is wrong, also with an argument of the user.
    """
    try:
        yield
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(
            f"{Path(path).expanduser() / CONFIG_FILE} cannot be read: {entry} makes nothing, "
            f"{type(error).__name__}: {str(error).rstrip('.')}. Restore the folder as "
            "`save_adapter` has written it."
        ) from error


def make_adaptation(description: Config, path: PathLike) -> Adaptation:
    """The `Adaptation` of a folder."""
    described = description["adaptation"]
    with reading(Path(path).expanduser() / CONFIG_FILE):
        adaptation = keras.saving.deserialize_keras_object(described)
        if not isinstance(adaptation, Adaptation):
            raise ValueError(f"adaptation must describe one such as LoRA, got {described!r}")
    return adaptation


def join_task(task: Any, path: PathLike, name: str) -> Any:
    """The task of a folder on the backbone of another task, which has its adapter already."""
    description, tensors = read_folder(path)
    with building_from(path, "preprocessor"):
        packer = restore_packer(task.preprocessor, description["preprocessor"])
    described = description["task"]
    parts = {"backbone": task.backbone, "preprocessor": packer, "adapter": name}
    with building_from(path, "task"):
        cls = keras.saving.get_registered_object(described["registered_name"])
        joined = cls.from_config({**described["config"], **parts})
    for weight_path, weight in list_head_weights(joined).items():
        weight.assign(np.array(tensors.tensor(weight_path)))
    return joined


def list_head_weights(task: Any) -> dict[str, keras.Variable]:
    """The weights of a task that its backbone does not have, by their paths."""
    of_encoder = {id(weight) for weight in task.backbone.weights}
    return {weight.path: weight for weight in task.weights if id(weight) not in of_encoder}


def describe_task(task: Any) -> Config:
    """The class of a task and the arguments that make its head."""
    config = task.get_config()
    left_out = ["backbone", "preprocessor", "card", "trainable", "head_trainability", "name"]
    left_out += ["adapter"]
    return {
        "class_name": type(task).__name__,
        "registered_name": keras.saving.get_registered_name(type(task)),
        "config": {name: value for name, value in config.items() if name not in left_out},
    }


def describe_packer(packer: Any) -> Config | None:
    """The settings of a `SegmentPacker`, and how its tokenizer writes letters; None for no such."""
    if not isinstance(packer, SegmentPacker):
        return None
    config = {name: value for name, value in packer.get_config().items() if name != "tokenizer"}
    return {"config": config, "lowercase": getattr(packer.tokenizer, "lowercase", None)}


def restore_packer(packer: Any, described: Config | None) -> Any:
    """A `SegmentPacker` with the settings of another, and with its own tokenizer."""
    if described is None or not isinstance(packer, SegmentPacker):
        return packer
    tokenizer, lowercase = packer.tokenizer, described["lowercase"]
    if lowercase is not None and tokenizer.lowercase != lowercase:
        tokenizer = tokenizer.with_lowercase(lowercase)
    return type(packer).from_config({**described["config"], "tokenizer": tokenizer})


def is_quantized(encoder: Any) -> bool:
    """Whether layers of an encoder have 8-bit integers."""
    return any(layer.quantization_mode for layer in encoder._flatten_layers())


def _list_sizes(encoder: Any) -> Config:
    """The whole numbers and names among the arguments of an encoder, which decide its outputs."""
    config = {**encoder.get_config(), "name": None}
    for name, value in config.items():
        if isinstance(value, dict) and value.get("class_name") == "function":
            config[name] = value["config"]  # An activation function of this package.
    return {name: value for name, value in config.items() if type(value) in (int, str)}


def _list_settings(encoder: Any) -> Config:
    """The arguments of an encoder with which a task opens a checkpoint, and which no file says."""
    config = {**encoder.get_config(), "name": None, "trainable": None}
    return {name: value for name, value in config.items() if type(value) in (bool, float, str)}


def check_base(encoder: Any, description: Config, path: PathLike, any_base: bool) -> None:
    """Raises a ValueError if an adapter belongs to another encoder.

    Args:
        encoder: `TextEncoder` without this adapter.
        description: of the folder `path`.
        any_base: bool, whether other weights than those it was trained on are allowed.
    """
    base = description["base"]
    named = f" ({base['name']})" if base["name"] else ""
    if type(encoder).__name__ != base["class"]:
        raise ValueError(
            f"The adapter in {path} was trained on {with_article(_Named(base['class']))}{named}, "
            f"got {with_article(encoder)}. Open the checkpoint of its base."
        )
    own_sizes = _list_sizes(encoder)
    wrong = [
        f"{key} is {own_sizes.get(key)} here, and {size} there"
        for key, size in base["sizes"].items()
        if own_sizes.get(key) != size
    ]
    if wrong:
        raise ValueError(
            f"The adapter in {path} was trained on an encoder of another shape{named}: "
            f"{list_names(wrong, separator='; ')}. Open the checkpoint of its base so, and pass "
            "the backbone."
        )
    if is_quantized(encoder) != base["is_quantized"] and not any_base:
        state = "quantized" if base["is_quantized"] else "not quantized"
        raise ValueError(
            f"The adapter in {path} was trained on an encoder that was {state}, and this one is "
            f"{'not' if base['is_quantized'] else 'quantized'}. "
            + (
                "Call `quantize('int8')` before `load_adapter`"
                if base["is_quantized"]
                else "Load the adapter on its base as it was before `quantize`"
            )
            + ", or pass any_base=True, which changes the outputs a little."
        )
    if any_base:
        return
    own = next((a.digest for a in encoder.adapters.values() if a.resized_by is None), None)
    if own is None or any(a.left_out != tuple(base["left_out"]) for a in encoder.adapters.values()):
        own = find_digest(encoder, base["left_out"])
    if own != base["sha256"]:
        raise ValueError(
            f"The adapter in {path} was trained on other weights than those of this "
            f"{type(encoder).__name__}: the SHA-256 of its base{named} begins with "
            f"{base['sha256'][:16]}, and that of this one with {own[:16]}. Open the checkpoint "
            "that it was trained on, in "
            f"the dtype {base['dtype']} (this one has {encoder.dtype_policy.name}); or pass "
            "any_base=True for outputs that nobody has tested."
        )


def check_shapes(weights: dict[str, Any], tensors: Any, path: PathLike) -> None:
    """Raises a ValueError that names what differs, unless tensors fit weights by name and shape."""
    problems = [f"{name}: not in the file" for name in weights if name not in tensors.shapes]
    problems += [f"{name}: not in the model" for name in tensors.shapes if name not in weights]
    problems += [
        f"{name}: has shape {tensors.shapes[name]}, wanted {tuple(weight.shape)}"
        for name, weight in weights.items()
        if name in tensors.shapes and tensors.shapes[name] != tuple(weight.shape)
    ]
    if problems:
        raise ValueError(
            f"The adapter in {path} does not fit this model:\n  "
            + list_names(problems, separator="\n  ", max_characters=600)
            + "\nOpen its base with the head it was trained with, by `from_adapter`."
        )


def check_head(task: Any, description: Config, path: PathLike) -> None:
    """Raises a ValueError if an adapter was trained with another head than that of a task."""
    theirs, own = description["task"], describe_task(task)
    if theirs["class_name"] != own["class_name"]:
        raise ValueError(
            f"The adapter in {path} was trained with {with_article(_Named(theirs['class_name']))}, "
            f"got {with_article(task)}. Call {theirs['class_name']}.from_adapter."
        )
    differs = [
        f"{name} is {own['config'].get(name)!r} here, and {value!r} there"
        for name, value in theirs["config"].items()
        if name != "input_names" and _plain(own["config"].get(name)) != _plain(value)
    ]
    if differs:
        raise ValueError(
            f"The head of the adapter in {path} is not that of this {type(task).__name__}: "
            f"{list_names(differs, separator='; ')}. Call "
            f"{type(task).__name__}.from_adapter({str(path)!r}, base), which makes its head."
        )


def _plain(value: Any) -> Any:
    """A value of a configuration as JSON has it, without shapes and numbered names of layers."""
    if isinstance(value, dict):
        left_out = ("build_config", "name", "shared_object_id")
        return {key: _plain(part) for key, part in value.items() if key not in left_out}
    return [_plain(part) for part in value] if isinstance(value, (list, tuple)) else value


def _Named(name: str) -> type:  # noqa: N802
    """A class of a name, for `with_article`."""
    return type(re.sub(r"\W", "", name) or "Unknown", (), {})
