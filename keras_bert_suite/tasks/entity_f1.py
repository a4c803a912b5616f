"""A callback that scores entities after each epoch."""

from typing import Any

import keras

from keras_bert_suite.tasks.base.batch_sources import read_data
from keras_bert_suite.tasks.base.input_checks import check_in_memory


class EntityF1(keras.callbacks.Callback):
    """Scores the entities that a `TokenClassifier` finds in held-out rows after each epoch.

    It adds `val_entity_f1`, `val_entity_precision` and `val_entity_recall`, as seqeval counts them,
    to the logs of the epoch. List it before callbacks that use these logs, such as
    `EarlyStopping`.

    Args:
        rows, tags: as for `TokenClassifier.fit`, in memory.
        batch_size: int, 32 by default.

    Example:
    ```python
    tagger.fit(rows, tags, callbacks=[EntityF1(dev_rows, dev_tags)])
    ```
    """

    def __init__(self, rows: Any, tags: Any, batch_size: int | None = None) -> None:
        super().__init__()
        self._rows, self._tags, self._batch_size = rows, tags, batch_size

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        # A wrong tag is an error before the first epoch.
        check_in_memory(self._rows)
        data = read_data(self.model, self._rows, self._tags, labelled=True)
        self.model.cut_windows(data)

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        scores = self.model.score(self._rows, self._tags, self._batch_size)
        if logs is not None:
            logs.update(
                {f"val_entity_{name}": scores[name] for name in ("f1", "precision", "recall")}
            )
