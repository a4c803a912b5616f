"""Scores answers after each epoch."""

from typing import Any

from keras_bert_suite.heads.base.score_callbacks import HeldOutScores


class AnswerF1(HeldOutScores):
    """Scores the answers that a `QuestionAnswerer` finds for held-out questions after each epoch.

    It adds `val_exact_match` and `val_f1`, in percent, as `score_answers` counts them, to the logs
    of the epoch. List it before callbacks that use these logs, such as `EarlyStopping`.

    Args:
        x, y: as for `QuestionAnswerer.fit`, in memory. If a question has several accepted answers,
            the highest score counts.
        batch_size: int, 32 by default.
        characters: whether answers are compared by characters, as for `QuestionAnswerer.score`.

    Raises:
        ValueError: without `y`.

    Example:
    ```python
    answerer.fit(train.x, train.y, callbacks=[AnswerF1(dev.x, dev.y)])
    ```
    """

    scores = {"exact_match": "exact_match", "f1": "f1"}

    def __init__(
        self, x: Any, y: Any = None, batch_size: int | None = None, characters: bool | str = False
    ) -> None:
        super().__init__(x, y, batch_size)
        self._arguments = {"characters": characters}
