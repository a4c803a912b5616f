"""Which labels and outputs the losses and metrics of Keras take."""

import functools
import inspect
from typing import Any

import keras

#: The labels and outputs that losses and metrics of Keras compare -> the names of their classes.
#: Keras' functions have the same names in lower case.
#: - "ids": class ids with the scores of the classes;
#: - "rows": one-hot labels with the scores of the classes;
#: - "scores": the same, with a score for each named class;
#: - "marks": labels 0 and 1 with a probability for each, counted over all of them;
#: - "binary": labels 0 and 1 with a score for each, as the mean over a row;
#: - "distances": numbers with numbers; also labels 0 and 1 with probabilities;
#: - "numbers": numbers with numbers only;
#: - "overlaps": labels 0 and 1 with probabilities, over a whole batch;
#: - "counts": labels that are rates or counts with outputs above 0;
#: - "answers": ids with ids;
#: - "other": labels that no task has.
COMPARED = {
    "ids": (
        *("SparseCategoricalCrossentropy", "SparseCategoricalAccuracy"),
        *("SparseTopKCategoricalAccuracy", "CategoricalGeneralizedCrossEntropy"),
        "SparseCategoricalFocalCrossentropy",  # Since Keras 3.16.
    ),
    "rows": (
        *("CategoricalCrossentropy", "CategoricalFocalCrossentropy", "CategoricalHinge"),
        *("CategoricalAccuracy", "TopKCategoricalAccuracy", "KLDivergence"),
    ),
    "scores": ("F1Score", "FBetaScore", "MacroF1"),
    "marks": (
        *("AUC", "Precision", "Recall", "TruePositives", "FalsePositives"),
        *("TrueNegatives", "FalseNegatives", "PrecisionAtRecall", "RecallAtPrecision"),
        *("SensitivityAtSpecificity", "SpecificityAtSensitivity"),
    ),
    "binary": (
        *("BinaryCrossentropy", "BinaryFocalCrossentropy", "BinaryAccuracy", "BinaryIoU"),
        *("Hinge", "SquaredHinge"),
    ),
    "overlaps": ("Dice", "Tversky"),
    "distances": (
        *("MeanSquaredError", "RootMeanSquaredError", "MeanAbsoluteError", "CosineSimilarity"),
        *("MeanSquaredLogarithmicError", "Huber", "LogCosh", "LogCoshError"),
    ),
    "numbers": (
        *("MeanAbsolutePercentageError", "R2Score"),
        *("PearsonCorrelation", "ConcordanceCorrelation"),
    ),
    "counts": ("Poisson",),
    "answers": ("Accuracy", "IoU", "MeanIoU", "OneHotIoU", "OneHotMeanIoU"),
    "other": ("CTC", "Circle"),
}
_COMPARED_BY = {name: what for what, names in COMPARED.items() for name in names}

#: They order classes, or have their border at 0. So they take the outputs as they are.
TAKE_SCORES = frozenset(
    (
        *("SparseCategoricalAccuracy", "SparseTopKCategoricalAccuracy", "CategoricalAccuracy"),
        *("TopKCategoricalAccuracy", "CategoricalHinge", "Hinge", "SquaredHinge"),
    )
)

#: They compare the numbers of a row with each other.
NEED_TWO_NUMBERS = frozenset(("CosineSimilarity", "PearsonCorrelation", "ConcordanceCorrelation"))

#: The packages whose classes have these names.
_PACKAGES = ("keras", __name__.split(".")[0])


@functools.cache
def _find_functions() -> dict[Any, str]:
    """dict of a function of Keras -> the name of its class."""
    classes = {name.lower(): name for name in _COMPARED_BY}
    functions = {}
    for module in (keras.losses, keras.metrics):
        for name, value in vars(module).items():
            found = classes.get(name.replace("_", "").lower())
            if inspect.isfunction(value) and found is not None:
                functions[value] = found
    return functions


def name_kind(given: Any) -> str | None:
    """The name in `COMPARED` of a loss or a metric, or None if it is the user's own.

    It is an object, a class or a function. A subclass that overrides `call` or `update_state` is
    the user's.
    """
    if inspect.isfunction(given):
        return _find_functions().get(given)
    kind = given if inspect.isclass(given) else type(given)
    method = "call" if issubclass(kind, keras.losses.Loss) else "update_state"
    for base in kind.__mro__:
        if base.__name__ in _COMPARED_BY and base.__module__.split(".")[0] in _PACKAGES:
            return base.__name__
        if method in vars(base):
            return None
    return None


def find_compared(name: str) -> str:
    """The labels and outputs that a loss or a metric of the name compares, see `COMPARED`."""
    return _COMPARED_BY[name]
