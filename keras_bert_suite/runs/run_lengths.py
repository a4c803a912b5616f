"""Chooses to which lengths the batches of a training are padded, where each length is compiled."""

import contextlib
import itertools
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import keras

from keras_bert_suite.runs.batches import RowBatches
from keras_bert_suite.runs.split_step import takes_two_programs

if TYPE_CHECKING:
    from keras_bert_suite.runs.trainer import TrainingRun

#: How many tokens a training step computes in the time that its gradients take to trace and to
#: compile under JAX on a CPU, for an encoder that is `_WIDTH` wide. For MiniLM that is 5.7 s of
#: processor time, where the gradients of 32 rows of 24 tokens take 0.8 s; see
#: `docs/speed_and_memory.md`.
_COMPILATION, _WIDTH = 5500, 384

#: The batches of the longest run whose lengths are chosen. In longer runs nearly every length is
#: worth its compilation, and all batches are packed once more to choose.
MOST_BATCHES = 500


def choose_lengths(batches: Sequence[tuple[tuple[int, ...], int]], cost: float) -> tuple[int, ...]:
    """The lengths that cost least: the tokens of all batches, and the compilations.

    A batch is padded to the next of the lengths. Each shape is compiled once. Among lengths that
    cost the same, the fewest are chosen.

    Args:
        batches: for each batch of a run the shape of its rows, such as (B,), and its length.
        cost: float, the cost of a compilation, in tokens.

    Returns:
        ascending ints, some of the lengths of the batches. The longest is among them.
    """
    by_length: dict[int, list[tuple[int, ...]]] = {}
    for rows, length in batches:
        by_length.setdefault(length, []).append(rows)
    # The best choice for the batches up to a length: (its cost, its number of lengths, lengths).
    best: list[tuple[float, int, tuple[int, ...]]] = [(0.0, 0, ())]
    lengths = sorted(by_length)
    for end, length in enumerate(lengths, start=1):
        choices = []
        for begin in range(end):
            joined = [by_length[shorter] for shorter in lengths[begin:end]]
            shapes = list(itertools.chain.from_iterable(joined))
            total, number, chosen = best[begin]
            total += sum(map(math.prod, shapes)) * length + len(set(shapes)) * cost
            choices.append((total, number + 1, (*chosen, length)))
        best.append(min(choices))
    return best[-1][2]


def find_run_lengths(model: keras.Model, run: "TrainingRun") -> tuple[int, ...] | None:
    """The lengths for the batches of a new run; None for all `allowed_lengths` of the packer.

    The batches of all epochs are packed once, so the lengths are right for any kind of task.
    Lengths beyond the longest batch stay, for the validation.
    """
    width, dataset = getattr(model.backbone, "hidden_dim", None), run.training.dataset
    # An optimizer that has taken steps belongs to a longer training, in several calls of `fit`.
    is_short = 0 < (run.total or 0) <= MOST_BATCHES and run.progress.first_step == 0
    if not (is_short and width and isinstance(dataset, RowBatches)):
        return None
    allowed = model.data.packer.allowed_lengths()
    batches = []
    for index in range(run.total):
        x, _, _ = keras.utils.unpack_x_y_sample_weight(run.training.pack(dataset[index]))
        if "padding_mask" not in x or "decoder_padding_mask" in x:
            return None  # Rows without a length, or sources and targets with a length each.
        *rows, length = x["padding_mask"].shape
        # A causal row has a token less than its length.
        batches.append((tuple(rows), next(n for n in allowed if n >= length)))
    chosen = choose_lengths(batches, _COMPILATION * (_WIDTH / width) ** 2)
    return (*chosen, *(n for n in allowed if n > chosen[-1]))


def may_choose_lengths(model: keras.Model, run: "TrainingRun") -> bool:
    """Whether the lengths of a run are ours to choose, and few of them save time.

    That was measured for the two programs of JAX on a CPU alone.
    """
    packer, dataset = model.data.packer, run.training.dataset
    is_packed = isinstance(dataset, RowBatches) and dataset.rows.is_packed
    return (
        takes_two_programs(model)
        and not is_packed
        and run.training.lay_out is None
        and getattr(packer, "padding_lengths", None) == "auto"
    )


@contextlib.contextmanager
def padded_for_run(model: keras.Model, run: "TrainingRun", checkpoint: Any) -> Iterator[None]:
    """Pads to the lengths of a run until the block ends.

    A run that resumes from `checkpoint`, a `TrainingCheckpoint` or None, keeps its lengths.
    """
    lengths = None
    if may_choose_lengths(model, run):
        if checkpoint is None:
            lengths = find_run_lengths(model, run)
        else:
            lengths = checkpoint.keep_lengths(lambda: find_run_lengths(model, run))
    if lengths is None:
        yield
        return
    model.data.packer.run_lengths = tuple(lengths)
    try:
        yield
    finally:
        model.data.packer.run_lengths = None
