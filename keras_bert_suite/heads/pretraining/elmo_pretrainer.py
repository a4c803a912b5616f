"""ELMo's pretraining task: each direction predicts the token that it reads next."""

import warnings
from typing import Any

import keras
import keras_hub
from keras import ops

from keras_bert_suite.annotations import Config, Tensor
from keras_bert_suite.argument_checks import check_integer, with_article
from keras_bert_suite.heads import pretraining
from keras_bert_suite.heads.base.task import Task
from keras_bert_suite.layers import Dropout
from keras_bert_suite.models import ElmoBackbone
from keras_bert_suite.models.elmo_backbone import DIRECTIONS
from keras_bert_suite.training import MaskedLMAccuracy, MaskedLMLoss


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class ElmoPretrainer(Task, keras_hub.models.Task):
    """Two language models with shared embeddings and a shared softmax, one for each direction.

    The forward LSTMs of an `ElmoBackbone` predict the next token, and the backward LSTMs the
    previous one. The loss is the mean of both cross-entropies, over the whole vocabulary.

    Inputs, a dictionary: the inputs of the backbone. Outputs, a dictionary of logits
    (B, L - 1, V): `forward`, of the tokens from the second on, and `backward`, of the tokens
    without the last. Labels and sample weights have the same names: the tokens int32 (B, L - 1),
    and their weights float32 (B, L - 1).

    `fit` takes the batches of `PretrainingBatches` with `BidirectionalTargets`, or any dataset of
    such batches. `perplexity` is exp of the loss.

    Args:
        backbone: `ElmoBackbone`.
        vocabulary_size: int V, the tokens to predict. None is that of the backbone. A backbone with
            characters needs a number.
        preprocessor: `SegmentPacker` or None. Presets hold its tokenizer.
        vocabulary_sha256: str, `BidirectionalTargets.vocabulary_sha256` of the tokens to predict,
            for a backbone with characters, whose tokenizer knows no vocabulary. A later training
            on batches of another vocabulary is then an error. None for no such check.

    Example:
    ```python
    pretrainer = ElmoPretrainer(ElmoBackbone.from_size("tiny", vocabulary_size=30522))
    pretrainer.compile(AdamW(LinearWarmupDecay(1e-3, total_steps=10_000)))
    pretrainer.fit(batches)
    pretrainer.backbone.save_to_preset("elmo")
    ```

    Raises:
        ValueError: if the backbone is no `ElmoBackbone`, or there is no vocabulary to predict.

    Source: Peters et al., 2018 (https://arxiv.org/abs/1802.05365), section 3.1, and
    allenai/bilm-tf, training.py. That code samples 8,192 tokens of the vocabulary for the softmax
    of a batch.
    """

    backbone_cls = ElmoBackbone
    are_tokens = True
    HEAD = pretraining.ELMO_HEAD

    def __init__(
        self,
        backbone: ElmoBackbone,
        vocabulary_size: int | None = None,
        preprocessor: keras.layers.Layer | None = None,
        vocabulary_sha256: str | None = None,
        **kwargs: Any,
    ) -> None:
        self.check_further_arguments(kwargs)
        if not isinstance(backbone, ElmoBackbone):
            raise ValueError(
                f"An ElmoPretrainer trains an ElmoBackbone, got {with_article(backbone)}. Build "
                "one with ElmoBackbone.from_size, or train with a Pretrainer."
            )
        if vocabulary_size is None:
            vocabulary_size = backbone.vocabulary_size
        if vocabulary_size is None:
            raise ValueError(
                "This backbone reads characters, and an ElmoPretrainer predicts the tokens of a "
                "vocabulary. Pass vocabulary_size, such as tokenizer.vocabulary_size()."
            )
        check_integer("vocabulary_size", vocabulary_size, at_least=1)

        # === Layers ===
        self.backbone = backbone
        self.state_dropout = Dropout(
            backbone.dropout, dtype=backbone.dtype_policy, name="state_dropout"
        )
        self.language_model = keras.layers.Dense(
            vocabulary_size,
            kernel_initializer=keras.initializers.RandomNormal(
                stddev=backbone.projection_dim**-0.5
            ),
            dtype=backbone.dtype_policy,
            name="language_model",
        )

        # === Functional Model ===
        states = backbone.split_directions(backbone.encode_tokens())
        read = (states[0][:, :-1], states[1][:, 1:])
        outputs = {
            name: self.language_model(self.state_dropout(x))
            for name, x in zip(DIRECTIONS, read, strict=True)
        }

        # === Data and Answers ===
        self.make_parts(preprocessor)
        super().__init__(inputs=dict(backbone.input), outputs=outputs, **kwargs)

        # === Config ===
        self.vocabulary_size = vocabulary_size
        self.vocabulary_sha256 = vocabulary_sha256

    @classmethod
    def arguments_of(cls, checkpoint: Any, arguments: Config) -> tuple[Config, list[str]]:
        arguments, new_parts = super().arguments_of(checkpoint, arguments)
        warnings.warn(
            f"{checkpoint.path} has no softmax. That of the language models is new and random. "
            "Train it before you use its guesses.",
            stacklevel=4,
        )
        return arguments, ["language_model/.*", *new_parts]

    def make_loss(self) -> dict[str, Any]:
        """The mean cross-entropy of each direction."""
        return {name: MaskedLMLoss() for name in DIRECTIONS}

    def make_metrics(self) -> dict[str, Any]:
        """`forward_accuracy` and `backward_accuracy`, and the weights of the losses."""
        # Keras puts the name of the output before the metric's name.
        return {
            "loss_weights": dict.fromkeys(DIRECTIONS, 0.5),
            "weighted_metrics": {name: [MaskedLMAccuracy(name="accuracy")] for name in DIRECTIONS},
        }

    def get_metrics_result(self) -> dict[str, Tensor]:
        """dict of the metrics, with `perplexity`."""
        results = super().get_metrics_result()
        return {**results, "perplexity": ops.exp(results["loss"])} if "loss" in results else results
