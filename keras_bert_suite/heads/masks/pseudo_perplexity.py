"""Measures how much texts surprise a model that guesses masked tokens."""

import numpy as np

from keras_bert_suite.heads.base.probabilities import softmax
from keras_bert_suite.masking.maskable_units import MaskVocabulary, UnitFinder


def measure_surprise(task, texts, batch_size, whole_words):
    """See `MaskedLM.pseudo_perplexity`."""
    task.data.check_masks()
    packed = task.data.pack_texts(task.data.read(texts).inputs)
    tokenizer = task.preprocessor.tokenizer
    ids, real = packed["token_ids"], packed["padding_mask"] != 0
    eligible = real & ~np.isin(ids, tokenizer.special_token_ids)
    # The unknown token is special, but it stands for a token of the text.
    eligible |= real & (ids == tokenizer.unknown_token_id)
    vocabulary = MaskVocabulary(tokenizer, ordinary_only=False)
    begins, _ = UnitFinder(vocabulary).find(ids, eligible)
    words = np.cumsum(begins, axis=1)
    rows, positions = np.nonzero(eligible)
    surprise = np.zeros(len(ids))
    for start in range(0, len(rows), batch_size):
        row, position = rows[start : start + batch_size], positions[start : start + batch_size]
        copies = {name: column[row].copy() for name, column in packed.items()}
        hidden = np.arange(ids.shape[1]) == position[:, None]
        if whole_words:
            same_word = words[row] == words[row, position][:, None]
            hidden |= same_word & (np.arange(ids.shape[1]) > position[:, None])
        copies["token_ids"][hidden] = tokenizer.mask_token_id
        logits = task.predict_on_batch(
            {**copies, "mask_positions": position[:, None].astype("int32")}
        )
        true = ids[row, position]
        probabilities = softmax(np.asarray(logits, "float32"))[np.arange(len(row)), 0, true]
        np.subtract.at(surprise, row, np.log(probabilities))
    with np.errstate(invalid="ignore"):
        return np.exp(surprise / eligible.sum(axis=1))
