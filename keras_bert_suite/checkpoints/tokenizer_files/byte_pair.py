"""Reads the byte-pair tokenizer of a checkpoint from its files."""

from keras_bert_suite.checkpoints.tokenizer_files.settings import (
    CONFIG_FILE,
    FAST_FILE,
    check_settings,
    name_missing,
    name_special_tokens,
    read_ids,
    read_settings,
    read_special_tokens,
)
from keras_bert_suite.checkpoints.tokenizer_files.word_piece import SPECIAL_TOKENS
from keras_bert_suite.files.messages import reading

#: Hugging Face's classes that split text as RoBERTa does, or as tokenizer.json says. transformers 4
#: has a class for Longformer, too.
_CLASSES = (
    *("TokenizersBackend", "PreTrainedTokenizerFast"),
    *("LongformerTokenizerFast", "LongformerTokenizer"),
    *("RobertaTokenizerFast", "RobertaTokenizer"),
)

#: Settings of the model in tokenizer.json, each with the values that we support.
_MODEL_SETTINGS = {
    "dropout": (None, 0.0),
    "ignore_merges": (None, False),
    "byte_fallback": (None, False),
    "continuing_subword_prefix": (None, ""),
    "end_of_word_suffix": (None, ""),
}

_SPECIAL_TOKENS = name_special_tokens("<unk>", "<s>", "</s>", "<pad>", "<mask>")


def read_hugging_face_byte_pairs(directory):
    """The tokenizer of a Hugging Face checkpoint of RoBERTa.

    Args:
        directory: `pathlib.Path`.

    Returns:
        dict of arguments of `BytePairTokenizer`: "vocabulary" and "merges", the paths of vocab.json
        and merges.txt, str, or if these files are absent the tokens and merges of tokenizer.json, a
        dict and a list; "add_prefix_space", bool, and special tokens, str, if they differ from
        RoBERTa's.

    Raises:
        FileNotFoundError: if there are neither the two files nor a tokenizer.json.
        ValueError: if the tokenizer does not split text as RoBERTa's does.
    """
    files = directory / "vocab.json", directory / "merges.txt"
    config, fast = read_settings(directory)
    has_files = all(file.is_file() for file in files)
    if not has_files and not fast:
        raise name_missing(directory, f"vocab.json with merges.txt and no {FAST_FILE}")
    splitter = fast.get("pre_tokenizer") or {}
    normalizer = (FAST_FILE, "normalizer", fast.get("normalizer"), (None,))
    check_settings(directory, "RoBERTa", (*_list_settings(config, fast), normalizer))
    if has_files:
        arguments = {"vocabulary": str(files[0]), "merges": str(files[1])}
    else:
        arguments = _read_fast(fast, directory / FAST_FILE)
    add_prefix_space = config.get("add_prefix_space", splitter.get("add_prefix_space", False))
    if add_prefix_space:
        arguments["add_prefix_space"] = True
    return {**arguments, **read_special_tokens(config, _SPECIAL_TOKENS)}


def read_modern_bert_tokenizer(directory):
    """The tokenizer of a Hugging Face checkpoint of ModernBERT, from its tokenizer.json.

    Args:
        directory: `pathlib.Path`.

    Returns:
        dict of arguments of `ModernBertTokenizer`: "vocabulary", a dict; "merges", a list;
        "normalization", str or None; "added_tokens", list of str; "add_prefix_space", bool; and
        special tokens, str, if they differ from ModernBERT's.

    Raises:
        FileNotFoundError: if there is no tokenizer.json.
        ValueError: if the tokenizer does not split text as ModernBERT's does.
    """
    config, fast = read_settings(directory)
    path = directory / FAST_FILE
    if not fast:
        raise name_missing(directory, FAST_FILE)
    splitter = fast.get("pre_tokenizer") or {}
    normalizer = fast.get("normalizer") or {}
    added = [token for token in fast.get("added_tokens") or () if not token.get("special")]
    # An added token that is looked for before the text is composed may be found elsewhere.
    normalized = (True,) if normalizer else (True, False)
    settings = (
        *_list_settings(config, fast),
        (FAST_FILE, "normalizer", normalizer.get("type"), (None, "NFC")),
        *(
            (FAST_FILE, f"{name} of {token.get('content')!r}", token.get(name, False), values)
            for token in added
            for name, values in (
                *((name, (False,)) for name in ("single_word", "lstrip", "rstrip")),
                ("normalized", normalized),
            )
        ),
    )
    check_settings(directory, "ModernBERT", settings)
    add_prefix_space = splitter.get("add_prefix_space", False)
    return {
        **_read_fast(fast, path),
        "normalization": normalizer.get("type"),
        "added_tokens": [token["content"] for token in added],
        "add_prefix_space": add_prefix_space,
        **read_special_tokens(config, SPECIAL_TOKENS),
    }


def _list_settings(config, fast):
    """The settings that both kinds share, for `check_settings`. `fast` may be empty."""
    model, splitter = fast.get("model") or {}, fast.get("pre_tokenizer") or {}
    return (
        (CONFIG_FILE, "tokenizer_class", config.get("tokenizer_class"), (None, *_CLASSES)),
        (FAST_FILE, "model type", model.get("type"), ("BPE",) if fast else (None,)),
        *((FAST_FILE, name, model.get(name), values) for name, values in _MODEL_SETTINGS.items()),
        (FAST_FILE, "pre_tokenizer", splitter.get("type"), ("ByteLevel",) if fast else (None,)),
        (FAST_FILE, "use_regex", splitter.get("use_regex"), (None, True)),
    )


def _read_fast(fast, path):
    with reading(path):
        merges = list(fast["model"]["merges"])
    return {"vocabulary": read_ids(fast, path), "merges": merges}
