"""Reads the SentencePiece tokenizers of checkpoints from their files."""

import base64

from keras_bert_suite.checkpoints.model_types.config_values import read_json
from keras_bert_suite.checkpoints.tokenizer_files.fast_settings import list_steps
from keras_bert_suite.checkpoints.tokenizer_files.languages import MBART_LANGUAGES
from keras_bert_suite.checkpoints.tokenizer_files.settings import (
    CONFIG_FILE,
    FAST_FILE,
    name_missing,
    name_special_tokens,
    refuse,
)
from keras_bert_suite.checkpoints.tokenizer_files.tokenizer_kind import (
    TokenizerFiles,
    TokenizerKind,
)
from keras_bert_suite.checkpoints.tokenizer_files.word_piece import read_google_tokenizer
from keras_bert_suite.files.messages import list_names, reading, shorten

_FAIRSEQ = TokenizerKind(
    "XLM-RoBERTa",
    ("XLMRobertaTokenizerFast", "XLMRobertaTokenizer"),
    name_special_tokens("<unk>", "<s>", "</s>", "<pad>", "<mask>"),
    num_separators=2,
)
_MBART = TokenizerKind(
    "mBART",
    (
        *("MBartTokenizer", "MBartTokenizerFast"),
        *("MBart50Tokenizer", "MBart50TokenizerFast"),
    ),
    name_special_tokens("<unk>", "<s>", "</s>", "<pad>", "<mask>"),
    has_template=False,
)
_ALBERT = TokenizerKind(
    "ALBERT",
    ("AlbertTokenizerFast", "AlbertTokenizer"),
    name_special_tokens("<unk>", "[CLS]", "[SEP]", "<pad>", "[MASK]"),
    has_segments=True,
)

_XLNET = TokenizerKind(
    "XLNet",
    ("XLNetTokenizerFast", "XLNetTokenizer"),
    name_special_tokens("<unk>", "<cls>", "<sep>", "<pad>", "<mask>"),
    has_segments=True,
    summary_place="last",
    padding_side="left",
)
#: The pieces of XLNet's models that no text holds, beside the special tokens of a row.
_XLNET_CONTROL = ("<s>", "</s>", "<eod>")

#: Hugging Face's deduction from the scores of ALBERT's pieces such as "9,", so that they are not
#: chosen. No original score is as low.
_COMMA_PENALTY = 100.0


def read_hugging_face_fairseq(directory):
    """The arguments of an `XLMRobertaTokenizer` for a Hugging Face checkpoint.

    Without sentencepiece.bpe.model, "vocabulary" is the same model made from tokenizer.json, bytes.
    """
    files = _open(directory, _FAIRSEQ, "sentencepiece.bpe.model")
    model = str(files.paths[0])
    if not files.has_vocabulary:
        vocabulary = _read_vocabulary(files)
        usual = ["<s>", "<pad>", "</s>", "<unk>"]
        texts = [text for text, _ in vocabulary]
        if texts[:4] != usual or texts[-1:] != ["<mask>"]:
            raise ValueError(
                f"The vocabulary in {directory / FAST_FILE} must begin with <s>, <pad>, </s>, "
                f"<unk> and end with <mask>, got {shorten(repr([*texts[:4], *texts[-1:]]))}. Put "
                "the sentencepiece.bpe.model that came with the weights beside it."
            )
        begin = [("<unk>", 0.0), ("<s>", 0.0), ("</s>", 0.0)]
        model = _make_model([*begin, *vocabulary[4:-1]], "<unk>", ["<s>", "</s>"], files.fast)
    return {"vocabulary": model, **_list_arguments(files)}


def read_hugging_face_mbart(directory):
    """The arguments of an `MBartTokenizer` for a Hugging Face checkpoint.

    The languages are read from tokenizer_config.json. The model writes the language with which its
    decoder begins, an mBART-50 the language that its config names (`forced_bos_token_id`).
    Without sentencepiece.bpe.model, "vocabulary" is the same model made from tokenizer.json, bytes.
    """
    files = _open(directory, _MBART, "sentencepiece.bpe.model")
    is_50 = "50" in str(files.config.get("tokenizer_class")) or _begins_with_end(directory)
    languages = MBART_LANGUAGES[50 if is_50 else 25]
    model = str(files.paths[0])
    if not files.has_vocabulary:
        vocabulary = _read_vocabulary(files)
        texts = [text for text, _ in vocabulary]
        last = [*languages, "<mask>"]
        if texts[:4] != ["<s>", "<pad>", "</s>", "<unk>"] or texts[-len(last) :] != last:
            raise ValueError(
                f"The vocabulary in {directory / FAST_FILE} must begin with <s>, <pad>, </s>, "
                f"<unk> and end with the languages of mBART{'-50' * is_50} and <mask>, got "
                f"{shorten(repr([*texts[:4], *texts[-2:]]))}. Put the sentencepiece.bpe.model that "
                "came with the weights beside it."
            )
        begin = [("<unk>", 0.0), ("<s>", 0.0), ("</s>", 0.0)]
        pieces = vocabulary[4 : -len(last)]
        model = _make_model([*begin, *pieces], "<unk>", ["<s>", "</s>"], files.fast)
    arguments = {"vocabulary": model, **_list_arguments(files, languages)}
    arguments.pop("start_token", None)
    named = {"source_language": "src_lang", "target_language": "tgt_lang"}
    given = {ours: files.config.get(theirs) for ours, theirs in named.items()}
    arguments.update((name, code) for name, code in given.items() if code)
    if "target_language" not in arguments:
        arguments.update(_find_target(directory, languages))
    return {**arguments, "num_languages": 50 if is_50 else 25}


def _read_model_config(directory, name="config.json"):
    path = directory / name
    return read_json(path) if path.is_file() else {}


def _begins_with_end(directory):
    """Whether the decoder of a checkpoint begins with </s>, as that of mBART-50."""
    return _read_model_config(directory).get("decoder_start_token_id") == 2


def _find_target(directory, languages):
    """The language that the decoder of a checkpoint writes, as an argument, if it has one."""
    config = _read_model_config(directory)
    start, size = config.get("decoder_start_token_id"), config.get("vocab_size")
    if _begins_with_end(directory):
        generation = _read_model_config(directory, "generation_config.json")
        start = {**config, **generation}.get("forced_bos_token_id")
    if type(start) is not int or type(size) is not int:
        return {}
    place = start - (size - 1 - len(languages))
    return {"target_language": languages[place]} if 0 <= place < len(languages) else {}


def read_hugging_face_albert(directory):
    """The arguments of an `AlbertTokenizer` for a Hugging Face checkpoint.

    Without spiece.model, "vocabulary" is the same model made from tokenizer.json, bytes.
    """
    return _read_albert(directory, _ALBERT)


def read_hugging_face_xlnet(directory):
    """The arguments of an `XLNetTokenizer` for a Hugging Face checkpoint.

    Without spiece.model, "vocabulary" is the same model made from tokenizer.json, bytes.
    """
    return _read_albert(directory, _XLNET, lowers=False, control=_XLNET_CONTROL)


def _read_albert(directory, kind, lowers=True, control=()):
    """The arguments of a tokenizer with ALBERT's rules for text.

    `lowers` says whether its class in transformers lowers texts by default, and `control` has its
    pieces that no text holds, beside the special tokens.
    """
    files = _open(directory, kind, "spiece.model")
    files.require("remove_space", True)
    lowercase, keep_accents = _read_albert_rules(files, lowers)
    model = str(files.paths[0])
    if not files.has_vocabulary:
        vocabulary = _read_vocabulary(files)
        vocabulary = [(t, s + _COMMA_PENALTY if s < -_COMMA_PENALTY else s) for t, s in vocabulary]
        special = [token for name, token in files.tokens.items() if name != "unknown_token"]
        special += control
        model = _make_model(vocabulary, files.tokens["unknown_token"], special, files.fast)
    arguments = {"vocabulary": model, "lowercase": lowercase, "strip_accents": not keep_accents}
    return {**arguments, **_list_arguments(files)}


def read_plain_sentence_piece(directory):
    """The arguments of a `SentencePieceTokenizer`, as its export has them: tokens, and no rules."""
    files = TokenizerFiles(directory, _ALBERT, ("spiece.model",))
    return {"vocabulary": str(files.paths[0]), **files.list_arguments()}


def _read_albert_rules(files, lowers):
    """(whether text is lowered; whether accents stay), bool."""
    config, steps = files.config, list_steps(files.fast.get("normalizer"))
    steps = [step.get("type") for step in steps]
    own = "Lowercase" in steps, "StripAccents" not in steps
    if files.fast and files.follows_fast("do_lower_case"):
        return own
    named = config.get("do_lower_case", lowers), config.get("keep_accents", False)
    # Version 4 of transformers takes them from tokenizer.json, version 5 from the other file.
    for name, got, wanted in zip(("do_lower_case", "keep_accents"), named, own, strict=True):
        files.expect(CONFIG_FILE, name, got, wanted if files.fast else got)
    return named


def _list_arguments(files, control=()):
    # Pieces that a user had defined are found by SentencePiece itself.
    with reading(files.directory / FAST_FILE):
        rows = (files.fast.get("model") or {}).get("vocab") or ()
        return files.list_arguments([*control, *(text for text, score in rows if not score)])


def read_google_albert(directory):
    """(class, arguments) of the tokenizer of google-research/albert, which stores no settings.

    The English models have a SentencePiece model, 30k-clean.model, and lower text, as the scripts
    do by default. The Chinese models have BERT's tokenizer and vocab_chinese.txt.
    """
    models = _find_models(directory)
    if models:
        return "AlbertTokenizer", {"vocabulary": str(models[0])}
    chinese = directory / "vocab_chinese.txt"
    name = chinese.name if chinese.is_file() else "vocab.txt"
    return "WordPieceTokenizer", read_google_tokenizer(directory, name)


def read_google_xlnet(directory):
    """(class, arguments) of the tokenizer of zihangdai/xlnet, which stores no settings."""
    models = _find_models(directory)
    if not models:
        raise name_missing(directory, "spiece.model")
    return "XLNetTokenizer", {"vocabulary": str(models[0])}


def _find_models(directory):
    """The SentencePiece model of a folder, a list of one path or none."""
    models = sorted(directory.glob("*.model"))
    if len(models) > 1:
        raise ValueError(
            f"{directory} has {list_names(path.name for path in models)}. Leave only the one that "
            "came with the weights."
        )
    return models


def _open(directory, kind, name):
    """`TokenizerFiles` that read several spaces as one, and none at the end of a text."""
    files = TokenizerFiles(directory, kind, (name,))
    files.require("add_prefix_space", True)
    parts = ("normalizer", "pre_tokenizer")
    steps = [step for part in parts for step in list_steps(files.fast.get(part))]
    names = [step.get("type") for step in steps]
    joins = any(step.get("pattern") == {"Regex": " {2,}"} for step in steps)
    strips = any(step.get("strip_right") for step in steps)
    if files.fast and "WhitespaceSplit" not in names and not (joins and strips):
        refuse(directory, kind.owner, FAST_FILE, "pre_tokenizer", "Metaspace", "WhitespaceSplit")
    return files


def _read_vocabulary(files):
    """list of (piece, score) in the order of their ids, with the special tokens at the end."""
    fast, path = files.fast, files.directory / FAST_FILE
    with reading(path):
        vocabulary = [(str(text), float(score)) for text, score in fast["model"]["vocab"]]
        known = {text for text, _ in vocabulary}
        added = sorted((token["id"], token["content"]) for token in fast.get("added_tokens") or ())
    for index, text in added:
        if text not in known and text in files.tokens.values():
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
