"""SentencePiece models with pieces of one byte, for the ops of tensorflow_text."""

import numpy as np

from keras_bert_suite.tokenizers.sentence_piece.model_of_engines import compile_rules
from keras_bert_suite.tokenizers.sentence_piece.sentence_piece_vocabulary import SPACE

#: The library's deduction from the lowest score for an unknown character.
_UNKNOWN_PENALTY = 10
#: A byte that is never a part of UTF-8.
HIDDEN = b"\xff"
#: The number of the piece that stands for the byte 0 in the model of single bytes.
FIRST_BYTE = 2


def find_hidden(content):
    """The pattern of the characters that the fast op would misread, or None if there are none.

    A NUL ends its strings. It reads tabs and line ends as spaces, also if a model has no rule that
    makes them spaces.
    """
    from sentencepiece import SentencePieceProcessor

    processor = SentencePieceProcessor(model_proto=content)
    hidden = [c for c in "\0\t\n\r" if c in processor.normalize(f"a{c}b")]
    return "[" + "".join(f"\\x{ord(c):02x}" for c in hidden) + "]" if hidden else None


def keeps_space_symbol(content):
    """Whether a model has no rule that makes a space of the character that stands for spaces.

    The library drops such characters at the end of a text, and the fast op does not.
    """
    from sentencepiece import SentencePieceProcessor

    normalized = SentencePieceProcessor(model_proto=content).normalize(f"a{SPACE}{SPACE}b")
    return SPACE + SPACE in normalized


def make_byte_pieces(content):
    """A model of N pieces with 256 more: piece N + b is the byte b, for unknown characters.

    The first byte of a character has the score of an unknown character, and the others have 0.
    """
    from sentencepiece.sentencepiece_model_pb2 import ModelProto

    proto = ModelProto.FromString(content)
    kinds = proto.SentencePiece
    scores = np.array([p.score for p in proto.pieces if p.type == kinds.NORMAL], "float32")
    unknown_score = scores.min() - np.float32(_UNKNOWN_PENALTY)
    for piece in proto.pieces:
        if piece.type == kinds.USER_DEFINED:
            # The library gives these pieces the best of scores, whatever the file says.
            piece.type = kinds.NORMAL
            piece.score = 0.0
        elif piece.type == kinds.UNUSED:
            piece.type = kinds.CONTROL
    proto.trainer_spec.unk_id = -1
    if not proto.normalizer_spec.precompiled_charsmap:
        # The op needs a rule; neither of these is a character.
        proto.normalizer_spec.precompiled_charsmap = compile_rules([("\ufdd0", "\ufdd1")])
    known = {piece.piece.encode() for piece in proto.pieces if piece.type == kinds.NORMAL}
    return proto.SerializeToString() + b"".join(
        _serialize_byte(byte, known, float(unknown_score)) for byte in range(256)
    )


def _serialize_byte(byte, known, unknown_score):
    """A piece of one byte as an entry of a `ModelProto`, whose Python class wants UTF-8."""
    from sentencepiece.sentencepiece_model_pb2 import ModelProto

    kinds = ModelProto.SentencePiece
    text = bytes([byte])
    is_piece = byte and text not in known
    entry = kinds(
        score=0.0 if 0x80 <= byte < 0xC0 else unknown_score,
        type=kinds.NORMAL if is_piece else kinds.CONTROL,
    ).SerializeToString()
    # Field 1, the text: its tag, its length, its bytes.
    entry += b"\x0a\x01" + text
    return b"\x0a" + bytes([len(entry)]) + entry


def make_byte_model(content):
    """A model that splits normalized text into bytes."""
    from sentencepiece.sentencepiece_model_pb2 import ModelProto

    proto = ModelProto.FromString(content)
    kinds = proto.SentencePiece
    del proto.pieces[:]
    proto.pieces.add(piece="<unk>", type=kinds.UNKNOWN)
    # The op needs an ordinary piece; this is no text.
    proto.pieces.add(piece="\U0010ffff\U0010fffe", type=kinds.NORMAL, score=-1.0)
    for byte in range(256):
        proto.pieces.add(piece=f"<0x{byte:02X}>", type=kinds.BYTE)
    proto.trainer_spec.byte_fallback = True
    proto.trainer_spec.unk_id = 0
    proto.trainer_spec.bos_id = proto.trainer_spec.eos_id = proto.trainer_spec.pad_id = -1
    return proto.SerializeToString()
