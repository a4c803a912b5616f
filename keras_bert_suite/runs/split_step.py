"""A training step of JAX as two programs: the gradients of a batch, and the update of the weights.

XLA compiles a step for each length of a batch. The update is the same for all lengths, and on a CPU
it takes a third of the time to compile a step. As a separate program it is compiled once.
"""

from collections.abc import Callable, Iterator
from typing import Any

import keras

from keras_bert_suite.layers.attention.attention_kernels import is_jax_on_cpu
from keras_bert_suite.runs.technique_step import make_stateless_gradients, update_statelessly


def takes_two_programs(model: Any) -> bool:
    """Whether a model is trained by `split_step`: compiled for one CPU, one batch at a time."""
    return (
        is_jax_on_cpu()
        and model.jit_compile
        and not model.run_eagerly
        and model.steps_per_execution == 1
        and keras.distribution.distribution() is None
        and not keras.config.is_nnx_enabled()
    )


def split_step(model: Any) -> Callable[[Any, Iterator[Any]], tuple[Any, Any]]:
    """Makes a `train_function` for Keras: (state, iterator over batches) -> (logs, new state)."""
    import jax

    # JAX names the programs after these functions.
    def train_step(trainable: Any, optimizer: Any, others: Any, batch: Any) -> Any:
        state = trainable, others[0], optimizer, others[1]
        gradients, logs, *others = make_stateless_gradients(model, state, batch)
        return gradients, logs, others

    def update_weights(trainable: Any, others: Any, optimizer: Any, gradients: Any) -> Any:
        return update_statelessly(model, trainable, others, optimizer, gradients)

    differentiate = jax.jit(train_step, donate_argnums=2)
    update = jax.jit(update_weights, donate_argnums=(0, 1, 2))

    def take_step(state: Any, batches: Iterator[Any]) -> tuple[Any, Any]:
        trainable, non_trainable, optimizer, metrics = state
        batch = next(batches)
        gradients, logs, (non_trainable, metrics) = differentiate(
            trainable, optimizer, [non_trainable, metrics], batch
        )
        return logs, (*update(trainable, non_trainable, optimizer, gradients), metrics)

    return take_step
