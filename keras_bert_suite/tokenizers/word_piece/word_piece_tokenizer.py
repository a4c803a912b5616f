"""BERT's tokenizer as a KerasHub layer, in Python and in TensorFlow graphs."""

import os
import threading

import keras
import numpy as np
from keras_hub.tokenizers import Tokenizer

from keras_bert_suite import checkpoints
from keras_bert_suite.models import BertBackbone
from keras_bert_suite.tokenizers.text_inputs import canonicalize_texts, is_tf_tensor
from keras_bert_suite.tokenizers.word_piece.cached_word_piece import CachedWordPiece
from keras_bert_suite.tokenizers.word_piece.fast_graph_tokenizer import FastGraphTokenizer
from keras_bert_suite.tokenizers.word_piece.vocabulary import CONTINUATION_PREFIX, Vocabulary

VOCABULARY_FILE = "vocab.txt"


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class WordPieceTokenizer(Tokenizer):
    """Text to WordPiece ids, equal to Google's original BERT `tokenization.py` to the token.

    Python text is tokenized without TensorFlow; string tensors, also inside a `tf.function` or a
    `tf.data` pipeline, by TensorFlow ops that a SavedModel can carry. Both give the same ids for
    all of Unicode 14, whatever Unicode version Python or ICU has.

    ```python
    tokenizer = WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "un", "##able", "!"])
    tokenizer.tokenize("Unable !")               # [4, 5, 6]
    tokenizer.tokenize(["unable", "Zürich"])     # [[4, 5], [1]]
    tokenizer.detokenize([4, 5, 6])              # "unable !"
    ```

    The rules, in order: NUL, U+FFFD, controls and formats (Cc, Cf) vanish; tabs, line ends and
    other spaces separate; so do the characters of eight CJK ranges, each a word; then lower case
    and no accents (`lowercase=True`); punctuation and ASCII symbols are words; each word is matched
    greedily by the longest pieces, and is the unknown token if it cannot be or has more than 200
    characters. Private-use and unassigned characters are letters. "[SEP]" in a text is a bracket, a
    word and a bracket, not the special token. What is not UTF-8 in `bytes` and string tensors
    vanishes, and so do lone surrogates in `str`.

    Args:
        vocabulary: path of a `vocab.txt` (UTF-8, one piece a line) or list of str. None leaves the
            tokenizer empty until `set_vocabulary` or `load_assets`.
        lowercase: bool, as the checkpoint was trained; True for "uncased" ones.
        strip_accents: bool, or None to follow `lowercase`, as Google's code does. Stripping also
            decomposes what it keeps (NFD).
        unknown_token, start_token, end_token, pad_token: str, pieces that the vocabulary must hold.
        mask_token: str; if the vocabulary lacks it `mask_token_id` is None.
        dtype: "int32", as every Keras layer has one.
    """

    backbone_cls = BertBackbone

    def __init__(
        self,
        vocabulary=None,
        lowercase=True,
        strip_accents=None,
        unknown_token="[UNK]",
        start_token="[CLS]",
        end_token="[SEP]",
        pad_token="[PAD]",
        mask_token="[MASK]",
        dtype="int32",
        name=None,
        **kwargs,
    ):
        super().__init__(dtype=dtype, name=name, **kwargs)
        if self.compute_dtype != "int32":
            raise ValueError(
                f"Ids are int32; drop the argument `dtype`. Received: dtype={dtype!r}."
            )
        self.lowercase = bool(lowercase)
        self.strip_accents = None if strip_accents is None else bool(strip_accents)
        self.unknown_token = unknown_token
        self.start_token = start_token
        self.end_token = end_token
        self.pad_token = pad_token
        self.mask_token = mask_token
        self.file_assets = [VOCABULARY_FILE]
        self.set_vocabulary(vocabulary)

    @classmethod
    def from_preset(cls, preset, **kwargs):
        """Builds the tokenizer of a checkpoint.

        Args:
            preset: what `TextClassifier.from_preset` takes.
            **kwargs: arguments of the constructor that override the checkpoint's.
        """
        checkpoint = checkpoints.open_checkpoint(preset)
        if checkpoint is None:
            return super().from_preset(checkpoints.preset_name(preset), **kwargs)
        return cls(**{**checkpoint.tokenizer_config, **kwargs})

    def with_lowercase(self, lowercase):
        """The same tokenizer with another `lowercase`."""
        config = {**self.get_config(), "lowercase": lowercase, "vocabulary": self.get_vocabulary()}
        return type(self).from_config(config)

    def set_vocabulary(self, vocabulary):
        """Replaces the vocabulary: a path, a list of str, or None."""
        if isinstance(vocabulary, str | os.PathLike):
            vocabulary = Vocabulary.read(vocabulary)
        elif vocabulary is not None:
            vocabulary = Vocabulary(vocabulary)
        if vocabulary is not None:
            vocabulary.check_special_tokens(
                {
                    "unknown_token": self.unknown_token,
                    "start_token": self.start_token,
                    "end_token": self.end_token,
                    "pad_token": self.pad_token,
                }
            )
        ids = {} if vocabulary is None else vocabulary.ids
        self.unknown_token_id = ids.get(self.unknown_token)
        self.start_token_id = ids.get(self.start_token)
        self.end_token_id = ids.get(self.end_token)
        self.pad_token_id = ids.get(self.pad_token)
        self.mask_token_id = ids.get(self.mask_token)
        self._vocabulary = vocabulary
        self._engines = _Engines()

    def __call__(self, inputs):
        # For Python text Keras' call would look at each str, which takes longer than tokenizing it.
        return super().__call__(inputs) if is_tf_tensor(inputs) else self.tokenize(inputs)

    def call(self, inputs):
        return self.tokenize(inputs)

    def tokenize(self, inputs):
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

    def tokenize_flat(self, texts):
        """The fastest form for many texts.

        Args:
            texts: list, tuple or array of n str or bytes.

        Returns:
            `(ids, lengths)`: int32 array of the ids of all texts in a row, int64 array (n,) of how
            many each has.
        """
        texts, _ = canonicalize_texts(texts)
        return self._eager_engine().tokenize_flat(texts)

    def tokenize_words(self, words):
        """As `tokenize_flat`, for words that are parts of a text; here a word is a text."""
        return self.tokenize_flat(words)

    def tokenize_with_offsets(self, inputs):
        """Texts to ids and where each came from.

        Args:
            inputs: as for `tokenize`.

        Returns:
            For a text `(ids, offsets, word_starts)`: list of int; list of `(start, end)` such that
            `text[start:end]` is what the piece was made from; list of bool, False for pieces that
            continue a word. Offsets count characters (of the decoded text for bytes). For n texts,
            n such tuples.

            For tensors `(ids, starts, ends, word_starts)`, each shaped as by `tokenize`; int64
            offsets count bytes.

        A piece spans every character that it has a part of, so that two pieces of one character
        have the same span, and deleted characters belong to what they follow.
        """
        if is_tf_tensor(inputs):
            return self._graph_engine().tokenize_with_offsets(inputs)
        texts, batched = canonicalize_texts(inputs)
        engine = self._eager_engine()
        rows = []
        for text in texts:
            ids, offsets = engine.tokenize_with_offsets(text)
            tokens = map(self._vocabulary.tokens.__getitem__, ids)
            rows.append((ids, offsets, [not t.startswith(CONTINUATION_PREFIX) for t in tokens]))
        return rows if batched else rows[0]

    def detokenize(self, inputs):
        """Ids to text: pieces joined to words, words by a space.

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
        words = []
        for id in inputs:
            token = self.id_to_token(int(id))
            if words and token.startswith(CONTINUATION_PREFIX):
                words[-1] += token[len(CONTINUATION_PREFIX) :]
            else:
                words.append(token)
        return " ".join(words)

    def get_vocabulary(self):
        """The pieces in the order of their ids, list of str."""
        return list(self._checked_vocabulary().tokens)

    def vocabulary_size(self):
        return len(self._checked_vocabulary())

    def id_to_token(self, id):
        tokens = self._checked_vocabulary().tokens
        if not 0 <= id < len(tokens):
            raise ValueError(f"`id` must be from 0 to {len(tokens) - 1}. Received: id={id}.")
        return tokens[id]

    def token_to_id(self, token):
        vocabulary = self._checked_vocabulary()
        if token not in vocabulary.ids:
            raise ValueError(
                f"{token!r} is not a piece of the {vocabulary.source}. A word that is no single "
                "piece has no id of its own: use `tokenize`."
            )
        return vocabulary.ids[token]

    @property
    def special_tokens(self):
        """Unknown, start, end, pad and, where the vocabulary has it, mask: list of str."""
        tokens = [self.unknown_token, self.start_token, self.end_token, self.pad_token]
        if self._vocabulary is None or self.mask_token_id is not None:
            tokens.append(self.mask_token)
        return list(dict.fromkeys(tokens))

    @property
    def special_token_ids(self):
        """The ids of `special_tokens`, in the same order."""
        ids = self._checked_vocabulary().ids
        return [ids[token] for token in self.special_tokens]

    def save_assets(self, dir_path):
        self._checked_vocabulary().write(os.path.join(dir_path, VOCABULARY_FILE))

    def load_assets(self, dir_path):
        self.set_vocabulary(os.path.join(dir_path, VOCABULARY_FILE))

    def get_config(self):
        config = super().get_config()
        config.update(
            {
                # Travels as an asset.
                "vocabulary": None,
                "lowercase": self.lowercase,
                "strip_accents": self.strip_accents,
                "unknown_token": self.unknown_token,
                "start_token": self.start_token,
                "end_token": self.end_token,
                "pad_token": self.pad_token,
                "mask_token": self.mask_token,
            }
        )
        return config

    def __reduce__(self):
        # Keras would pickle a whole archive; data workers need the configuration and the pieces.
        tokens = None if self._vocabulary is None else self._vocabulary.tokens
        return _restore_tokenizer, (type(self), self.get_config(), tokens)

    def _checked_vocabulary(self):
        if self._vocabulary is None:
            raise ValueError(
                f"No vocabulary has been set for {type(self).__name__} {self.name!r}. Pass "
                "`vocabulary` to the constructor, or call `set_vocabulary` or `load_assets`."
            )
        return self._vocabulary

    def _eager_engine(self):
        return self._engines.get(CachedWordPiece, self._engine_arguments)

    def _graph_engine(self):
        return self._engines.get(FastGraphTokenizer, self._engine_arguments)

    def _engine_arguments(self):
        strip_accents = self.lowercase if self.strip_accents is None else self.strip_accents
        return self._checked_vocabulary(), self.unknown_token, self.lowercase, strip_accents


class _Engines:
    """The engines of one vocabulary, each built when first needed, once for all threads."""

    def __init__(self):
        self._lock = threading.Lock()
        self._built = {}

    def get(self, engine_class, arguments):
        if engine_class not in self._built:
            with self._lock:
                if engine_class not in self._built:
                    self._built[engine_class] = engine_class(*arguments())
        return self._built[engine_class]


def _restore_tokenizer(cls, config, tokens):
    tokenizer = cls.from_config(config)
    tokenizer.set_vocabulary(tokens)
    return tokenizer
