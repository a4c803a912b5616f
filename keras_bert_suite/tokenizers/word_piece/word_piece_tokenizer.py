"""BERT's tokenizer as a KerasHub layer, in Python and in TensorFlow graphs."""

import os
import re
from collections.abc import Sequence
from typing import Any, Self

import keras
import numpy as np

from keras_bert_suite.annotations import Config, PathLike
from keras_bert_suite.argument_checks import check_integer
from keras_bert_suite.models import BertBackbone
from keras_bert_suite.tokenizers.joining import follows_closely, precedes_closely
from keras_bert_suite.tokenizers.saved_tokenizer import restore_tokenizer
from keras_bert_suite.tokenizers.text_tokenizer import TextTokenizer
from keras_bert_suite.tokenizers.word_piece.cached_word_piece import CachedWordPiece
from keras_bert_suite.tokenizers.word_piece.fast_graph_tokenizer import FastGraphTokenizer
from keras_bert_suite.tokenizers.word_piece.vocabulary import CONTINUATION_PREFIX, Vocabulary
from keras_bert_suite.tokenizers.word_piece.word_splitting import MAX_CHARACTERS_PER_WORD

VOCABULARY_FILE = "vocab.txt"


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class WordPieceTokenizer(TextTokenizer):
    """Text to WordPiece ids, equal to Google's original BERT `tokenization.py` to the token.

    Python text is tokenized without TensorFlow; string tensors, also inside a `tf.function` or a
    `tf.data` pipeline, by TensorFlow ops that a SavedModel can carry. Both give the same ids for
    all of Unicode 14, whatever Unicode version Python or ICU has.

    ```python
    tokenizer = WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "un", "##able", "!"])
    tokenizer.tokenize("Unable !")               # [4, 5, 6]
    tokenizer.tokenize(["unable", "Zürich"])     # [[4, 5], [1]]
    tokenizer.detokenize([4, 5, 6])              # "unable!"
    ```

    The rules, in order:

    1. NUL, U+FFFD, controls and formats (Cc, Cf) are deleted.
    2. Tabs, line ends and other spaces separate words. A character of eight CJK ranges is a word.
    3. With `lowercase=True` text is lowered and accents are stripped.
    4. Each punctuation character and ASCII symbol is a word.
    5. Each word is split greedily into the longest tokens. A word that cannot be split, or has more
       than `max_word_length` characters, is the unknown token.

    Private-use and unassigned characters are letters. "[SEP]" in a text is a bracket, a word and a
    bracket, not the special token. Bytes that are not UTF-8 are dropped from `bytes` and string
    tensors, and lone surrogates from `str`.

    Args:
        vocabulary: path of a `vocab.txt` (UTF-8, one token a line) or list of str. None leaves the
            tokenizer empty until `set_vocabulary` or `load_assets`.
        lowercase: bool, as the checkpoint was trained; True for "uncased" checkpoints.
        strip_accents: bool, or None to follow `lowercase`, as Google's code does. Stripping also
            decomposes the other characters (NFD).
        max_word_length: int, in characters. 200 is Google's, and most files of Hugging Face have
            100.
        unknown_token, start_token, end_token, pad_token: str, tokens that the vocabulary must hold.
        mask_token: str; if the vocabulary lacks it `mask_token_id` is None.
        added_tokens: list, see `add_tokens`.
        dtype: "int32", as every Keras layer has one.
    """

    backbone_cls = BertBackbone
    asset_names = (VOCABULARY_FILE,)
    rules = ("lowercase", "strip_accents")
    corrects_spaces = True
    eager_engine = CachedWordPiece
    graph_engine = FastGraphTokenizer

    def __init__(
        self,
        vocabulary: PathLike | Sequence[str] | None = None,
        lowercase: bool = True,
        strip_accents: bool | None = None,
        max_word_length: int = MAX_CHARACTERS_PER_WORD,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.lowercase = bool(lowercase)
        self.strip_accents = None if strip_accents is None else bool(strip_accents)
        check_integer("max_word_length", max_word_length, at_least=1)
        self.max_word_length = max_word_length
        self.set_vocabulary(vocabulary)

    def set_vocabulary(self, vocabulary: PathLike | Sequence[str] | None) -> None:
        """Replaces the vocabulary: a path, a list of str, or None."""
        if isinstance(vocabulary, str | os.PathLike):
            self._use_vocabulary(Vocabulary.read(vocabulary))
        else:
            self._use_vocabulary(None if vocabulary is None else Vocabulary(vocabulary))

    def keep_tokens(self, tokens: Sequence[str]) -> Self:
        """A tokenizer with some of the tokens of this one, in their order; see `trim_vocabulary`.

        Special tokens and added tokens stay. This tokenizer stays as it is.

        Args:
            tokens: list of str.

        Raises:
            ValueError: if the vocabulary lacks one of the tokens, or `tokens` is a str.
        """
        if isinstance(tokens, str | os.PathLike):
            raise ValueError(
                f"keep_tokens needs a list of tokens, got {os.fspath(tokens)!r}. The tokens of a "
                "file are those of WordPieceTokenizer(path)."
            )
        vocabulary = self._checked_vocabulary()
        added = {token.content for token in self.added_tokens}
        wanted = {*tokens, *self.special_tokens, *added}
        lacking = sorted(wanted - vocabulary.ids.keys() - added)
        if lacking:
            raise ValueError(
                f"{len(lacking)} of the tokens to keep are not in the {vocabulary.source}, "
                f"such as {lacking[0]!r}. List them by "
                "`trim_vocabulary` with the tokenizer of the model."
            )
        kept = Vocabulary([token for token in vocabulary.tokens if token in wanted])
        return restore_tokenizer(type(self), self.get_config(), kept)

    def find_continuations(self) -> np.ndarray:
        return self._table(lambda token: token.startswith(CONTINUATION_PREFIX))

    def find_ordinary(self) -> np.ndarray:
        return super().find_ordinary() & ~self._table(re.compile(r"\[unused\d+\]").fullmatch)

    def _table(self, predicate):
        added = {token.content for token in self.added_tokens}
        tokens = self.get_vocabulary()
        return np.array([bool(predicate(token)) and token not in added for token in tokens])

    def join_tokens(self, tokens: list[str]) -> str:
        """Joins tokens to words, and words to a text, see `joining`."""
        text, is_close = "", True
        for token in tokens:
            continues = self._continues(token)
            piece = token[len(CONTINUATION_PREFIX) :] if continues else token
            if text and continues:
                text += piece
            else:
                text += ("" if is_close or follows_closely(token) else " ") + token
            is_close = precedes_closely(piece)
        return text

    def _continues(self, token):
        return token.startswith(CONTINUATION_PREFIX) and token in self._checked_vocabulary().ids

    def find_openings(self) -> np.ndarray:
        pieces = [token.removeprefix(CONTINUATION_PREFIX) for token in self.get_vocabulary()]
        return np.array([precedes_closely(piece) for piece in pieces])

    def get_config(self) -> Config:
        config = super().get_config()
        if self.max_word_length != MAX_CHARACTERS_PER_WORD:
            config["max_word_length"] = self.max_word_length
        return config

    def hugging_face_config(self) -> dict[str, Any]:
        return {
            "do_lower_case": self.lowercase,
            # transformers does not read it, and has 100. This package does.
            "max_input_chars_per_word": self.max_word_length,
            "strip_accents": self.strip_accents,
            "tokenize_chinese_chars": True,
            "tokenizer_class": "BertTokenizer",
        }

    def _engine_arguments(self):
        rules = self.lowercase, self._strips_accents
        return self._checked_vocabulary(), self.unknown_token, *rules, self.max_word_length

    @property
    def _strips_accents(self):
        return self.lowercase if self.strip_accents is None else self.strip_accents

    def _make_normalizer(self):
        from tokenizers.normalizers import BertNormalizer

        return BertNormalizer(lowercase=self.lowercase, strip_accents=self._strips_accents)
