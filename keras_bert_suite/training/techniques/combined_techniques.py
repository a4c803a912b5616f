"""Several techniques in one training."""

import copy
from collections.abc import Callable, Sequence
from typing import Any, Self

import keras
from keras import ops

from keras_bert_suite.annotations import Config
from keras_bert_suite.argument_checks import check_list
from keras_bert_suite.training.techniques.carried_memory import CarriedMemory
from keras_bert_suite.training.techniques.mixup import Mixup
from keras_bert_suite.training.techniques.smart import SMART
from keras_bert_suite.training.techniques.technique import Batch, Gradients, Technique
from keras_bert_suite.training.techniques.vat import VAT
from keras_bert_suite.training.techniques.weight_averages import WeightAverage


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class CombinedTechniques(Technique):
    """Trains by several techniques: one that changes the loss, and one that takes several passes.

    `RDrop`, `Mixup`, `GradientPenalty`, `Distillation`, `Theseus` and `LayerDrop` change the loss
    of a pass. `FGM`, `PGD`, `FreeLB`, `VAT` and `SMART` say which passes a step takes. With one of
    each, every pass that learns from labels has the changed loss, and draws the same numbers for
    it, such as the mixture of `Mixup`. A technique that only has `after_update`, such as `EMA`,
    goes with all of them.

    A step takes the product of the times: `FGM` with `RDrop` four times the time of a plain one.

    Args:
        techniques: list of two or more techniques.

    Raises:
        ValueError: if it is no list of techniques, two techniques change the loss, two say which
            passes a step takes, or two average the weights; for `Mixup` with `VAT` or `SMART`, and
            `CarriedMemory` with several passes.

    Example:
    ```python
    classifier.compile(technique=kbs.CombinedTechniques([kbs.RDrop(4.0), kbs.FGM()]))
    ```
    """

    def __init__(self, techniques: Sequence[Technique]) -> None:
        check_list("techniques", techniques, "two or more techniques")
        techniques = list(techniques)
        for technique in techniques:
            if not isinstance(technique, Technique):
                raise ValueError(
                    f"techniques must be a list such as [RDrop(), FGM()], got {technique!r} in it."
                )
            if isinstance(technique, CombinedTechniques):
                raise ValueError(
                    "CombinedTechniques are no part of others. Pass all techniques in one list."
                )
        if len(techniques) < 2:
            raise ValueError(
                f"CombinedTechniques takes two or more techniques, got {len(techniques)}. Pass a "
                "single one to `compile` as it is."
            )
        averages = [type(t).__name__ for t in techniques if isinstance(t, WeightAverage)]
        if len(averages) > 1:
            raise ValueError(
                f"{' and '.join(averages)} all average the weights, and a model answers with one "
                "average. Combine only one of them."
            )
        self.techniques = techniques
        self.moves_embeddings = any(technique.moves_embeddings for technique in techniques)
        self._of_loss = _find_only(techniques, "loss", "change the loss")
        self._of_passes = _find_only(techniques, "gradients", "say which passes a step takes")
        if self._of_loss is not None and self._of_passes is not None:
            _check_pair(techniques[self._of_loss], techniques[self._of_passes])
        self.reads = tuple(name for technique in techniques for name in technique.reads)

    @property
    def parts(self) -> Sequence[Technique]:
        """The techniques that own variables and models."""
        return self.techniques

    @property
    def facts(self) -> dict[str, Any]:
        """The facts of all parts."""
        return {name: fact for part in self.techniques for name, fact in part.facts.items()}

    def build(self, model: keras.Model) -> None:
        # Several models may be compiled with one technique, and each has variables of its own.
        self.techniques = [copy.copy(technique) for technique in self.techniques]
        for technique in self.techniques:
            technique.build(model)
        if self._of_passes is not None:
            # What it computes beside its passes is of the changed loss, too.
            vars(self.techniques[self._of_passes])["loss"] = self.loss

    def loss(self, forward: Any, batch: Batch, rng: Any) -> Any:
        if self._of_loss is None:
            return forward(batch)
        technique = self.techniques[self._of_loss]
        return type(technique).loss(technique, forward, batch, rng)

    def gradients(
        self, differentiate: Callable[..., Gradients], batch: Batch, rng: Any
    ) -> Gradients:
        if self._of_passes is None:
            return differentiate()
        differentiate = _repeat_draws(differentiate, rng)
        return self.techniques[self._of_passes].gradients(differentiate, batch, rng)

    def after_update(self) -> None:
        for technique in self.techniques:
            technique.after_update()

    def get_config(self) -> Config:
        return {"techniques": [keras.saving.serialize_keras_object(t) for t in self.techniques]}

    @classmethod
    def from_config(cls, config: Config) -> Self:
        return cls([keras.saving.deserialize_keras_object(t) for t in config["techniques"]])


def _repeat_draws(differentiate: Callable[..., Gradients], rng: Any) -> Callable[..., Gradients]:
    """`differentiate`, with the numbers of the first pass from `rng` in each pass.

    Between the passes `rng` goes on.
    """
    first: list[Any] = []

    def repeat(*arguments: Any, **options: Any) -> Gradients:
        now = ops.copy(rng.state.value)
        if not first:
            first.append(now)
            return differentiate(*arguments, **options)
        rng.state.assign(first[0])
        found = differentiate(*arguments, **options)
        rng.state.assign(now)
        return found

    return repeat


def _find_only(techniques: Sequence[Technique], method: str, what: str) -> int | None:
    """The place of the only technique that overrides a method, or None."""
    plain = getattr(Technique, method)
    found = [i for i, t in enumerate(techniques) if getattr(type(t), method) is not plain]
    if len(found) > 1:
        first, second = (type(techniques[i]).__name__ for i in found[:2])
        raise ValueError(f"{first} and {second} both {what}. Combine only one of them.")
    return found[0] if found else None


def _check_pair(of_loss: Technique, of_passes: Technique) -> None:
    """Raises a ValueError if several passes of a kind do not go with a changed loss."""
    loss, passes = type(of_loss).__name__, type(of_passes).__name__
    if isinstance(of_loss, Mixup) and isinstance(of_passes, VAT | SMART):
        raise ValueError(
            f"{passes} compares the outputs of rows, and {loss} has those of mixtures. Combine "
            f"{passes} with RDrop, or {loss} with FGM."
        )
    if isinstance(of_loss, CarriedMemory):
        raise ValueError(
            f"{loss} goes on to the next batch after a pass, and {passes} takes several passes. "
            "Take only one of them."
        )
