"""The protocol of techniques, and the plainest one: one forward and one backward pass."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, Self

import keras

from keras_bert_suite.annotations import Config, Tensor
from keras_bert_suite.argument_checks import list_arguments


class Batch(NamedTuple):
    """A batch of a training step.

    Attributes:
        x: dict of the arrays of the rows, such as `token_ids` and `padding_mask`, int (B, L). It
            also has `sequence_layout` if rows are packed. The layout belongs to these rows in this
            order.
        y, sample_weight: as the loss takes them, or None.
        shift: float (B, L, E), which the model adds to the token embeddings; with the shape of
            `token_ids` and one axis more. None for 0. A technique that moves no embeddings has
            None.
    """

    x: Any
    y: Any = None
    sample_weight: Any = None
    shift: Any = None


@dataclasses.dataclass
class Gradients:
    """The gradients of one pass over a batch, or a weighted sum over several passes.

    Attributes:
        weights: list of tensors, one for each trainable variable, or None for a variable that the
            loss does not depend on. A loss scale of the optimizer is still in them. None if the
            pass was not asked for them.
        shift: float32 (B, L, E), the gradient by the shift of the token embeddings, without a loss
            scale. None if the technique moves no embeddings, or the pass was not asked for it.
        loss: float scalar, `outputs`: the outputs of the model, and `metrics`: the variables of its
            metrics. They are for the logs. A sum keeps them from its first pass.
    """

    weights: list[Any] | None
    shift: Any
    loss: Any
    outputs: Any
    metrics: Any

    def __add__(self, other: Self) -> Self:
        weights = _add(self.weights, other.weights)
        return dataclasses.replace(self, weights=weights, shift=_add(self.shift, other.shift))

    def __rmul__(self, factor: Any) -> Self:
        scaled = [None if w is None else factor * w for w in self.weights or ()]
        return dataclasses.replace(
            self,
            weights=None if self.weights is None else scaled,
            shift=None if self.shift is None else factor * self.shift,
        )


class Forward(Protocol):
    """The forward passes of a model, with dropout. Each call draws other dropout."""

    def __call__(self, batch: Batch) -> tuple[Tensor, Any]:
        """(the loss with which the model was compiled, float scalar; the outputs of the model)."""

    def compute_outputs(self, batch: Batch, part: Any = None) -> Any:
        """The outputs of the model, or of a `part` of it that has the same inputs."""

    def compute_loss(self, batch: Batch, outputs: Any) -> Tensor:
        """The loss of outputs, with which the model was compiled."""

    def differentiate(self, batch: Batch) -> tuple[Tensor, Any, Tensor]:
        """(loss, outputs, the gradient of the loss by the shift, float (B, L, E)).

        The gradient can be differentiated again. The technique must set `moves_embeddings`.
        """


def advise(model: Any) -> str:
    """What to do with a task that a technique cannot train, for the message of its `build`."""
    others = ["RDrop"] if model.find_divergence() is not None else []
    others += ["FGM"] if model.has_movable_embeddings else []
    if not others:
        return "Drop `technique`."
    return f"Train it with {' or '.join(others)}, or drop `technique`."


def _add(a: Any, b: Any) -> Any:
    if a is None or b is None:
        return b if a is None else a
    return [*map(_add, a, b)] if isinstance(a, list) else a + b


class Technique:
    """How the gradients of a batch are made. `compile(technique=...)` takes it, and files keep it.

    Write a subclass to train by another rule. Override `loss` to change the loss of a pass, and
    `gradients` to take several passes. Register the class with
    `keras.saving.register_keras_serializable`, and keep each argument of the constructor in an
    attribute of its name: files hold the arguments.

    A technique may own variables, layers, models and `keras.random.SeedGenerator`s. `build` makes
    them and keeps them in attributes, alone or in lists and dicts. The optimizer trains the
    variables that are trainable. Checkpoints and `.keras` files hold all of them, presets none, and
    every replica has them. An attribute that `constants` names is neither trained nor saved.
    """

    #: Whether `gradients` reads `Gradients.shift` or passes a shift.
    moves_embeddings = False

    #: Names of arrays of a batch that the technique reads, and the model does not.
    reads: tuple[str, ...] = ()

    #: Names of attributes that the technique only reads, such as a teacher. `build` makes them
    #: again when a file is opened, so keep its path in another attribute.
    constants: tuple[str, ...] = ()

    @property
    def parts(self) -> Sequence["Technique"]:
        """Techniques that this one is made of. Their variables and models are saved as its own."""
        return ()

    @property
    def facts(self) -> dict[str, Any]:
        """What a resumed training must share beside the class: dict of name -> value of JSON."""
        return {}

    def build(self, model: keras.Model) -> None:
        """Makes variables and models. `compile` calls it on a copy, `task.technique`.

        Raises:
            ValueError: if the technique is not for the model. Its message names both and a remedy.
        """

    def loss(
        self,
        forward: Forward,
        batch: Batch,
        rng: keras.random.SeedGenerator,
    ) -> Any:
        """The loss of one pass.

        Args:
            forward: `Forward`, a function from a `Batch` to the loss with which the model was
                compiled, and the outputs of the model. It can be called several times, and each
                call draws other dropout.
            batch: `Batch`, with the shift of the pass.
            rng: the `seed` for functions of `keras.random`. A training that resumes goes on with
                its state. Replicas that share a batch draw the same numbers.

        Returns:
            (float scalar to differentiate, the outputs for the metrics of `batch`). If replicas
            share the batch, under TensorFlow and PyTorch, the losses of all replicas sum to the
            loss of the batch.
        """
        return forward(batch)

    def gradients(
        self,
        differentiate: Callable[..., Gradients],
        batch: Batch,
        rng: keras.random.SeedGenerator,
    ) -> Gradients:
        """The gradients with which the optimizer updates the weights.

        Args:
            differentiate: function `(shift=None, *, loss=None, weights=True, by_shift=True,
                same_dropout=False)` that takes one forward and one backward pass, and returns
                `Gradients`. `shift` is float (B, L, E), or None for 0. `loss` takes the place of
                `self.loss`. Without `weights` only the gradient by the shift is computed, and
                without both no gradient. With `same_dropout` the pass draws the random numbers of
                the first pass of the step again.
            batch: `Batch`, with a shift of 0 if the technique moves embeddings.
            rng: as for `loss`.

        Returns:
            `Gradients` with weights. The logs are about its first pass.
        """
        return differentiate()

    def after_update(self) -> None:
        """Changes variables and models. It is called after each update of the weights.

        If the optimizer accumulates gradients, it is called after each batch.
        """

    def get_config(self) -> Config:
        return {name: getattr(self, name) for name in list_arguments(type(self))}

    @classmethod
    def from_config(cls, config: Config) -> Self:
        return cls(**config)
