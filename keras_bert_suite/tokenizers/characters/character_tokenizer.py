"""ELMo's tokenizer: a word is a token, and a token is its characters."""

from typing import Any

import keras
import numpy as np

from keras_bert_suite.argument_checks import check_integer
from keras_bert_suite.models import ElmoBackbone
from keras_bert_suite.tokenizers.characters.character_rows import (
    CHARACTERS,
    CharacterVocabulary,
    EagerCharacters,
    GraphCharacters,
    special_rows,
)
from keras_bert_suite.tokenizers.text_inputs import canonicalize_texts, decode_text, is_tf_tensor
from keras_bert_suite.tokenizers.text_tokenizer import TextTokenizer


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class CharacterTokenizer(TextTokenizer):
    """A tokenizer whose tokens are words, each a row of W characters. No word is unknown.

    Where other tokenizers have an id, this one has a row of `max_characters` ids: the beginning of
    a word, up to W - 2 bytes of UTF-8, its end, and what fills the row. A `SegmentPacker` with it
    makes `character_ids`, int32 (B, L, W), and `padding_mask`, for an `ElmoBackbone` with
    `characters`. Texts keep their case and accents.

    ```python
    tokenizer = CharacterTokenizer()
    tokenizer.tokenize("ab c")  # [[259, 98, 99, 260, 261, ...], [259, 100, 260, 261, ...]]
    packer = SegmentPacker(tokenizer, 64)
    classifier = TextClassifier(ElmoBackbone(None, characters={}), 2, preprocessor=packer)
    ```

    A list of words, as a `TokenClassifier` takes them, is one token for each word.

    Args:
        max_characters: int W, at least 3.
        split_punctuation: bool, whether punctuation and each Chinese character is a word by itself,
            as for BERT. With False words stand between white space. The original code takes texts
            that are split already.
        **kwargs: arguments of every layer.

    Raises:
        ValueError: if `max_characters` is less than 3.

    Source: allenai/bilm-tf, data.py, `UnicodeCharsVocabulary`.
    """

    backbone_cls = ElmoBackbone
    default_tokens = ("<pad>", "<S>", "</S>", "<pad>", "<mask>")
    has_segment_ids = False
    rules = ("max_characters", "split_punctuation")
    _file_arguments = ()
    eager_engine = EagerCharacters
    graph_engine = GraphCharacters

    def __init__(
        self, *, max_characters: int = 50, split_punctuation: bool = True, **kwargs: Any
    ) -> None:
        check_integer("max_characters", max_characters, at_least=3)
        super().__init__(**kwargs)
        self.max_characters = max_characters
        self.split_punctuation = split_punctuation
        self.set_vocabulary()

    @property
    def special_rows(self) -> np.ndarray:
        """int32 (3, W), the rows of <S>, of </S> and of padding."""
        return special_rows((self.start_token_id, self.end_token_id), self.max_characters)

    def set_vocabulary(self) -> None:  # type: ignore[override]  # It is in no file.
        """Sets the table of characters, which is the same for all tokenizers of this class."""
        self._use_vocabulary(CharacterVocabulary())

    def load_preset_assets(self, preset: Any) -> None:
        """KerasHub's step that reads the files of a preset, of which there are none."""

    def _read_added_tokens(self, tokens):
        if tokens:
            raise ValueError(
                "A CharacterTokenizer reads the characters of each word, got the added_tokens "
                f"{list(tokens)}. Write them into the texts as they are."
            )
        return []

    def tokenize_words(self, words: Any) -> Any:
        """As `tokenize_flat`, for words that are parts of a text. Each word is one token.

        A word that is empty has no token.
        """
        if is_tf_tensor(words):
            return self._graph_engine().tokenize_words(words)
        words, _ = canonicalize_texts(words)
        return self._eager_engine().tokenize_words([[word] if word else [] for word in words])

    def find_continuations(self) -> np.ndarray:
        return np.zeros(self.vocabulary_size(), bool)

    def join_tokens(self, tokens: list[str]) -> str:
        """The characters of a word to the word."""
        kept = [CHARACTERS.index(token) for token in tokens]
        return decode_text(bytes(id - 1 for id in kept if 1 <= id <= 256))

    def hugging_face_config(self) -> dict[str, Any]:
        raise ValueError("transformers has no ELMo, got a CharacterTokenizer. Save a preset.")

    def _engine_arguments(self):
        return self.max_characters, self.split_punctuation
