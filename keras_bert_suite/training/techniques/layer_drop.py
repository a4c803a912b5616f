"""Training that leaves layers out, so that a model can lose some of them later."""

from typing import Any

import keras

from keras_bert_suite.argument_checks import check_below_one
from keras_bert_suite.training.techniques.technique import Batch, Technique


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class LayerDrop(Technique):
    """Leaves out each layer of the encoder with a probability, anew in each batch.

    A layer that is left out returns its input. In evaluation and prediction all layers are there,
    and no output is scaled. A model that was trained so loses less when `keep_layers` takes layers
    out: with a rate of 0.5, every other layer may go. It is also a regularizer.

    The random numbers are of the technique, so a run that resumes goes on with them. Replicas leave
    out the same layers. A step takes the time of a plain one: a layer that is left out is computed,
    and does not count.

    Args:
        rate: float over 0 and below 1. The paper's advice is 0.2, and for a model that is to lose a
            share s of its layers, s.

    Raises:
        ValueError: if `rate` is not in this range; from `compile`, if the layers of the encoder are
            called several times, as those of an ALBERT.

    Example:
    ```python
    classifier.compile(technique=kbs.LayerDrop(0.5))
    classifier.fit(texts, labels)
    small = classifier.keep_layers([0, 2, 4])
    ```

    Source: Fan et al., 2019 (https://arxiv.org/abs/1909.11556), sections 3.2 and 3.3.
    """

    def __init__(self, rate: float = 0.2) -> None:
        check_below_one(rate=rate)
        if not rate:
            raise ValueError("rate is 0, which leaves no layer out. Leave out the technique.")
        self.rate = rate

    def build(self, model: Any) -> None:
        self.model = model.replace_modules()

    def loss(self, forward: Any, batch: Batch, rng: Any) -> Any:
        (number,) = self.model.input["own_modules"].shape
        kept = keras.random.uniform((number,), seed=rng) >= self.rate
        batch = batch._replace(x={**batch.x, "own_modules": kept})
        outputs = forward.compute_outputs(batch, self.model)
        return forward.compute_loss(batch, outputs), outputs
