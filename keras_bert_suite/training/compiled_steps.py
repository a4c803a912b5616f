"""Compiles the training step of JAX for the batches to come, during the training."""

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Protocol

import keras

#: After so many batches in a row without a new shape, no further batches are looked at.
ENOUGH_BATCHES = 64

#: The steps that are compiled at the same time. JAX takes about two cores to compile one.
NUM_COMPILERS = max(1, min(4, (os.cpu_count() or 1) // 2))

#: The event of `jax.monitoring` for the time in which the training waits for a compiling thread.
WAITED = "/keras_bert_suite/waited_for_compiler"


class Batches(Protocol):
    """Batches to look at one by one, such as a `grain.MapDataset`."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int) -> Any: ...


@contextlib.contextmanager
def compile_ahead(model: keras.Model, batches: Batches | None) -> Iterator[None]:
    """Compiles the steps of a `fit` in other threads, while the block runs.

    JAX compiles a step for each shape of a batch, when the first batch of this shape comes. Within
    the block a thread looks at the batches to come, and has the steps for new shapes compiled in
    their order. The training compiles the step of its first batch itself, and waits for a step that
    is not ready. Every step is compiled once, and its results do not depend on the thread that
    compiled it.

    The block changes nothing under other backends, without compilation, with several steps per
    execution, or under `keras.distribution`.

    Args:
        model: compiled `keras.Model`.
        batches: `Batches` that this `fit` will take, which the thread reads; None changes nothing.
    """
    if batches is None or not _compiles_each_shape(model):
        yield
        return
    if not isinstance(model.train_function, CompiledSteps):
        model.train_function = CompiledSteps(model)
    with model.train_function.looking_at(batches):
        yield


class CompiledSteps:
    """Keras' `train_function` for JAX, whose steps may be compiled by other threads.

    Args:
        model: compiled `keras.Model`. Its `test_function` will wait while a step is traced.
    """

    def __init__(self, model: keras.Model) -> None:
        import jax

        self._model = model
        self._step = jax.jit(model.train_step, donate_argnums=0)
        self._steps: dict[Any, Future] = {}
        self._claiming = threading.Lock()
        # While Keras traces a step, it keeps in the model the losses that layers add.
        self._tracing = threading.Lock()
        self._look_ahead: Callable[[Any, Any], object] | None = None
        model.make_test_function()
        evaluate = model.test_function

        def test_function(state: Any, iterator: Iterator[Any]) -> Any:
            with self._tracing:
                return evaluate(state, iterator)

        model.test_function = test_function

    @contextlib.contextmanager
    def looking_at(self, batches: Batches) -> Iterator[None]:
        """Compiles the steps of further batches, beginning with the first step of the block."""
        reader, compilers = ThreadPoolExecutor(1), ThreadPoolExecutor(NUM_COMPILERS)
        ended = threading.Event()
        self._look_ahead = lambda *shapes: reader.submit(
            self._compile_all, compilers, ended, batches, *shapes
        )
        try:
            yield
        finally:
            self._look_ahead = None
            ended.set()
            reader.shutdown(cancel_futures=True)
            compilers.shutdown(cancel_futures=True)
            self._steps = {
                key: step
                for key, step in self._steps.items()
                if not step.cancelled() and step.exception() is None
            }

    def __call__(self, state: Any, iterator: Iterator[Any]) -> tuple[Any, Any]:
        """Takes a step, and returns (logs, new state) as Keras' own `train_function` does."""
        data = next(iterator)
        if self._look_ahead is not None:
            self._look_ahead(_describe(state), _describe(data))
            self._look_ahead = None
        try:
            step = self._find(state, data)
        except BaseException:
            self._give_back(state)
            raise
        return step(state, data)

    def _give_back(self, state: Any) -> None:
        """Assigns the state to the model's variables. Keras would lose the state after an error."""
        variables = (
            self._model.trainable_variables,
            self._model.non_trainable_variables,
            self._model.optimizer.variables,
            self._model.metrics_variables,
        )
        for kind, values in zip(variables, state, strict=True):
            for variable, value in zip(kind, values, strict=True):
                variable.assign(value)

    def _find(self, state: Any, data: Any) -> Callable[[Any, Any], tuple[Any, Any]]:
        """The compiled step for a state and a batch. This thread compiles it if no other does."""
        import jax

        key = _key(state, data)
        with self._claiming:
            is_new = key not in self._steps
            step = self._steps.setdefault(key, Future())
        try:
            if is_new:
                step.set_result(self._compile(_describe(state), _describe(data)))
            elif not step.done():
                begin = time.perf_counter()
                step.exception()
                jax.monitoring.record_event_duration_secs(WAITED, time.perf_counter() - begin)
            return step.result()
        except BaseException:
            del self._steps[key]  # The next batch of this shape tries again.
            raise

    def _compile_all(
        self,
        compilers: ThreadPoolExecutor,
        ended: threading.Event,
        batches: Batches,
        state: Any,
        data: Any,
    ) -> None:
        """Has the steps of the batches to come compiled, including the step of the last batch.

        An error ends this method silently. The training reads the same batches, and will raise the
        error.

        Args:
            compilers: `ThreadPoolExecutor`.
            ended: `threading.Event`, set when no more steps are wanted.
            batches: as for `compile_ahead`.
            state, data: shapes and dtypes of the state and of a batch, as Keras hands them to a
                step. A dataset may nest a batch in another way.
        """
        import jax

        def compile_for(batch: Any) -> bool:
            leaves = jax.tree.leaves(_describe(batch))
            like_data = jax.tree.unflatten(jax.tree.structure(data), leaves)
            key = _key(state, like_data)
            with self._claiming:
                is_new = key not in self._steps
                if is_new:
                    self._steps[key] = compilers.submit(self._compile, state, like_data)
            return is_new

        num_old = 0
        for index in range(len(batches)):
            num_old = 0 if compile_for(batches[index]) else num_old + 1
            if ended.is_set() or num_old == ENOUGH_BATCHES:
                break
        compile_for(batches[len(batches) - 1])

    def _compile(self, state: Any, data: Any) -> Callable[[Any, Any], tuple[Any, Any]]:
        """The step for these shapes and dtypes."""
        with self._tracing:
            lowered = self._step.lower(state, data)
        return lowered.compile()


def _compiles_each_shape(model: keras.Model) -> bool:
    """Whether Keras compiles each step of a `fit` of this model, for one device."""
    return (
        keras.config.backend() == "jax"
        and model.jit_compile
        and not model.run_eagerly
        and model.steps_per_execution == 1
        and keras.distribution.distribution() is None
        and not keras.config.is_nnx_enabled()
    )


def _describe(arrays: Any) -> Any:
    """The tree of `arrays`, with shapes and dtypes instead of arrays."""
    import jax

    return jax.tree.map(
        lambda x: jax.ShapeDtypeStruct(
            x.shape,
            jax.dtypes.canonicalize_dtype(x.dtype),
            weak_type=getattr(x, "weak_type", False),
        ),
        arrays,
    )


def _key(state: Any, data: Any) -> tuple[Any, ...]:
    """The structure, shapes and dtypes that a compiled step is made for."""
    import jax

    leaves, structure = jax.tree.flatten((state, _describe(data)))
    return structure, tuple((leaf.shape, leaf.dtype) for leaf in leaves)
