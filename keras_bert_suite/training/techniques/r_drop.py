"""Training so that two passes with other dropout agree."""

import warnings
from typing import Any

import keras

from keras_bert_suite.argument_checks import check_choice, check_positive, with_article
from keras_bert_suite.training.techniques.output_comparison import OutputComparison
from keras_bert_suite.training.techniques.technique import Batch, Technique


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class RDrop(Technique):
    """The mean loss of two passes with other dropout, plus the divergence of their predictions.

    (L_1 + L_2) / 2 + alpha (KL(p_1 || p_2) + KL(p_2 || p_1)) / 2. A step takes two forward and two
    backward passes. Of numbers and vectors the sum of both divergences is the squared distance. Of
    a `CrfTokenClassifier` it is the divergence of the whole chains.

    Deviations: the paper's loss, and its code for GLUE, has L_1 + L_2, so half of its alpha is
    equal to `alpha` here. Its code sums the divergence over the batch, as
    `reduction="sum"` does. The weight of the term then depends on the batch size.

    Rows of a `sample_weight` of 0 count in the divergence, so rows without a label may come with
    any label and this weight.

    Args:
        alpha: float above 0.
        reduction: "mean" or "sum" of the divergences of the rows of a batch. Labels of tokens: of
            the tokens that count.

    Warns:
        UserWarning: for a model without dropout, whose two passes are equal.

    Source: Wu et al., 2021 (https://arxiv.org/abs/2106.14448), equation 4.
    """

    def __init__(self, alpha: float = 1.0, reduction: str = "mean") -> None:
        check_positive("alpha", alpha)
        check_choice("reduction", reduction, ("mean", "sum"))
        self.alpha, self.reduction = alpha, reduction

    def build(self, model: keras.Model) -> None:
        self.comparison = OutputComparison(model, self)
        if not any("seed_generator" in v.path for v in model.non_trainable_variables):
            warnings.warn(
                f"RDrop compares two passes with other dropout, and {with_article(model)} without "
                "dropout has two equal passes: the training is a plain one, in twice the time. "
                "Build it with a `dropout` above 0, or drop `technique`.",
                stacklevel=6,
            )

    def loss(self, forward: Any, batch: Batch, rng: Any) -> Any:
        (loss, outputs), (other_loss, other) = forward(batch), forward(batch)
        apart = self.comparison.symmetric(batch, outputs, other, self.reduction)
        return (loss + other_loss) / 2 + self.alpha / 2 * apart, outputs
