"""Makes the targets of permutation language modelling, and the order in which they are seen."""

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import keras
import keras_hub
import numpy as np

from keras_bert_suite.annotations import Tensor
from keras_bert_suite.argument_checks import check_choice, check_integer, check_share, with_article
from keras_bert_suite.masking.maskable_units import MaskVocabulary, UnitFinder
from keras_bert_suite.masking.masking_layer import MaskingLayer, check_rows
from keras_bert_suite.masking.permutations import choose_spaced_spans, order_blocks, rank_part
from keras_bert_suite.masking.ragged_rows import RaggedRows, pack_rows
from keras_bert_suite.masking.token_replacement import (
    count_predictions,
    draw_uniforms,
    list_predictions,
)

SPAN_UNITS = ("piece", "word")

#: The token between two documents, if a vocabulary has it.
END_OF_DOCUMENT = "<eod>"


def default_reuse_length(sequence_length: int) -> int:
    """The tokens of the first part of a row, where no `reuse_length` is given."""
    return sequence_length // 2


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class PermutationTargets(MaskingLayer):
    """The targets of XLNet: tokens are predicted in a random order, each from those before it.

    No token is replaced. The arrays say which tokens are predicted, and by `query_ranks` and
    `key_ranks` which tokens a token sees: those whose key rank is below its query rank, and in the
    content stream also itself. The layer is called like a `TokenMasker` and takes its place, also
    in `PretrainingBatches`. A `Pretrainer(next_sentence=False)` on an `XLNetBackbone` learns from
    the batches.

    ```python
    targets = PermutationTargets(tokenizer)
    batches = PretrainingBatches(
        corpus, targets, 512, batch_size=32, mode="context_pairs", short_seq_prob=0.0
    )
    ```

    A row has two parts. The first `reuse_length` tokens are permuted by themselves, and see nothing
    of the second part. The tokens of the second part see the whole first part. With
    `mode="context_pairs"` a row is that of the original: a context that fills the first part, and
    then a pair of texts, `A <sep> B <sep> <cls>`. A is the text behind the context, and the
    next row of the document has the context behind this one.

    Of n tokens, `rate * n` are predicted, half of them in each part. They are chosen in spans as
    `choose_spaced_spans` says. [CLS] and [SEP] may be chosen, but are not predicted, so a row has
    some targets less.

    What is drawn for a row depends only on the seed, the epoch and the id of the row.

    Args:
        tokenizer: a tokenizer of this package, with a mask token.
        rate: float from 0 to 1, the share of tokens to choose.
        span_unit: "piece" counts the length of a span in tokens, as the original code does. "word"
            counts whole words, as the paper says, and fills up with whole words. A span starts at
            the beginning of a word in both.
        max_gram: int, the maximum length of a span, in units.
        alpha, beta: int, a span of n units has `n * alpha // beta` tokens around it that are not
            chosen. Their quotient is K in the paper.
        reuse_length: int, the number of tokens of the first part. None is half of the row; 0 is a
            row of one part.
        perm_size: int, the number of tokens of the blocks that are permuted one after the other,
            all in the same order. None is a whole part.
        backward: bool, for rows whose texts are read from the end, such as those of a
            `ReversedCorpus`. Spans are then chosen from the beginning of the text.
        max_predictions: int, P, the maximum number of chosen tokens. None sets P to that of a row
            of the padded length.
        dynamic: bool. False gives a row the same targets in every epoch.
        seed: int, not negative.

    Source: Yang et al., 2019 (https://arxiv.org/abs/1906.08237), and zihangdai/xlnet,
    data_utils.py. The original marks with a span start the pieces that begin with a space or with
    "<", and ASCII punctuation. Here a span starts where a word of `TokenMasker(unit="word")` does.
    """

    def __init__(
        self,
        tokenizer: keras_hub.tokenizers.Tokenizer,
        rate: float = 1 / 6,
        span_unit: str = "piece",
        max_gram: int = 5,
        alpha: int = 6,
        beta: int = 1,
        reuse_length: int | None = None,
        perm_size: int | None = None,
        backward: bool = False,
        max_predictions: int | None = None,
        dynamic: bool = True,
        seed: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.built = True  # as a `TextTokenizer` is
        check_share("rate", rate, positive=True)
        check_choice("span_unit", span_unit, SPAN_UNITS)
        for name, value in {"max_gram": max_gram, "alpha": alpha, "beta": beta}.items():
            check_integer(name, value, at_least=1)
        if reuse_length is not None:
            check_integer("reuse_length", reuse_length)
        if perm_size is not None:
            check_integer("perm_size", perm_size, at_least=1)
        if max_predictions is not None:
            check_integer("max_predictions", max_predictions, at_least=1)
        check_integer("seed", seed)
        self.tokenizer = tokenizer
        self.rate = rate
        self.span_unit = span_unit
        self.max_gram = max_gram
        self.alpha = alpha
        self.beta = beta
        self.reuse_length = reuse_length
        self.perm_size = perm_size
        self.backward = backward
        self.max_predictions = max_predictions
        self.dynamic = dynamic
        self.seed = seed
        self._units = None

    def call(
        self, inputs: Mapping[str, Tensor], row_ids: Tensor, epoch: Tensor = 0
    ) -> dict[str, Tensor]:
        """Draws targets and orders for a batch.

        Args:
            inputs, row_ids, epoch: as for `TokenMasker`.

        Returns:
            dict of `inputs` and six further arrays: `query_ranks` and `key_ranks` int32 (B, L);
            `is_reversed` int32 (B, 1), 1 with `backward`; `mask_positions` int32 (B, P), the
            targets, ascending; `mask_ids` int32 (B, P), their tokens; `mask_weights` float32
            (B, P), 1 for targets. The last three are 0 in unused slots.

        Raises:
            ValueError: as `TokenMasker`, or if `reuse_length` leaves a row no second part.
        """
        token_ids, is_token = inputs["token_ids"], inputs["padding_mask"] != 0
        check_rows(token_ids, row_ids, epoch)
        tokenizer, length = self.tokenizer, token_ids.shape[1]
        draws = draw_uniforms(self.seed, int(epoch) if self.dynamic else 0, row_ids, length)
        words = self._find_words(token_ids, is_token)
        is_functional = np.isin(token_ids, [tokenizer.start_token_id, tokenizer.end_token_id])
        is_functional |= ~is_token
        num_slots = self.count_slots(length)
        reused = self.count_context(length)
        num_chosen = min(num_slots, self._count_chosen(length))
        later = num_chosen // 2 if reused else num_chosen
        is_target = np.zeros_like(is_token)
        ranks = np.zeros((2, *token_ids.shape), "int32")
        for columns, goal, above in (
            (slice(0, reused), num_chosen - later, 0),
            # The queries of the second part rank above all keys of the first, and its keys above
            # all queries.
            (slice(reused, length), later, reused + 1),
        ):
            part = draws[:, columns]
            chosen = self._choose(words[:, columns], is_token[:, columns], goal, part[:, :, :3])
            order = order_blocks(part[:, :, 3], self.perm_size or max(part.shape[1], 1))
            of_part = rank_part(order, chosen, is_functional[:, columns])
            ranks[:, :, columns] = np.stack(of_part) + above
            is_target[:, columns] = chosen & ~is_functional[:, columns]
        rows, places = np.nonzero(is_target)
        shape = len(token_ids), num_slots
        return {
            **inputs,
            "query_ranks": ranks[0],
            "key_ranks": ranks[1],
            "is_reversed": np.full((len(token_ids), 1), self.backward, "int32"),
            **list_predictions(rows, places, token_ids[rows, places], shape),
        }

    def _find_words(self, token_ids, is_token):
        """bool (B, L), the first token of each word in the order of the text."""
        if self._units is None:
            self._vocabulary = MaskVocabulary(self.tokenizer, ordinary_only=False)
            self._units = UnitFinder(self._vocabulary)
        token_ids, is_token = self._turn(token_ids), self._turn(is_token)
        words, _ = self._units.find(token_ids, self._vocabulary.eligible[token_ids] & is_token)
        return self._turn(words)

    def _choose(self, words, is_token, goal, draws):
        """The chosen tokens of a part, bool (B, L). A part with padding has a smaller goal."""
        if not words.shape[1]:
            return words
        goals = np.rint(goal * is_token.sum(axis=1) / words.shape[1]).astype("int64")
        words, is_token = self._turn(words), self._turn(is_token)
        begins = words.copy() if self.span_unit == "word" else np.ones_like(words)
        begins[:, 0] = True  # A part may begin within a word.
        spacing = self.max_gram, self.alpha, self.beta
        chosen = choose_spaced_spans(words & is_token, begins, is_token, goals, draws, *spacing)
        return self._turn(chosen)

    def _turn(self, array):
        return array[:, ::-1] if self.backward else array

    def make_arrays(
        self, texts: Sequence[RaggedRows], sequence_length: int, row_ids: np.ndarray, epoch: int
    ) -> dict[str, np.ndarray]:
        """As for `MaskingLayer`, or for three texts: contexts of `reuse_length` tokens, and pairs.

        A context has the segment of the first text, and no special tokens.
        """
        if len(texts) < 3:
            return super().make_arrays(texts, sequence_length, row_ids, epoch)
        context, *pair = texts
        reused = self.count_context(sequence_length)
        packed = pack_rows(self.tokenizer, pair, sequence_length - reused)
        before = {"token_ids": context["token_ids"].reshape(-1, reused).astype("int32")}
        before["padding_mask"] = np.ones_like(before["token_ids"])
        before["segment_ids"] = np.zeros_like(before["token_ids"])
        rows = {
            name: np.concatenate([before[name], array], axis=1) for name, array in packed.items()
        }
        return self(rows, row_ids, epoch)

    def count_context(self, sequence_length: int) -> int:
        """int, the number of tokens of the first part of a row."""
        reused = self.reuse_length
        if reused is None:
            return default_reuse_length(sequence_length)
        if reused >= sequence_length:
            raise ValueError(
                f"reuse_length={reused} leaves no second part in rows of {sequence_length} tokens. "
                "Use a smaller one, or longer rows."
            )
        return reused

    @functools.cached_property
    def separator_id(self) -> int:
        """int, the token between two documents: <eod> if the vocabulary has it, else [SEP]."""
        tokenizer = self.tokenizer
        if END_OF_DOCUMENT in tokenizer.get_vocabulary():
            return int(tokenizer.token_to_id(END_OF_DOCUMENT))
        return tokenizer.end_token_id

    def count_slots(self, length: int) -> int:
        """The number P of slots for targets in rows that are padded to `length`."""
        return self.max_predictions or self._count_chosen(length)

    def _count_chosen(self, length):
        """int, the tokens that `rate` chooses of a row without padding."""
        return max(1, int(count_predictions(length, self.rate)))

    def check_task(self, task: keras.Model) -> None:
        """Raises a ValueError if a task cannot learn from these targets.

        Its backbone must hide the targets by their ranks, and know rows in reverse order.
        """
        missing = [name for name in ("query_ranks", "key_ranks") if name not in task.input]
        if missing:
            raise ValueError(
                f"PermutationTargets say by {' and '.join(missing)} which tokens a token sees. "
                f"{with_article(task.backbone, 'A')} without these inputs would see its targets. "
                "Build the task on an XLNetBackbone with attention_pattern='permuted'."
            )
        if self.backward and "is_reversed" not in task.input:
            raise ValueError(
                f"The rows of PermutationTargets(backward=True) are in reverse order, which this "
                f"{type(task.backbone).__name__} does not know. Build it with reversed_rows=True."
            )
