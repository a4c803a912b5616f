"""Where a run stands."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Progress:
    """Where a run stands. A run is all the calls of `fit` that share a checkpoint directory.

    Args:
        first_step: int, optimizer steps before the run began; its schedule counts from there.
        seed: int, of the order in which rows in memory come.
        batches: int, batches trained on since the run began.
        steps_per_epoch: int, or None before the run has begun.
    """

    first_step: int
    seed: int
    batches: int = 0
    steps_per_epoch: int | None = None

    @property
    def epoch(self) -> int:
        """Number of complete epochs."""
        if not self.batches or self.steps_per_epoch is None:
            return 0
        return self.batches // self.steps_per_epoch
