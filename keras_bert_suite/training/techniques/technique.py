"""The base of techniques: one forward and one backward pass, as Keras trains."""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple, Self

from keras_bert_suite.annotations import Config, Tensor


class Batch(NamedTuple):
    """A batch of a training step.

    Attributes:
        x: dict of the arrays that the model takes, such as `token_ids`, int (B, L). It also has
            `embedding_shift`, float (B, L, E), if the technique moves embeddings, and
            `sequence_layout` if rows are packed. The layout belongs to these rows in this order.
        y, sample_weight: as the loss takes them, or None.
    """

    x: Any
    y: Any = None
    sample_weight: Any = None


@dataclasses.dataclass
class Gradients:
    """The gradients of one pass over a batch, or the sum of those of several passes.

    Attributes:
        weights: list of tensors, one for each trainable variable of the model. None for a weight
            that the loss does not depend on. A loss scale of the optimizer is still in them.
        shift: float32 (B, L, E), the gradient by the token embeddings of the batch, without a loss
            scale; with the shape of `token_ids` and one axis more. None if the technique does not
            move embeddings.
        loss: float scalar, and
        outputs: the outputs of the model. Both are for the logs. A sum has those of the first pass.
    """

    weights: list[Any]
    shift: Any
    loss: Any
    outputs: Any

    def __add__(self, other: Self) -> Self:
        pairs = zip(self.weights, other.weights, strict=True)
        weights = [b if a is None else a if b is None else a + b for a, b in pairs]
        shift = None if self.shift is None else self.shift + other.shift
        return dataclasses.replace(self, weights=weights, shift=shift)


class Technique:
    """How the gradients of a batch are made. `compile(technique=...)` takes it, and files keep it.

    Write a subclass to train by another rule, such as adversarial training or a loss over two
    passes. Override `loss` to change the loss of a pass, or `gradients` to take several passes.
    Keep the arguments of the constructor in attributes of the same names, or override `get_config`,
    and register the class with `keras.saving.register_keras_serializable`.
    """

    #: Whether `gradients` reads `Gradients.shift` or passes a shift.
    moves_embeddings = False

    def loss(self, forward: Callable[[Batch], tuple[Tensor, Any]], batch: Batch) -> Any:
        """The loss of one pass.

        Args:
            forward: function from a `Batch` to the loss with which the model was compiled, float
                scalar, and the outputs of the model, with dropout. It can be called several times.
            batch: `Batch`.

        Returns:
            (float scalar to differentiate, the outputs for the metrics of `batch`). If replicas
            share the batch, under TensorFlow and PyTorch, the losses of all replicas sum to the
            loss of the batch.
        """
        return forward(batch)

    def gradients(self, differentiate: Callable[..., Gradients]) -> Gradients:
        """The gradients with which the optimizer updates the weights.

        Args:
            differentiate: function `(shift=None)` that computes the loss and all its gradients, in
                one forward and one backward pass, and returns `Gradients`. `shift`, float
                (B, L, E), is added to the token embeddings. A pass with a shift does not count in
                the logs.
        """
        return differentiate()

    def get_config(self) -> Config:
        return dict(vars(self))

    @classmethod
    def from_config(cls, config: Config) -> Self:
        return cls(**config)
