"""The pieces of a SentencePiece model: its file, its checks, its ids."""

import os

import numpy as np

from keras_bert_suite.checkpoints.tokenizer_files.languages import MBART_LANGUAGES
from keras_bert_suite.files.messages import list_names, shorten

#: The first character of pieces that begin with a space.
SPACE = "\u2581"


class SentencePieceVocabulary:
    """The pieces of a SentencePiece model, each with an id, and the file that holds them.

    The id of a piece is its number in the file. `FairseqVocabulary` counts in another way.

    Attributes:
        content: bytes of a file such as `spiece.model`.
        source: str, the name of the model in error messages.
        pieces: tuple of N str, in the order of the file.
        tokens: tuple of V str; `tokens[id]` is the piece.
        ids: dict, piece -> id.
        piece_ids: int32 (N,), the id of each piece of the file.

    Raises:
        ValueError: if `content` is no SentencePiece model, or one of another kind than unigram.
    """

    def __init__(self, content, source="SentencePiece model"):
        self.content = bytes(content)
        self.source = source
        self.pieces = tuple(piece.piece for piece in read_model(self.content, source).pieces)
        self.tokens, self.piece_ids = self._number_pieces()
        self.ids = {token: index for index, token in enumerate(self.tokens)}

    @classmethod
    def read(cls, vocabulary):
        """Reads the file at a path, or takes the bytes of a file."""
        if isinstance(vocabulary, bytes):
            return cls(vocabulary)
        if not isinstance(vocabulary, str | os.PathLike):
            raise ValueError(
                "The vocabulary of a SentencePiece tokenizer is the path of a .model file or its "
                f"bytes, got {type(vocabulary).__name__} {shorten(repr(vocabulary), 60)}."
            )
        path = os.fspath(vocabulary)
        with open(path, "rb") as file:
            return cls(file.read(), source=f"SentencePiece model {path}")

    def _number_pieces(self):
        return self.pieces, np.arange(len(self.pieces), dtype="int32")

    def read_rules(self):
        """The rules for characters of the model, bytes; empty if there are none."""
        return read_model(self.content, self.source).normalizer_spec.precompiled_charsmap

    def files(self, names):
        """dict of the one name in `names` -> the bytes of the file, as it was read."""
        (name,) = names
        return {name: self.content}


class FairseqVocabulary(SentencePieceVocabulary):
    """A vocabulary with the ids of fairseq, the library of XLM-RoBERTa.

    The ids 0 to 3 are <s>, <pad>, </s> and <unk>. The pieces of the file follow without the first
    three, which are <unk>, <s> and </s>, then the codes of languages, and <mask> is last.
    """

    languages: tuple[str, ...] = ()

    def _number_pieces(self):
        if self.pieces[:3] != ("<unk>", "<s>", "</s>"):
            raise ValueError(
                f"The {self.source} begins with {list_names(map(repr, self.pieces[:3]))}, and "
                "XLM-RoBERTa's with '<unk>', '<s>', '</s>'. Use the sentencepiece.bpe.model that "
                "came with the weights, or AlbertTokenizer or SentencePieceTokenizer for a model "
                "whose ids are those of its file."
            )
        tokens = ("<s>", "<pad>", "</s>", "<unk>", *self.pieces[3:], *self.languages, "<mask>")
        piece_ids = np.arange(1, len(self.pieces) + 1, dtype="int32")
        piece_ids[:3] = tokens.index("<unk>"), tokens.index("<s>"), tokens.index("</s>")
        if len(set(tokens)) < len(tokens):
            raise ValueError(
                f"The {self.source} has a piece '<pad>' or '<mask>', which XLM-RoBERTa adds, or a "
                "language, which mBART adds. Use the sentencepiece.bpe.model that came with the "
                "weights."
            )
        return tokens, piece_ids


class MBartVocabulary(FairseqVocabulary):
    """The vocabulary of an mBART."""

    languages = MBART_LANGUAGES[25]


class MBart50Vocabulary(FairseqVocabulary):
    """The vocabulary of an mBART-50."""

    languages = MBART_LANGUAGES[50]


#: The argument `num_languages` of an `MBartTokenizer` -> its vocabulary.
MBART_VOCABULARIES = {25: MBartVocabulary, 50: MBart50Vocabulary}


def read_model(content, source):
    """The `ModelProto` in the bytes of a file. `source` is its name in errors.

    The ops of tensorflow_text trust a file. A damaged one could make them read beyond their memory,
    so everything that they follow is checked here.
    """
    from google.protobuf.message import DecodeError
    from sentencepiece import SentencePieceProcessor
    from sentencepiece.sentencepiece_model_pb2 import ModelProto

    model = ModelProto()
    try:
        model.ParseFromString(content)
    except DecodeError as error:
        raise _not_a_model(source, content, "it cannot be parsed") from error
    if not model.pieces:
        raise _not_a_model(source, content, "it has no pieces")
    if not (model.HasField("trainer_spec") and model.HasField("normalizer_spec")):
        raise _not_a_model(source, content, "its end is missing")
    _check_kind(model, source)
    kinds = model.SentencePiece
    texts = [piece.piece for piece in model.pieces]
    unknown = [piece.piece for piece in model.pieces if piece.type == kinds.UNKNOWN]
    is_text = all(texts) and all(isinstance(text, str) for text in texts)
    if len(unknown) != 1 or len(set(texts)) < len(texts) or not is_text:
        raise _not_a_model(source, content, "its pieces are not one unknown piece and others")
    scores = [piece.score for piece in model.pieces if piece.type == kinds.NORMAL]
    if not scores or not np.isfinite(scores).all():
        raise _not_a_model(source, content, "its pieces have no scores")
    if not _is_whole(model.normalizer_spec.precompiled_charsmap):
        raise _not_a_model(source, content, "its rules for characters are damaged")
    try:
        SentencePieceProcessor(model_proto=content)
    except RuntimeError as error:
        raise _not_a_model(source, content, f"the library says {error}") from error
    return model


def _check_kind(model, source):
    spec = model.trainer_spec
    wanted = (
        ("model_type", spec.ModelType.Name(spec.model_type), "UNIGRAM"),
        ("byte_fallback", spec.byte_fallback, False),
        ("treat_whitespace_as_suffix", spec.treat_whitespace_as_suffix, False),
        ("escape_whitespaces", model.normalizer_spec.escape_whitespaces, True),
        ("remove_extra_whitespaces", model.normalizer_spec.remove_extra_whitespaces, True),
        ("add_dummy_prefix", model.normalizer_spec.add_dummy_prefix, True),
    )
    for name, value, needed in wanted:
        if value != needed:
            raise ValueError(
                f"The {source} has {name} {value}; only {needed} can be read, as in ALBERT's and "
                "XLM-RoBERTa's models. Pass a tokenizer of your own."
            )


def _is_whole(charsmap):
    """Whether no lookup in a `precompiled_charsmap` leaves it.

    It has the size of a trie in bytes, the trie, and the replacements, each ended by NUL. A unit of
    the trie leads to 256 others; see `word_piece/double_array.py`.
    """
    if not charsmap:
        return True
    size = int.from_bytes(charsmap[:4], "little")
    if size % 1024 or not 0 < size <= len(charsmap) - 4:
        return False
    units = np.frombuffer(charsmap, "<u4", size // 4, offset=4).astype("int64")
    replacements = charsmap[4 + size :]
    is_value = units >= 1 << 31
    offsets = (units >> 10) << ((units & (1 << 9)) >> 6)
    bases = (np.arange(len(units)) ^ offsets)[~is_value]
    values = units[is_value] & ((1 << 31) - 1)
    return bool(
        replacements.endswith(b"\0")
        and (bases < len(units)).all()
        and (values < len(replacements)).all()
    )


def _not_a_model(source, content, problem):
    return ValueError(
        f"The {source} of {len(content):,} bytes is no SentencePiece model, or is damaged: "
        f"{problem}. Download the file (spiece.model, sentencepiece.bpe.model) again."
    )
