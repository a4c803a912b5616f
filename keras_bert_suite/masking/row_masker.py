"""Masks packed rows of token ids: the NumPy computation of `TokenMasker`.

B batch, L length, P predictions.
"""

from collections.abc import Mapping

import numpy as np

from keras_bert_suite.masking.maskable_units import (
    LexiconPhrases,
    MaskVocabulary,
    TaggedPhrases,
    UnitFinder,
    find_first_columns,
)
from keras_bert_suite.masking.similar_words import SimilarWords
from keras_bert_suite.masking.token_replacement import (
    count_predictions,
    draw_uniforms,
    list_predictions,
    replace_tokens,
)
from keras_bert_suite.masking.unit_choice import choose_groups, choose_units, geometric_shares
from keras_bert_suite.masking.unit_weights import PhraseWeights, TokenWeights, weigh_keys
from keras_bert_suite.masking.word_segmenters import find_segmenter


class RowMasker:
    """Masks batches as the arguments of a `TokenMasker` say. `MaskVocabulary` names its errors."""

    def __init__(self, settings):
        self._settings = settings
        self._vocabulary = MaskVocabulary(
            settings.tokenizer, ordinary_only=settings.random_tokens == "ordinary"
        )
        tokenizer = settings.tokenizer
        is_mapping = isinstance(settings.unit_weights, Mapping)
        makers = (
            (TaggedPhrases if callable(settings.phrases) else LexiconPhrases, settings.phrases),
            (PhraseWeights if is_mapping else TokenWeights, settings.unit_weights),
            (SimilarWords, settings.similar_words),
        )
        phrases, self._weights, self._similar_words = (
            None if argument is None else make(tokenizer, argument) for make, argument in makers
        )
        self._units = UnitFinder(self._vocabulary, find_segmenter(settings.word_segmenter), phrases)

    def mask(self, token_ids, padding_mask, row_ids, epoch):
        """Masks a batch (B, L), by the ids of its rows, int (B,), and the epoch.

        The result is a dict of the masked `token_ids`, and the arrays of `list_predictions`.
        """
        settings = self._settings
        length = token_ids.shape[1]
        draws = draw_uniforms(settings.seed, epoch if settings.dynamic else 0, row_ids, length)
        keys, kinds, fillers, group_lengths = np.moveaxis(draws, -1, 0)
        eligible = self._vocabulary.eligible[token_ids] & (padding_mask != 0)
        budget = count_predictions(
            np.count_nonzero(padding_mask, axis=1), settings.rate, settings.max_predictions
        )
        if settings.unit == "token":
            words = units = np.ones_like(eligible)
        else:
            words, units = self._units.find(token_ids, eligible)
        if self._weights is not None and units.size:
            weights = self._weights.weigh(token_ids, units)
            keys = keys.copy()
            keys[units] = weigh_keys(keys[units], weights, self._weights.least)
        first = self._choose(units, eligible, keys, group_lengths, budget)
        rows, columns = np.nonzero(first >= 0)
        originals = token_ids[rows, columns]
        substitutes = self._vocabulary.mask_token_id
        # The column whose random number decides how a token is replaced.
        kind_columns = first[rows, columns] if settings.unit == "span" else columns
        if self._similar_words is not None:
            substitutes = self._similar_words.find(token_ids, words)[rows, columns]
            kind_columns = find_first_columns(words)[rows, columns]
        masked = token_ids.copy()
        masked[rows, columns] = replace_tokens(
            originals,
            substitutes,
            kinds[rows, kind_columns],
            fillers[rows, columns],
            self._vocabulary.random_ids,
            settings.mask_token_rate,
            settings.random_token_rate,
        )
        shape = len(token_ids), settings.count_slots(length)
        return {"token_ids": masked, **list_predictions(rows, columns, originals, shape)}

    def _choose(self, units, eligible, keys, group_lengths, budget):
        """int64 (B, L), as `choose_units` and `choose_groups` return."""
        settings = self._settings
        if settings.unit in ("token", "word"):
            return choose_units(units, eligible, keys, budget)
        spans = settings.unit == "span"
        shares = settings.ngram_shares
        if spans:
            shares = geometric_shares(settings.span_probability, settings.max_span_length)
        return choose_groups(units, eligible, keys, group_lengths, shares, budget, clip=spans)
