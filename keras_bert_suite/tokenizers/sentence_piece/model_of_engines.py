"""The source of both engines: a SentencePiece model, changed for them, and its tables."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from keras_bert_suite.tokenizers.sentence_piece.sentence_piece_vocabulary import SPACE
from keras_bert_suite.tokenizers.unicode_rules import find_lone


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
    splits: Mapping[int, Sequence[tuple[int, int]]] = dataclasses.field(default_factory=dict)
    case_rule: Any = None


def make_content(vocabulary, special_tokens, charsmap=None):
    """The model of a vocabulary for the engines, bytes. No text becomes a special token.

    `charsmap` has rules for characters instead of the model's own; None keeps these.
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


def find_edges(pieces, unknown):
    """Which pieces begin words: at a space, and at punctuation and CJK characters, as in BERT.

    The result is bool (N,) twice: the pieces that begin a word after any piece, whatever text they
    are in, and the pieces after which a word begins. The name of the `unknown` piece says nothing
    of its text.
    """
    lone = find_lone()
    begins = np.array([piece[0] == SPACE or lone[ord(piece[0])] for piece in pieces])
    ends = lone[[ord(piece[-1]) for piece in pieces]]
    begins[unknown] = ends[unknown] = False
    return begins, ends
