"""Replaces KerasHub preprocessors by SegmentPackers, which also report offsets of tokens."""

import keras_hub

from keras_bert_suite.annotations import Config
from keras_bert_suite.preprocessing.segment_packer import SegmentPacker
from keras_bert_suite.tokenizers import (
    BytePairTokenizer,
    SentencePieceTokenizer,
    WordPieceTokenizer,
    XLMRobertaTokenizer,
)
from keras_bert_suite.tokenizers.text_tokenizer import TextTokenizer

#: Settings of KerasHub's WordPiece tokenizer. Our tokenizer always works with these values.
_WORD_PIECE = {
    "split": True,
    "split_on_cjk": True,
    "suffix_indicator": "##",
    "special_tokens_in_strings": False,
}


def find_segment_packer(
    preprocessor: keras_hub.models.Preprocessor,
) -> SegmentPacker | None:
    """The `SegmentPacker` with the tokens and the length of a preprocessor, which may be one.

    It is None if there is no such packer: the tokenizer of KerasHub is not WordPiece, RoBERTa's
    byte pairs, or ALBERT's or XLM-RoBERTa's SentencePiece; it is a WordPiece tokenizer with
    settings that our tokenizer does not have; or `truncate` is not "round_robin".
    """
    if isinstance(preprocessor, SegmentPacker):
        return preprocessor
    if getattr(preprocessor, "truncate", "round_robin") != "round_robin":
        return None
    tokenizer = _find_tokenizer(getattr(preprocessor, "tokenizer", None))
    return None if tokenizer is None else SegmentPacker(tokenizer, preprocessor.sequence_length)


def _find_tokenizer(tokenizer: keras_hub.tokenizers.Tokenizer | None) -> TextTokenizer | None:
    if isinstance(tokenizer, keras_hub.tokenizers.WordPieceTokenizer):
        if any(getattr(tokenizer, name) != value for name, value in _WORD_PIECE.items()):
            return None
        arguments: Config = {"lowercase": tokenizer.lowercase}
        if tokenizer.strip_accents != tokenizer.lowercase:
            arguments["strip_accents"] = tokenizer.strip_accents
        return WordPieceTokenizer(
            tokenizer.get_vocabulary(), unknown_token=tokenizer.oov_token, **arguments
        )
    if isinstance(tokenizer, keras_hub.tokenizers.RobertaTokenizer):
        return BytePairTokenizer(
            tokenizer.vocabulary, tokenizer.merges, add_prefix_space=tokenizer.add_prefix_space
        )
    # KerasHub's ALBERT changes no letters.
    if isinstance(tokenizer, keras_hub.models.AlbertTokenizer):
        return SentencePieceTokenizer(tokenizer.proto)
    if isinstance(tokenizer, keras_hub.models.XLMRobertaTokenizer):
        return XLMRobertaTokenizer(tokenizer.proto)
    return None
