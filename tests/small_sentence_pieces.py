"""SentencePiece models small enough to read, and one learned from texts."""

import functools
import io

import sentencepiece
from sentencepiece.sentencepiece_model_pb2 import ModelProto
from small_texts import WORDS

ALBERT_TOKENS = ["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"]
XLM_ROBERTA_TOKENS = ["<unk>", "<s>", "</s>"]
XLNET_TOKENS = [*XLM_ROBERTA_TOKENS, "<cls>", "<sep>", "<pad>", "<mask>", "<eod>"]
#: ALBERT's model has them as pieces that its makers defined: they are always taken.
DEFINED = list('()".-£€–')
#: XLNet's model has these, and the comma.
XLNET_DEFINED = ["<eop>", *DEFINED]
#: Pieces with spaces, digits before commas, and characters on which the rules differ.
PIECES = [
    *("▁", *(f"▁{word}" for word in WORDS), "s", "ly", "▁un", ",", "!", "'", "'s", "▁caf", "é"),
    *("▁low", "low", "er", "e", "▁9", "9", "9,", "▁19", "▁2009,", "▁2009", "20", "09", "1,"),
    *("x1,", "▁O", "o", "▁o", "aaa", "aa", "a", "b", "f", "i", "d", "z", "Α", "α", "σ", "ς", "β"),
    *("ο", "δ", "가", "각", "ᄀ", "ᅡ", "ᆨ", "一", "一二", "か", "が", "1", "⁄", "２", "C", "%"),
    *("<", ">", "/", "°"),
]  # fmt: skip


@functools.cache
def charsmap(rule="nmt_nfkc"):
    """bytes, the rules for characters that the library calls by this name."""
    from sentencepiece.sentencepiece_model_pb2 import NormalizerSpec

    sentencepiece.SetMinLogLevel(2)
    normalizer = sentencepiece.SentencePieceNormalizer(rule_name=rule)
    return NormalizerSpec.FromString(normalizer.serialized_normalizer_spec()).precompiled_charsmap


def make_albert(special=ALBERT_TOKENS, pieces=PIECES, rule="nmt_nfkc", defined=DEFINED):
    """bytes of a model; the scores are those of Zipf's law in the order of the pieces."""
    model = ModelProto()
    kinds = model.SentencePiece
    for text in special:
        model.pieces.add(
            piece=text, score=0.0, type=kinds.UNKNOWN if text == "<unk>" else kinds.CONTROL
        )
    for text in defined:
        model.pieces.add(piece=text, score=0.0, type=kinds.USER_DEFINED)
    for rank, text in enumerate(pieces):
        # Longer pieces are likelier than their parts.
        score = -1.5 - 0.37 * (rank % 29) - (6.0 if len(text) == 1 else 0.0)
        model.pieces.add(piece=text, score=score, type=kinds.NORMAL)
    model.trainer_spec.model_type = model.trainer_spec.UNIGRAM
    model.trainer_spec.unk_id = special.index("<unk>")
    model.trainer_spec.bos_id = model.trainer_spec.eos_id = model.trainer_spec.pad_id = -1
    if "</s>" in special:
        model.trainer_spec.bos_id, model.trainer_spec.eos_id = 1, 2
    model.normalizer_spec.name = rule
    model.normalizer_spec.precompiled_charsmap = charsmap(rule)
    return model.SerializeToString()


def make_xlm_roberta():
    """bytes of a model with XLM-RoBERTa's special tokens."""
    return make_albert(XLM_ROBERTA_TOKENS, defined=())


def make_xlnet():
    """bytes of a model with XLNet's special tokens, without a comma that is always taken."""
    return make_albert(XLNET_TOKENS, defined=XLNET_DEFINED)


def train(texts, size, special=ALBERT_TOKENS, defined=DEFINED):
    """bytes of a model that the library learns. `special` may be XLNet's, with its `defined`."""
    output = io.BytesIO()
    ids = {"unk_id": special.index("<unk>"), "bos_id": -1, "eos_id": -1}
    if "</s>" in special:
        ids = {"unk_id": 0, "bos_id": 1, "eos_id": 2}
        if len(special) > 3:
            ids |= {"control_symbols": special[3:], "user_defined_symbols": defined}
    else:
        ids |= {"pad_id": 0, "control_symbols": special[2:], "user_defined_symbols": defined}
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([text for text in texts if text.strip()]),
        model_writer=output,
        vocab_size=size,
        character_coverage=0.98,
        hard_vocab_limit=False,
        minloglevel=2,
        **ids,
    )
    return output.getvalue()
