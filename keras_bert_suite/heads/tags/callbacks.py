"""Scores entities after each epoch."""

from typing import Any

from keras_bert_suite.heads.base.score_callbacks import HeldOutScores


class EntityF1(HeldOutScores):
    """Scores the entities that a `TokenClassifier` finds in held-out rows after each epoch.

    It adds `val_entity_f1`, `val_entity_precision` and `val_entity_recall`, as seqeval counts them,
    to the logs of the epoch. List it before callbacks that use these logs, such as
    `EarlyStopping`.

    Args:
        rows, tags: as for `TokenClassifier.fit`, in memory.
        batch_size: int, 32 by default.

    Raises:
        ValueError: without `tags`.

    Example:
    ```python
    tagger.fit(rows, tags, callbacks=[EntityF1(dev_rows, dev_tags)])
    ```
    """

    scores = {f"entity_{name}": name for name in ("f1", "precision", "recall")}

    def __init__(self, rows: Any, tags: Any = None, batch_size: int | None = None) -> None:
        super().__init__(rows, tags, batch_size)
