"""Steps that split their batch among the devices of a `keras.distribution`."""

from typing import Any

from keras_bert_suite.replicas import join_rows, split_rows


class SplitSteps:
    """A `keras.Model` whose steps take whole batches; see `replicas/whole_batches.py`.

    The arguments of a step end with the batch. Under JAX, the state comes before it.
    """

    def train_step(self, *arguments: Any) -> Any:
        """See `keras.Model.train_step`."""
        *state, batch = arguments
        return super().train_step(*state, split_rows(batch))  # type: ignore[misc]

    def test_step(self, *arguments: Any) -> Any:
        """See `keras.Model.test_step`."""
        *state, batch = arguments
        return super().test_step(*state, split_rows(batch))  # type: ignore[misc]

    def predict_step(self, *arguments: Any) -> Any:
        """See `keras.Model.predict_step`."""
        *state, batch = arguments
        result = super().predict_step(*state, split_rows(batch))  # type: ignore[misc]
        if not state:
            return result
        outputs, state = result
        return join_rows(outputs), state
