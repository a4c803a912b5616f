"""When a row leaves the encoder: the rules of PABEE, DeeBERT and FastBERT.

The functions take the array namespace `xp`, NumPy or `keras.ops`, so that the same rule holds in
`predict`, in the graph of a SavedModel and where thresholds are tuned.
"""

import dataclasses
import math
from typing import Any

import numpy as np

from keras_bert_suite.annotations import Tensor
from keras_bert_suite.argument_checks import check_integer, check_positive
from keras_bert_suite.heads.texts.problem_types import MultiLabel, Regression

#: Some thresholds of a curve. More would hardly differ.
MOST_POINTS = 50


@dataclasses.dataclass(frozen=True)
class Patience:
    """A row leaves once its answer stayed the same at `patience` exits, one after the other.

    Attributes:
        patience: int, how many times an answer is the answer of the exit before.
        tolerance: float, for numbers: they are the same if they differ by less. None for classes.

    Source: Zhou et al., 2020, PABEE (https://arxiv.org/abs/2006.04152), section 3.2.
    """

    patience: int
    tolerance: float | None = None

    def step(self, logits: Tensor, kept: Any, xp: Any = np) -> tuple[Tensor, Any]:
        """Looks at the logits of one exit.

        Args:
            logits: float (B, C).
            kept: what the step before returned for these rows, a tuple of (B, ...); None at the
                first exit.
            xp: the array namespace.

        Returns:
            (bool (B,), whether a row leaves; what the next step takes).
        """
        answers = xp.argmax(logits, axis=-1) if self.tolerance is None else logits
        if kept is None:
            counts = xp.zeros_like(xp.argmax(logits, axis=-1))
        else:
            before, counts = kept
            counts = xp.where(self._are_same(before, answers, xp), counts + 1, 0)
        return counts >= self.patience, (answers, counts)

    def _are_same(self, before, answers, xp):
        if self.tolerance is None:
            return before == answers
        return xp.all(xp.abs(answers - before) < self.tolerance, axis=-1)


@dataclasses.dataclass(frozen=True)
class Certainty:
    """A row leaves once the entropy of its classes is below a threshold.

    Attributes:
        threshold: float.
        is_share: bool, whether the entropy is divided by that of equal probabilities, ln C.

    Source: Xin et al., 2020, DeeBERT (https://arxiv.org/abs/2004.12993), section 2.2. Liu et al.,
    2020, FastBERT (https://arxiv.org/abs/2004.02178), section 3.3, for the share.
    """

    threshold: float
    is_share: bool

    def step(self, logits: Tensor, kept: Any, xp: Any = np) -> tuple[Tensor, Any]:
        """Looks at the logits of one exit; see `Patience.step`. It keeps nothing."""
        return measure_entropy(logits, self.is_share, xp) < self.threshold, ()


def measure_entropy(logits: Tensor, is_share: bool, xp: Any = np) -> Tensor:
    """float (...), the entropy of logits (..., C) in nats, or its share of ln C."""
    shifted = logits - xp.max(logits, axis=-1, keepdims=True)
    logs = shifted - xp.log(xp.sum(xp.exp(shifted), axis=-1, keepdims=True))
    entropy = -xp.sum(xp.exp(logs) * logs, axis=-1)
    return entropy / math.log(logits.shape[-1]) if is_share else entropy


def find_exits(rule: Patience | Certainty, logits: np.ndarray) -> np.ndarray:
    """int (B,), the exit at which each row leaves, of the logits of all exits (B, E, C)."""
    leaves, kept = np.ones(logits.shape[:2], bool), None
    for place in range(logits.shape[1] - 1):
        leaves[:, place], kept = rule.step(logits[:, place], kept)
    return leaves.argmax(axis=1)


@dataclasses.dataclass(frozen=True)
class Method:
    """How exits are trained, and the rule by which rows leave.

    Attributes:
        name: str.
        trains_all: bool, whether the encoder is trained with the exits, and not before them.
        is_distilled: bool, whether an exit learns the classes of the last one, and not the labels.
        is_share: bool, whether the threshold is a share; None if it is a patience.
    """

    name: str
    trains_all: bool
    is_distilled: bool
    is_share: bool | None

    def make_rule(self, threshold: Any, tolerance: float | None) -> Patience | Certainty:
        """The rule with a threshold."""
        if self.is_share is None:
            return Patience(threshold, tolerance)
        return Certainty(threshold, self.is_share)

    def check_threshold(self, threshold: Any, num_exits: int, num_classes: int) -> None:
        """Raises a ValueError if a threshold is out of its range."""
        if self.is_share is None:
            check_integer("threshold", threshold, at_least=1)
            largest, meaning = float(num_exits), "exits in succession with the same answer"
        else:
            largest = 1.0 if self.is_share else math.log(num_classes)
            meaning = "a share of the entropy ln C" if self.is_share else "an entropy in nats"
        is_number = isinstance(threshold, (int, float)) and not isinstance(threshold, bool)
        if not is_number or not 0 <= threshold <= largest:
            raise ValueError(
                f"threshold of method={self.name!r} is {meaning}, at most {largest:.6g} with "
                f"{num_exits} exits and {num_classes} classes, got {threshold!r}. `tune_exits` "
                "chooses it on labelled rows."
            )

    def list_thresholds(self, logits: np.ndarray) -> list[Any]:
        """Thresholds from the most layers to the fewest, for the logits (N, E, C) of some rows.

        With the first of them no row leaves early.
        """
        if self.is_share is None:
            return [*range(logits.shape[1], 0, -1)]
        found = np.unique(measure_entropy(logits[:, :-1], self.is_share))
        shares = np.linspace(0, 1, MOST_POINTS)[1:]
        largest = 1.0 if self.is_share else math.log(logits.shape[-1])
        steps = np.quantile(found, shares) if len(found) else []
        return [0.0, *(min(float(step), largest) for step in np.unique(steps))]


METHODS = {
    method.name: method
    for method in (
        Method("pabee", trains_all=True, is_distilled=False, is_share=None),
        Method("deebert", trains_all=False, is_distilled=False, is_share=False),
        Method("fastbert", trains_all=False, is_distilled=True, is_share=True),
    )
}


def check_problem(problem_type: str, method: str, tolerance: float | None) -> None:
    """Raises a ValueError if a method has no rule for a kind of answers."""
    if problem_type == MultiLabel.name:
        raise ValueError(
            f"Early exits are for classes and numbers, got problem_type={problem_type!r}. Use a "
            "TextClassifier."
        )
    if problem_type == Regression.name and METHODS[method].is_share is not None:
        raise ValueError(
            f"method={method!r} leaves by the entropy of classes, and problem_type="
            f"{problem_type!r} has none. Pass method='pabee'."
        )
    if tolerance is None:
        return
    if problem_type != Regression.name:
        raise ValueError(
            f"tolerance={tolerance} is for numbers, problem_type={Regression.name!r}, got "
            f"problem_type={problem_type!r}. Leave it out."
        )
    check_positive("tolerance", tolerance)
