"""Guesses masked tokens with a pretrained model."""

import numpy as np

from keras_bert_suite.models.model_inputs import select_inputs
from keras_bert_suite.preprocessing.masking.maskable_units import MaskVocabulary, UnitFinder
from keras_bert_suite.preprocessing.packing import NUMPY, pack_segments
from keras_bert_suite.tasks.base.predicting import softmax


def check_can_read(task):
    """Raises a `ValueError` if a task has no preprocessor, or reads only one side of a mask."""
    pattern = getattr(task.backbone, "attention_pattern", "bidirectional")
    if pattern in ("left_to_right", "right_to_left"):
        raise ValueError(
            f"{task.name} reads in one direction (attention_pattern={pattern!r}) and guesses the "
            "token beside a mask, not the masked one. Ask a model that was trained on masks."
        )
    if task.preprocessor is None:
        raise ValueError(
            f"{task.name} has no preprocessor to read texts with. Set `preprocessor` to a "
            "SegmentPacker with the tokenizer of the corpus."
        )


def pack_masked_texts(task, segments):
    """Packs texts that have the tokenizer's mask token instead of some tokens.

    Args:
        task: task with a `SegmentPacker`.
        segments: tuple of one column of B texts.

    Returns:
        dict of the inputs of the backbone, int32 (B, L), and `mask_positions`, int32 (B, P), 0
        after the last mask of a text.

    Raises:
        ValueError: if there are several columns, a text has no mask, or a mask is beyond
            `sequence_length`.
    """
    if len(segments) != 1:
        raise ValueError(
            f"Masks are guessed in single texts, got rows of {len(segments)} texts. Join the texts "
            "of a row."
        )
    packer, tokenizer = task.preprocessor, task.preprocessor.tokenizer
    texts = list(segments[0])
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
    return {**select_inputs(task.backbone, packed), "mask_positions": positions}


def rank_tokens(logits, top_k, allowed=None):
    """float64 (..., top_k, 2): the ids of the best tokens, and their probabilities.

    Args:
        logits: float (..., V).
        top_k: int.
        allowed: bool (V,), the tokens that may be guessed, or None for all tokens.
    """
    probabilities = softmax(np.asarray(logits, "float32"))
    scores = probabilities if allowed is None else np.where(allowed, probabilities, -1)
    best = np.argsort(-scores, axis=-1, kind="stable")[..., :top_k]
    return np.stack([best, np.take_along_axis(probabilities, best, axis=-1)], axis=-1)


def name_guesses(tokenizer, ranked, segments):
    """The guesses for each text: for each mask a list of pairs (token, probability).

    `ranked` has an array (P, K, 2) for each text, from `rank_tokens`.
    """
    counts = [len(tokenizer.split_at_masks(text)) - 1 for text in segments[0]]
    return [
        [
            [(tokenizer.id_to_token(int(token)), float(probability)) for token, probability in slot]
            for slot in slots[:count]
        ]
        for slots, count in zip(ranked, counts, strict=True)
    ]


def score_texts(task, texts, batch_size, whole_words):
    """See `MaskedLM.pseudo_perplexity`."""
    texts = task.read_rows(texts).inputs
    packed = task.pack_texts(texts)
    tokenizer = task.preprocessor.tokenizer
    ids, real = packed["token_ids"], packed["padding_mask"] != 0
    eligible = real & ~np.isin(ids, tokenizer.special_token_ids)
    # The unknown token is special, but it stands for a token of the text.
    eligible |= real & (ids == tokenizer.unknown_token_id)
    vocabulary = MaskVocabulary(tokenizer, ordinary_only=False)
    begins, _ = UnitFinder(vocabulary).find(ids, eligible)
    words = np.cumsum(begins, axis=1)
    rows, places = np.nonzero(eligible)
    surprise = np.zeros(len(ids))
    for start in range(0, len(rows), batch_size):
        row, place = rows[start : start + batch_size], places[start : start + batch_size]
        copies = {name: column[row].copy() for name, column in packed.items()}
        hidden = np.arange(ids.shape[1]) == place[:, None]
        if whole_words:
            same_word = words[row] == words[row, place][:, None]
            hidden |= same_word & (np.arange(ids.shape[1]) > place[:, None])
        copies["token_ids"][hidden] = tokenizer.mask_token_id
        logits = task.predict_on_batch({**copies, "mask_positions": place[:, None].astype("int32")})
        true = ids[row, place]
        probabilities = softmax(np.asarray(logits, "float32"))[np.arange(len(row)), 0, true]
        np.subtract.at(surprise, row, np.log(probabilities))
    with np.errstate(invalid="ignore"):
        return np.exp(surprise / eligible.sum(axis=1))


def _tokenize(tokenizer, text):
    """int32 (n,), the ids of a text. Masks get their id; the tokenizer would split them."""
    parts = [tokenizer.tokenize(part) for part in tokenizer.split_at_masks(text)]
    ids = parts[0]
    for part in parts[1:]:
        ids = [*ids, tokenizer.mask_token_id, *part]
    return np.array(ids, "int32")
