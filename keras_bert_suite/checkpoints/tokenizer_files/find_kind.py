"""Finds the kind of the tokenizer in a file or a folder."""

from keras_bert_suite.checkpoints.google_tf1.related_models import NAMED_MODELS
from keras_bert_suite.checkpoints.hugging_face.reader import find_config
from keras_bert_suite.checkpoints.model_types.config_values import ConfigValues, read_json
from keras_bert_suite.checkpoints.model_types.table import find_type
from keras_bert_suite.checkpoints.tokenizer_files.added_tokens import ADDED_FILE, SPECIAL_FILE
from keras_bert_suite.checkpoints.tokenizer_files.byte_pair import (
    read_hugging_face_byte_pairs,
    read_modern_bert_tokenizer,
)
from keras_bert_suite.checkpoints.tokenizer_files.sentence_piece import (
    read_hugging_face_albert,
    read_hugging_face_fairseq,
    read_hugging_face_mbart,
    read_hugging_face_xlnet,
    read_plain_sentence_piece,
)
from keras_bert_suite.checkpoints.tokenizer_files.settings import (
    CONFIG_FILE,
    FAST_CLASSES,
    FAST_FILE,
    read_settings,
)
from keras_bert_suite.checkpoints.tokenizer_files.word_piece import read_hugging_face_tokenizer
from keras_bert_suite.files.messages import list_directory, shorten

#: The vocabularies that transformers writes -> (class of the tokenizer, function that reads its
#: arguments from the folder).
VOCABULARIES = {
    "vocab.json": ("BytePairTokenizer", read_hugging_face_byte_pairs),
    "vocab.txt": ("WordPieceTokenizer", read_hugging_face_tokenizer),
    "spiece.model": ("AlbertTokenizer", read_hugging_face_albert),
    "sentencepiece.bpe.model": ("XLMRobertaTokenizer", read_hugging_face_fairseq),
}

#: The files of tokenizers in a folder without a configuration. The first one found counts.
TOKENIZER_FILES = (FAST_FILE, *VOCABULARIES)

#: The files of settings that `save_pretrained` of a tokenizer writes beside its vocabulary.
SETTINGS_FILES = (CONFIG_FILE, ADDED_FILE, SPECIAL_FILE)

#: The type of the model in tokenizer.json -> rows of (a token that the vocabulary has, the class
#: of the tokenizer, function that reads its arguments from the folder).
FAST_KINDS = {
    "WordPiece": (("", "WordPieceTokenizer", read_hugging_face_tokenizer),),
    "BPE": (
        ("<s>", "BytePairTokenizer", read_hugging_face_byte_pairs),
        ("[CLS]", "ModernBertTokenizer", read_modern_bert_tokenizer),
    ),
    "Unigram": (
        ("<cls>", "XLNetTokenizer", read_hugging_face_xlnet),
        ("en_XX", "MBartTokenizer", read_hugging_face_mbart),
        ("<s>", "XLMRobertaTokenizer", read_hugging_face_fairseq),
        ("[CLS]", "AlbertTokenizer", read_hugging_face_albert),
    ),
}


def read_folder_tokenizer(path):
    """The tokenizer of a checkpoint of Hugging Face or Google. No weights are needed.

    Args:
        path: `pathlib.Path` of a folder.

    Returns:
        (class, str; dict of its arguments). Or (None, path of a file) if the folder has a file of
        a tokenizer, but no configuration and no settings of the tokenizer.

    Raises:
        FileNotFoundError: if there is neither.
        ValueError: if the configuration is of an unknown model.
    """
    config = find_config(path)
    if config.is_file():
        name, read = find_type(ConfigValues(config)).find_tokenizer(path)
        return name, read(path)
    for model in NAMED_MODELS:
        if any(path.glob(f"{model.config}*.json")):
            return model.read_tokenizer(path)
    files = [path / name for name in TOKENIZER_FILES if (path / name).is_file()]
    if not files:
        raise FileNotFoundError(
            f"{path} holds no tokenizer: found {list_directory(path)}, wanted a config.json beside "
            f"the files of a tokenizer, or one of {', '.join(TOKENIZER_FILES)}."
        )
    if files[0].name != FAST_FILE and any((path / name).is_file() for name in SETTINGS_FILES):
        name, read = _find_vocabulary(path, files[0].name)
        return name, read(path)
    return None, files[0]


def _find_vocabulary(path, file):
    """The row of `VOCABULARIES` for a file of a folder. Several classes share the name of one."""
    if file == "spiece.model":
        config, _ = read_settings(path)
        name = str(config.get("tokenizer_class"))
        if name.startswith("XLNet"):
            return "XLNetTokenizer", read_hugging_face_xlnet
        if name in FAST_CLASSES:  # The class that is named for no model has no rules of ALBERT.
            return "SentencePieceTokenizer", read_plain_sentence_piece
    if file == "sentencepiece.bpe.model":
        config, _ = read_settings(path)
        if str(config.get("tokenizer_class")).startswith("MBart"):
            return "MBartTokenizer", read_hugging_face_mbart
    return VOCABULARIES[file]


def read_json_tokenizer(path):
    """The tokenizer of a `tokenizer.json` of the library tokenizers, or of a `vocab.json`.

    Args:
        path: `pathlib.Path` of the file. A `merges.txt` stands beside a `vocab.json`, and a
            `tokenizer_config.json` may stand beside a `tokenizer.json`.

    Returns:
        (class, str; dict of its arguments).

    Raises:
        FileNotFoundError: if there is no merges.txt beside a vocab.json.
        ValueError: if the file is neither, or the tokenizer is of another kind than ours.
    """
    content = read_json(path)
    if "model" not in content or type(content["model"]) is int:
        merges = path.with_name("merges.txt")
        if not merges.is_file():
            raise FileNotFoundError(
                f"{path} has no merges.txt beside it. Copy the merges.txt that came with it there."
            )
        arguments = {"vocabulary": str(path), "merges": str(merges)}
        return "BytePairTokenizer", arguments
    model = content["model"] if isinstance(content["model"], dict) else {}
    rows = FAST_KINDS.get(model.get("type"))
    if rows is None:
        raise ValueError(
            f"The tokenizer in {path} has a model of type {shorten(repr(model.get('type')))}, "
            f"wanted {', '.join(map(repr, FAST_KINDS))}. Pass another file."
        )
    if path.name != FAST_FILE:
        raise ValueError(f"{path} is a {FAST_FILE} with another name. Rename it to {FAST_FILE}.")
    pieces = _list_pieces(content)
    for piece, name, read in rows:
        if not piece or piece in pieces:
            return name, read(path.parent)
    raise ValueError(
        f"The vocabulary in {path} has none of the special tokens "
        f"{' and '.join(repr(piece) for piece, *_ in rows)}, which begin a text."
    )


def _list_pieces(content):
    """The tokens of a tokenizer.json, a set."""
    vocabulary = content["model"].get("vocab") or ()
    rows = vocabulary if isinstance(vocabulary, dict) else [row[0] for row in vocabulary if row]
    added = [t.get("content") for t in content.get("added_tokens") or () if isinstance(t, dict)]
    return {*rows, *added}
