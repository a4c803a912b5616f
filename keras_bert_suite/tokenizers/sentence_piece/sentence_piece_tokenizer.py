"""SentencePiece as a KerasHub layer, in Python and in TensorFlow graphs."""

from typing import Any

import keras
import numpy as np

from keras_bert_suite.annotations import PathLike
from keras_bert_suite.models import BertBackbone
from keras_bert_suite.tokenizers.sentence_piece.eager_sentence_piece import LibrarySentencePiece
from keras_bert_suite.tokenizers.sentence_piece.graph_sentence_piece import GraphSentencePiece
from keras_bert_suite.tokenizers.sentence_piece.model_of_engines import (
    EngineModel,
    find_edges,
    make_content,
)
from keras_bert_suite.tokenizers.sentence_piece.sentence_piece_vocabulary import (
    SPACE,
    SentencePieceVocabulary,
)
from keras_bert_suite.tokenizers.text_tokenizer import TextTokenizer


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class SentencePieceTokenizer(TextTokenizer):
    """Text to ids by a SentencePiece model, with the ids of the model's file.

    Python text is tokenized without TensorFlow, by the `sentencepiece` library; string tensors,
    also inside a `tf.function` or a `tf.data` pipeline, by TensorFlow ops that a SavedModel can
    carry. Both give the ids that the library gives.

    ```python
    tokenizer = SentencePieceTokenizer("spiece.model")
    tokenizer.tokenize("Hello world")
    ```

    `AlbertTokenizer` and `XLMRobertaTokenizer` are made for these models. Models of other kinds
    than unigram are refused.

    The space before a word belongs to the word, and is written `▁` in its pieces. A word begins at
    a space, and at punctuation and CJK characters where a piece begins there. "[MASK]" in a text is
    characters, not the special token, as everywhere in this package. Only `MaskedLM` and
    `Pretrainer.fill_mask` look for it. Bytes that are not UTF-8 are dropped from `bytes` and string
    tensors, and lone surrogates from `str`.

    Args:
        vocabulary: path of a `.model` file, or its bytes. None leaves the tokenizer empty until
            `set_vocabulary` or `load_assets`.
        unknown_token, start_token, end_token, pad_token: str, pieces that the vocabulary must hold.
        mask_token: str; if the vocabulary lacks it `mask_token_id` is None.
        added_tokens: list, see `add_tokens`.
        dtype: "int32", as every Keras layer has one.
    """

    backbone_cls: type[keras.Model] = BertBackbone
    default_tokens = ("<unk>", "[CLS]", "[SEP]", "<pad>", "[MASK]")
    has_cjk_pieces = False
    # A word may be a space alone, if the text after it has pieces that begin words.
    blank_words = ""
    asset_names = ("spiece.model",)
    eager_engine = LibrarySentencePiece
    graph_engine = GraphSentencePiece
    _vocabulary_cls: type[SentencePieceVocabulary] = SentencePieceVocabulary

    def __init__(self, vocabulary: PathLike | bytes | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.set_vocabulary(vocabulary)

    def set_vocabulary(self, vocabulary: PathLike | bytes | None) -> None:
        """Replaces the model: a path, bytes, or None."""
        read = None if vocabulary is None else self._vocabulary_cls.read(vocabulary)
        self._use_vocabulary(read)

    def find_continuations(self) -> np.ndarray:
        """bool (V,), the ids of pieces that begin with no space, punctuation or CJK character.

        Google's ALBERT also begins words at digits, and at all letters but English ones. fairseq's
        XLM-RoBERTa looks at spaces alone. A Chinese text without spaces would then be one word.
        """
        begins, _ = find_edges(self.get_vocabulary(), self.unknown_token_id)
        begins[self._find_added()] = True
        return ~begins

    def find_endings(self) -> np.ndarray:
        _, ends = find_edges(self.get_vocabulary(), self.unknown_token_id)
        ends[self._find_added()] = True
        return ends

    def find_blanks(self) -> np.ndarray:
        return np.array([not token.strip(SPACE) for token in self.get_vocabulary()])

    def join_tokens(self, tokens: list[str]) -> str:
        return "".join(tokens).replace(SPACE, " ").removeprefix(" ")

    def hugging_face_config(self) -> dict[str, Any]:
        return {
            "bos_token": self.start_token,
            "eos_token": self.end_token,
            "tokenizer_class": "PreTrainedTokenizerFast",
        }

    def _read_added_tokens(self, tokens):
        read = super()._read_added_tokens(tokens)
        wrong = [token.content for token in read if token.normalized and " " in token.content]
        if wrong:
            raise ValueError(
                f"Spaces of a normalized text are joined, got the added tokens {wrong} with "
                'spaces. Pass {"content": ..., "normalized": False}, or leave them out.'
            )
        return read

    def _make_normalizer(self):
        from tokenizers.normalizers import Precompiled

        charsmap = self._checked_vocabulary().read_rules()
        return Precompiled(charsmap) if charsmap else None

    def _engine_arguments(self):
        return (self._make_engine_model(),)

    def _make_engine_model(self, rules=None, **arguments: Any) -> EngineModel:
        """`EngineModel` of the vocabulary, with other rules for characters than the model's own."""
        vocabulary = self._checked_vocabulary()
        return EngineModel(
            content=make_content(vocabulary, self.special_tokens, rules),
            pieces=vocabulary.pieces,
            piece_ids=vocabulary.piece_ids,
            unknown=int(np.flatnonzero(vocabulary.piece_ids == self.unknown_token_id)[0]),
            **arguments,
        )
