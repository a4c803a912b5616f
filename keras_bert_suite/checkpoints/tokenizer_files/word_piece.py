"""Reads the WordPiece tokenizer of a checkpoint from its files, and writes tokenizers."""

from keras_bert_suite.checkpoints.model_types.config_values import read_json
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
from keras_bert_suite.files.atomic_file import write_json
from keras_bert_suite.files.messages import reading

#: Hugging Face's classes that split text as BERT does, or as tokenizer.json says.
#: transformers 4 has a class for each kind of model, also for those that have BERT's tokenizer.
BERT_CLASSES = (
    *("TokenizersBackend", "PreTrainedTokenizerFast"),
    *("DistilBertTokenizerFast", "DistilBertTokenizer"),
    *("ElectraTokenizerFast", "ElectraTokenizer"),
    *("BertTokenizerFast", "BertTokenizer"),
)

#: BERT's special tokens.
SPECIAL_TOKENS = name_special_tokens("[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]")


def read_google_tokenizer(directory, name="vocab.txt"):
    """The tokenizer of a Google checkpoint, which stores a vocabulary and no settings.

    Google's scripts compare `--do_lower_case` with the name of the released directory. The
    vocabulary is better evidence, because a directory may be renamed: a vocabulary of lowercased
    text has no token with an uppercase letter. (This is true of the four public vocabularies:
    uncased and Chinese are lowercased, cased and multilingual cased are not.)

    Args:
        directory: `pathlib.Path`.
        name: str, the name of the vocabulary.

    Returns:
        dict of arguments of `WordPieceTokenizer`: "vocabulary", the path of the file,
        str; and "lowercase", bool.

    Raises:
        FileNotFoundError: if there is no such file.
    """
    path = directory / name
    if not path.is_file():
        raise name_missing(directory, name)
    return {"vocabulary": str(path), "lowercase": _is_lowercase(read_lines(path))}


def read_hugging_face_tokenizer(directory, classes=BERT_CLASSES):
    """The tokenizer of a Hugging Face checkpoint.

    `do_lower_case` of tokenizer_config.json decides whether text is lowercased, as in transformers.
    If it is absent, the normalizer of tokenizer.json decides, and else the vocabulary. (In the last
    case transformers lowercases, and turns every capitalised word of a cased model into [UNK].)

    Args:
        directory: `pathlib.Path`.
        classes: tuple of str, the values of `tokenizer_class` for tokenizers of this kind.

    Returns:
        dict of arguments of `WordPieceTokenizer`: "vocabulary", the path of vocab.txt, str, or if
        it is absent the tokens of tokenizer.json, a list of str; "lowercase", bool;
        "strip_accents", bool, and special tokens, str, if they differ from BERT's.

    Raises:
        FileNotFoundError: if there is neither a vocab.txt nor a tokenizer.json.
        ValueError: if the tokenizer does not split text as BERT's does.
    """
    vocabulary_path = directory / "vocab.txt"
    config, fast = read_settings(directory)
    if not vocabulary_path.is_file() and not fast:
        raise name_missing(directory, "vocab.txt or tokenizer.json")

    model, normalizer = fast.get("model") or {}, fast.get("normalizer") or {}
    cleans_cjk = normalizer.get("handle_chinese_chars", True)
    splits_cjk = config.get("tokenize_chinese_chars", cleans_cjk)
    settings = (
        (CONFIG_FILE, "tokenizer_class", config.get("tokenizer_class"), (None, *classes)),
        (CONFIG_FILE, "tokenize_chinese_chars", splits_cjk, (True,)),
        (CONFIG_FILE, "do_basic_tokenize", config.get("do_basic_tokenize", True), (True,)),
        (CONFIG_FILE, "never_split", config.get("never_split") or None, (None,)),
        (CONFIG_FILE, "wordpieces_prefix", config.get("wordpieces_prefix", "##"), ("##",)),
        (FAST_FILE, "model type", model.get("type"), (None, "WordPiece")),
        (FAST_FILE, "normalizer", normalizer.get("type"), ("BertNormalizer",) if fast else (None,)),
    )
    check_settings(directory, "BERT", settings)

    if vocabulary_path.is_file():
        vocabulary, pieces = str(vocabulary_path), read_lines(vocabulary_path)
    else:
        vocabulary = pieces = _pieces_of(fast, directory / FAST_FILE)
    lowercase = config.get("do_lower_case", normalizer.get("lowercase"))
    lowercase = _is_lowercase(pieces) if lowercase is None else lowercase
    strip_accents = config.get("strip_accents", normalizer.get("strip_accents"))
    if lowercase is False and _is_lowercased_before(directory):
        lowercase, strip_accents = True, strip_accents or False
    arguments = {"vocabulary": vocabulary, "lowercase": lowercase}
    if strip_accents not in (None, lowercase):
        arguments["strip_accents"] = strip_accents
    return {**arguments, **read_special_tokens(config, SPECIAL_TOKENS)}


def check_vocabulary(tokenizer_size, backbone_size, name="The tokenizer"):
    """Checks that a tokenizer and a backbone belong together, by size.

    Every id must have a row. A smaller vocabulary belongs to another model: its ids would be in
    range, but wrong. There may be more rows than tokens in one case. Some embeddings are padded for
    the hardware, to a multiple of a power of two from 8 to 1,024 (30,522 -> 30,528, 30,592 or
    30,720).

    Args:
        tokenizer_size: int, tokens in the vocabulary.
        backbone_size: int, rows of the token embedding.
        name: str, the tokenizer in the message.

    Raises:
        ValueError: naming both sizes.
    """
    multiples = [2**power for power in range(11) if power not in (1, 2)]
    if backbone_size in [-(-tokenizer_size // multiple) * multiple for multiple in multiples]:
        return
    raise ValueError(
        f"{name} has a vocabulary of {tokenizer_size} tokens, the backbone has embeddings "
        f"for {backbone_size}. Use the vocabulary of the weights, or bring vocab.txt to "
        f"{backbone_size} lines, e.g. with [unused1] and so on."
    )


def write_tokenizer(tokenizer, max_length, directory):
    """Writes the files of a tokenizer and tokenizer_config.json, as Hugging Face does.

    Args:
        tokenizer: `TextTokenizer`.
        max_length: int, the maximum sequence length.
        directory: `pathlib.Path`.
    """
    config = {
        **tokenizer.hugging_face_config(),
        "model_max_length": max_length,
        **{theirs: getattr(tokenizer, ours) for theirs, (ours, _) in SPECIAL_TOKENS.items()},
    }
    write_json(directory / CONFIG_FILE, config)
    for name, content in tokenizer.hugging_face_files().items():
        (directory / name).write_bytes(content)


def _is_lowercased_before(directory):
    """Whether Sentence Transformers lowercases the texts that it hands to the tokenizer."""
    path = directory / "sentence_bert_config.json"
    return path.is_file() and read_json(path).get("do_lower_case") is True


def read_lines(path):
    """The lines of a vocabulary, list of str."""
    # The tokenizer reads the file again, and reports bytes that are not UTF-8.
    with open(path, encoding="utf-8", errors="replace") as file:
        return [line.rstrip("\n") for line in file]


def _is_lowercase(pieces):
    # isalpha is false for special tokens, also for <S> and <T> of the Chinese vocabulary.
    words = (piece.removeprefix("##") for piece in pieces)
    return not any(word.isalpha() and word != word.lower() for word in words)


def _pieces_of(fast, path):
    """The tokens of a tokenizer.json in the order of their ids, with the added tokens."""
    ids = read_ids(fast, path)
    with reading(path):
        pieces = sorted(ids, key=ids.get)
    if not pieces or [ids[piece] for piece in pieces] != list(range(len(pieces))):
        raise ValueError(
            f"The ids of the {len(pieces)} pieces in {path} do not count up from 0. Put the "
            "original vocab.txt beside it."
        )
    return pieces
