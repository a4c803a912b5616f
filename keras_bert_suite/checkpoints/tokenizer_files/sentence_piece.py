"""Reads the SentencePiece tokenizers of checkpoints from their files."""

import base64

from keras_bert_suite.checkpoints.tokenizer_files.added_tokens import (
    describe_added_tokens,
    read_added_tokens,
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
    read_settings,
    read_special_tokens,
    refuse,
)
from keras_bert_suite.checkpoints.tokenizer_files.word_piece import read_google_tokenizer
from keras_bert_suite.files.messages import list_names, reading, shorten

_FAIRSEQ_TOKENS = name_special_tokens("<unk>", "<s>", "</s>", "<pad>", "<mask>")
_ALBERT_TOKENS = name_special_tokens("<unk>", "[CLS]", "[SEP]", "<pad>", "[MASK]")

#: What Hugging Face takes from the score of ALBERT's pieces such as "9,", so that they are not
#: chosen. No score of its own is as low.
_COMMA_PENALTY = 100.0


def read_hugging_face_fairseq(directory):
    """The tokenizer of a Hugging Face checkpoint of XLM-RoBERTa.

    Args:
        directory: `pathlib.Path`.

    Returns:
        dict of arguments of `XLMRobertaTokenizer`: "vocabulary", the path of
        sentencepiece.bpe.model, str, or if it is absent the same model made from tokenizer.json,
        bytes; and special tokens, str, if they differ from XLM-RoBERTa's.

    Raises:
        FileNotFoundError: if there is neither of the two files.
        ValueError: if the tokenizer does not split text as XLM-RoBERTa's does.
    """
    classes = ("XLMRobertaTokenizerFast", "XLMRobertaTokenizer")
    name = "sentencepiece.bpe.model"
    config, fast, path = _find_files(directory, name, "XLM-RoBERTa", classes)
    special = read_special_tokens(config, _FAIRSEQ_TOKENS)
    tokens = {**dict(_FAIRSEQ_TOKENS.values()), **special}
    added = _read_added(directory, "XLM-RoBERTa", config, fast, tokens, 2)
    if path is None:
        vocabulary = _read_vocabulary(fast, directory / FAST_FILE, tokens.values())
        usual = ["<s>", "<pad>", "</s>", "<unk>"]
        texts = [text for text, _ in vocabulary]
        if texts[:4] != usual or texts[-1:] != ["<mask>"]:
            raise ValueError(
                f"The vocabulary in {directory / FAST_FILE} must begin with <s>, <pad>, </s>, "
                f"<unk> and end with <mask>, got {shorten(repr([*texts[:4], *texts[-1:]]))}. Put "
                "the sentencepiece.bpe.model that came with the weights beside it."
            )
        begin = [("<unk>", 0.0), ("<s>", 0.0), ("</s>", 0.0)]
        path = _make_model([*begin, *vocabulary[4:-1]], "<unk>", ["<s>", "</s>"], fast)
    return {"vocabulary": path, **special, **added}


def read_hugging_face_albert(directory):
    """The tokenizer of a Hugging Face checkpoint of ALBERT.

    Args:
        directory: `pathlib.Path`.

    Returns:
        dict of arguments of `AlbertTokenizer`: "vocabulary", the path of spiece.model, str, or if
        it is absent the same model made from tokenizer.json, bytes; "lowercase" and
        "strip_accents", bool; and special tokens, str, if they differ from ALBERT's.

    Raises:
        FileNotFoundError: if there is neither of the two files.
        ValueError: if the tokenizer does not split text as ALBERT's does.
    """
    classes = ("AlbertTokenizerFast", "AlbertTokenizer")
    config, fast, path = _find_files(directory, "spiece.model", "ALBERT", classes)
    spaces = (CONFIG_FILE, "remove_space", config.get("remove_space", True), (True,))
    check_settings(directory, "ALBERT", (spaces,))
    lowercase, keep_accents = _read_albert_rules(directory, config, fast)
    special = read_special_tokens(config, _ALBERT_TOKENS)
    tokens = {**dict(_ALBERT_TOKENS.values()), **special}
    added = _read_added(directory, "ALBERT", config, fast, tokens, 1)
    if path is None:
        vocabulary = _read_vocabulary(fast, directory / FAST_FILE, tokens.values())
        vocabulary = [(t, s + _COMMA_PENALTY if s < -_COMMA_PENALTY else s) for t, s in vocabulary]
        unknown = tokens.pop("unknown_token")
        path = _make_model(vocabulary, unknown, list(tokens.values()), fast)
    arguments = {"vocabulary": path, "lowercase": lowercase, "strip_accents": not keep_accents}
    return {**arguments, **special, **added}


def _read_albert_rules(directory, config, fast):
    """(whether text is lowered; whether accents stay), bool."""
    steps = [step.get("type") for step in list_steps(fast.get("normalizer"))]
    own = "Lowercase" in steps, "StripAccents" not in steps
    if fast and follows_fast(directory, config, "do_lower_case"):
        return own
    named = config.get("do_lower_case", True), config.get("keep_accents", False)
    # Version 4 of transformers takes them from tokenizer.json, version 5 from the other file.
    for name, got, wanted in zip(("do_lower_case", "keep_accents"), named, own, strict=True):
        check_settings(directory, "ALBERT", ((CONFIG_FILE, name, got, (wanted if fast else got,)),))
    return named


def _read_added(directory, owner, config, fast, tokens, num_separators):
    """dict of "added_tokens", list of dict, if there are some."""
    edges = tokens["start_token"], tokens["end_token"]
    check_template(directory, owner, fast, edges, num_separators, num_separators == 1)
    found = read_added_tokens(directory, config, fast)
    # Pieces that a user had defined are found by SentencePiece itself.
    with reading(directory / FAST_FILE):
        pieces = {text for text, score in (fast.get("model") or {}).get("vocab") or () if not score}
    control = {*tokens.values(), *pieces}
    added = describe_added_tokens(found, control)
    return {"added_tokens": added} if added else {}


def read_google_albert(directory):
    """The tokenizer of a checkpoint of google-research/albert, which stores no settings.

    The English models have a SentencePiece model, 30k-clean.model, and lower text, as the scripts
    do by default. The Chinese models have BERT's tokenizer and vocab_chinese.txt.

    Args:
        directory: `pathlib.Path`.

    Returns:
        (class, arguments) of the tokenizer: "AlbertTokenizer" with "vocabulary", the path of the
        only file *.model, str; or "WordPieceTokenizer", see `read_google_tokenizer`.

    Raises:
        FileNotFoundError: if there is no vocabulary.
        ValueError: if there are several SentencePiece models.
    """
    models = sorted(directory.glob("*.model"))
    if len(models) > 1:
        raise ValueError(
            f"{directory} has {list_names(path.name for path in models)}. Leave only the one that "
            "came with the weights."
        )
    if models:
        return "AlbertTokenizer", {"vocabulary": str(models[0])}
    chinese = directory / "vocab_chinese.txt"
    name = chinese.name if chinese.is_file() else "vocab.txt"
    return "WordPieceTokenizer", read_google_tokenizer(directory, name)


def _find_files(directory, name, owner, classes):
    """(dict of tokenizer_config.json; dict of tokenizer.json; path of the model, str, or None)."""
    config, fast = read_settings(directory)
    path = str(directory / name) if (directory / name).is_file() else None
    if path is None and not fast:
        raise name_missing(directory, f"{name} and no {FAST_FILE}")
    cls, split = config.get("tokenizer_class"), config.get("split_special_tokens")
    settings = (
        (CONFIG_FILE, "tokenizer_class", cls, (None, *FAST_CLASSES, *classes)),
        (CONFIG_FILE, "add_prefix_space", config.get("add_prefix_space", True), (True,)),
        (CONFIG_FILE, "split_special_tokens", split, (None, False)),
    )
    check_settings(directory, owner, settings)
    check_sides(directory, owner, config, fast)
    check_fast_settings(directory, owner, fast)
    _check_spaces(directory, owner, fast)
    return config, fast, path


def _check_spaces(directory, owner, fast):
    """Checks that a tokenizer.json reads several spaces as one, and none at the end of a text."""
    parts = [
        step for part in ("normalizer", "pre_tokenizer") for step in list_steps(fast.get(part))
    ]
    names = [step.get("type") for step in parts]
    joins = any(step.get("pattern") == {"Regex": " {2,}"} for step in parts)
    strips = any(step.get("strip_right") for step in parts)
    if fast and "WhitespaceSplit" not in names and not (joins and strips):
        refuse(directory, owner, FAST_FILE, "pre_tokenizer", "Metaspace", "WhitespaceSplit")


def _read_vocabulary(fast, path, control):
    """list of (piece, score) in the order of their ids, with the special tokens at the end."""
    with reading(path):
        vocabulary = [(str(text), float(score)) for text, score in fast["model"]["vocab"]]
        known = {text for text, _ in vocabulary}
        added = sorted((token["id"], token["content"]) for token in fast.get("added_tokens") or ())
    for index, text in added:
        if text not in known and text in control:
            if index != len(vocabulary):
                raise ValueError(
                    f"The token {text!r} that {path} adds has the id {index}, wanted "
                    f"{len(vocabulary)}. Put the .model file that came with the weights beside it."
                )
            vocabulary.append((text, 0.0))
    return vocabulary


def _make_model(vocabulary, unknown, special, fast):
    """The bytes of a SentencePiece model with the pieces and rules of a tokenizer.json."""
    from sentencepiece.sentencepiece_model_pb2 import ModelProto

    model = ModelProto()
    kinds = model.SentencePiece
    for text, score in vocabulary:
        # The pieces that a user had defined have no score.
        kind = kinds.NORMAL if score else kinds.USER_DEFINED
        kind = kinds.UNKNOWN if text == unknown else kinds.CONTROL if text in special else kind
        model.pieces.add(piece=text, score=score, type=kind)
    texts = [text for text, _ in vocabulary]
    spec = model.trainer_spec
    spec.model_type = spec.UNIGRAM
    spec.vocab_size = len(texts)
    spec.unk_id = texts.index(unknown) if unknown in texts else 0
    spec.unk_piece = unknown
    spec.bos_id, spec.eos_id, spec.pad_id = (
        (1, 2, -1) if texts[1:3] == ["<s>", "</s>"] else (-1, -1, -1)
    )
    model.normalizer_spec.precompiled_charsmap = _read_charsmap(fast)
    return model.SerializeToString()


def _read_charsmap(fast):
    """bytes, the rules for characters of a tokenizer.json; empty if it has none."""
    for step in list_steps(fast.get("normalizer")):
        if step.get("type") == "Precompiled":
            with reading(FAST_FILE):
                return base64.b64decode(step["precompiled_charsmap"], validate=True)
    return b""
