"""Opens a tokenizer of any kind, from the file or the folder that it is in."""

import contextlib
import errno
import os
from pathlib import Path
from typing import Any

from keras_hub.tokenizers import Tokenizer

from keras_bert_suite import checkpoints
from keras_bert_suite.annotations import PathLike
from keras_bert_suite.argument_checks import with_article
from keras_bert_suite.files.messages import list_names, reading
from keras_bert_suite.tokenizers.byte_pair.byte_pair_tokenizer import BytePairTokenizer
from keras_bert_suite.tokenizers.byte_pair.modern_bert_tokenizer import ModernBertTokenizer
from keras_bert_suite.tokenizers.characters.character_tokenizer import CharacterTokenizer
from keras_bert_suite.tokenizers.sentence_piece.albert_tokenizer import AlbertTokenizer
from keras_bert_suite.tokenizers.sentence_piece.mbart_tokenizer import MBartTokenizer
from keras_bert_suite.tokenizers.sentence_piece.sentence_piece_tokenizer import (
    SentencePieceTokenizer,
)
from keras_bert_suite.tokenizers.sentence_piece.sentence_piece_vocabulary import (
    SentencePieceVocabulary,
)
from keras_bert_suite.tokenizers.sentence_piece.xlm_roberta_tokenizer import XLMRobertaTokenizer
from keras_bert_suite.tokenizers.sentence_piece.xlnet_tokenizer import XLNetTokenizer
from keras_bert_suite.tokenizers.text_tokenizer import TextTokenizer
from keras_bert_suite.tokenizers.word_piece.word_piece_tokenizer import WordPieceTokenizer

#: The kinds of tokenizer by the name of their class, as files and checkpoints name them.
TOKENIZERS = {
    cls.__name__: cls
    for cls in (
        *(AlbertTokenizer, BytePairTokenizer, CharacterTokenizer, MBartTokenizer),
        ModernBertTokenizer,
        *(SentencePieceTokenizer, WordPieceTokenizer, XLMRobertaTokenizer, XLNetTokenizer),
    )
}


def open_tokenizer(path: PathLike, **settings: Any) -> TextTokenizer:
    """Opens the tokenizer in a file or a folder.

    | path | tokenizer |
    | --- | --- |
    | `vocab.txt`, a token each line | `WordPieceTokenizer` |
    | `vocab.json` beside a `merges.txt` | `BytePairTokenizer` |
    | `tokenizer.json` of the library tokenizers | by its model and its special tokens |
    | `.model` of SentencePiece with <cls> and <sep> | `XLNetTokenizer` |
    | `.model` of SentencePiece that begins with <unk>, <s>, </s> | `XLMRobertaTokenizer` |
    | `.model` of SentencePiece with [CLS] and [SEP] | `AlbertTokenizer` |
    | folder of a checkpoint, with or without weights, or of a preset | that of the checkpoint |

    ```python
    tokenizer = open_tokenizer("spiece.model", lowercase=False)
    ```

    Args:
        path: str or path. A file with another ending is read as a `vocab.txt`.
        **settings: arguments of the tokenizer that replace the file's, such as `lowercase`.

    Raises:
        FileNotFoundError: if there is nothing at `path`, or a folder has no tokenizer.
        ValueError: if the file is none of these, or damaged; or the tokenizer has no such setting.
    """
    path = Path(path).expanduser()
    if path.parent == Path():
        path = path.absolute()  # A message then shows that it names a file.
    folder = os.path.join(path.parent, "")  # A message may name another file of the folder.
    with reading(path, folder):
        name, arguments = _find_tokenizer(path)
    # A wrong setting is no fault of the file.
    with contextlib.nullcontext() if settings else reading(path, folder):
        if name is None:
            return _open_preset(arguments, settings)
        tokenizer = TOKENIZERS[name](**{**arguments, **settings})
    checkpoints.check_case(tokenizer, path)
    return tokenizer


def _find_tokenizer(path):
    """(class, str; dict of its arguments), or (None, path) of a preset of Keras."""
    if path.is_dir():
        if checkpoints.is_keras_preset(path):
            checkpoint = checkpoints.open_checkpoint(path)
            if checkpoint is None:
                return None, path
            return checkpoint.tokenizer_class, checkpoint.tokenizer_config
        name, found = checkpoints.read_folder_tokenizer(path)
        return (name, found) if name else _find_tokenizer(found)
    if not path.is_file():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    if path.suffix == ".json":
        return checkpoints.read_json_tokenizer(path)
    if path.suffix == ".model":
        return _find_sentence_piece(path), {"vocabulary": str(path)}
    with open(path, "rb") as file:
        if b"\0" in file.read(1 << 16):
            raise ValueError(
                f"{path} is no text file. Wanted a vocab.txt with a piece in each line, a "
                "vocab.json, a tokenizer.json, a .model file of SentencePiece, or the folder of a "
                "checkpoint."
            )
    return "WordPieceTokenizer", {"vocabulary": str(path)}


def _find_sentence_piece(path):
    """The class of the tokenizer for a SentencePiece model, by its special tokens, str."""
    vocabulary = SentencePieceVocabulary.read(path)
    if {"<cls>", "<sep>"} <= vocabulary.ids.keys():
        return "XLNetTokenizer"
    if vocabulary.pieces[:3] == ("<unk>", "<s>", "</s>"):
        return "XLMRobertaTokenizer"
    if {"[CLS]", "[SEP]"} <= vocabulary.ids.keys():
        return "AlbertTokenizer"
    raise ValueError(
        f"The SentencePiece model {path} begins with {list_names(map(repr, vocabulary.pieces[:3]))}"
        ". Wanted '<unk>', '<s>', '</s>', as SentencePiece has them by default and XLM-RoBERTa "
        "too, or a model with '[CLS]' and '[SEP]', as ALBERT has them, or with '<cls>' and "
        "'<sep>', as XLNet has them. Train it again with them."
    )


def _open_preset(path, settings):
    """The tokenizer of a preset of Keras."""
    tokenizer = Tokenizer.from_preset(str(path))
    if not isinstance(tokenizer, TextTokenizer):
        raise ValueError(
            f"{path} has {with_article(tokenizer)} of another package, wanted one of "
            f"{', '.join(TOKENIZERS)}."
        )
    if not settings:
        return tokenizer
    changed = type(tokenizer).from_config({**tokenizer.get_config(), **settings})
    changed.load_assets(path / "assets" / "tokenizer")
    return changed
