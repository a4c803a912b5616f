"""What both engines are made from: a SentencePiece model, changed for them, and its tables."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from keras_bert_suite.tokenizers.sentence_piece.sentence_piece_vocabulary import SPACE
from keras_bert_suite.tokenizers.unicode_rules import CJK, PUNCTUATION, membership


@dataclasses.dataclass(frozen=True)
class EngineModel:
    """A model for the engines.

    Args:
        content: bytes of a SentencePiece model whose special pieces no text becomes.
        pieces: tuple of N str.
        piece_ids: int32 (N,), the id of each piece.
        unknown: int, the number of the unknown piece.
        splits: dict of the number of a piece -> the numbers of the pieces that replace it, each
            with its length in characters.
        case_rule: `FinalSigma`, which texts go through first, or None.
    """

    content: bytes
    pieces: Sequence[str]
    piece_ids: np.ndarray
    unknown: int
    splits: Mapping[int, Sequence[tuple[int, int]]]
    case_rule: Any = None


def make_content(vocabulary, special_tokens, charsmap=None):
    """The model of a vocabulary for the engines, bytes.

    A special token becomes a control piece, because no text may become it.

    Args:
        vocabulary: `SentencePieceVocabulary`.
        special_tokens: list of str.
        charsmap: bytes, rules for characters instead of the model's own; None to keep these.
    """
    from sentencepiece.sentencepiece_model_pb2 import ModelProto

    model = ModelProto.FromString(vocabulary.content)
    kinds = model.SentencePiece
    for piece in model.pieces:
        if piece.piece in special_tokens and piece.type != kinds.UNKNOWN:
            piece.type = kinds.CONTROL
    if charsmap is not None:
        model.normalizer_spec.precompiled_charsmap = charsmap
    # Examples of texts, which the library would check, and which the changes may make wrong.
    model.DiscardUnknownFields()
    return model.SerializeToString()


def compile_rules(rules):
    """Rules for characters, pairs of str, as the bytes of a `precompiled_charsmap`."""
    from sentencepiece import SentencePieceNormalizer, SetMinLogLevel
    from sentencepiece.sentencepiece_model_pb2 import NormalizerSpec

    SetMinLogLevel(1)  # The library reports the size of each table that it makes.
    spec = NormalizerSpec()
    normalizer = SentencePieceNormalizer(norm_map=[pair for pair in rules if pair[0] != pair[1]])
    spec.ParseFromString(normalizer.serialized_normalizer_spec())
    return spec.precompiled_charsmap


class WordRule:
    """Which pieces begin words: at a space, and at punctuation and CJK characters, as in BERT.

    Attributes:
        begins: bool (N,), the pieces that begin a word after any piece.
        ends: bool (N,), the pieces after which a word begins.
    """

    def __init__(self, model):
        self.begins, self.ends = find_beginnings(model.pieces), find_endings(model.pieces)
        # The name of the unknown piece says nothing of its text.
        self.begins[model.unknown] = self.ends[model.unknown] = False


def find_beginnings(pieces):
    """The pieces that begin a word after any piece, whatever text they are in.

    Args:
        pieces: sequence of N str.

    Returns:
        bool (N,).
    """
    first = [piece[0] for piece in pieces]
    return np.array([c == SPACE for c in first]) | _find_lone(first)


def find_endings(pieces):
    """The pieces after which a word begins, as `find_beginnings`."""
    return _find_lone([piece[-1] for piece in pieces])


def _find_lone(characters):
    """The characters that are words by themselves, bool (N,)."""
    alone = membership(PUNCTUATION) | membership(CJK)
    return alone[[ord(c) for c in characters]]
