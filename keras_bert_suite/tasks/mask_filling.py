"""Guesses masked tokens with a pretrained model."""

import numpy as np

from keras_bert_suite.preprocessing.packing import NUMPY, pack_segments
from keras_bert_suite.tasks.predicting import softmax


def fill_masks(pretrainer, packer, texts, top_k):
    """See `Pretrainer.fill_mask`."""
    tokenizer = packer.tokenizer
    rows = [_tokenize(tokenizer, text) for text in texts]
    for text, row in zip(texts, rows, strict=True):
        positions = 1 + np.flatnonzero(row == tokenizer.mask_token_id)
        if not len(positions):
            raise ValueError(
                f"{text!r} has no {tokenizer.mask_token}. Put one where a token is to be guessed."
            )
        if positions[-1] > packer.sequence_length - 2:
            raise ValueError(
                f"The last {tokenizer.mask_token} of {text[:40]!r} is token {positions[-1]}, "
                f"beyond sequence_length={packer.sequence_length}. Shorten the text."
            )
    lengths = np.array([len(row) for row in rows])
    packed = pack_segments(
        NUMPY,
        [(np.concatenate(rows), np.cumsum(lengths) - lengths, lengths)],
        sequence_length=packer.sequence_length,
        **tokenizer.packing_arguments,
        allowed_lengths=packer.allowed_lengths(),
    )
    masked = packed["token_ids"] == tokenizer.mask_token_id
    slots = np.arange(masked.sum(axis=1).max()) < masked.sum(axis=1)[:, None]
    positions = np.zeros(slots.shape, "int32")
    positions[slots] = np.nonzero(masked)[1]

    logits = pretrainer.predict({**packed, "mask_positions": positions}, verbose=0)["mlm"]
    probabilities = softmax(np.asarray(logits, "float32"))
    best = np.argsort(-probabilities, axis=-1, kind="stable")[..., :top_k]
    return [
        [
            [
                (tokenizer.id_to_token(int(token)), float(probabilities[row, slot, token]))
                for token in best[row, slot]
            ]
            for slot in range(slots[row].sum())
        ]
        for row in range(len(rows))
    ]


def _tokenize(tokenizer, text):
    """int32 (n,), the ids of a text. The mask token, which is no token in a text, gets its id."""
    parts = [tokenizer.tokenize(part) for part in tokenizer.split_at_masks(text)]
    ids = parts[0]
    for part in parts[1:]:
        ids = [*ids, tokenizer.mask_token_id, *part]
    return np.array(ids, "int32")
