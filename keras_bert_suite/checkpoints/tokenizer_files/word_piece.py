"""Reads the WordPiece tokenizer of a checkpoint from its files, and writes tokenizers."""

import warnings

from keras_bert_suite.checkpoints.model_types.config_values import read_json
from keras_bert_suite.checkpoints.tokenizer_files.added_tokens import describe_for_transformers
from keras_bert_suite.checkpoints.tokenizer_files.settings import (
    CONFIG_FILE,
    FAST_FILE,
    name_missing,
    name_special_tokens,
    read_ids,
)
from keras_bert_suite.checkpoints.tokenizer_files.tokenizer_kind import (
    TokenizerFiles,
    TokenizerKind,
)
from keras_bert_suite.files.atomic_file import write_json
from keras_bert_suite.files.messages import list_names, reading, shorten

#: Hugging Face's classes that split text as BERT does. transformers 4 has a class for each kind of
#: model, also for models with BERT's tokenizer.
BERT_CLASSES = (
    *("DistilBertTokenizerFast", "DistilBertTokenizer"),
    *("ElectraTokenizerFast", "ElectraTokenizer"),
    *("BertTokenizerFast", "BertTokenizer"),
)

#: The characters above which a word is unknown, in transformers' classes for BERT.
MAX_WORD_LENGTH = 100

#: BERT's special tokens.
SPECIAL_TOKENS = name_special_tokens("[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]")


def read_google_tokenizer(directory, name="vocab.txt"):
    """The arguments of a `WordPieceTokenizer` for a Google checkpoint, which stores no settings.

    Google's scripts compare `--do_lower_case` with the name of the released directory. The
    vocabulary is better evidence, because a directory may be renamed: a vocabulary of lowercased
    text has no token with an uppercase letter. (This is true of the four public vocabularies:
    uncased and Chinese are lowercased, cased and multilingual cased are not.)
    """
    path = directory / name
    if not path.is_file():
        raise name_missing(directory, name)
    return {"vocabulary": str(path), "lowercase": _is_lowercase(read_lines(path))}


def read_hugging_face_tokenizer(directory, classes=BERT_CLASSES, follows_file=False):
    """The arguments of a `WordPieceTokenizer` for a Hugging Face checkpoint.

    The files may contradict each other. As in transformers, a class that is named for BERT follows
    tokenizer_config.json, and has defaults for missing settings. Other classes follow
    tokenizer.json. In one case we do not follow transformers: if no file says whether text is
    lowercased, the vocabulary decides. (transformers lowercases, and turns every capitalised word
    of a cased model into [UNK].)

    Without vocab.txt, "vocabulary" is the list of the tokens of tokenizer.json. `classes` are the
    values of `tokenizer_class` for tokenizers of this kind. With `follows_file` tokenizer.json says
    all, as for the library `tokenizers`.
    """
    kind = TokenizerKind("BERT", classes, SPECIAL_TOKENS, has_segments=True)
    files = TokenizerFiles(directory, kind, ("vocab.txt",))
    files.require("do_basic_tokenize", True)
    files.require("never_split", None, [])
    files.require("wordpieces_prefix", "##")
    files.require("word_tokenizer_type", None, "basic")
    fast = files.fast
    if fast:
        unknown = files.tokens["unknown_token"]
        files.expect(FAST_FILE, "unk_token", fast["model"].get("unk_token", unknown), unknown)
    if files.has_vocabulary:
        vocabulary, pieces = str(files.paths[0]), read_lines(files.paths[0])
        _check_same_pieces(directory, pieces, fast)
    else:
        vocabulary = pieces = _pieces_of(fast, directory / FAST_FILE, files.tokens.values())
    if fast and (follows_file or files.follows_fast("do_lower_case")):
        rules = _read_fast_rules(files)
    else:
        rules = _read_class_rules(files, pieces)
    if rules["lowercase"] is False and _is_lowercased_before(directory):
        rules = {**rules, "lowercase": True, "strip_accents": rules["strip_accents"] or False}
    if rules["strip_accents"] in (None, rules["lowercase"]):
        del rules["strip_accents"]
    return {"vocabulary": vocabulary, **rules, **files.list_arguments()}


def _read_fast_rules(files):
    """The rules of a tokenizer.json, which its class follows."""
    normalizer, name = files.read_steps("normalizer"), "handle_chinese_chars"
    files.expect(FAST_FILE, name, normalizer.get(name, True), True)
    return {
        "lowercase": normalizer.get("lowercase", True),
        "strip_accents": normalizer.get("strip_accents"),
        "max_word_length": files.fast["model"].get("max_input_chars_per_word", MAX_WORD_LENGTH),
    }


def _read_class_rules(files, pieces):
    """The rules of transformers' BertTokenizer, which follows tokenizer_config.json."""
    config, name = files.config, "max_input_chars_per_word"
    wanted = config.get(name, MAX_WORD_LENGTH)
    length = files.fast.get("model", {}).get(name, wanted)
    files.require("tokenize_chinese_chars", True)
    # Version 4 of transformers takes it from the file. Version 5 has 100, and writes 100 there.
    files.expect(FAST_FILE, name, length, MAX_WORD_LENGTH, wanted)
    lowercase = config.get("do_lower_case")
    if lowercase is None:
        lowercase = files.read_steps("normalizer").get("lowercase")
        if lowercase is False:
            raise ValueError(
                f"The files in {files.directory} contradict each other: {FAST_FILE} keeps upper "
                f"case, {CONFIG_FILE} has no do_lower_case, and transformers' BertTokenizer then "
                f'lowercases text. Set "do_lower_case" in {CONFIG_FILE} to what the model was '
                "trained with."
            )
        lowercase = _is_lowercase(pieces) if lowercase is None else lowercase
    return {
        "lowercase": lowercase,
        "strip_accents": config.get("strip_accents"),
        "max_word_length": length,
    }


def _check_same_pieces(directory, pieces, fast):
    """Checks that vocab.txt has the pieces of tokenizer.json, which transformers reads."""
    ids = fast["model"].get("vocab") if fast else None
    if not isinstance(ids, dict):
        return
    wrong = [piece for index, piece in enumerate(pieces) if ids.get(piece, index) != index]
    wrong = wrong or sorted({*ids} - {*pieces})[:3]
    if wrong:
        raise ValueError(
            f"vocab.txt and {FAST_FILE} in {directory} have different pieces, such as "
            f"{shorten(repr(wrong[0]))}, and transformers reads {FAST_FILE} alone. Remove the one "
            "that the model was not trained with."
        )


def check_vocabulary(tokenizer_size, backbone_size, name="The tokenizer"):
    """Checks that a tokenizer and a backbone belong together, by size.

    Every id must have a row. There may be more rows than tokens: some embeddings are padded for the
    hardware, to a multiple of a power of two from 8 to 1,024 (30,522 -> 30,528, 30,592 or 30,720).
    Other differences are warned of, because the vocabulary may be from another model. Fewer rows
    than tokens are a ValueError. Both name both numbers, and `name` is the tokenizer in the
    message.
    """
    multiples = [2**power for power in range(11) if power not in (1, 2)]
    if backbone_size in [-(-tokenizer_size // multiple) * multiple for multiple in multiples]:
        return
    found = (
        f"{name} has a vocabulary of {tokenizer_size} tokens, the backbone has embeddings "
        f"for {backbone_size}."
    )
    if tokenizer_size > backbone_size:
        raise ValueError(
            f"{found} Use the vocabulary of the weights, or make room for tokens that you have "
            f"added: `resize_vocabulary({tokenizer_size}, seed=0)` of the model."
        )
    warnings.warn(
        f"{found} No text becomes the last {backbone_size - tokenizer_size}. Check that the "
        "vocabulary is that of the weights.",
        stacklevel=3,
    )


def check_case(tokenizer, path):
    """Warns if the pieces of a WordPiece tokenizer have another case than its texts.

    `path`, where the tokenizer comes from, is for the message. Other tokenizers pass.
    """
    if tokenizer.asset_names != ("vocab.txt",):
        return
    lowercase = tokenizer.lowercase
    pieces = {*tokenizer.get_vocabulary()} - {token.content for token in tokenizer.added_tokens}
    lost = sorted(filter(_has_upper_case, pieces))
    if lost and lowercase:
        warnings.warn(
            f"The tokenizer in {path} lowercases text, but {len(lost)} pieces of its "
            f"vocabulary have upper case, such as {list_names(map(repr, lost[:3]))}. No text "
            "becomes them.",
            stacklevel=3,
        )
    # The letters of "GDP" are pieces of a vocabulary that has kept case.
    if not lost and not lowercase and {"a", "e", "i", "o", "u"} <= pieces:
        warnings.warn(
            f"The tokenizer in {path} keeps upper case, but no piece of its vocabulary has upper "
            f"case: each word with a capital becomes {tokenizer.unknown_token}. If the model was "
            'trained on lowercased text, pass `lowercase=True`, or set "do_lower_case" to true in '
            f"{CONFIG_FILE}.",
            stacklevel=3,
        )


def write_tokenizer(tokenizer, max_length, directory):
    """Writes the files of a tokenizer and tokenizer_config.json, as Hugging Face does."""
    added = describe_for_transformers(tokenizer)
    config = {
        **({"added_tokens_decoder": added} if added else {}),
        "model_max_length": max_length,
        **{theirs: getattr(tokenizer, ours) for theirs, (ours, _) in SPECIAL_TOKENS.items()},
        **tokenizer.hugging_face_config(),
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


def _pieces_of(fast, path, control):
    """The tokens of a tokenizer.json in the order of their ids, with the special ones.

    The other added tokens follow these. They are no pieces of words.
    """
    ids = read_ids(fast, path, control)
    with reading(path):
        pieces = sorted(ids, key=ids.get)
    if not pieces or [ids[piece] for piece in pieces] != list(range(len(pieces))):
        raise ValueError(
            f"The ids of the {len(pieces)} pieces in {path} do not count up from 0. Put the "
            "original vocab.txt beside it."
        )
    return pieces


def _is_lowercase(pieces):
    """Whether a vocabulary is of lowercased text: no piece has an uppercase letter."""
    # isalpha is false for special tokens, also for <S> and <T> of the Chinese vocabulary.
    return not any(map(_has_upper_case, pieces))


def _has_upper_case(piece):
    word = piece.removeprefix("##")
    return word.isalpha() and word != word.lower()
