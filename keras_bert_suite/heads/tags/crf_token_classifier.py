"""Labels words with a conditional random field: a label depends on its neighbours."""

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import keras
import keras_hub

from keras_bert_suite.annotations import Config, Tensor
from keras_bert_suite.argument_checks import with_article
from keras_bert_suite.heads import tags
from keras_bert_suite.heads.tags import CRF_RATE
from keras_bert_suite.heads.tags.tag_schemes import allowed_neighbours, infer_scheme
from keras_bert_suite.heads.tags.token_classifier import TokenClassifier
from keras_bert_suite.layers import ConditionalRandomField
from keras_bert_suite.training import Divergence
from keras_bert_suite.training.weight_rates import warn_of_slow_layer


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class CrfLoss(keras.losses.Loss):
    """The negative log-likelihood of the labels of a row, averaged over the rows.

    `y_true` int (B, L), see `ConditionalRandomField.negative_log_likelihood`; `y_pred` float
    (B, L, C); `sample_weight` float (B,), or None. A `CrfTokenClassifier` sets `crf`.
    """

    #: The layer whose transitions the loss reads.
    crf: ConditionalRandomField

    def __init__(
        self, name: str = "crf_loss", reduction: str = "mean_with_sample_weight", **kwargs: Any
    ) -> None:
        super().__init__(name=name, reduction=reduction, **kwargs)

    def call(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        return self.crf.negative_log_likelihood(y_true, y_pred)


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class CrfTokenClassifier(TokenClassifier):
    """A `TokenClassifier` with a conditional random field over the labels of a row.

    The chain has one step for each word: its first token. The other tokens are skipped. `predict`
    and `predict_tags` return the most probable path. It never breaks the scheme of the labels, as
    I-PER after B-LOC would. `predict_probabilities` returns the marginal probabilities of the tags.
    The score of an entity is the mean of the marginal probabilities of its tags.

    For packed arrays `predict` returns the emissions. Packed arrays do not say which tokens begin
    words, so `predict_tags` and `predict_probabilities` refuse them.

    A text that is longer than the packer's `sequence_length` goes through the encoder as windows.
    `predict` joins the emissions of the windows, and finds one path for the whole row. In training
    each window is a separate chain, and each word counts in one window. Start and end scores count
    only at the ends of the row.

    Args:
        backbone, num_classes, label_names, preprocessor, head_layers, dropout, input_names,
            word_cutting: as for `TokenClassifier`.
        scheme: "BIO", "BIOES" or "BMES"; "auto", which finds the scheme by the prefixes of
            `label_names`; or None, which forbids nothing. Labels without prefixes, such as parts
            of speech, have no scheme. For IOB1, convert the tags by `convert_tags`, or pass None.
        constrained_training: bool, whether forbidden paths have the probability 0 in training too.
            Then a row with a forbidden path is an error.

    Outputs of the model: float32 (B, L, C), the emissions.

    Example:
    ```python
    tagger = CrfTokenClassifier.from_preset("path/to/checkpoint", label_names=["O", "B-A", "I-A"])
    tagger.fit(rows, tags, epochs=3, callbacks=[EntityF1(dev_rows, dev_tags)])
    ```

    Source: Lample et al., 2016 (https://arxiv.org/abs/1603.01360), section 2.2.
    """

    # The new labels of a new head may be of another scheme.
    are_tokens = False  # A row has one loss and one weight.
    metric_advice = (
        "It would judge the emissions, and not the paths. Leave it out, and pass `fit` the "
        "callback EntityF1(dev_rows, dev_tags), whose scores other callbacks may watch."
    )
    HEAD = tags.CHAIN_HEAD
    label_layers = ("crf",)
    head_defaults = {**TokenClassifier.head_defaults, "scheme": "auto"}

    def __init__(
        self,
        backbone: keras_hub.models.Backbone,
        num_classes: int | None = None,
        *,
        scheme: str | None = "auto",
        constrained_training: bool = False,
        **kwargs: Any,
    ) -> None:
        self._scheme_argument = scheme
        self.constrained_training = constrained_training
        super().__init__(backbone, num_classes, **kwargs)

    def make_outputs(self, logits: Tensor, label_names: Sequence[str]) -> Tensor:
        scheme = (
            infer_scheme(label_names) if self._scheme_argument == "auto" else self._scheme_argument
        )
        allowed = None if scheme is None else allowed_neighbours(label_names, scheme)
        self.scheme = scheme
        self.crf = ConditionalRandomField(
            len(label_names),
            allowed=allowed,
            constrained_training=self.constrained_training,
            dtype="float32",
            name="crf",
        )
        return self.crf(logits)

    @classmethod
    def arguments_of(cls, checkpoint: Any, arguments: Config) -> tuple[Config, list[str]]:
        arguments, new_parts = super().arguments_of(checkpoint, arguments)
        # The heads of other libraries have only the emission layer.
        return arguments, [*new_parts, "crf/.*"]

    def find_part_settings(self) -> dict[str, Any]:
        return {"scheme": self.scheme, "layer": self.crf}

    def compile(
        self,
        optimizer: str | keras.optimizers.Optimizer = "auto",
        loss: Any = "auto",
        **kwargs: Any,
    ) -> None:
        """Configures training; see `Task.compile`.

        Warns:
            UserWarning: if `optimizer` has no rate for the weights of the CRF. At the rate of the
                encoder they hardly move.
        """
        super().compile(optimizer, loss, **kwargs)
        remedy = f"AdamW(..., rate_multipliers={dict([CRF_RATE])})"
        warn_of_slow_layer(self.optimizer, self.crf, "CRF", remedy)

    def make_loss(self) -> keras.losses.Loss:
        """`CrfLoss`. No other loss is accepted."""
        return CrfLoss()

    def make_metrics(self) -> dict[str, Any]:
        """None: metrics of Keras do not see the transitions. `EntityF1` scores the paths."""
        return {}

    def read_loss(self, loss: Any, output: str | None = None) -> Any:
        if not isinstance(loss, CrfLoss):
            raise ValueError(
                f"{with_article(self, 'A')} is trained with `CrfLoss`, got loss={loss!r}. Leave "
                "out `loss`, or use a TokenClassifier."
            )
        loss.crf = self.crf
        return super().read_loss(loss, output)

    def find_divergence(self) -> Divergence:
        """The divergence of the distributions of whole chains."""
        divergence = self._compare_chains(self)
        return dataclasses.replace(divergence, between=self._compare_chains)

    def _compare_chains(self, other: Any, temperature: float = 1.0) -> Divergence:
        """The divergence from the chains of another task, with its transitions."""

        def compare(y_true: Any, p: Tensor, q: Tensor) -> Tensor:
            return self.crf.divergence(y_true, p, q, other.crf, temperature)

        heat = functools.partial(self._compare_chains, other)
        return dataclasses.replace(Divergence.of(compare), heat=heat)

    #: `negative_log_likelihood` writes its gradient itself.
    has_second_derivative = False

    def get_config(self) -> Config:
        return {**super().get_config(), "scheme": self._scheme_argument}
