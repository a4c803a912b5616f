"""ALBERT's tokenizer."""

import functools
from typing import Any

import keras

from keras_bert_suite.annotations import PathLike
from keras_bert_suite.files.messages import reading
from keras_bert_suite.models import AlbertBackbone
from keras_bert_suite.tokenizers.sentence_piece.albert_rules import (
    QUOTES,
    AlbertCharacters,
    compose_rules,
    make_final_sigma,
)
from keras_bert_suite.tokenizers.sentence_piece.model_of_engines import compile_rules
from keras_bert_suite.tokenizers.sentence_piece.sentence_piece_tokenizer import (
    SentencePieceTokenizer,
)
from keras_bert_suite.tokenizers.sentence_piece.sentence_piece_vocabulary import SPACE


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class AlbertTokenizer(SentencePieceTokenizer):
    """Text to ids as ALBERT has it: a `SentencePieceTokenizer` with ALBERT's rules for text.

    The rules, in order:

    1. Spaces of all kinds become one space each; at the ends of a text they are dropped.
    2. `` and '' become quotation marks.
    3. With `strip_accents=True` characters are decomposed (NFKD) and combining marks dropped.
    4. With `lowercase=True` letters are lowered.
    5. SentencePiece splits the text.
    6. A piece that ends in a digit and a comma is split before the comma: "▁2009," -> "▁2009", ",".

    The oracle is `tokenization.py` of google-research/albert, with rule 2 of transformers before
    version 5. (In version 5 transformers has the Rust tokenizer alone. It lowers the scores of the
    pieces of rule 6 instead, which often gives other pieces.) Characters are from Unicode 14. One
    deviation is known: a character that NFKD makes a capital sigma, such as a mathematical one,
    never becomes a final sigma.

    Args:
        vocabulary: path of a `spiece.model`, or its bytes. None leaves the tokenizer empty until
            `set_vocabulary` or `load_assets`.
        lowercase, strip_accents: bool, as the checkpoint was trained. All public ones were trained
            with both.
        unknown_token, start_token, end_token, pad_token: str, pieces that the vocabulary must hold.
        mask_token: str; if the vocabulary lacks it `mask_token_id` is None.
        added_tokens: list, see `add_tokens`.
        dtype: "int32", as every Keras layer has one.
    """

    backbone_cls = AlbertBackbone
    rules = ("lowercase", "strip_accents")

    def __init__(
        self,
        vocabulary: PathLike | bytes | None = None,
        lowercase: bool = True,
        strip_accents: bool = True,
        **kwargs: Any,
    ) -> None:
        self.lowercase = bool(lowercase)
        self.strip_accents = bool(strip_accents)
        super().__init__(vocabulary, **kwargs)

    def hugging_face_config(self) -> dict[str, Any]:
        return {
            **super().hugging_face_config(),
            "do_lower_case": self.lowercase,
            "keep_accents": not self.strip_accents,
            "tokenizer_class": "AlbertTokenizer",
        }

    def _make_normalizer(self):
        from tokenizers import normalizers

        steps = [normalizers.Replace(marks, mark) for marks, mark in QUOTES.items()]
        if self.strip_accents:
            steps += [normalizers.NFKD(), normalizers.StripAccents()]
        if self.lowercase:
            steps.append(normalizers.Lowercase())
        own = super()._make_normalizer()
        return normalizers.Sequence([*steps, *([] if own is None else [own])])

    def _make_engine_model(self):
        from sentencepiece import SentencePieceProcessor

        vocabulary = self._checked_vocabulary()
        with reading(vocabulary.source):
            rules = _compile_rules(
                vocabulary.read_rules(),
                frozenset("".join(vocabulary.pieces)),
                self.lowercase,
                self.strip_accents,
            )
        processor = SentencePieceProcessor(model_proto=vocabulary.content)
        return super()._make_engine_model(
            rules,
            splits=_find_splits(vocabulary.pieces, processor),
            case_rule=make_final_sigma(self.strip_accents) if self.lowercase else None,
        )


@functools.lru_cache(maxsize=4)
def _compile_rules(model_rules, alphabet, lowercase, strip_accents):
    """Joins ALBERT's rules and a model's into one `precompiled_charsmap`, which takes two seconds.

    Args:
        model_rules: bytes, the `precompiled_charsmap` of the model.
        alphabet: frozenset of the characters of its pieces.
        lowercase, strip_accents: as of `AlbertTokenizer`.
    """
    from sentencepiece import SentencePieceNormalizer
    from sentencepiece.sentencepiece_model_pb2 import ModelProto, NormalizerSpec

    model = ModelProto(normalizer_spec=NormalizerSpec(precompiled_charsmap=model_rules))
    own_rules = SentencePieceNormalizer(model_proto=model.SerializeToString()).decompile()
    characters = AlbertCharacters(lowercase, strip_accents)
    return compile_rules(compose_rules(dict(own_rules), characters, alphabet).items())


def _find_splits(pieces, processor):
    """The pieces that end in a digit and a comma, with the pieces of Google's code.

    The result is a dict of number -> tuple of (number, length in characters). The part before the
    comma is tokenized again, as a text. The space that this adds is taken away again, and the rest
    may be an unknown piece.
    """
    splits = {}
    for number, piece in enumerate(pieces):
        if len(piece) > 1 and piece[-1] == "," and piece[-2].isdigit():
            parts = processor.encode(piece[:-1].replace(SPACE, ""), return_type=str)
            if piece[0] != SPACE and parts[0][0] == SPACE:
                parts = [parts[0][1:], *parts[1:]] if len(parts[0]) > 1 else parts[1:]
            parts = [*parts, ","]
            splits[number] = tuple((processor.piece_to_id(part), len(part)) for part in parts)
    return splits
