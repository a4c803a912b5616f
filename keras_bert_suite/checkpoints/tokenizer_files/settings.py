"""Reads the settings that Hugging Face's tokenizers of every kind have."""

from keras_bert_suite.checkpoints.model_types.config_values import read_json
from keras_bert_suite.files.messages import list_names, shorten

CONFIG_FILE, FAST_FILE = "tokenizer_config.json", "tokenizer.json"


#: The files of tokenizers of every kind, tokenizer.json aside.
_FILES = ("vocab.txt", "vocab.json", "merges.txt", "spiece.model", "sentencepiece.bpe.model")


def name_missing(directory, wanted, own=()):
    """The error for a folder without the files of a tokenizer. It names those of another kind.

    Args:
        directory: `pathlib.Path` of the checkpoint.
        wanted: str, the files.
        own: names of files of this kind of tokenizer, which may be there in part.

    Returns:
        `FileNotFoundError`.
    """
    found = [name for name in _FILES if name not in own and (directory / name).is_file()]
    if not found:
        return FileNotFoundError(
            f"{directory} has no {wanted}. Download the tokenizer from the source of the weights, "
            "or pass a tokenizer of your own."
        )
    return FileNotFoundError(
        f"{directory} has no {wanted}, but {list_names(found)}, of another kind of tokenizer. If "
        "the model is of that kind too, correct the model_type in config.json. Else download the "
        "tokenizer from the source of the weights, or pass a tokenizer of your own."
    )


def read_settings(directory):
    """Reads the two files of settings.

    Args:
        directory: `pathlib.Path` of the checkpoint.

    Returns:
        (dict of tokenizer_config.json, dict of tokenizer.json). An absent file is an empty dict.
    """
    files = directory / CONFIG_FILE, directory / FAST_FILE
    config, fast = (read_json(file) if file.is_file() else {} for file in files)
    return config, fast


def check_settings(directory, owner, settings):
    """Checks that a tokenizer splits text as ours does.

    Args:
        directory: `pathlib.Path` of the checkpoint.
        owner: str, the model whose tokenizer is wanted, such as "BERT".
        settings: iterable of (name of a file, name of a setting, its value, tuple of the values
            that we support).

    Raises:
        ValueError: if a setting has another value.
    """
    for file, name, got, wanted in settings:
        if got not in wanted:
            raise ValueError(
                f"The tokenizer in {directory} is not {owner}'s, and its token ids would differ: "
                f"{name} in {file} is {shorten(repr(got))}, wanted {wanted[-1]!r}. Pass a "
                "tokenizer of your own, or correct a wrong model_type in config.json."
            )


def read_special_tokens(config, table):
    """Reads the special tokens that differ from the usual ones.

    Args:
        config: dict of tokenizer_config.json.
        table: dict of Hugging Face's name of a special token -> (our name, usual token).

    Returns:
        dict of our name -> token.
    """
    differing = {}
    for theirs, (ours, usual) in table.items():
        token = config.get(theirs) or usual
        token = token.get("content") if isinstance(token, dict) else token
        if not isinstance(token, str) or not token:
            raise ValueError(
                f"{theirs!r} in {CONFIG_FILE} must be a piece, got {shorten(repr(token))}. "
                "Download the file again."
            )
        if token != usual:
            differing[ours] = token
    return differing
