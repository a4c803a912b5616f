"""Callbacks that score the answers of a task after each epoch."""

from typing import Any

import keras

from keras_bert_suite.runs.batches import read
from keras_bert_suite.tasks.data.input_checks import check_in_memory


class _HeldOutScores(keras.callbacks.Callback):
    """Adds scores of held-out rows to the logs of an epoch."""

    #: name in the logs -> name in the result of the task's `score`.
    scores: dict[str, str]

    def __init__(self, x: Any, y: Any, batch_size: int | None = None) -> None:
        super().__init__()
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


class EntityF1(_HeldOutScores):
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

    scores = {f"entity_{name}": name for name in ("f1", "precision", "recall")}

    def __init__(self, rows: Any, tags: Any, batch_size: int | None = None) -> None:
        super().__init__(rows, tags, batch_size)


class AnswerF1(_HeldOutScores):
    """Scores the answers that a `QuestionAnswerer` finds for held-out questions after each epoch.

    It adds `val_exact_match` and `val_f1`, in percent, as `score_answers` counts them, to the logs
    of the epoch. List it before callbacks that use these logs, such as `EarlyStopping`.

    Args:
        x, y: as for `QuestionAnswerer.fit`, in memory. If a question has several accepted answers,
            the highest score counts.
        batch_size: int, 32 by default.
        characters: whether answers are compared by characters, as for `QuestionAnswerer.score`.

    Example:
    ```python
    answerer.fit(train.x, train.y, callbacks=[AnswerF1(dev.x, dev.y)])
    ```
    """

    scores = {"exact_match": "exact_match", "f1": "f1"}

    def __init__(
        self, x: Any, y: Any, batch_size: int | None = None, characters: bool | str = False
    ) -> None:
        super().__init__(x, y, batch_size)
        self._arguments = {"characters": characters}
