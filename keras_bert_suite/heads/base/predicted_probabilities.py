"""The method `predict_probabilities` of tasks whose answer is a choice."""

from typing import Any

from keras_bert_suite.annotations import Inputs


def predict_probabilities(
    self: Any, x: Inputs, batch_size: int | None = None, steps: int | None = None, **kwargs: Any
) -> Any:
    """The probabilities between which `predict_labels` and a server choose.

    Use it where you choose yourself: by a cut-off, for a ranking of rows, or to show how sure an
    answer is. `predict` returns the outputs of the model, which are logits by default.

    Args:
        x, batch_size, steps, **kwargs: as for `predict`.

    Returns:
        float32 (N, C), in the order of `label_names`. The probabilities of a row of classes have
        the sum 1; in sets of labels each label has its own. Of a `MultipleChoice` (N, K), the
        choices of each row; if rows have different numbers of choices, a list of N arrays (K,).

    Raises:
        ValueError: for a regression.
    """
    decode = self.answers.decode_probabilities
    if decode is None:
        raise ValueError("A regression has no probabilities. `predict` returns its numbers.")
    return self.predict_with(decode, x, batch_size, steps, **kwargs)
