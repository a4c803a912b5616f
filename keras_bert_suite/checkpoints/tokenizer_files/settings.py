"""Reads the settings that Hugging Face's tokenizers of every kind have."""

import warnings

from keras_bert_suite.checkpoints.model_types.config_values import read_json
from keras_bert_suite.files.messages import reading, shorten

CONFIG_FILE, FAST_FILE = "tokenizer_config.json", "tokenizer.json"

#: Hugging Face's classes that split text as tokenizer.json says.
FAST_CLASSES = ("TokenizersBackend", "PreTrainedTokenizerFast")


def name_special_tokens(unknown, start, end, pad, mask):
    """dict of Hugging Face's name of a special token -> (our name, the usual token)."""
    return {
        "unk_token": ("unknown_token", unknown),
        "cls_token": ("start_token", start),
        "sep_token": ("end_token", end),
        "pad_token": ("pad_token", pad),
        "mask_token": ("mask_token", mask),
    }


def name_missing(directory, wanted):
    """The `FileNotFoundError` for a folder, `pathlib.Path`, without the files that are wanted."""
    return FileNotFoundError(
        f"{directory} has no {wanted}. Download the tokenizer from the source of the weights, pass "
        "a tokenizer of your own, or correct a wrong model_type in config.json."
    )


def read_ids(fast, path, control=None):
    """dict of token -> id of a tokenizer.json at `path`, with the added tokens.

    `control` has the tokens that are taken of the added ones, None for all of them.
    """
    with reading(path):
        ids = dict(fast["model"]["vocab"])
        added = {token["content"]: token["id"] for token in fast.get("added_tokens") or ()}
        ids.update({t: i for t, i in added.items() if control is None or t in control})
        return ids


def read_settings(directory):
    """(dict of tokenizer_config.json, dict of tokenizer.json). An absent file is an empty dict.

    The class of the tokenizer may be in config.json.
    """
    files = directory / CONFIG_FILE, directory / FAST_FILE
    config, fast = (read_json(file) if file.is_file() else {} for file in files)
    model = directory / "config.json"
    named = read_json(model).get("tokenizer_class") if model.is_file() else None
    if named is not None:
        config.setdefault("tokenizer_class", named)
    return config, fast


def check_sides(directory, owner, config, fast, padding_side="right"):
    """Refuses rows that are padded at another side. Warns of texts that are cut at their beginning.

    `padding_side` is that of the class of the tokenizer, which a file need not name.
    """

    def find(name, usual):
        part, _, _ = name.partition("_")
        own = (fast.get(part) or {}).get("direction", usual)
        return config.get(name) or own.lower()

    side = find("padding_side", padding_side)
    if side != padding_side:
        refuse(directory, owner, CONFIG_FILE, "padding_side", side, padding_side)
    if find("truncation_side", "right") == "left":
        warnings.warn(
            f"truncation_side of the tokenizer in {directory} is 'left': transformers cuts the "
            "beginning of long texts, and a SegmentPacker their end. `SegmentPacker(..., "
            "truncation='head_tail', head_length=0)` keeps the end.",
            stacklevel=5,
        )


def refuse(directory, owner, file, name, got, wanted):
    """Raises a ValueError that names a setting of a file, its value and the wanted value."""
    raise ValueError(
        f"The tokenizer in {directory} is not {owner}'s, and its token ids would differ: "
        f"{name} in {file} is {shorten(repr(got))}, wanted {wanted!r}. Pass a "
        "tokenizer of your own."
    )


def read_special_tokens(config, table):
    """dict of our name -> token, of special tokens that differ from the table's."""
    differing = {}
    for theirs, (ours, usual) in table.items():
        token = config.get(theirs) or usual
        token = token.get("content") if isinstance(token, dict) else token
        if token != usual:
            differing[ours] = token
    return differing
