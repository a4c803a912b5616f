"""Sums and maxima over all paths of labels through a chain, as scans in `keras.ops`.

A path gives each of n tokens one of C labels. Its score is

    starts[y_1] + sum_t emissions[t, y_t] + sum_t transitions[y_t-1, y_t] + ends[y_n]

B is the batch, L the length. The first `lengths[b]` tokens of row b are its chain. A row of length
0 has one path, with the score 0.

`tests/layers/test_crf.py` compares the functions with all paths of small chains.

Source: Lafferty et al., 2001; Collins, 2011, "Log-linear models, MEMMs, and CRFs"
(http://www.cs.columbia.edu/~mcollins/crf.pdf), section 4.
"""

from collections.abc import Callable
from typing import Any

from keras import ops

from keras_bert_suite.annotations import Tensor


def sum_paths(
    emissions: Tensor, lengths: Tensor, starts: Tensor, ends: Tensor, transitions: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """The logarithm of the sum of exp(score) over all paths, and the probabilities of labels.

    The path from the first token to the last and the path back go through one scan, as two halves
    of a batch. Emissions are float32 (B, L, C), and lengths int32 (B,). Starts and ends are (B, C),
    since the chain of a window may continue outside of it. Transitions (C, C) go from row to
    column.

    Returns:
        `(log_partition, marginals, pairs)`. `log_partition`: float32 (B,). `marginals`: float32
        (B, L, C), the probability of each label at each token, 0 behind the chain. `pairs`:
        float32 (B, C, C), how many times a label is expected to follow another.
    """
    inside, mirror = _index_chain(emissions, lengths)
    mirrored = ops.take_along_axis(emissions, mirror[:, :, None], axis=1)
    steps = ops.transpose(ops.stack([emissions, mirrored]), (2, 0, 1, 3))  # (L, 2, B, C)
    # (2, 1, C, C): for each label, a row of the labels on the side that the scan comes from.
    both_ways = ops.stack([ops.transpose(transitions), transitions])[:, None]

    def step(sums: Tensor, emission: Tensor) -> tuple[Tensor, Tensor]:
        sums = emission + ops.logsumexp(sums[:, :, None, :] + both_ways, axis=-1)
        return sums, sums

    first = ops.stack([starts, ends]) + steps[0]
    sums = ops.transpose(_scan_from(step, first, steps), (1, 2, 0, 3))  # (2, B, L, C)
    # Each sum holds the emission of its token.
    before, after = sums[0], ops.take_along_axis(sums[1], mirror[:, :, None], axis=1)
    log_partition = ops.logsumexp(starts + after[:, 0], axis=-1)
    log_partition = ops.where(lengths > 0, log_partition, 0.0)

    # The differences from `log_partition` would lose digits in long chains.
    marginals = ops.softmax(before + after - emissions, axis=-1)
    marginals = ops.where(inside[:, :, None], marginals, 0.0)
    pairs = before[:, :-1, :, None] + transitions + after[:, 1:, None, :]
    flat = ops.reshape(pairs, (*ops.shape(pairs)[:2], -1))
    pairs = ops.reshape(ops.softmax(flat, axis=-1), ops.shape(pairs))
    pairs = ops.where(inside[:, 1:, None, None], pairs, 0.0)
    return log_partition, marginals, ops.sum(pairs, axis=1)


def find_best_path(
    emissions: Tensor, lengths: Tensor, starts: Tensor, ends: Tensor, transitions: Tensor
) -> Tensor:
    """The path with the highest score, by the algorithm of Viterbi: int32 (B, L).

    It is 0 behind the chain. As for `sum_paths`, with starts and ends (C,).
    `chain_decoding.find_best_paths` gives the same labels.
    """
    num_labels = emissions.shape[-1]
    steps = ops.transpose(emissions, (1, 0, 2))
    best = starts + steps[0]
    inside = _index_chain(emissions, lengths)[0]
    if emissions.shape[1] == 1:
        labels = ops.cast(ops.argmax(best + ends, axis=-1), "int32")[:, None]
        return ops.where(inside, labels, 0)

    # Keras' scan under TensorFlow takes one input if the length is open, so steps are counted.
    def step(carry: Any, emission: Tensor) -> Any:
        best, _, number = carry
        scores = best[:, :, None] + transitions
        best_here = ops.max(scores, axis=1) + emission
        came_from = ops.cast(ops.argmax(scores, axis=1), "int32")
        # Behind the chain, a label comes from itself.
        is_inside = (number < lengths)[:, None]
        best = ops.where(is_inside, best_here, best)
        came_from = ops.where(is_inside, came_from, ops.arange(num_labels, dtype="int32"))
        carry = best, came_from, number + 1
        return carry, carry

    first = best, ops.cast(ops.zeros_like(best), "int32"), ops.convert_to_tensor(1, "int32")
    (best, _, _), (_, came_from, _) = ops.scan(step, first, steps[1:])
    last = ops.cast(ops.argmax(best + ends, axis=-1), "int32")

    def step_back(label: Tensor, came_from: Tensor) -> tuple[Tensor, Tensor]:
        label = ops.take_along_axis(came_from, label[:, None], axis=1)[:, 0]
        return label, label

    _, labels = ops.scan(step_back, last, came_from, reverse=True)
    labels = ops.transpose(ops.concatenate([labels, last[None]]))
    return ops.where(inside, labels, 0)


def _scan_from(step: Callable[..., Any], first: Tensor, steps: Tensor) -> Tensor:
    """(L, ...), the results of all steps. The first is given."""
    if steps.shape[0] == 1:
        return first[None]
    _, others = ops.scan(step, first, steps[1:])
    return ops.concatenate([first[None], others])


def _index_chain(emissions: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """bool (B, L), the tokens of the chain; int32 (B, L), for each of them its mirror image."""
    position = ops.arange(ops.shape(emissions)[1], dtype="int32")[None, :]
    lengths = lengths[:, None]
    return position < lengths, ops.maximum(lengths - 1 - position, 0)
