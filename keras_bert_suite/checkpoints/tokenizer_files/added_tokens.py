"""Reads the added tokens of a checkpoint of Hugging Face from the four files that may have them."""

from keras_bert_suite.checkpoints.model_types.config_values import read_json
from keras_bert_suite.checkpoints.tokenizer_files.settings import CONFIG_FILE, FAST_FILE
from keras_bert_suite.files.messages import reading

ADDED_FILE, SPECIAL_FILE = "added_tokens.json", "special_tokens_map.json"

#: The names of special tokens that are added tokens, too.
_NAMED = ("bos_token", "eos_token", "additional_special_tokens", "extra_special_tokens")
_FLAGS = ("special", "single_word", "lstrip", "rstrip", "normalized")


def read_added_tokens(directory, config, fast):
    """The tokens that are found in a text before it is split, special tokens among them.

    transformers 4 writes them to tokenizer_config.json (`added_tokens_decoder`), before version
    4.34 to added_tokens.json; transformers 5 to tokenizer.json. Tokens that are named alone, as in
    special_tokens_map.json, are special.

    `config` and `fast` are tokenizer_config.json and tokenizer.json. The result is a dict of
    content -> dict with "content", "id", int or None, and the flags of the Rust library, bool; in
    the order of their ids. Files that contradict each other are a ValueError.
    """
    found = {}
    with reading(directory / CONFIG_FILE):
        decoder = (config.get("added_tokens_decoder") or {}).items()
        tokens = [_describe({**token, "id": int(index)}) for index, token in decoder]
    _put(found, tokens, directory, CONFIG_FILE)
    with reading(directory / FAST_FILE):
        tokens = [_describe(token) for token in fast.get("added_tokens") or ()]
    _put(found, tokens, directory, FAST_FILE)
    names, special = _read_if_there(directory / ADDED_FILE), _list_named(directory, config)
    contents = {token["content"] for token in special}
    for content, index in names.items():
        flags = found.get(content, {"special": content in contents})
        token = _describe({**flags, "content": content, "id": index})
        _put(found, [token], directory, ADDED_FILE)
    for token in special:
        found.setdefault(token["content"], _describe({"normalized": False, **token}))
    last = len(found) + max((t["id"] or 0 for t in found.values()), default=0)
    tokens = sorted(found.values(), key=lambda t: last if t["id"] is None else t["id"])
    return {token["content"]: token for token in tokens}


def describe_for_transformers(tokenizer):
    """The field `added_tokens_decoder` of a tokenizer_config.json, dict of id -> dict."""
    flags = {token.content: token.flags() for token in tokenizer.added_tokens}
    return {str(tokenizer.token_to_id(content)): token for content, token in flags.items()}


def _put(found, tokens, directory, file):
    for new in tokens:
        old = found.setdefault(new["content"], new)
        if old == new:
            continue
        fields = [name for name in new if new[name] != old[name]]
        raise ValueError(
            f"The files in {directory} contradict each other about the added token "
            f"{new['content']!r}: {file} has {', '.join(f'{n} {new[n]!r}' for n in fields)}, "
            f"another file {', '.join(f'{n} {old[n]!r}' for n in fields)}. Remove one of the two."
        )


def _describe(token):
    special = bool(token.get("special", False))
    usual = {"special": special, "normalized": not special}
    flags = {name: bool(token.get(name, usual.get(name, False))) for name in _FLAGS}
    return {"content": str(token["content"]), "id": token.get("id"), **flags}


def _list_named(directory, config):
    """The tokens that the files name as special, list of dict."""
    tokens = []
    for settings in (read_special_map(directory), config):
        for name in _NAMED:
            value = settings.get(name) or ()
            value = value.values() if isinstance(value, dict) and "content" not in value else value
            for token in [value] if isinstance(value, str | dict) else value:
                token = token if isinstance(token, dict) else {"content": token}
                tokens.append({**token, "special": True})
    return tokens


def read_special_map(directory):
    """dict of special_tokens_map.json; empty if there is no such file."""
    return _read_if_there(directory / SPECIAL_FILE)


def _read_if_there(path):
    return read_json(path) if path.is_file() else {}
