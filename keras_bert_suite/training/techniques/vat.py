"""Training so that the predictions change little where they would change most."""

from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from keras_bert_suite.argument_checks import check_integer, check_positive
from keras_bert_suite.training.techniques.output_comparison import OutputComparison
from keras_bert_suite.training.techniques.row_lengths import mark_tokens, scale_rows
from keras_bert_suite.training.techniques.technique import Batch, Gradients, Technique


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class VAT(Technique):
    """Adds the divergence between the predictions and those with moved embeddings.

    d is drawn from a normal distribution for the tokens of each row. `steps` times: d is the
    gradient of KL(f(x) || f(x + r)) by r, at the row d with the length `first_norm`. The loss is
    L + alpha KL(f(x) || f(x + r)), where r is the row d with the length `epsilon`. f(x) counts as
    fixed. The mean is over the rows, and for labels of tokens over those that count.

    No label is read, so rows without a label learn, too: give them any label and a `sample_weight`
    of 0. Labels of tokens are the exception: there the weights say which tokens count.

    All passes of a step drop the same elements. With others, the gradient of the divergence would
    be about the dropout. A step takes `steps` + 2 forward and backward passes, of which `steps`
    need no gradient by the weights. The logged loss is L.

    Of numbers and vectors the divergence is the squared distance; see `OutputComparison` for the
    tasks that have one.

    Deviations: bert4keras moves the embedding matrix by one norm over all of it, with `first_norm`
    10 and `epsilon` 1, which do not fit here. Miyato et al. normalise the embeddings first.

    Args:
        epsilon: float above 0, the length of r.
        alpha: float above 0, the weight of the divergence.
        first_norm: float above 0, the length at which the gradient is taken, xi in the paper.
        steps: int, the iterations.

    Source: Miyato et al., 2017 (https://arxiv.org/abs/1605.07725), equations 6 to 8, and the
    authors' code (tensorflow/models, adversarial_losses.py), where xi is 0.1.
    """

    moves_embeddings = True

    def __init__(
        self, epsilon: float = 1.0, alpha: float = 1.0, first_norm: float = 0.1, steps: int = 1
    ) -> None:
        check_positive("epsilon", epsilon)
        check_positive("alpha", alpha)
        check_positive("first_norm", first_norm)
        check_integer("steps", steps, at_least=1)
        self.epsilon, self.alpha, self.first_norm, self.steps = epsilon, alpha, first_norm, steps

    def build(self, model: keras.Model) -> None:
        self.comparison = OutputComparison(model, self)

    def gradients(
        self, differentiate: Callable[..., Gradients], batch: Batch, rng: Any
    ) -> Gradients:
        clean = differentiate()
        fixed = keras.tree.map_structure(ops.stop_gradient, clean.outputs)

        def diverge(forward: Any, batch: Batch, rng: Any) -> Any:
            outputs = forward.compute_outputs(batch)
            return self.alpha * self.comparison.one_way(batch, fixed, outputs), outputs

        move = keras.random.normal(ops.shape(batch.shift), seed=rng) * mark_tokens(batch)
        for _ in range(self.steps):
            move = scale_rows(move, self.first_norm)
            move = differentiate(move, loss=diverge, weights=False, same_dropout=True).shift
        move = scale_rows(move, self.epsilon)
        return clean + differentiate(move, loss=diverge, same_dropout=True)
