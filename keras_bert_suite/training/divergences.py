"""How far the outputs of two passes over the same rows are from each other."""

import dataclasses
from collections.abc import Callable
from typing import Any

from keras import ops

from keras_bert_suite.annotations import Tensor
from keras_bert_suite.training.output_forms import OutputForm

#: The least probability whose logarithm is taken.
_LEAST = 1e-7


@dataclasses.dataclass(frozen=True)
class Divergence:
    """The divergence of Kullback and Leibler between the predictions that outputs stand for.

    Attributes:
        one_way: function (y_true, p, q) -> float32 (B,), or (B, L) for tokens, KL(p || q). `p` and
            `q` are outputs of the model. `y_true` are the encoded labels: they say which places of
            a row there are, and never what is right.
        symmetric: function of the same arguments, KL(p || q) + KL(q || p). For numbers and vectors
            both are the squared distance.
        of_tokens: bool, whether weights of the labels say which predictions count.
        heat: function T -> the divergence of the predictions at a temperature T: of the T-th roots
            of their probabilities, normalised. None for numbers and vectors, which have none.
        between: function of another task -> the divergence of its predictions, p, from those of the
            task. None if outputs say all of the predictions, so that it is this divergence.
    """

    one_way: Callable[[Any, Any, Any], Tensor]
    symmetric: Callable[[Any, Any, Any], Tensor]
    of_tokens: bool = False
    heat: Callable[[float], "Divergence"] | None = None
    between: Callable[[Any], "Divergence"] | None = None

    @classmethod
    def of(
        cls,
        function: Callable[[Any, Any, Any], Tensor],
        of_tokens: bool = False,
        temper: Callable[[Any, float], Tensor] = lambda x, t: ops.cast(x, "float32") / t,
    ) -> Any:
        """A divergence whose symmetric form is the sum of both ways.

        `temper` is a function (outputs, T) -> outputs at a temperature T. By default it divides
        logits.
        """

        def heat(t: float) -> Divergence:
            return cls.of(lambda y, p, q: function(y, temper(p, t), temper(q, t)), of_tokens)

        both = lambda y, p, q: function(y, p, q) + function(y, q, p)  # noqa: E731
        return cls(function, both, of_tokens, heat)

    def at_temperature(self, temperature: float) -> "Divergence":
        """The divergence of the predictions at a temperature.

        Raises:
            ValueError: if the predictions have no temperature, and it is not 1.
        """
        if temperature == 1:
            return self
        if self.heat is None:
            raise ValueError(
                f"temperature={temperature} is for probabilities, and these predictions are "
                "numbers or vectors, whose squared distance has none. Leave it out."
            )
        return self.heat(temperature)

    @classmethod
    def of_form(cls, form: OutputForm) -> Any:
        """The divergence of outputs of a form; None for "others"."""
        if form.kind == "numbers":
            return cls.of_numbers(of_tokens=form.are_tokens)
        functions = {"classes": _compare_classes, "label sets": _compare_sets}
        if form.kind not in functions:
            return None
        compare = functions[form.kind]

        def one_way(y_true: Any, p: Tensor, q: Tensor) -> Tensor:
            p, q = ops.cast(p, "float32"), ops.cast(q, "float32")
            return compare(p, q, form.from_logits)

        if form.from_logits:
            return cls.of(one_way, form.are_tokens)
        return cls.of(one_way, form.are_tokens, _TEMPERED[form.kind])

    @classmethod
    def of_numbers(cls, is_mean: bool = True, of_tokens: bool = False) -> Any:
        """The mean, or the sum, of the squared differences of each row, or token."""

        def compare(y_true: Any, p: Tensor, q: Tensor) -> Tensor:
            squares = ops.square(ops.cast(p, "float32") - ops.cast(q, "float32"))
            reduce = ops.mean if is_mean else ops.sum
            return reduce(squares, axis=-1)

        return cls(compare, compare, of_tokens)


def _compare_classes(p: Tensor, q: Tensor, from_logits: bool) -> Tensor:
    """float32 (...) of outputs (..., C)."""
    if from_logits:
        p, q = ops.log_softmax(p, axis=-1), ops.log_softmax(q, axis=-1)
    else:
        p, q = (ops.log(ops.maximum(x, _LEAST)) for x in (p, q))
    return ops.sum(ops.exp(p) * (p - q), axis=-1)


def _compare_sets(p: Tensor, q: Tensor, from_logits: bool) -> Tensor:
    """float32 (B,) of outputs (B, C): each label is on or off by itself."""
    if from_logits:
        return ops.sum(compare_switches(p, q), axis=-1)
    p, q = (ops.clip(x, _LEAST, 1 - _LEAST) for x in (p, q))
    on, off = p * ops.log(p / q), (1 - p) * ops.log((1 - p) / (1 - q))
    return ops.sum(on + off, axis=-1)


def _temper_classes(p: Tensor, temperature: float) -> Tensor:
    """The probabilities (..., C) at a temperature."""
    return ops.softmax(ops.log(ops.maximum(ops.cast(p, "float32"), _LEAST)) / temperature, axis=-1)


def _temper_sets(p: Tensor, temperature: float) -> Tensor:
    """The probability of each label by itself, at a temperature."""
    p = ops.clip(ops.cast(p, "float32"), _LEAST, 1 - _LEAST)
    return ops.sigmoid(ops.log(p / (1 - p)) / temperature)


_TEMPERED = {"classes": _temper_classes, "label sets": _temper_sets}


def compare_switches(p: Tensor, q: Tensor) -> Tensor:
    """KL(p || q) of each of two tensors of logits, in the shape of the tensors."""
    share = ops.sigmoid(p)
    return share * (p - q) + ops.softplus(q) - ops.softplus(p)
