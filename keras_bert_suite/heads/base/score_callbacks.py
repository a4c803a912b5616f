"""Callbacks that score the answers of a task after each epoch."""

from typing import Any

import keras

from keras_bert_suite.argument_checks import with_article
from keras_bert_suite.heads.base.input_checks import check_in_memory
from keras_bert_suite.runs.batches import read


class HeldOutScores(keras.callbacks.Callback):
    """Adds scores of held-out rows to the logs of an epoch."""

    #: name in the logs -> name in the result of the task's `score`.
    scores: dict[str, str]

    def __init__(self, x: Any, y: Any, batch_size: int | None = None) -> None:
        super().__init__()
        if y is None:
            name = type(self).__name__
            raise ValueError(
                f"{name} scores rows by their labels, got {with_article(x)} alone. Pass both: "
                f"{name}(dev.x, dev.y)."
            )
        self._rows = x, y
        self._batch_size = batch_size
        self._arguments: dict[str, Any] = {}  # Further arguments of `score`.

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        # A wrong label is an error before the first epoch.
        check_in_memory(self._rows[0])
        self.model.data.window(read(self.model, *self._rows, labelled=True))

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        found = self.model.score(*self._rows, self._batch_size, **self._arguments)
        if logs is not None:
            logs.update({f"val_{name}": found[score] for name, score in self.scores.items()})
