"""Reads the modules of a directory of sentence-transformers, and writes an embedder as one."""

from pathlib import PurePosixPath

import keras

from keras_bert_suite.annotations import PathLike
from keras_bert_suite.checkpoints.hugging_face.writer import save_hugging_face
from keras_bert_suite.checkpoints.model_types.config_values import read_json
from keras_bert_suite.files.atomic_directory import atomic_directory
from keras_bert_suite.files.atomic_file import write_json
from keras_bert_suite.files.messages import list_names, reading

#: The poolings that sentence-transformers has, too: our name -> its name.
POOLINGS = {"mean": "mean", "cls": "cls", "max": "max", "last": "lasttoken"}

#: The flags by which every version of sentence-transformers knows a pooling -> its name.
_FLAGS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
}
_LATER_FLAGS = {
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}


def embedder_arguments(checkpoint):
    """The arguments of `TextEmbedder` that a checkpoint names.

    Args:
        checkpoint: a checkpoint from `open_checkpoint`.

    Returns:
        dict of `pooling`, `normalize` and, if there are any, `prompts`. It is empty if the
        checkpoint is not one of sentence-transformers.

    Raises:
        ValueError: if a module, a pooling or a setting has no counterpart here.
    """
    directory = checkpoint.path
    if not checkpoint.has_modules:
        return {}
    modules = _read_modules(directory)
    kinds = [kind for kind, _ in modules]
    if kinds not in (["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"]):
        raise ValueError(
            f"{directory / 'modules.json'} has the modules {', '.join(kinds)}, wanted Transformer, "
            "Pooling and perhaps Normalize. Build a TextEmbedder on the encoder alone."
        )
    prompts = _read_prompts(directory)
    _check_case(checkpoint, directory / "sentence_bert_config.json")
    return {
        "pooling": _read_pooling(modules[1][1] / "config.json"),
        "normalize": kinds[-1] == "Normalize",
        **({"prompts": prompts} if prompts else {}),
    }


def _read_modules(directory):
    """list of (the name of a class, the `pathlib.Path` of its folder), from modules.json.

    Raises:
        ValueError: if the file is damaged.
    """
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
    config = read_json(path)
    modes, flags = config.get("pooling_mode"), {**_FLAGS, **_LATER_FLAGS}
    if modes is None:
        modes = [name for flag, name in flags.items() if config.get(flag)] or ["mean"]
    modes = [modes] if isinstance(modes, str) else list(modes)
    ours = {theirs: name for name, theirs in POOLINGS.items()}
    if len(modes) != 1 or modes[0] not in ours:
        raise ValueError(
            f"{path} asks for the pooling {' + '.join(map(str, modes))}, wanted one of "
            f"{', '.join(ours)}. Pass a layer of your own as `pooling` to a TextEmbedder."
        )
    return ours[modes[0]]


def _read_prompts(directory):
    """dict of the name of each prompt -> str, without those that are empty."""
    path = directory / "config_sentence_transformers.json"
    settings = read_json(path) if path.is_file() else {}
    width = settings.get("truncate_dim")
    if width is not None:
        raise ValueError(
            f"{path} has the first {width} numbers of each vector kept ('truncate_dim'), which a "
            "TextEmbedder does not do. Set it to null, and cut the vectors: "
            f"`embedder.predict(texts)[:, :{width}]`."
        )
    prompts = {name: text for name, text in (settings.get("prompts") or {}).items() if text}
    default = settings.get("default_prompt_name")
    if default in prompts:
        raise ValueError(
            f"{path} has every text begin with the prompt {prompts[default]!r}, which a "
            "TextEmbedder does not add. Set 'default_prompt_name' to null, and put the prompt "
            "before your texts."
        )
    return prompts


def _check_case(checkpoint, path):
    settings = read_json(path) if path.is_file() else {}
    # A `WordPieceTokenizer` is read with this setting.
    if settings.get("do_lower_case") and not checkpoint.tokenizer_config.get("lowercase"):
        raise ValueError(
            f"{path} has texts lowercased before a tokenizer that keeps case, which a TextEmbedder "
            "does not do. Set 'do_lower_case' to false, and lowercase your texts."
        )


def save_sentence_transformers(embedder: keras.Model, path: PathLike) -> None:
    """Writes a directory that sentence-transformers opens, with the same vectors.

    The directory holds the encoder as `save_hugging_face` writes it, modules.json,
    sentence_bert_config.json, config_sentence_transformers.json and the folder of the pooling. If
    there is an error, no directory is written.

    Args:
        embedder: `TextEmbedder` on a `BertBackbone` or `RobertaBackbone`, with a `SegmentPacker`.
        path: str or path of the directory, which must not exist.

    Raises:
        FileExistsError: if `path` exists.
        OSError: if the disk is full.
        ValueError: if the format cannot hold the embedder, its pooling or its preprocessor.
    """
    packer, pooling = embedder.preprocessor, embedder.pooling_name
    if pooling not in POOLINGS:
        raise ValueError(
            f"sentence-transformers has no module for {type(embedder.pooling).__name__}, wanted "
            f"one of the poolings {', '.join(POOLINGS)}. Use `save` or `save_to_preset`."
        )
    truncation = getattr(packer, "truncation", None)
    if truncation is None:
        raise ValueError(
            "A directory of sentence-transformers holds a tokenizer, got an embedder with the "
            f"preprocessor {type(packer).__name__}. Set `preprocessor` to a SegmentPacker."
        )
    if truncation in ("tail", "head_tail"):
        raise ValueError(
            "sentence-transformers keeps the beginning of a long text, got a SegmentPacker with "
            f"truncation={truncation!r}. Use `save` or `save_to_preset`, or train with "
            "truncation='head'."
        )
    width = embedder.backbone.hidden_dim
    modules = [("", "Transformer"), ("1_Pooling", "Pooling")]
    if embedder.normalize:
        modules.append(("2_Normalize", "Normalize"))
    with atomic_directory(path) as directory:
        encoder = directory / "encoder"
        length = packer.sequence_length
        save_hugging_face(embedder.backbone, encoder, packer.tokenizer, sequence_length=length)
        for file in encoder.iterdir():
            file.rename(directory / file.name)
        encoder.rmdir()
        for folder, _ in modules[1:]:
            (directory / folder).mkdir()
        write_json(
            directory / "modules.json",
            [
                {
                    "idx": number,
                    "name": str(number),
                    "path": folder,
                    "type": f"sentence_transformers.models.{kind}",
                }
                for number, (folder, kind) in enumerate(modules)
            ],
        )
        write_json(
            directory / "sentence_bert_config.json",
            {"max_seq_length": packer.sequence_length, "do_lower_case": False},
        )
        write_json(
            directory / "config_sentence_transformers.json",
            {
                "prompts": dict(embedder.prompts),
                "default_prompt_name": None,
                "similarity_fn_name": "cosine",
            },
        )
        write_json(
            directory / "1_Pooling" / "config.json",
            {
                "word_embedding_dimension": width,
                **{flag: name == POOLINGS[pooling] for flag, name in _FLAGS.items()},
                # Versions before 2.3 do not know this flag.
                **({"pooling_mode_lasttoken": True} if pooling == "last" else {}),
            },
        )
