"""Finds the format of a checkpoint, and opens it."""

import os
import re
from pathlib import Path

from keras_bert_suite.argument_checks import check_path
from keras_bert_suite.checkpoints.elmo.reader import ElmoCheckpoint, is_elmo
from keras_bert_suite.checkpoints.google_tf1.reader import GoogleCheckpoint
from keras_bert_suite.checkpoints.google_tf1.related_models import NAMED_MODELS
from keras_bert_suite.checkpoints.hugging_face.reader import WEIGHT_FILES, HuggingFaceCheckpoint
from keras_bert_suite.checkpoints.keras_hub.reader import KerasHubCheckpoint, is_keras_hub_preset
from keras_bert_suite.checkpoints.model_types.config_values import read_json
from keras_bert_suite.checkpoints.static.reader import StaticCheckpoint, is_static
from keras_bert_suite.files.checksums import check_checksums
from keras_bert_suite.files.messages import list_directory, list_names, reading

_FORMATS = (
    "a Hugging Face checkpoint (config.json and model.safetensors), a checkpoint of "
    "google-research/bert (bert_config.json and bert_model.ckpt.*) or google-research/albert "
    "(albert_config.json and model.ckpt-best.*), an ELMo of allenai/bilm-tf (options.json and "
    "weights.hdf5), static vectors of sentence-transformers (modules.json), or a preset of Keras"
)

#: The files of a checkpoint beside its weights: configurations, tokenizers, and the licence's name.
_SMALL_FILES = ("*.json", "vocab*.txt", "merges.txt", "*.model", "SHA256SUMS", "README.md")
#: The weights of the modules of sentence-transformers, in folders of their own.
_MODULE_WEIGHTS = ("[0-9]_*/model.safetensors", "[0-9]_*/pytorch_model.bin")
#: The further files of a preset of KerasHub.
_KERAS_HUB_FILES = ("*.weights.h5", "assets/tokenizer/*")
#: The files of weights: Hugging Face's in the order of `WEIGHT_FILES`, then Google's.
_WEIGHT_PATTERNS = (
    ("model*.safetensors",),
    ("pytorch_model*.bin",),
    ("tf_model.h5",),
    ("bert_model.ckpt.index", "bert_model.ckpt.data-*"),
    ("model.ckpt-best.index", "model.ckpt-best.data-*"),
    ("xlnet_model.ckpt.index", "xlnet_model.ckpt.data-*"),
)


def open_checkpoint(preset, rename=None):
    """Opens a checkpoint of Hugging Face, Google, KerasHub or bilm-tf. No tensor is read yet.

    >>> open_checkpoint("hf://sentence-transformers/all-MiniLM-L6-v2").backbone_config
    {'vocabulary_size': 30522, 'num_layers': 6, 'num_heads': 12, 'hidden_dim': 384, ...}

    Args:
        preset: str or path: a directory; the prefix of a TensorFlow 1 checkpoint, such as
            `fine_tuned/model.ckpt-1000`; `hf://owner/name` or `hf://owner/name@revision` on the
            Hugging Face Hub, from where the files of one format are downloaded; or
            `kaggle://owner/model/keras/variation` of a BERT, RoBERTa, XLM-RoBERTa, DistilBERT or
            ALBERT of KerasHub.
        rename: dict of the beginning of the names of tensors -> another beginning, for a Hugging
            Face checkpoint of a module with names of its own: {"encoder.": "bert."}, or
            {"model.": ""}. The longest beginning counts. None for the names of transformers.

    Returns:
        `HuggingFaceCheckpoint`, `GoogleCheckpoint`, `KerasHubCheckpoint`, `ElmoCheckpoint` or
        `StaticCheckpoint`. None for a preset that KerasHub reads: a preset of our classes, of
        another architecture, or at an address that only KerasHub knows, such as `modelscope://`.

    Raises:
        FileNotFoundError: if there is nothing at `preset`, or a file is missing.
        ValueError: if there is no checkpoint of a known model at `preset`, or if it is damaged; if
            `rename` is for another format, or no tensor has a name that it changes.
    """
    checkpoint = _open_checkpoint(preset)
    if not rename:
        return checkpoint
    if not isinstance(checkpoint, HuggingFaceCheckpoint):
        raise ValueError(
            f"rename={rename!r} is for checkpoints of Hugging Face, not {preset}. Leave it out."
        )
    return HuggingFaceCheckpoint(checkpoint.path, rename)


def _open_checkpoint(preset):
    name = preset_name(preset)
    scheme, separator, handle = name.partition("://")
    if separator and scheme not in ("hf", "kaggle"):
        return None
    if scheme == "kaggle":
        path = _download_from_kaggle(handle)
        return None if path is None else KerasHubCheckpoint(path)
    path = _download(handle) if separator else Path(name)
    if not path.is_dir() and not path.with_name(path.name + ".index").is_file():
        if path.exists():
            remedy = ""
            if path.suffix == ".keras":
                remedy = f" keras.saving.load_model({str(path)!r}) opens the file."
            raise ValueError(
                f"{path} is a single file, wanted the directory of {_FORMATS}.{remedy}"
            )
        raise FileNotFoundError(
            f"{path} does not exist, wanted the directory of {_FORMATS}. To download a checkpoint "
            "from the Hugging Face Hub, pass 'hf://owner/name'."
        )
    with reading(path):
        return _open_directory(path) if path.is_dir() else GoogleCheckpoint(path)


def preset_name(preset):
    """The str of a preset, in which `~` is expanded, as the functions of KerasHub take it.

    Args:
        preset: as for `open_checkpoint`.

    Raises:
        ValueError: if `preset` is no str or path.
    """
    check_path("A checkpoint such as 'hf://owner/name'", preset)
    name = os.fspath(preset)
    return name if "://" in name else os.path.expanduser(name)


def is_keras_preset(path):
    """Whether a directory, `pathlib.Path`, is a preset of our classes or of KerasHub's."""
    config_path = path / "config.json"
    return config_path.is_file() and "registered_name" in read_json(config_path)


def _refuse_adapter(path):
    """Raises ValueError for a directory of PEFT, which holds changes to another checkpoint."""
    config_path = path / "adapter_config.json"
    if not config_path.is_file():
        return
    config = read_json(config_path)
    raise ValueError(
        f"{path} holds an adapter of PEFT ({config.get('peft_type')}), which changes the weights "
        f"of {config.get('base_model_name_or_path')}, and no model of its own is opened beside it. "
        "Merge both with PEFT: `model.merge_and_unload().save_pretrained(folder)`, and open the "
        "folder."
    )


def _open_directory(path):
    check_checksums(path)
    _refuse_adapter(path)
    if is_static(path):
        return StaticCheckpoint(path)
    config_path = path / "config.json"
    has_weights = any((path / name).is_file() for name, _ in WEIGHT_FILES)
    prefixes = sorted(file.with_suffix("") for file in path.glob("*.index"))
    if config_path.is_file():
        if is_keras_preset(path):
            return KerasHubCheckpoint(path) if is_keras_hub_preset(path) else None
        if not prefixes or has_weights:
            return HuggingFaceCheckpoint(path)
    elif has_weights and (path / "bert_config.json").is_file():
        return HuggingFaceCheckpoint(path)  # Files of 2018 have these names.
    elif is_elmo(path):
        return ElmoCheckpoint(path)
    if len(prefixes) > 1:
        names = {model.checkpoint for model in NAMED_MODELS}
        prefixes = [prefix for prefix in prefixes if prefix.name in names] or prefixes
    if len(prefixes) > 1:
        raise ValueError(
            f"{path} holds several checkpoints: {list_names(prefix.name for prefix in prefixes)}. "
            f"Pass the one you want, e.g. {str(prefixes[-1])!r}."
        )
    if not prefixes:
        raise FileNotFoundError(
            f"{path} holds no checkpoint: found {list_directory(path)}, wanted {_FORMATS}. Pass "
            "the directory that directly holds the files."
        )
    return GoogleCheckpoint(prefixes[0])


def _download_from_kaggle(handle):
    """Downloads a preset of KerasHub's model of a kind in `MODEL_TYPES`, and returns its path.

    For another model it downloads config.json only, and returns None.
    """
    import kagglehub

    config_path = Path(kagglehub.model_download(handle, "config.json"))
    if not is_keras_hub_preset(config_path.parent):
        return None
    path = Path(kagglehub.model_download(handle))
    return path if is_keras_hub_preset(path) else None  # Now task.json is there, too.


def _download(handle):
    """Downloads the files of one format. Files in the cache are not downloaded again."""
    from huggingface_hub import snapshot_download

    repo_id, _, revision = handle.partition("@")
    if not re.fullmatch(r"[^/]+(/[^/]+)?", repo_id):
        raise ValueError(f"Wanted 'hf://owner/name' or 'hf://owner/name@revision', got {handle!r}.")

    def download(patterns):
        return Path(
            snapshot_download(repo_id, revision=revision or None, allow_patterns=list(patterns))
        )

    path = download(_SMALL_FILES)
    if (path / "modules.json").is_file():
        path = download(_MODULE_WEIGHTS)
        if is_static(path) and any(path.glob("*/model.safetensors")):
            return path
    if is_keras_preset(path):
        return download(_KERAS_HUB_FILES) if is_keras_hub_preset(path) else path
    for patterns in _WEIGHT_PATTERNS:
        path = download(patterns)
        if any(file.match(pattern) for file in path.iterdir() for pattern in patterns):
            break
    return path
