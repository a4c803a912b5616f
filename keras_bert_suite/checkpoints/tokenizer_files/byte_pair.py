"""Reads the byte-pair tokenizer of a checkpoint from its files."""

from keras_bert_suite.checkpoints.tokenizer_files.added_tokens import (
    describe_added_tokens,
    read_added_tokens,
    read_special_map,
)
from keras_bert_suite.checkpoints.tokenizer_files.fast_settings import (
    check_fast_settings,
    check_template,
    list_steps,
)
from keras_bert_suite.checkpoints.tokenizer_files.settings import (
    CONFIG_FILE,
    FAST_CLASSES,
    FAST_FILE,
    check_settings,
    check_sides,
    follows_fast,
    name_missing,
    name_special_tokens,
    read_ids,
    read_settings,
    read_special_tokens,
    refuse,
)
from keras_bert_suite.checkpoints.tokenizer_files.word_piece import SPECIAL_TOKENS
from keras_bert_suite.files.messages import reading

#: Hugging Face's classes that split text as RoBERTa does, or as tokenizer.json says. transformers 4
#: has a class for Longformer, too.
_CLASSES = (
    *FAST_CLASSES,
    *("LongformerTokenizerFast", "LongformerTokenizer"),
    *("RobertaTokenizerFast", "RobertaTokenizer"),
)

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
    splitter = {key: v for step in list_steps(fast.get("pre_tokenizer")) for key, v in step.items()}
    special = read_special_tokens(config, _SPECIAL_TOKENS)
    added = _check(
        directory, "RoBERTa", config, fast, {**dict(_SPECIAL_TOKENS.values()), **special}, 2
    )
    if has_files:
        arguments = {"vocabulary": str(files[0]), "merges": str(files[1])}
    else:
        arguments = _read_fast(fast, directory / FAST_FILE)
    if _read_prefix_space(directory, config, splitter):
        arguments["add_prefix_space"] = True
    return {**arguments, **special, **added}


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
    splitter = {key: v for step in list_steps(fast.get("pre_tokenizer")) for key, v in step.items()}
    special = read_special_tokens(config, SPECIAL_TOKENS)
    added = _check(
        directory, "ModernBERT", config, fast, {**dict(SPECIAL_TOKENS.values()), **special}, 1
    )
    return {
        **_read_fast(fast, path),
        "normalization": next((s["type"] for s in list_steps(fast.get("normalizer"))), None),
        # transformers reads this tokenizer from tokenizer.json alone.
        "add_prefix_space": splitter.get("add_prefix_space", False),
        **special,
        **added,
    }


def _check(directory, owner, config, fast, tokens, num_separators):
    """Checks the settings that both kinds share.

    Returns:
        dict of arguments: "added_tokens", list of dict, if there are some; "mask_takes_space",
        False, if the files say so.
    """
    split = config.get("split_special_tokens")
    settings = (
        (CONFIG_FILE, "tokenizer_class", config.get("tokenizer_class"), (None, *_CLASSES)),
        (CONFIG_FILE, "split_special_tokens", split, (None, False)),
    )
    check_settings(directory, owner, settings)
    check_sides(directory, owner, config, fast)
    check_fast_settings(directory, owner, fast)
    edges = tokens["start_token"], tokens["end_token"]
    check_template(directory, owner, fast, edges, num_separators, False)
    if config.get("tokenizer_class") in FAST_CLASSES and fast:
        steps = [step["type"] for step in list_steps(fast.get("post_processor"))]
        if not {*steps} - {"ByteLevel"}:
            refuse(directory, owner, FAST_FILE, "post_processor", steps, "TemplateProcessing")
    found = read_added_tokens(directory, config, fast)
    named = config.get("mask_token"), read_special_map(directory).get("mask_token")
    masks = found.get(tokens["mask_token"]), *named
    mask = next((mask for mask in masks if isinstance(mask, dict)), {"lstrip": True})
    takes_space = mask.get("lstrip", False)
    added = describe_added_tokens(found, tokens.values())
    arguments = {"added_tokens": added} if added else {}
    return arguments if takes_space else {**arguments, "mask_takes_space": False}


def _read_prefix_space(directory, config, splitter):
    """Whether a text that begins without a space gets one. `follows_fast` says who decides."""
    got, own = config.get("add_prefix_space"), splitter.get("add_prefix_space", False)
    if not follows_fast(directory, config, "add_prefix_space"):
        return bool(got)
    setting = (CONFIG_FILE, "add_prefix_space", got, (None, own))
    check_settings(directory, "RoBERTa", (setting,))
    return own


def _read_fast(fast, path):
    with reading(path):
        merges = list(fast["model"]["merges"])
    return {"vocabulary": read_ids(fast, path), "merges": merges}
