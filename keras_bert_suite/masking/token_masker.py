"""Masks packed token ids, and lists the tokens to predict."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import keras
import keras_hub
import numpy as np

from keras_bert_suite.annotations import Tensor
from keras_bert_suite.argument_checks import check_choice, check_integer, check_share, with_article
from keras_bert_suite.masking.masking_layer import MaskingLayer, check_rows
from keras_bert_suite.masking.row_masker import RowMasker
from keras_bert_suite.masking.token_replacement import check_replacement, count_predictions
from keras_bert_suite.masking.word_segmenters import name_segmenter

UNITS = ("token", "word", "span", "ngram")
RANDOM_TOKENS = ("ordinary", "vocabulary")


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class TokenMasker(MaskingLayer):
    """Hides tokens of packed rows, for masked language modelling.

    A row of n tokens, with special tokens, has a budget of `max(1, round(rate * n))` tokens, but at
    most `max_predictions`. The masker chooses this many tokens, or fewer if whole units do not fill
    the budget. Special tokens, including the unknown token, and padding are never chosen. By
    default, 80% of the chosen tokens become the mask token, 10% become a random token, and 10% stay
    as they are.

    The masks of a row depend only on the seed, the epoch and the id of the row. The other rows,
    their order, the padding, the backend and the number of workers do not change them.

    ```python
    packer = SegmentPacker(tokenizer, sequence_length=128)
    masker = TokenMasker(tokenizer, unit="word", max_predictions=20)
    masker(packer(["a text", "another"]), row_ids=[0, 1], epoch=3)
    ```

    In `tf.data` the rows are numbered before they are batched, and an epoch is a dataset:

    ```python
    def mask(row_ids, texts):
        return masker(packer(texts), row_ids, epoch=epoch)

    dataset = tf.data.TextLineDataset("corpus.txt").enumerate().batch(256).map(mask)
    ```

    Units:
        "token": every token by itself.
        "word": a token and the tokens that continue it, for WordPiece the `##` tokens. With
            SentencePiece and byte pairs, a word begins at a space, and before and after punctuation
            and CJK characters. It cannot begin within a token. A word that would exceed the budget
            is skipped, not cut (Google's whole word masking).
        "span": groups of 1 to `max_span_length` words. Their lengths have a geometric
            distribution (SpanBERT, Joshi et al., 2020, https://arxiv.org/abs/1907.10529).
            A group ends early at a special token, at an earlier group, and before a word that
            would exceed the budget. SpanBERT's code cuts such a word, and lets groups overlap.
        "ngram": groups of n words, n drawn by `ngram_shares` (ALBERT, Lan et al., 2020,
            https://arxiv.org/abs/1909.11942). A group that would exceed the budget is shortened by
            whole words. A group that meets an earlier group is skipped. Groups end at special
            tokens. Google's code lets groups cross [SEP].

    Args:
        tokenizer: a tokenizer of this package whose vocabulary has the mask token. The vocabulary
            is read once: here, or at the first call if the tokenizer has no vocabulary yet.
        rate: float from 0 to 1, the share of tokens to choose. 0 chooses no token, so that a
            `Pretrainer` learns how two texts are related, and nothing else.
        unit: "token", "word", "span" or "ngram".
        mask_token_rate: float, the share of the chosen tokens that become the mask token, or with
            `similar_words` a similar word.
        random_token_rate: float, the share of the chosen tokens that become a random token. The
            rest stay as they are. With "span" the choice is made once for each span, otherwise for
            each token, also within words and n-grams.
        max_predictions: int, P. None sets P to the budget of a row of the padded length.
        random_tokens: "ordinary" draws random tokens from the vocabulary without special tokens
            and unused tokens, "vocabulary" from the whole vocabulary, as Google's code does.
        word_segmenter: "jieba", or a function from a str to the list of its words, for a
            `WordPieceTokenizer`. BERT reads each CJK character as a word. The segmenter gets each
            sequence of such characters. For "word", "span" and "ngram", the words of the segmenter
            are then the words. `jieba.lcut` is kept by its name. Another function that is saved
            with the layer, or sent to other processes, must be at the top of a module, registered
            with `keras.saving.register_keras_serializable`.
        span_probability: float above 0, at most 1, the parameter of the geometric distribution: the
            probability that a span ends at each of its words.
        max_span_length: int, in words. The distribution is renormalised over the lengths from 1 to
            `max_span_length`.
        ngram_shares: floats, how often n-grams of 1, 2 and so on words are drawn. The shares of
            ALBERT are 1 : 1/2 : 1/3, the default. The shares of MacBERT are `(0.4, 0.3, 0.2, 0.1)`.
        dynamic: bool. False gives a row the same masks in every epoch.
        seed: int, not negative.
        phrases: the phrases or entities that are masked as one word, as in ERNIE 1.0 (Sun et al.,
            2019, https://arxiv.org/abs/1904.09223), for "word", "span" and "ngram". Either a
            lexicon, a list or set of str. Then the longest phrase that begins at a word is taken,
            from left to right. Or a function that finds them. It gets the n words between two
            special tokens, a list of str, and returns ranges: pairs `(start, end)` with
            0 <= start < end <= n, in order and without overlap. It must always return the same
            ranges for the same words, and is saved as `word_segmenter` is. Phrases hold whole
            words. ERNIE trains on words, phrases and entities in turn; this takes a masker for
            each.
        unit_weights: how likely each unit is to be masked; None for equal weights. Either float
            (V,), positive, a weight for each token: a unit has the greatest weight of its tokens.
            Or a mapping of words and phrases, str, to weights: all other units have the weight 1.
            Each next unit is drawn from the units that are left, with a probability in proportion
            to its weight. With "span" and "ngram" this is the first unit of a group.
            `rarity_weights` makes weights from counts, so that rare words are masked more often.
        similar_words: mapping of words to similar words, str, which take the place of the mask
            token, as in MacBERT (Cui et al., 2020, https://arxiv.org/abs/2004.13922). The choice
            between similar word, random tokens and the word itself is then made once for each word.
            A word without a similar word of as many tokens becomes random tokens.
            `find_similar_words` finds such words by vectors. The masks of MacBERT are
            `unit="ngram"`, `ngram_shares=(0.4, 0.3, 0.2, 0.1)`.
    """

    def __init__(
        self,
        tokenizer: keras_hub.tokenizers.Tokenizer,
        rate: float = 0.15,
        unit: str = "token",
        mask_token_rate: float = 0.8,
        random_token_rate: float = 0.1,
        max_predictions: int | None = None,
        random_tokens: str = "ordinary",
        word_segmenter: str | Callable[[str], list[str]] | None = None,
        span_probability: float = 0.2,
        max_span_length: int = 10,
        ngram_shares: Sequence[float] = (6 / 11, 3 / 11, 2 / 11),
        dynamic: bool = True,
        seed: int = 0,
        phrases: Collection[str] | Callable[[list[str]], list[tuple[int, int]]] | None = None,
        unit_weights: Mapping[str, float] | Sequence[float] | np.ndarray | None = None,
        similar_words: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.built = True  # as a `TextTokenizer` is
        check_choice("unit", unit, UNITS)
        check_choice("random_tokens", random_tokens, RANDOM_TOKENS)
        check_share("rate", rate)
        check_replacement(
            mask_token_rate, random_token_rate, "The rest of the tokens stays as it is."
        )
        if max_predictions is not None:
            check_integer("max_predictions", max_predictions, at_least=1)
        _check_word_arguments(unit, tokenizer, word_segmenter, phrases, similar_words)
        check_share("span_probability", span_probability, positive=True)
        check_integer("max_span_length", max_span_length, at_least=1)
        if not len(ngram_shares) or not min(ngram_shares) > 0:
            raise ValueError(f"ngram_shares must be positive numbers, got {ngram_shares}.")
        check_integer("seed", seed)
        self.tokenizer = tokenizer
        self.rate = rate
        self.unit = unit
        self.mask_token_rate = mask_token_rate
        self.random_token_rate = random_token_rate
        self.max_predictions = max_predictions
        self.random_tokens = random_tokens
        self.word_segmenter = name_segmenter(word_segmenter)
        if phrases is not None and not callable(phrases):
            phrases = tuple(sorted(set(phrases)))  # A set has no order.
        self.phrases = phrases
        self.unit_weights = unit_weights
        self.similar_words = similar_words
        self.span_probability = span_probability
        self.max_span_length = max_span_length
        self.ngram_shares = tuple(ngram_shares)
        self.dynamic = dynamic
        self.seed = seed
        self._row_masker = None
        # A tokenizer that is being loaded gets its vocabulary later.
        if tokenizer.pad_token_id is not None:
            self._row_masker = RowMasker(self)

    def call(
        self, inputs: Mapping[str, Tensor], row_ids: Tensor, epoch: Tensor = 0
    ) -> dict[str, Tensor]:
        """Masks a batch.

        Args:
            inputs: dict from `SegmentPacker`: `token_ids` and `padding_mask`, int (B, L). Other
                entries are passed on. NumPy arrays or TensorFlow tensors; (L,) for a row without a
                batch.
            row_ids: int (B,), () without a batch; the number of each row in the dataset.
            epoch: int, not negative; may be a TensorFlow tensor ().

        Returns:
            dict of `inputs` with masked `token_ids`, and of three further arrays, which are (P,)
            without a batch:
            `mask_positions` int32 (B, P), ascending;
            `mask_ids` int32 (B, P), the original tokens at these positions;
            `mask_weights` float32 (B, P), 1 for predictions. All three are 0 in unused slots. The
            arrays are tensors if an argument was a TensorFlow tensor.

        Raises:
            ValueError: if a key is missing, or a row id or the epoch is negative or no integer.
                Inside a TensorFlow graph ValueErrors are `tf.errors.InvalidArgumentError`.
        """
        token_ids = inputs["token_ids"]
        check_rows(token_ids, row_ids, epoch)
        if self._row_masker is None:
            self._row_masker = RowMasker(self)
        masked = self._row_masker.mask(token_ids, inputs["padding_mask"], row_ids, int(epoch))
        return {**inputs, **masked}

    def count_slots(self, length: int) -> int:
        """The number P of slots for predictions in rows that are padded to `length`."""
        return self.max_predictions or max(1, int(count_predictions(length, self.rate)))

    def check_task(self, task: keras.Model) -> None:
        """Raises a ValueError if a task has nothing to learn; see `PretrainingBatches`."""
        if self.rate == 0 and not getattr(task, "next_sentence", False):
            raise ValueError(
                "TokenMasker(rate=0) masks no token, so only the relation of two texts can be "
                f"learned, for which the {type(task).__name__} has no head. Mask some tokens, or "
                "train a Pretrainer(next_sentence=True) on pairs."
            )


def _check_word_arguments(unit, tokenizer, word_segmenter, phrases, similar_words):
    """Raises a ValueError if an argument about words does not fit the unit or the tokenizer."""
    of_words = {
        "word_segmenter": word_segmenter,
        "phrases": phrases,
        "similar_words": similar_words,
    }
    for name, value in of_words.items():
        if value is not None and unit == "token":
            raise ValueError(
                f'unit="token" has no use for {name}; choose "word", "span" or "ngram".'
            )
    if word_segmenter is not None and not tokenizer.has_cjk_pieces:
        raise ValueError(
            f"word_segmenter joins tokens that are one Chinese character, and "
            f"{with_article(tokenizer)} has none. Leave the segmenter out."
        )
    if isinstance(phrases, str):
        raise ValueError(f"phrases must be a list or set of str, got {phrases!r}.")
