"""The understood settings of a tokenizer.json. Everything else in it is refused by name.

A setting that the library `tokenizers` has, and that is not here, changes token ids.
"""

from keras_bert_suite.checkpoints.tokenizer_files.settings import FAST_FILE, refuse

#: Any value. Another place reads it.
ANY = None

_BERT_NORMALIZER = {
    "type": ("BertNormalizer",),
    "clean_text": (True,),
    "handle_chinese_chars": ANY,
    "strip_accents": ANY,
    "lowercase": ANY,
}
_BYTE_LEVEL = {
    "type": ("ByteLevel",),
    "add_prefix_space": ANY,
    # Offsets only.
    "trim_offsets": ANY,
    "use_regex": (True,),
}
_BYTE_PAIRS = {
    "type": ("BPE",),
    "dropout": (None, 0.0),
    "unk_token": ANY,
    "continuing_subword_prefix": (None, ""),
    "end_of_word_suffix": (None, ""),
    # Bytes are never unknown.
    "fuse_unk": ANY,
    "byte_fallback": (False,),
    "ignore_merges": (False,),
    "vocab": ANY,
    "merges": ANY,
}
#: Steps of the normalizers that transformers writes for models of SentencePiece.
_PRECOMPILED = {"type": ("Precompiled",), "precompiled_charsmap": ANY}
_JOINED_SPACES = {"type": ("Replace",), "pattern": ({"Regex": " {2,}"},), "content": (" ", "▁")}
_STRIPPED = {"type": ("Strip",), "strip_left": ANY, "strip_right": ANY}
_QUOTES = {"type": ("Replace",), "pattern": ({"String": "``"}, {"String": "''"}), "content": ('"',)}
_SPACE_SPLIT = {"type": ("WhitespaceSplit",)}
_META_SPACE = {
    "type": ("Metaspace",),
    "replacement": ("▁",),
    "str_rep": ("▁",),
    "prepend_scheme": ("always",),
    "add_prefix_space": (True,),
    "split": (True,),
}
_UNIGRAM = {"type": ("Unigram",), "unk_id": ANY, "vocab": ANY, "byte_fallback": (False,)}

#: The parts of the tokenizers with ALBERT's rules for text.
_ALBERT = {
    "model": [_UNIGRAM],
    "normalizer": [
        *(_QUOTES, _PRECOMPILED, _JOINED_SPACES, _STRIPPED),
        *({"type": (name,)} for name in ("NFKD", "StripAccents", "Lowercase")),
    ],
    "pre_tokenizer": [_SPACE_SPLIT, _META_SPACE],
}

#: Those of the tokenizers with the ids of fairseq.
_FAIRSEQ = {
    "model": [_UNIGRAM],
    "normalizer": [_PRECOMPILED, _JOINED_SPACES, _STRIPPED],
    "pre_tokenizer": [_SPACE_SPLIT, _META_SPACE],
}

#: kind -> part of tokenizer.json -> the steps that it may have, each a dict of setting -> the
#: values that are understood. A missing setting has the default of the library, which is one.
UNDERSTOOD = {
    "BERT": {
        "model": [
            {
                "type": ("WordPiece",),
                "unk_token": ANY,
                "continuing_subword_prefix": ("##",),
                "max_input_chars_per_word": ANY,
                "vocab": ANY,
            }
        ],
        "normalizer": [_BERT_NORMALIZER],
        "pre_tokenizer": [{"type": ("BertPreTokenizer",)}],
    },
    "RoBERTa": {"model": [_BYTE_PAIRS], "normalizer": [], "pre_tokenizer": [_BYTE_LEVEL]},
    "ModernBERT": {
        "model": [_BYTE_PAIRS],
        "normalizer": [{"type": ("NFC",)}],
        "pre_tokenizer": [_BYTE_LEVEL],
    },
    "XLM-RoBERTa": _FAIRSEQ,
    "mBART": _FAIRSEQ,
    "ALBERT": _ALBERT,
    "XLNet": _ALBERT,
}
#: The parts that may be absent, as the models of SentencePiece have other ways to say the same.
_OPTIONAL = {
    "ModernBERT": ("normalizer",),
    **dict.fromkeys(("XLM-RoBERTa", "mBART"), ("normalizer",)),
}


def check_fast_settings(directory, kind, fast):
    """Raises a ValueError if a tokenizer.json has settings that are not understood.

    `kind` is a key of `UNDERSTOOD`, and `fast` the file, empty for none.
    """
    for part, understood in UNDERSTOOD[kind].items() if fast else ():
        steps = list_steps(fast.get(part))
        if not steps and understood and part not in _OPTIONAL.get(kind, ()):
            refuse(directory, kind, FAST_FILE, part, None, understood[0]["type"][0])
        for step in steps:
            _check_step(directory, kind, part, step, understood)
        if len(steps) > len(understood):
            names = [step.get("type") for step in steps]
            refuse(directory, kind, FAST_FILE, f"steps of the {part}", names, names[:1])


def list_steps(part):
    """The steps of a part of a tokenizer.json, list of dict. A sequence has several."""
    if not isinstance(part, dict):
        return []
    steps = part.get("normalizers") or part.get("pretokenizers") or part.get("processors")
    if part.get("type") != "Sequence":
        return [part]
    return [inner for step in steps or () for inner in list_steps(step)]


def _check_step(directory, kind, part, step, understood):
    # Old files do not name the type of the model.
    name = step.get("type") or (understood[0]["type"][0] if part == "model" else None)
    rules = [rule for rule in understood if name in rule["type"]]
    if not rules:
        wanted = [rule["type"][0] for rule in understood]
        wanted = " or ".join(dict.fromkeys(wanted)) or None
        name_of = "model type" if part == "model" else part
        refuse(directory, kind, FAST_FILE, name_of, name, wanted)
    wrong = []
    for rule in rules:
        wrong = [key for key in step if key != "type" and not _is_understood(rule, key, step[key])]
        if not wrong:
            return
    key = wrong[0]
    wanted = (rules[0].get(key) or ("nothing",))[-1]
    refuse(directory, kind, FAST_FILE, f"{key} of the {part} {name}", step[key], wanted)


def _is_understood(rule, key, value):
    if key not in rule:
        return False
    return rule[key] is ANY or value in rule[key]


def check_template(
    directory, kind, fast, tokens, num_separators, has_segments, summary_place="first"
):
    """Checks that a tokenizer.json puts our special tokens around texts.

    `tokens` are (start token, end token). There are `num_separators` end tokens between two texts,
    which with `has_segments` have different segments. The start token stands at `summary_place`,
    and in the last place it is in segment 2.
    """
    steps = [s for s in list_steps(fast.get("post_processor")) if s.get("type") != "ByteLevel"]
    start, end = tokens
    pair = [start, "A", *[end] * num_separators, "B", end]
    segments = [*[0] * (2 + num_separators), 1, 1] if has_segments else [0] * len(pair)
    wanted = ([start, "A", end], [0, 0, 0]), (pair, segments)
    if summary_place == "last":
        wanted = [([*row[1:], start], [*numbers[1:], 2]) for row, numbers in wanted]
    for step in steps:
        for name, (row, numbers) in zip(("single", "pair"), wanted, strict=True):
            got = _read_template(step, name)
            if got is None or got[0] != row or (has_segments and got[1] != numbers):
                shown = step.get("type") if got is None else " ".join(map(str, got[0]))
                if got is not None and got[0] == row:
                    shown += f" with segments {got[1]}"
                setting = f"{name} of the post_processor"
                refuse(directory, kind, FAST_FILE, setting, shown, " ".join(row))


def _read_template(step, name):
    """(names of special tokens and texts, their segments) of a row, or None for another step."""
    if step.get("type") in ("BertProcessing", "RobertaProcessing"):
        (start, _), (end, _) = step["cls"], step["sep"]
        between = 1 if step["type"] == "BertProcessing" else 2
        row = [start, "A", *[end] * between, "B", end]
        numbers = [*[0] * (2 + between), 1, 1]
        return (row, numbers) if name == "pair" else ([start, "A", end], [0, 0, 0])
    if step.get("type") != "TemplateProcessing":
        return None
    parts = [next(iter(part.values())) for part in step[name]]
    return [part["id"] for part in parts], [part["type_id"] for part in parts]
