"""Reads the modules of a directory of sentence-transformers."""

from pathlib import PurePosixPath

import keras

from keras_bert_suite.checkpoints.model_types.config_values import ConfigValues, read_json
from keras_bert_suite.files.messages import list_names, reading

#: The poolings that sentence-transformers has, too, in the order in which it concatenates them: our
#: name -> (its name, the flag by which every version knows it).
POOLINGS = {
    "cls": ("cls", "pooling_mode_cls_token"),
    "max": ("max", "pooling_mode_max_tokens"),
    "mean": ("mean", "pooling_mode_mean_tokens"),
    "weighted_mean": ("weightedmean", "pooling_mode_weightedmean_tokens"),
    "last": ("lasttoken", "pooling_mode_lasttoken"),
}

#: The module of static vectors, in the place of Transformer and Pooling.
STATIC_MODULE = "StaticEmbedding"

#: A pooling that we do not have. Its direction is the direction of the mean.
SQUARE_ROOT = ("mean_sqrt_len_tokens", "pooling_mode_mean_sqrt_len_tokens")

#: The activations of a Dense module, by the last part of its name -> Keras' name.
ACTIVATIONS = {
    "Identity": "linear",
    "Tanh": "tanh",
    "ReLU": "relu",
    "GELU": "gelu",
    "Sigmoid": "sigmoid",
    "SiLU": "silu",
}


def embedder_arguments(checkpoint):
    """The arguments of `TextEmbedder` that a checkpoint names.

    Args:
        checkpoint: a checkpoint from `open_checkpoint`.

    Returns:
        dict of `pooling`, `normalize` and, if there are any, `prompts`, `dense_layers` and
        `dimensions`, and `include_prompt` if a pooling leaves prompts out. If the checkpoint is not
        one of sentence-transformers, its `embedder_settings`.

    Raises:
        ValueError: if a module, a pooling or a setting has no counterpart here.
    """
    directory = checkpoint.path
    if not checkpoint.has_modules:
        return dict(checkpoint.embedder_settings)
    modules = read_modules(directory)
    kinds, dense = [kind for kind, _ in modules], find_dense(directory)
    is_static = kinds[:1] == [STATIC_MODULE]
    encoder = [STATIC_MODULE] if is_static else ["Transformer", "Pooling"]
    wanted = [*encoder, *["Dense"] * len(dense)]
    if kinds not in (wanted, [*wanted, "Normalize"]):
        raise ValueError(
            f"{directory / 'modules.json'} has the modules {', '.join(kinds)}, wanted "
            f"{', '.join(encoder)}, and perhaps Dense and Normalize. Build a TextEmbedder on the "
            "encoder alone."
        )
    if is_static:
        pooling = {"pooling": "mean"}
    else:
        _check_case(checkpoint, directory / "sentence_bert_config.json")
        pooling = _read_pooling(modules[1][1] / "config.json")
    return {
        **pooling,
        "normalize": kinds[-1] == "Normalize",
        **_read_settings(directory),
        **({"dense_layers": list(map(_read_dense, range(len(dense)), dense))} if dense else {}),
    }


def find_dense(directory):
    """list of `pathlib.Path`, the folders of the Dense modules. Raises: as `read_modules`."""
    return [folder for kind, folder in read_modules(directory) if kind == "Dense"]


def read_modules(directory):
    """list of (the name of a class, the `pathlib.Path` of its folder), from modules.json."""
    path = directory / "modules.json"
    modules = read_json(path, list)
    with reading(path):
        modules = sorted(modules, key=lambda module: module["idx"])
        found = [(m["type"].rpartition(".")[2], m["path"]) for m in modules]
        strangers = [folder for _, folder in found if not _is_inside(folder)]
        if strangers:
            raise ValueError(f"modules outside of its directory: {list_names(strangers)}")
        return [(kind, directory / folder) for kind, folder in found]


def _is_inside(path):
    """Whether a path of modules.json stays in the directory of the file."""
    # A backslash separates folders on Windows.
    path = PurePosixPath(path.replace("\\", "/"))
    return not path.is_absolute() and ".." not in path.parts and ":" not in str(path)


def _read_pooling(path):
    """The arguments of a `TextEmbedder` that the config.json of a Pooling names."""
    config, known = ConfigValues(path), (*POOLINGS.values(), SQUARE_ROOT)
    modes = config.get("pooling_mode")
    if modes is None:
        modes = [name for name, flag in known if config.get(flag)] or ["mean"]
    modes = [modes] if isinstance(modes, str) else list(modes)
    ours = [name for name, (theirs, _) in POOLINGS.items() if theirs in modes]
    if len(ours) != len(modes):
        raise ValueError(
            f"{path} asks for the pooling {' + '.join(map(str, modes))}, wanted "
            f"{', '.join(theirs for theirs, _ in POOLINGS.values())}. Pass a layer of your own as "
            "`pooling` to a TextEmbedder."
        )
    include_prompt = config.read("flag", "include_prompt", True)
    return {
        "pooling": ours if len(ours) > 1 else ours[0],
        **({} if include_prompt else {"include_prompt": False}),
    }


def _read_dense(number, folder):
    """The layer of a Dense module. `HuggingFaceCheckpoint` has its weights under this name."""
    config = ConfigValues(folder / "config.json")
    fields = ("module_input_name", "module_output_name")
    config.check_dials((field, ("sentence_embedding",)) for field in fields)
    activation = str(config.get("activation_function", "Tanh")).rpartition(".")[2]
    if activation not in ACTIVATIONS:
        raise ValueError(
            f"'activation_function' in {config.path} is {activation}, wanted "
            f"{', '.join(ACTIVATIONS)}. Build a TextEmbedder on the encoder alone."
        )
    return keras.layers.Dense(
        config.read("size", "out_features"),
        activation=ACTIVATIONS[activation],
        use_bias=config.read("flag", "bias", True),
        name=f"sentence_dense_{number}",
    )


def _read_settings(directory):
    """The arguments `dimensions` and `prompts` of a `TextEmbedder`, each if there is one."""
    path = directory / "config_sentence_transformers.json"
    settings = ConfigValues(path) if path.is_file() else {}
    dimensions = {}
    if settings.get("truncate_dim") is not None:
        dimensions["dimensions"] = settings.read("size", "truncate_dim")
    prompts = {name: text for name, text in (settings.get("prompts") or {}).items() if text}
    default = settings.get("default_prompt_name")
    if default in prompts:
        raise ValueError(
            f"{path} has every text begin with the prompt {prompts[default]!r}, which a "
            "TextEmbedder does not add. Set 'default_prompt_name' to null, and put the prompt "
            "before your texts."
        )
    return {**dimensions, **({"prompts": prompts} if prompts else {})}


def _check_case(checkpoint, path):
    settings = read_json(path) if path.is_file() else {}
    # A `WordPieceTokenizer` is read with this setting.
    if settings.get("do_lower_case") and not checkpoint.tokenizer_config.get("lowercase"):
        raise ValueError(
            f"{path} has texts lowercased before a tokenizer that keeps case, which a TextEmbedder "
            "does not do. Set 'do_lower_case' to false, and lowercase your texts."
        )
