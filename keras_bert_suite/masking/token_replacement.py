"""The steps of masking before and after `unit_choice`: random numbers, and new tokens.

Pure NumPy. B batch, L length, P predictions.
"""

from typing import Any

import numpy as np

from keras_bert_suite.argument_checks import check_share


def check_replacement(mask_token_rate: float, random_token_rate: float, rest: str) -> None:
    """Raises a ValueError if the chosen tokens cannot be replaced at these rates.

    `rest` is a sentence for the error: what becomes of the tokens that neither rate takes.
    """
    check_share("mask_token_rate", mask_token_rate)
    check_share("random_token_rate", random_token_rate)
    if mask_token_rate + random_token_rate > 1 + 1e-9:
        raise ValueError(
            "mask_token_rate and random_token_rate must not sum to more than 1, got "
            f"{mask_token_rate} and {random_token_rate}. {rest}"
        )


def draw_uniforms(
    seed: int, epoch: int, row_ids: np.ndarray, length: int, stream: int = 0
) -> np.ndarray:
    """Draws four random numbers for each position: float64 (B, L, 4) in [0, 1).

    A row gets the same numbers in every batch. Philox turns a key and a 256-bit counter into four
    numbers. The key is (the lowest 64 bits of the seed, epoch). The second word of the counter is
    the row's id, and its first word counts the positions. So rows are 2**64 positions apart, and a
    longer padding only adds numbers at the end. The third word is the stream: 0 for `TokenMasker`,
    1 for `TokenShuffler`, 2 for `LanguageModelMixture`; for a `Corruption` the number of the draw.
    """
    philox = np.random.Philox(key=0)
    generator = np.random.Generator(philox)
    # Setting the state of one generator takes a fifth of the time of making another.
    state = philox.state
    state["state"]["key"] = np.array([int(seed) % 2**64, epoch], "uint64")
    state["state"]["counter"][2] = stream
    draws = np.empty((len(row_ids), length, 4))
    for row, row_id in enumerate(row_ids.tolist()):
        state["state"]["counter"][1] = row_id
        philox.state = state
        generator.random(out=draws[row])
    return draws


def count_predictions(lengths: Any, rate: float, max_predictions: int | None = None) -> np.ndarray:
    """How many tokens of each row to mask, as Google's `create_pretraining_data.py` counts.

    >>> count_predictions(np.array([3, 30, 512]), rate=0.15, max_predictions=20)
    array([ 1,  4, 20])

    Args:
        lengths: int (B,), tokens of each row, special ones included.
        rate: float in [0, 1].
        max_predictions: int, or None for no limit.

    Returns:
        int64 (B,), at least 1 unless the rate is 0.
    """
    counts = np.rint(lengths * rate).astype("int64")  # half to even, as `round`
    counts = np.maximum(rate > 0, counts)
    return counts if max_predictions is None else np.minimum(counts, max_predictions)


def replace_tokens(
    originals: np.ndarray,
    substitutes: np.ndarray | int,
    kinds: np.ndarray,
    fillers: np.ndarray,
    random_ids: np.ndarray,
    substitute_rate: float,
    random_token_rate: float,
) -> np.ndarray:
    """Replaces each chosen token by its substitute, by a random token, or by itself: int (N,).

    Args:
        originals: int (N,), the chosen tokens.
        substitutes: int () or (N,), the mask token, or its replacement; -1 for a random token.
        kinds: float (N,) in [0, 1), random; chooses the substitute, a random token or the token.
        fillers: float (N,) in [0, 1), random; decides which random token is taken.
        random_ids: int (n,), the random tokens.
    """
    fillers = random_ids[(fillers * len(random_ids)).astype("int64")]
    substitutes = np.where(np.less(substitutes, 0), fillers, substitutes)
    unless_replaced = np.where(kinds < substitute_rate + random_token_rate, fillers, originals)
    return np.where(kinds < substitute_rate, substitutes, unless_replaced)


def list_predictions(
    rows: np.ndarray, columns: np.ndarray, ids: np.ndarray | int, shape: tuple[int, int]
) -> dict[str, np.ndarray]:
    """Lists the chosen tokens of each row of the batch.

    `rows` and `columns`, int (N,), say where they are, in the order of `np.nonzero`. `ids` are the
    tokens before they are masked. The shape is (B, P): no row has more than P of them.

    Returns:
        dict of `mask_positions` int32, `mask_ids` int32 and `mask_weights` float32, each (B, P);
        0 in unused slots.
    """
    slots = np.arange(len(rows)) - np.searchsorted(rows, rows)
    arrays = {
        "mask_positions": np.zeros(shape, "int32"),
        "mask_ids": np.zeros(shape, "int32"),
        "mask_weights": np.zeros(shape, "float32"),
    }
    for array, values in zip(arrays.values(), (columns, ids, 1), strict=True):
        array[rows, slots] = values
    return arrays
