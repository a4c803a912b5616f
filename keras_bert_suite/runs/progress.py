"""The progress of a run."""

import dataclasses
from collections.abc import Sequence
from typing import Any


@dataclasses.dataclass(frozen=True)
class Progress:
    """How far a run has got. A run is all calls of `fit` that share a checkpoint directory.

    Args:
        first_step: int, optimizer steps before the run began. The schedule counts from there.
        seed: int, the seed of the order of rows in memory.
        batches: int, batches trained on since the run began.
        steps_per_epoch: int, or None before the run has begun.
        training: dict, the facts that tell the run from other runs, see `describe_training`; None
            before the run has begun.
        epoch_is_open: bool, whether the last of the batches ends an epoch that is neither validated
            nor logged.
        callbacks: dict, the states of callbacks, see `CallbackStates`.
        trained_layers: pair of lists, which layers were trained at the beginning of the run, and
            which are trained now, see `list_trained_layers`; None as for `training`.
        padding_lengths: ints, the lengths to which batches are padded; None for those of the
            packer.
    """

    first_step: int
    seed: int
    batches: int = 0
    steps_per_epoch: int | None = None
    training: dict[str, Any] | None = None
    epoch_is_open: bool = False
    callbacks: dict[str, Any] = dataclasses.field(default_factory=dict)
    trained_layers: list[list[bool]] | None = None
    padding_lengths: Sequence[int] | None = None

    @property
    def epoch(self) -> int:
        """int, how many epochs are complete."""
        if not self.batches or self.steps_per_epoch is None:
            return 0
        return self.batches // self.steps_per_epoch

    def is_at(self, other: "Progress") -> bool:
        """bool, whether a checkpoint of another progress is a checkpoint of this one."""
        return (self.batches, self.epoch_is_open) == (other.batches, other.epoch_is_open)
