"""Makes an optimizer sum gradients over the replicas before it clips them."""

from typing import Any

import keras

from keras_bert_suite.replicas import count_replicas, sum_over_replicas
from keras_bert_suite.replicas.sums import sum_gradients


def sum_before_clipping(optimizer: keras.optimizers.Optimizer) -> None:
    """Makes an optimizer sum gradients over the replicas, once a step, before it clips them.

    Under PyTorch, Keras 3.15 does not sum them at all. Under TensorFlow, it clips the gradients of
    each replica and then sums them: the norm would be that of a share of the batch, and a gradient
    that is not finite would be known to its own replica alone. Under JAX a step is one program.

    Args:
        optimizer: any optimizer of Keras. A second call changes nothing.
    """
    if isinstance(optimizer, keras.optimizers.LossScaleOptimizer):
        _agree_on_finite(optimizer)
        optimizer = optimizer.inner_optimizer
    if keras.config.backend() == "jax" or "_clip_gradients" in vars(optimizer):
        return
    clip = optimizer._clip_gradients

    def sum_and_clip(gradients: list[Any]) -> list[Any]:
        return clip(sum_gradients(gradients))

    # `setattr` of Keras would look for variables in the functions.
    vars(optimizer)["_clip_gradients"] = sum_and_clip
    # TensorFlow's optimizers would sum a second time.
    vars(optimizer)["_all_reduce_sum_gradients"] = lambda pairs: pairs


def _agree_on_finite(optimizer: keras.optimizers.LossScaleOptimizer) -> None:
    """Makes a loss scale judge the gradients of all replicas."""
    if keras.config.backend() == "jax" or "check_finite" in vars(optimizer):
        return
    check = optimizer.check_finite

    def check_all(gradients: list[Any]) -> Any:
        finite = keras.ops.cast(check(gradients), "float32")
        return sum_over_replicas(finite) >= count_replicas()

    vars(optimizer)["check_finite"] = check_all
