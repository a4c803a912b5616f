"""The smoothness term of SMART."""

from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from keras_bert_suite.annotations import Tensor
from keras_bert_suite.argument_checks import check_integer, check_positive
from keras_bert_suite.training.techniques.output_comparison import OutputComparison
from keras_bert_suite.training.techniques.row_lengths import mark_tokens
from keras_bert_suite.training.techniques.technique import Batch, Gradients, Technique

#: The term beside the largest number of a token, in the authors' code.
_EPSILON = 1e-6


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class SMART(Technique):
    """Adds the symmetric divergence between the predictions and those with noisy embeddings.

    r is drawn from normal(0, noise) for each token. `steps` times: r = n(r + rate g) with the
    gradient g of KL(f(x + r) || f(x)) of each row by r, where n divides each token by its largest
    number (plus 1e-6) and multiplies it by `size`. The loss is L + alpha (KL(f(x) || f(x + r)) +
    KL(f(x + r) || f(x))), with a gradient through both. The mean is over the rows, and for labels
    of tokens over those that count. Of numbers the term is the mean squared error.

    No label is read for the term, so rows without a label learn, too: give them any label and a
    `sample_weight` of 0. Labels of tokens are the exception: there the weights say which tokens
    count.

    The passes that find r drop the same elements as f(x), and f(x + r) of the loss drops others. A
    step takes three times the time of a plain one, with one more pass for each further step. The
    logged loss has the term.

    Deviations: the authors' code has neither the Bregman term of the paper nor its ball: in the
    code a token of r has the largest number 1 (`size`), however small `noise` is. Embeddings of
    BERT are about 0.05, so a smaller `size` may be better. The code stops the gradient of one side
    of each divergence, which makes its gradient smaller. With `noise` 1e-5 the gradient is so small
    that r hardly depends on it; a larger `noise`, such as 1e-2, or a larger `rate` gives it weight.

    Args:
        alpha: float above 0, the weight of the term.
        noise: float above 0, the standard deviation of the start, sigma.
        rate: float above 0, eta.
        steps: int, K.
        size: float above 0, the largest number of a token of r.

    Source: Jiang et al., 2020 (https://arxiv.org/abs/1911.03437), section 3.1, and the authors'
    code (namisan/mt-dnn, perturbation.py).
    """

    moves_embeddings = True

    def __init__(
        self,
        alpha: float = 1.0,
        noise: float = 1e-5,
        rate: float = 1e-3,
        steps: int = 1,
        size: float = 1.0,
    ) -> None:
        check_positive("alpha", alpha)
        check_positive("noise", noise)
        check_positive("rate", rate)
        check_positive("size", size)
        check_integer("steps", steps, at_least=1)
        self.alpha, self.noise, self.rate, self.steps, self.size = alpha, noise, rate, steps, size

    def build(self, model: keras.Model) -> None:
        self.comparison = OutputComparison(model, self)

    def gradients(
        self, differentiate: Callable[..., Gradients], batch: Batch, rng: Any
    ) -> Gradients:
        outputs = differentiate(weights=False, by_shift=False).outputs
        fixed = keras.tree.map_structure(ops.stop_gradient, outputs)

        def diverge(forward: Any, batch: Batch, rng: Any) -> Any:
            outputs = forward.compute_outputs(batch)
            return self.comparison.one_way(batch, outputs, fixed, "sum"), outputs

        normal = keras.random.normal(ops.shape(batch.shift), seed=rng)
        move = self.noise * normal * mark_tokens(batch)
        for _ in range(self.steps):
            found = differentiate(move, loss=diverge, weights=False, same_dropout=True)
            move = self._scale_tokens(move + self.rate * found.shift)

        def add_term(forward: Any, batch: Batch, rng: Any) -> Any:
            loss, outputs = self.loss(forward, batch, rng)
            moved = forward.compute_outputs(batch._replace(shift=batch.shift + move))
            return loss + self.alpha * self.comparison.symmetric(batch, outputs, moved), outputs

        return differentiate(loss=add_term, same_dropout=True)

    def _scale_tokens(self, move: Tensor) -> Tensor:
        largest = ops.max(ops.abs(move), axis=-1, keepdims=True)
        return self.size * move / (largest + _EPSILON)
