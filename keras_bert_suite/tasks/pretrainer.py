"""The pretraining task: masked language modelling and next sentence prediction."""

import warnings
from collections.abc import Sequence
from typing import Any, Self

import keras
import keras_hub
from keras import ops

from keras_bert_suite import checkpoints
from keras_bert_suite.annotations import Config, PathLike, Tensor
from keras_bert_suite.argument_checks import is_auto
from keras_bert_suite.layers import MaskedLMHead, gelu_tanh
from keras_bert_suite.models import BertBackbone
from keras_bert_suite.preprocessing import SegmentPacker
from keras_bert_suite.tasks.idle_weights import IdleWeights, find_idle
from keras_bert_suite.tasks.mask_filling import fill_masks
from keras_bert_suite.tasks.row_task import RowTask
from keras_bert_suite.tasks.text_classifier import pool_first_token
from keras_bert_suite.training import AdamW, LinearWarmupDecay, MaskedLMAccuracy, MaskedLMLoss


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class Pretrainer(IdleWeights, RowTask, keras_hub.models.Task):
    """A text encoder that learns to guess masked tokens, and which sentences follow each other.

    Inputs, a dictionary: the inputs of the backbone, int32 (B, L), and `mask_positions`, int32
    (B, P). Outputs, a dictionary: `mlm`, logits (B, P, V), and with `next_sentence` also `nsp`,
    logits (B, 2). Labels and sample weights have the same keys. Labels: `mlm` int32 (B, P), and
    `nsp` int32 (B,), 0 for the actual next text and 1 for a random text. Sample weights: `mlm`
    float32 (B, P), and `nsp` float32 (B,).

    `fit` takes the batches of `PretrainingBatches`, or any dataset of such batches. Without
    `next_sentence` the backbone's pooler is not trained, because no loss depends on it.

    Args:
        backbone: `BertBackbone`, or any KerasHub text encoder with a `token_embedding`.
        next_sentence: bool, whether there is a head for pairs of texts.
        preprocessor: `SegmentPacker` or None. Presets hold its tokenizer, and `fill_mask` needs
            it to read texts.

    Example:
    ```python
    pretrainer = Pretrainer(BertBackbone.from_size("tiny", vocabulary_size=30522))
    pretrainer.compile(AdamW(LinearWarmupDecay(1e-4, total_steps=10_000)))
    pretrainer.fit(batches)
    pretrainer.backbone.save_to_preset("tiny_bert")
    ```

    Source: Devlin et al., 2018 (https://arxiv.org/abs/1810.04805), section 3.1, and
    google-research/bert, run_pretraining.py.
    """

    backbone_cls = BertBackbone
    preprocessor_cls = SegmentPacker
    global_tokens = "none"

    def __init__(
        self,
        backbone: keras_hub.models.Backbone,
        next_sentence: bool = True,
        preprocessor: keras.layers.Layer | None = None,
        **kwargs: Any,
    ) -> None:
        self.check_further_arguments(kwargs)
        self.next_sentence = next_sentence  # `compile` reads it, within the base class' `__init__`

        # === Layers ===
        self.backbone = backbone
        self.preprocessor = preprocessor
        self.masked_lm = make_masked_lm_head(backbone)
        self.next_sentence_head: keras.layers.Dense | None = None
        if next_sentence:
            initializer_range = getattr(backbone, "initializer_range", 0.02)
            self.next_sentence_head = keras.layers.Dense(
                2,
                kernel_initializer=keras.initializers.TruncatedNormal(stddev=initializer_range),
                dtype=backbone.dtype_policy,
                name="next_sentence",
            )

        # === Functional Model ===
        mask_positions = keras.Input(shape=(None,), dtype="int32", name="mask_positions")
        encoded = backbone(backbone.input)
        sequence_output = encoded["sequence_output"] if isinstance(encoded, dict) else encoded
        outputs = {"mlm": self.masked_lm(sequence_output, mask_positions)}
        if self.next_sentence_head is not None:
            outputs["nsp"] = self.next_sentence_head(pool_first_token(encoded))
        if not next_sentence:
            self._idle_paths = find_idle(backbone, transformed=True)
        super().__init__(
            inputs={**backbone.input, "mask_positions": mask_positions}, outputs=outputs, **kwargs
        )

    @classmethod
    def from_preset(
        cls, preset: PathLike, *, next_sentence: bool | None = None, **kwargs: Any
    ) -> Self:
        """Builds a pretrainer from a checkpoint, to go on with its pretraining.

        The heads of the checkpoint are loaded. If the checkpoint lacks a head, this head is new,
        with a warning.

        Args:
            preset, **kwargs: as for `RowTask.from_preset`: `load_weights`, `sequence_length`,
                `lowercase`, `dtype`, and other arguments of the constructor.
            next_sentence: bool, whether there is a head for pairs of texts. With None there is
                a head, unless the checkpoint has only the head for masked tokens, or is a
                RoBERTa.

        Raises:
            ValueError: as `RowTask.from_preset`.
        """
        return super().from_preset(preset, next_sentence=next_sentence, **kwargs)

    @classmethod
    def arguments_of(
        cls, checkpoint: Any, arguments: dict[str, Any]
    ) -> tuple[dict[str, Any], list[str]]:
        next_sentence = arguments.pop("next_sentence")
        if next_sentence is None:
            next_sentence = checkpoints.may_have_next_sentence(checkpoint)
        return {**arguments, "next_sentence": next_sentence}, []

    @classmethod
    def load_keras_preset(
        cls, loader: Any, load_weights: bool, next_sentence: bool | None = None, **arguments: Any
    ) -> Self:
        task = super().load_keras_preset(loader, load_weights, **arguments)
        return task._with_next_sentence(next_sentence, loader.preset)

    def _with_next_sentence(self, next_sentence, preset):
        """This pretrainer, or a copy with a new head for pairs, or a copy without this head."""
        if next_sentence in (None, self.next_sentence):
            return self
        if next_sentence:
            warnings.warn(
                f"{preset} has no head for pairs of texts; the head of the pretrainer is new.",
                stacklevel=3,
            )
        task = type(self)(
            self.backbone,
            next_sentence,
            preprocessor=self.preprocessor,
            name=self.name,
            compile=False,
        )
        task.masked_lm.set_weights(self.masked_lm.get_weights())
        return task

    def compile(
        self,
        optimizer: str | keras.optimizers.Optimizer = "auto",
        loss: Any = "auto",
        *,
        weighted_metrics: Any = "auto",
        **kwargs: Any,
    ) -> None:
        """Configures training, by default as BERT was pretrained.

        Args:
            optimizer: "auto" is `AdamW` at 1e-4 with linear warm-up over the first hundredth
                of the steps that `fit` takes, and linear decay over the rest.
            loss: "auto" is Google's loss: the sum of the weighted mean over the masked tokens
                and of the mean over the pairs.
            weighted_metrics: "auto" is the accuracy of both heads, `mlm_accuracy` and
                `nsp_accuracy`. `mlm_loss`, and its exponential `perplexity`, are always logged.
            **kwargs: see `keras.Model.compile`.
        """
        if is_auto(optimizer):
            optimizer = AdamW(LinearWarmupDecay(1e-4, warmup_ratio=0.01))
        if is_auto(loss):
            loss = {"mlm": MaskedLMLoss()}
            if self.next_sentence:
                loss["nsp"] = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        if is_auto(weighted_metrics):
            # With several outputs, Keras puts the name of the output before the metric's name.
            name = "accuracy" if self.next_sentence else "mlm_accuracy"
            weighted_metrics = {"mlm": [MaskedLMAccuracy(name=name)]}
            if self.next_sentence:
                weighted_metrics["nsp"] = [keras.metrics.SparseCategoricalAccuracy(name="accuracy")]
        super().compile(optimizer=optimizer, loss=loss, weighted_metrics=weighted_metrics, **kwargs)

    def get_metrics_result(self) -> dict[str, Tensor]:
        """dict of the metrics, with `mlm_loss` and `perplexity`."""
        results = super().get_metrics_result()
        loss = results.get("mlm_loss", results.get("loss"))
        return add_perplexity(results if loss is None else {**results, "mlm_loss": loss})

    def fill_mask(
        self, texts: Sequence[str], top_k: int = 5
    ) -> list[list[list[tuple[str, float]]]]:
        """Guesses the tokens that are masked in texts.

        >>> pretrainer.fill_mask(["Paris is the [MASK] of France."], top_k=2)
        [[[("capital", 0.97), ("heart", 0.01)]]]

        Args:
            texts: list of str. In each text the tokenizer's `mask_token` stands for one or
                several tokens to guess.
            top_k: int, how many guesses are returned for each mask.

        Returns:
            a list for each text. It has, for each mask of the text, a list of `top_k` pairs
            (token, probability), the most probable first.

        Raises:
            ValueError: if there is no preprocessor, a text has no mask, or a mask is beyond the
                packer's `sequence_length`.
        """
        return fill_masks(self, texts, top_k)

    def pack_texts(self, texts: Sequence[Any]) -> dict[str, Tensor]:
        raise ValueError(
            f"{type(self).__name__} takes packed and masked batches, got texts. Make the batches "
            "with PretrainingBatches, or pack with a SegmentPacker and mask with a TokenMasker."
        )

    def get_config(self) -> Config:
        return {**super().get_config(), "next_sentence": self.next_sentence}


def make_masked_lm_head(backbone: keras_hub.models.Backbone) -> MaskedLMHead:
    """The head that guesses masked tokens, on the token embedding of a backbone."""
    own = getattr(backbone, "activation", gelu_tanh)
    return MaskedLMHead(
        backbone.token_embedding,
        activation=getattr(backbone, "masked_lm_activation", own),
        layer_norm_epsilon=getattr(backbone, "layer_norm_epsilon", 1e-12),
        initializer_range=getattr(backbone, "initializer_range", 0.02),
        transform=getattr(backbone, "token_transform", None),
        dtype=backbone.dtype_policy,
        name="masked_lm",
    )


def add_perplexity(results: dict[str, Tensor]) -> dict[str, Tensor]:
    """Adds `perplexity` to results that have the loss over masked tokens."""
    loss = results.get("mlm_loss", results.get("loss"))
    return results if loss is None else {**results, "perplexity": ops.exp(loss)}
