"""RoBERTa's tokenizer as a KerasHub layer, in Python and in TensorFlow graphs."""

from collections.abc import Mapping, Sequence
from typing import Any

import keras
import numpy as np

from keras_bert_suite.annotations import Config, PathLike
from keras_bert_suite.models import RobertaBackbone
from keras_bert_suite.tokenizers.byte_pair.byte_pair_vocabulary import (
    BytePairVocabulary,
    byte_characters,
    decode_bytes,
    read_first_character,
    read_last_character,
)
from keras_bert_suite.tokenizers.byte_pair.cached_byte_pair import CachedBytePair
from keras_bert_suite.tokenizers.byte_pair.character_classes import SPACES
from keras_bert_suite.tokenizers.byte_pair.graph_byte_pair import GraphBytePair
from keras_bert_suite.tokenizers.text_inputs import canonicalize_texts, is_tf_tensor
from keras_bert_suite.tokenizers.text_tokenizer import TextTokenizer
from keras_bert_suite.tokenizers.unicode_rules import find_lone, membership, parse_ranges

VOCABULARY_FILE, MERGES_FILE = "vocab.json", "merges.txt"

#: str, all characters that are spaces.
BLANKS = "".join(chr(c) for first, last in parse_ranges(SPACES) for c in range(first, last + 1))


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class BytePairTokenizer(TextTokenizer):
    """Text to ids by byte-level byte-pair encoding, as RoBERTa and GPT-2 have it.

    Python text is tokenized without TensorFlow; string tensors, also inside a `tf.function` or a
    `tf.data` pipeline, by TensorFlow ops that a SavedModel can carry. Both give the ids that
    transformers' RobertaTokenizer gives.

    ```python
    tokenizer = BytePairTokenizer("vocab.json", "merges.txt")
    tokenizer.tokenize("Hello world")            # RoBERTa's: [31414, 232]
    tokenizer.detokenize([31414, 232])           # "Hello world"
    ```

    The space before a word belongs to the word, and is written `Ġ` in its tokens. So a word at the
    beginning of a text has other ids than elsewhere. "<mask>" in a text is six characters, not the
    special token, as everywhere in this package. Only `MaskedLM` and `Pretrainer.fill_mask` look
    for it. Bytes that are not UTF-8 are dropped from `bytes` and string tensors. So are lone
    surrogates in `str`, and bytes that the vocabulary lacks.

    Args:
        vocabulary: path of a `vocab.json`, or dict of token -> id. If `vocabulary` and `merges`
            are None, the tokenizer is empty until `set_vocabulary` or `load_assets`.
        merges: path of a `merges.txt`, or list of merges in their order, each "left right" or a
            pair.
        add_prefix_space: bool, whether a space is put before a text that begins without one. Its
            first word then has the same ids as in the middle of a text.
        normalization: None, or "NFC" for Unicode's canonical composition of the text.
        added_tokens: list of tokens that are found before the text is split into words, such as
            runs of spaces; see `add_tokens`.
        mask_takes_space: bool, whether the mask token takes the spaces before it, where `MaskedLM`
            and `Pretrainer.fill_mask` look for it.
        unknown_token, start_token, end_token, pad_token: str, tokens that the vocabulary must hold.
        mask_token: str; if the vocabulary lacks it `mask_token_id` is None.
        dtype: "int32", as every Keras layer has one.
    """

    backbone_cls: type = RobertaBackbone
    default_tokens: tuple[str, ...] = ("<unk>", "<s>", "</s>", "<pad>", "<mask>")
    num_separators = 2
    has_segment_ids = False
    has_cjk_pieces = False
    keeps_spaces = True
    # The first of two spaces is a word.
    blank_words = f"[{BLANKS}]*"
    asset_names = (VOCABULARY_FILE, MERGES_FILE)
    eager_engine = CachedBytePair
    graph_engine = GraphBytePair
    _file_arguments = ("vocabulary", "merges")

    def __init__(
        self,
        vocabulary: PathLike | Mapping[str, int] | None = None,
        merges: PathLike | Sequence[str] | None = None,
        add_prefix_space: bool = False,
        normalization: str | None = None,
        added_tokens: Sequence[str | dict[str, Any]] = (),
        mask_takes_space: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(added_tokens=added_tokens, **kwargs)
        if normalization not in (None, "NFC"):
            raise ValueError(f"normalization must be None or 'NFC', got {normalization!r}.")
        self.add_prefix_space = bool(add_prefix_space)
        self.normalization = normalization
        self.mask_takes_space = bool(mask_takes_space)
        self.set_vocabulary(vocabulary, merges)

    def set_vocabulary(
        self,
        vocabulary: PathLike | Mapping[str, int] | None,
        merges: PathLike | Sequence[str] | None = None,
    ) -> None:
        """Replaces tokens and merges: paths, a dict and a list, or None and None."""
        if (vocabulary is None) != (merges is None):
            lacking = "merges" if merges is None else "vocabulary"
            raise ValueError(
                f"A BytePairTokenizer needs vocabulary and merges, got no {lacking}. They lie "
                "beside each other, as vocab.json and merges.txt."
            )
        self._use_vocabulary(
            None if vocabulary is None else BytePairVocabulary.read(vocabulary, merges)
        )

    def tokenize_words(self, words: Any) -> Any:
        """As `tokenize_flat`, for words that are parts of a text: each has a space before it.

        For a tf.Tensor (n,) of strings, the ids are a tf.RaggedTensor (n, None), int32.
        """
        if is_tf_tensor(words):
            return self._words_engine("graph").tokenize(words)
        texts, _ = canonicalize_texts(words)
        if not self.added_tokens:
            return self.tokenize_flat([f" {text}" for text in texts])
        return self._words_engine("eager").tokenize_flat(texts)

    def _words_engine(self, kind):
        """An engine that puts a space before each text, but not before an added token."""
        name = f"{kind} words"
        if name not in self._engines:
            vocabulary, _, *rules = self._engine_arguments()
            is_eager = kind == "eager"
            engine = (self.eager_engine if is_eager else self.graph_engine)(
                vocabulary, True, *rules
            )
            add = self._with_added_tokens if is_eager else self._add_in_graph
            self._engines[name] = add(engine)
        return self._engines[name]

    def find_continuations(self) -> np.ndarray:
        """bool (V,), the ids of tokens that begin with no space, punctuation or CJK character.

        Added tokens continue no word. fairseq's RoBERTa looks at spaces alone. A Chinese text
        without spaces would then be one word, and the last word of a sentence would have its full
        stop.
        """
        begins = membership(SPACES) | find_lone()
        first = map(read_first_character, self.list_bytes())
        continues = np.array([not c or not begins[ord(c)] for c in first])
        continues[self._find_added()] = False
        return continues

    def find_endings(self) -> np.ndarray:
        contents, lone = self.list_bytes(), find_lone()
        ends = np.array([lone[ord(read_last_character(content))] for content in contents])
        ends[self._find_added()] = True
        return ends

    def find_blanks(self) -> np.ndarray:
        return np.array([not content.strip() for content in self.list_bytes()])

    def list_bytes(self) -> list[bytes]:
        """The bytes of each token in the order of their ids. A text is the bytes of its tokens.

        An added token stands for itself.
        """
        return self._decode(self.get_vocabulary())

    def _decode(self, tokens):
        added = {token.content for token in self.added_tokens}
        return [t.encode() if t in added else decode_bytes(t) for t in tokens]

    def find_ordinary(self) -> np.ndarray:
        # Vocabularies are filled up with tokens that no text becomes, and have tokens for masked
        # names and the like.
        vocabulary = self._checked_vocabulary()
        made = {*byte_characters(), *map("".join, vocabulary.merges)}
        return super().find_ordinary() & np.array([t in made for t in self._numbered.tokens])

    def split_at_masks(self, text: Any) -> Any:
        """Parts of a text; with `mask_takes_space` the mask token takes the spaces before it."""
        parts = super().split_at_masks(text)
        if not self.mask_takes_space:
            return parts
        if not is_tf_tensor(text):
            return [*(part.rstrip(BLANKS) for part in parts[:-1]), parts[-1]]
        import tensorflow as tf

        before = parts[:, :-1]
        stripped = tf.strings.regex_replace(before.flat_values, f"[{BLANKS}]+$", "")
        return tf.concat([before.with_flat_values(stripped), parts[:, -1:]], axis=1)

    def join_tokens(self, tokens: list[str]) -> str:
        return b"".join(self._decode(tokens)).decode("utf-8", "replace")

    def hugging_face_config(self) -> dict[str, Any]:
        return {
            "add_prefix_space": self.add_prefix_space,
            "bos_token": self.start_token,
            "eos_token": self.end_token,
            "tokenizer_class": "RobertaTokenizer",
        }

    def hugging_face_files(self) -> dict[str, bytes]:
        if self.normalization:
            raise ValueError(
                "transformers' RobertaTokenizer does not compose text, got "
                f"normalization={self.normalization!r}. Use a ModernBertTokenizer, or `model.save`."
            )
        return super().hugging_face_files()

    def get_config(self) -> Config:
        return {
            **super().get_config(),
            "add_prefix_space": self.add_prefix_space,
            "normalization": self.normalization,
            "added_tokens": self._describe_added_tokens(),
            **({} if self.mask_takes_space else {"mask_takes_space": False}),
        }

    def _make_normalizer(self):
        from tokenizers.normalizers import NFC

        return None if self.normalization is None else NFC()

    def _engine_arguments(self):
        return self._checked_vocabulary(), self.add_prefix_space, self.normalization is not None
