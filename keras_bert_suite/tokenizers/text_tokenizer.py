"""The common base of the tokenizers of this package."""

import dataclasses
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Self

import keras
import numpy as np

from keras_bert_suite.argument_checks import check_foreign_arguments, with_article
from keras_bert_suite.tokenizers.added_tokens import AddedToken, EagerAddedTokens, read_added_tokens
from keras_bert_suite.tokenizers.graph_added_tokens import GraphAddedTokens
from keras_bert_suite.tokenizers.joining import correct_spaces
from keras_bert_suite.tokenizers.numbered_tokens import NumberedTokens
from keras_bert_suite.tokenizers.row_template import RowTemplate
from keras_bert_suite.tokenizers.saved_tokenizer import SPECIAL_TOKENS, SavedTokenizer
from keras_bert_suite.tokenizers.text_inputs import canonicalize_texts, decode_text, is_tf_tensor

#: The fields of a template that a tokenizer knows. A packer sets the others.
_SETTINGS_OF_PACKERS = ("segment_ids", "has_special_tokens")
_TEMPLATE_FIELDS = [
    f.name for f in dataclasses.fields(RowTemplate) if f.name not in _SETTINGS_OF_PACKERS
]


class TextTokenizer(SavedTokenizer):
    """A tokenizer with two engines of one behaviour: for Python text, and for TensorFlow graphs.

    Other modules do not know how tokenizers differ. They ask the tokenizer: `row_template`
    (where the special tokens of a row stand), `find_continuations` (the ids that continue
    a word), `find_endings` and `find_blanks` (the ids after which a word begins, or does not),
    `find_ordinary` (the ids that text may become), `find_openings` (the ids after which no space is
    written), `split_at_masks`, `asset_contents` (its files), `settings` and `hugging_face_config`.
    Added tokens are found around both engines, see `added_tokens`.

    A subclass sets `eager_engine` and `graph_engine`, classes that take `_engine_arguments()`, and
    calls `_use_vocabulary` with a vocabulary that has `tokens`, `ids`, `source`
    and `files`.

    Args:
        unknown_token, start_token, end_token, pad_token: str, tokens that the vocabulary must hold.
            None is the token of `default_tokens`.
        mask_token: str; if the vocabulary lacks it `mask_token_id` is None.
        added_tokens: list of tokens that are found in a text before it is split, see `add_tokens`.
            Each is a str, or a dict with "content" and other attributes of `AddedToken`. The id of
            a token of the vocabulary stays. The others have the ids after it, in their order.
        dtype: "int32", as every Keras layer has one.
    """

    #: The special tokens of this kind, in the order of `SPECIAL_TOKENS`.
    default_tokens: tuple[str, ...] = ("[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]")
    #: int, how many end tokens stand between two texts of a row.
    num_separators = 1
    #: bool, whether the models of this tokenizer tell the texts of a row apart by `segment_ids`.
    has_segment_ids = True
    #: Where the summary token stands in a row, its segment, and where padding stands; see
    #: `RowTemplate`.
    summary_place = "first"
    summary_segment: int | None = None
    padding_side = "right"
    #: bool, whether a Chinese character is one token, so that tokens make words.
    has_cjk_pieces = True
    #: bool, whether spaces become tokens or parts of tokens that depend on where they are.
    keeps_spaces = False
    #: str, a regular expression of Python and of RE2 for words that are no text, or None.
    blank_words: str | None = None
    #: bool, whether `detokenize` corrects spaces by `joining`, since tokens do not hold them.
    corrects_spaces = False
    eager_engine: Callable
    graph_engine: Callable

    def __init__(
        self,
        *,
        unknown_token: str | None = None,
        start_token: str | None = None,
        end_token: str | None = None,
        pad_token: str | None = None,
        mask_token: str | None = None,
        added_tokens: Sequence[str | dict[str, Any]] = (),
        dtype: str = "int32",
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        check_foreign_arguments(type(self), kwargs)
        super().__init__(dtype=dtype, name=name, **kwargs)
        # There is nothing to build. Before it predicts, Keras under JAX calls a model without its
        # compiler, if a layer of the model is not built.
        self.built = True
        if self.compute_dtype != "int32":
            raise ValueError(
                f"Ids are int32; drop the argument `dtype`. Received: dtype={dtype!r}."
            )
        unknown, start, end, pad, mask = self.default_tokens
        self.unknown_token = unknown_token or unknown
        self.start_token = start_token or start
        self.end_token = end_token or end
        self.pad_token = pad_token or pad
        self.mask_token = mask_token or mask
        self._added_tokens = self._read_added_tokens(added_tokens)
        self.file_assets = list(self.asset_names)

    @property
    def added_tokens(self) -> list[AddedToken]:
        """list of the `AddedToken`s that are found in a text before it is split."""
        return self._added_tokens

    def add_tokens(self, tokens: Sequence[str | dict[str, Any]], special: bool = False) -> int:
        """Adds tokens that are found in a text before it is split: domain words, markers.

        ```python
        tokenizer.add_tokens(["[E1]", "[/E1]"], special=True)
        backbone = backbone.resize_vocabulary(tokenizer.vocabulary_size(), seed=0)
        ```

        A text cannot hold the special tokens of the tokenizer, such as [SEP]. But it can hold added
        tokens, even `special` tokens.

        Args:
            tokens: list of str, or of dict with "content" and the other attributes of
                `AddedToken`: "special", "single_word" (not within words), "lstrip", "rstrip"
                (with the spaces beside it), "normalized" (found after the text was lowered).
            special: bool, for tokens that are given as str: whether they are markers, which are
                found as they are written.

        Returns:
            int, how many ids are new.

        Raises:
            ValueError: if a token is empty, is there twice, or is a special token.
        """
        if isinstance(tokens, str):
            tokens = [tokens]
        new = [{"content": t, "special": special} if isinstance(t, str) else t for t in tokens]
        read = [AddedToken.read(token) for token in new]
        before = self.vocabulary_size()
        self._added_tokens = self._read_added_tokens([*self.added_tokens, *read])
        self._use_vocabulary(self._vocabulary)
        return self.vocabulary_size() - before

    def _read_added_tokens(self, tokens):
        control = (self.unknown_token, self.start_token, self.end_token, self.pad_token)
        return read_added_tokens(tokens, (*control, self.mask_token))

    def keep_tokens(self, tokens: Sequence[str]) -> Self:
        """A tokenizer with a part of the vocabulary. Only a `WordPieceTokenizer` has one."""
        raise ValueError(
            f"Tokens can be left out of the vocabulary of a WordPieceTokenizer, got "
            f"{with_article(self)}: its pieces are made of each other. Keep the whole vocabulary."
        )

    @abstractmethod
    def set_vocabulary(self, vocabulary: Any) -> None:
        """Replaces the vocabulary: the path of its file, its content, or None."""

    @abstractmethod
    def find_continuations(self) -> np.ndarray:
        """bool (V,), the ids of tokens that continue a word."""

    def find_endings(self) -> np.ndarray:
        """bool (V,), the ids of tokens that end a word, whatever token is next."""
        return np.zeros(self.vocabulary_size(), bool)

    def find_blanks(self) -> np.ndarray:
        """bool (V,), the ids of tokens that are spaces alone. They belong to the next word."""
        return np.zeros(self.vocabulary_size(), bool)

    def find_openings(self) -> np.ndarray:
        """bool (V,), the ids of tokens after which `detokenize` never writes a space."""
        return np.zeros(self.vocabulary_size(), bool)

    def __call__(self, inputs: Any) -> Any:
        # For Python text Keras' `__call__` would look at each str. That takes longer than to
        # tokenize it.
        return super().__call__(inputs) if is_tf_tensor(inputs) else self.tokenize(inputs)

    def call(self, inputs: Any) -> Any:
        return self.tokenize(inputs)

    def tokenize(self, inputs: Any) -> Any:
        """Texts to ids.

        Args:
            inputs: str or bytes; a list, tuple or array of n of them; or a tf.Tensor or
                tf.RaggedTensor of strings.

        Returns:
            list of int; n lists of int; or, for tensors, int32: a tf.Tensor of rank 1 for a scalar,
            else a tf.RaggedTensor of one rank more.
        """
        if is_tf_tensor(inputs):
            return self._graph_engine().tokenize(inputs)
        texts, batched = canonicalize_texts(inputs)
        engine = self._eager_engine()
        rows = [engine.tokenize(text) for text in texts]
        return rows if batched else rows[0]

    def tokenize_flat(self, texts: Sequence[str | bytes]) -> tuple[np.ndarray, np.ndarray]:
        """Texts to one array of ids. This is the fastest way for many texts.

        Args:
            texts: list, tuple or array of n str or bytes.

        Returns:
            `(ids, lengths)`: int32 (T,), the ids of all texts one after the other; int64 (n,), the
            number of ids of each text.
        """
        texts, _ = canonicalize_texts(texts)
        return self._eager_engine().tokenize_flat(texts)

    def tokenize_words(self, words: Any) -> Any:
        """As `tokenize_flat`, for words that are parts of a text. Here a word is read as a text.

        For a tf.Tensor (n,) of strings, the ids are a tf.RaggedTensor (n, None), int32.
        """
        return self.tokenize(words) if is_tf_tensor(words) else self.tokenize_flat(words)

    def tokenize_with_offsets(self, inputs: Any) -> Any:
        """Texts to ids, and the part of the text that each id was made from.

        Args:
            inputs: as for `tokenize`.

        Returns:
            For a text `(ids, offsets, word_starts)`: list of int; list of `(start, end)` such that
            the token was made from `text[start:end]`; list of bool, False for tokens that
            continue a word. Offsets count characters (of the decoded text for bytes). For n texts,
            n such tuples.

            For tensors `(ids, starts, ends, word_starts)`, each shaped as by `tokenize`; int64
            offsets count bytes.

        The span of a token has every character that the token has a part of. So two tokens of one
        character have the same span. A deleted character belongs to the token before it.
        """
        if is_tf_tensor(inputs):
            return self._graph_engine().tokenize_with_offsets(inputs)
        texts, batched = canonicalize_texts(inputs)
        engine = self._eager_engine()
        rows = list(map(engine.tokenize_with_offsets, texts))
        return rows if batched else rows[0]

    def split_at_masks(self, text: Any) -> Any:
        """Splits a text at the mask token: "a [MASK]." -> ["a ", "."].

        Args:
            text: str or bytes, or a tf.Tensor (B,) of strings.

        Returns:
            list of str, or for a tensor a tf.RaggedTensor (B, None).
        """
        if is_tf_tensor(text):
            import tensorflow as tf

            return tf.strings.split(text, self.mask_token)
        return decode_text(text).split(self.mask_token)

    def detokenize(self, inputs: Any) -> str | list[Any]:
        """Ids to text.

        Args:
            inputs: n ids (list, array or tensor) or a batch of such rows.

        Returns:
            str, or list of str.
        """
        if hasattr(inputs, "to_list"):
            inputs = inputs.to_list()
        elif keras.ops.is_tensor(inputs):
            inputs = keras.ops.convert_to_numpy(inputs)
        elif not isinstance(inputs, list | tuple):
            inputs = np.asarray(inputs)
        if len(inputs) and np.ndim(inputs[0]):
            return [self.detokenize(row) for row in inputs]
        text = self.join_tokens([self.id_to_token(int(id)) for id in inputs])
        return correct_spaces(text) if self.corrects_spaces else text

    @abstractmethod
    def join_tokens(self, tokens: list[str]) -> str:
        """Tokens to a text, in which `corrects_spaces` may change spaces."""

    def get_vocabulary(self) -> list[str]:
        """The tokens in the order of their ids, list of str."""
        self._checked_vocabulary()
        return list(self._numbered.tokens)

    def vocabulary_size(self) -> int:
        self._checked_vocabulary()
        return len(self._numbered.tokens)

    def id_to_token(self, id: int) -> str:
        self._checked_vocabulary()
        return self._numbered.to_token(id)

    def token_to_id(self, token: str) -> int:
        self._checked_vocabulary()
        return self._numbered.to_id(token)

    @property
    def special_tokens(self) -> list[str]:
        """list of str: the unknown, start, end and pad token; the mask token if there is one."""
        tokens = [self.unknown_token, self.start_token, self.end_token, self.pad_token]
        if self._vocabulary is None or self.mask_token_id is not None:
            tokens.append(self.mask_token)
        return list(dict.fromkeys(tokens))

    @property
    def special_token_ids(self) -> list[int]:
        """The ids of `special_tokens`, in the same order."""
        self._checked_vocabulary()
        return [self._numbered.ids[token] for token in self.special_tokens]

    @property
    def row_template(self) -> RowTemplate:
        """`RowTemplate`: where the special tokens and the padding of a row stand."""
        return RowTemplate(**{name: getattr(self, name) for name in _TEMPLATE_FIELDS})

    @property
    def target_template(self) -> RowTemplate:
        """`RowTemplate` of a text that a decoder writes, where targets have rows of their own."""
        return self.row_template

    def find_ordinary(self) -> np.ndarray:
        """bool (V,), the ids of tokens that text may become. Random tokens are drawn from them."""
        ordinary = np.ones(self.vocabulary_size(), bool)
        ordinary[self.special_token_ids] = False
        ordinary[[self._numbered.ids[t.content] for t in self.added_tokens if t.special]] = False
        return ordinary

    def _use_vocabulary(self, vocabulary):
        """Sets the vocabulary, None for none, and the ids of the special tokens."""
        ids = {}
        if vocabulary is not None:
            needed = {name: getattr(self, name) for name in SPECIAL_TOKENS if name != "mask_token"}
            self._numbered = NumberedTokens(vocabulary, self.added_tokens, needed)
            ids = self._numbered.ids
        self.unknown_token_id = ids.get(self.unknown_token)
        self.start_token_id = ids.get(self.start_token)
        self.end_token_id = ids.get(self.end_token)
        self.pad_token_id = ids.get(self.pad_token)
        self.mask_token_id = ids.get(self.mask_token)
        self._vocabulary = vocabulary
        # Made when first needed. Two threads may make the same at once, which does no harm.
        self._engines: dict[str, Any] = {}
        vars(self).pop("digest", None)

    def _checked_vocabulary(self):
        if self._vocabulary is None:
            raise ValueError(
                f"No vocabulary has been set for {type(self).__name__} {self.name!r}. Pass "
                "`vocabulary` to the constructor, or call `set_vocabulary` or `load_assets`."
            )
        return self._vocabulary

    def _eager_engine(self):
        if "eager" not in self._engines:
            engine = self.eager_engine(*self._engine_arguments())
            self._engines["eager"] = self._with_added_tokens(engine)
        return self._engines["eager"]

    def _find_added(self):
        """The ids of the added tokens."""
        return [self._numbered.ids[token.content] for token in self.added_tokens]

    def _with_added_tokens(self, engine):
        if not self.added_tokens:
            return engine
        tokens = self._list_searched()
        return EagerAddedTokens(engine, tokens, self._numbered.ids, self._make_normalizer())

    def _list_searched(self):
        """The added tokens. It cannot matter who takes spaces that become no tokens."""
        if self.keeps_spaces:
            return self.added_tokens
        return [dataclasses.replace(t, lstrip=False, rstrip=False) for t in self.added_tokens]

    def _make_normalizer(self):
        """The normalizer before the library `tokenizers` finds added tokens, or None."""
        return None

    def _graph_engine(self):
        if "graph" not in self._engines:
            engine = self.graph_engine(*self._engine_arguments())
            self._engines["graph"] = self._add_in_graph(engine)
        return self._engines["graph"]

    def _add_in_graph(self, engine):
        if not self.added_tokens:
            return engine
        return GraphAddedTokens(engine, self._list_searched(), self._numbered.ids)

    @abstractmethod
    def _engine_arguments(self):
        """tuple of the arguments of both engines."""
