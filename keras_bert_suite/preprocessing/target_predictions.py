"""Finds the tokens of a packed pair that predict the tokens of its target."""

import numpy as np


def find_predictions(
    packed: dict[str, np.ndarray], fixed_shape: bool = False
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The tokens of pairs that predict the next token, and these tokens.

    >>> find_predictions({"token_ids": [[2, 7, 3, 8, 3, 0]], "segment_ids": [[0, 0, 0, 1, 1, 0]]})
    ([[2, 3]], [[8, 3]], [[1.0, 1.0]])

    Args:
        packed: dict of int32 (B, L), `token_ids` and `segment_ids`, 1 on the target and its [SEP].
        fixed_shape: bool, whether P is L - 1 and not the number of tokens of the longest target.
            So a step that is compiled for each shape is compiled for each L only.

    Returns:
        tuple (positions int32 (B, P), labels int32 (B, P), weights float32 (B, P)). Slots without
        a token have weight 0.
    """
    token_ids, segment_ids = (np.asarray(packed[n]) for n in ("token_ids", "segment_ids"))
    predicts = segment_ids[:, 1:] == 1
    counts = predicts.sum(axis=1)
    num_slots = predicts.shape[1] if fixed_shape else max(int(counts.max(initial=0)), 1)
    slots = np.arange(num_slots) < counts[:, None]
    positions = np.zeros(slots.shape, "int32")
    positions[slots] = np.nonzero(predicts)[1]
    labels = np.take_along_axis(token_ids, positions + 1, axis=1).astype("int32")
    return positions, labels * slots, slots.astype("float32")
