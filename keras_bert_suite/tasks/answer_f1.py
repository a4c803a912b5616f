"""A callback that scores the answers to questions after each epoch."""

from typing import Any

import keras

from keras_bert_suite.tasks.base.batch_sources import read_data
from keras_bert_suite.tasks.base.input_checks import check_in_memory


class AnswerF1(keras.callbacks.Callback):
    """Scores the answers that a `QuestionAnswerer` finds for held-out questions after each epoch.

    It adds `val_exact_match` and `val_f1`, in percent, as the scripts of SQuAD count them, to the
    logs of the epoch. List it before callbacks that use these logs, such as `EarlyStopping`.

    Args:
        x, y: as for `QuestionAnswerer.fit`, in memory. If a question has several accepted answers,
            the highest score counts.
        batch_size: int, 32 by default.

    Example:
    ```python
    answerer.fit(x, y, callbacks=[AnswerF1((dev.questions, dev.contexts), dev.answers)])
    ```
    """

    def __init__(self, x: Any, y: Any, batch_size: int | None = None) -> None:
        super().__init__()
        self._x, self._y, self._batch_size = x, y, batch_size

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        # A wrong label is an error before the first epoch.
        check_in_memory(self._x)
        read_data(self.model, self._x, self._y, labelled=True)

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        scores = self.model.score(self._x, self._y, self._batch_size)
        if logs is not None:
            logs.update(val_exact_match=scores["exact_match"], val_f1=scores["f1"])
