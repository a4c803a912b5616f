"""Paths of labels through chains, in NumPy.

The chains lie one after the other, without padding. `chain_scans` has the same functions for
tensors, which JAX would compile anew for each length. All chains take a step together, the longest
chains first, so the chains that have ended are left out.
"""

from collections.abc import Callable, Iterator

import numpy as np


def find_best_paths(
    emissions: np.ndarray,
    lengths: np.ndarray,
    starts: np.ndarray,
    ends: np.ndarray,
    transitions: np.ndarray,
) -> np.ndarray:
    """The path with the highest score for each chain, by the algorithm of Viterbi: int32 (W,).

    Emissions are float32 (W, C), of the W tokens of all chains. `lengths`, int (B,), has the number
    of tokens of each chain. Transitions (C, C) go from row to column. Of labels with the same
    score, the first is taken.
    """
    came_from = np.zeros(emissions.shape, "int32")
    labels = np.zeros(len(emissions), "int32")
    order, first, steps = _walk(lengths)
    best = np.zeros((len(order), emissions.shape[1]), "float32")
    for step, running in steps():
        places = first[:running] + step
        if step == 0:
            best[:running] = starts + emissions[places]
            continue
        scores = best[:running, :, None] + transitions
        came_from[places] = scores.argmax(axis=1)
        best[:running] = scores.max(axis=1) + emissions[places]
    label = (best + ends).argmax(axis=1)
    for step, running in reversed(list(steps())):
        places = first[:running] + step
        labels[places] = label[:running]
        label[:running] = came_from[places, label[:running]]
    return labels


def find_marginals(
    emissions: np.ndarray,
    lengths: np.ndarray,
    starts: np.ndarray,
    ends: np.ndarray,
    transitions: np.ndarray,
) -> np.ndarray:
    """The probability of each label at each token, float32 (W, C); as for `find_best_paths`."""
    before = _sum_paths(emissions, lengths, starts, transitions)
    number = np.arange(len(emissions))
    mirror = np.repeat(2 * _find_starts(lengths) + lengths - 1, lengths) - number
    after = _sum_paths(emissions[mirror], lengths, ends, transitions.T)[mirror]
    scores = before + after - emissions
    scores = np.exp(scores - scores.max(axis=1, keepdims=True))
    return scores / scores.sum(axis=1, keepdims=True)


def _sum_paths(
    emissions: np.ndarray, lengths: np.ndarray, starts: np.ndarray, transitions: np.ndarray
) -> np.ndarray:
    """float32 (W, C), the logarithm of the sum over the paths to each label of each token."""
    sums = np.zeros(emissions.shape, "float32")
    _, first, steps = _walk(lengths)
    for step, running in steps():
        places = first[:running] + step
        if step == 0:
            sums[places] = starts + emissions[places]
            continue
        scores = sums[places - 1][:, :, None] + transitions
        most = scores.max(axis=1)
        total = np.exp(scores - most[:, None]).sum(axis=1)
        sums[places] = np.log(total) + most + emissions[places]
    return sums


def _find_starts(lengths: np.ndarray) -> np.ndarray:
    return np.cumsum(lengths) - lengths


def _walk(
    lengths: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, Callable[[], Iterator[tuple[int, int]]]]:
    """`(order, first, steps)`: the chains from the longest, where they begin, and the steps.

    `steps` is a function to an iterator of (step, how many chains have a token at this step).
    """
    order = np.argsort(-lengths, kind="stable")
    ascending = np.sort(lengths)

    def steps() -> Iterator[tuple[int, int]]:
        for step in range(int(lengths.max(initial=0))):
            yield step, len(lengths) - int(np.searchsorted(ascending, step, side="right"))

    return order, _find_starts(lengths)[order], steps
