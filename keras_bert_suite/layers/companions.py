"""Arrays that come beside the inputs of a model, and that layers deep within it read.

A model hands them on in a scope that lasts for one call. They are arrays of the batch, so a
compiled function has them among its arguments, and nothing of a batch outlives its call.
"""

import contextlib
import threading
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import keras

LAYOUT_ARGUMENT = "sequence_layout"
GLOBAL_ARGUMENT = "global_attention_mask"
SHIFT_ARGUMENT = "embedding_shift"
PROMPT_ARGUMENT = "prompt_length"
#: The names of these arrays, among the inputs of a model and in the `call` of layers.
COMPANIONS = (LAYOUT_ARGUMENT, GLOBAL_ARGUMENT, SHIFT_ARGUMENT, PROMPT_ARGUMENT)

#: `arrays`, within `hand_on`: name -> array. `torch.compile` reads attributes of this kind.
_handed_on = threading.local()


def find_companions() -> Mapping[str, Any]:
    """The arrays by name that the model around a layer hands on."""
    return getattr(_handed_on, "arrays", {})


@contextlib.contextmanager
def hand_on(arrays: Mapping[str, Any]) -> Iterator[None]:
    """Hands further arrays on to the layers that are called within."""
    outer = find_companions()
    _handed_on.arrays = {**outer, **arrays}
    try:
        yield
    finally:
        _handed_on.arrays = outer


class CompanionReader(keras.layers.Layer):
    """A layer whose `call` takes some of `COMPANIONS`, from the model around it if not given.

    They are read before `call`, so that a layer that is computed again for its gradient has them,
    after the call of the model, too.
    """

    #: The names of the arrays.
    companions: ClassVar[tuple[str, ...]] = (LAYOUT_ARGUMENT,)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        handed_on = find_companions()
        own = {name: handed_on[name] for name in self.companions if name in handed_on}
        return super().__call__(*args, **{**own, **kwargs})
