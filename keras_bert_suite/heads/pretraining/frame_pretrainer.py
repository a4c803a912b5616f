"""Pretrains an encoder of frames: it predicts the frames that are hidden, or their codes."""

import dataclasses
from typing import Any

import keras
import keras_hub

from keras_bert_suite.argument_checks import check_integer, with_article
from keras_bert_suite.heads import pretraining
from keras_bert_suite.heads.base.task import Task
from keras_bert_suite.layers import PredictionHead
from keras_bert_suite.models.encoder import Encoder
from keras_bert_suite.training import Divergence, MaskedFrameLoss, MaskedLMAccuracy, MaskedLMLoss


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class FramePretrainer(Task, keras_hub.models.Task):
    """An encoder of frames that predicts hidden frames: their numbers, or their codes.

    `fit` takes the batches of `FrameBatches`, or any dataset of such batches. Inputs, a dictionary:
    the inputs of the backbone, and `mask_positions`, int32 (B, P). The output `mfm` of a regression
    is float32 (B, P, D), and its labels are the frames as they were. With `num_codes` it is logits
    (B, P, K), and the labels are the codes, int32 (B, P). Weights are float32 (B, P).

    The pooler of the backbone is not trained, because no loss depends on it.

    `TextClassifier.from_preset(path, num_classes=...)` and other heads on frames open its preset.

    Args:
        backbone: an encoder with `frame_dim`, such as `BertBackbone`.
        num_codes: int K, the number of codes; None for a regression.
        preprocessor: `FramePacker` or None. Presets hold it.

    Example:
    ```python
    backbone = BertBackbone.from_size("mini", frame_dim=40, max_sequence_length=400)
    packer = FramePacker(40, sequence_length=400)
    pretrainer = FramePretrainer(backbone, preprocessor=packer)
    pretrainer.compile(AdamW(LinearWarmupDecay(1e-4)))
    pretrainer.fit(FrameBatches(rows, FrameMasker(), packer, batch_size=32), epochs=10)
    pretrainer.save_to_preset("frames")
    ```

    Source: Liu et al., 2020, Mockingjay (https://arxiv.org/abs/1910.12638), for the head and the L1
    loss. Its code takes the mean over the hidden frames of a batch, as here.
    """

    HEAD = pretraining.FRAME_HEAD
    are_tokens = True

    def __init__(
        self,
        backbone: keras_hub.models.Backbone,
        num_codes: int | None = None,
        preprocessor: keras.layers.Layer | None = None,
        **kwargs: Any,
    ) -> None:
        self.check_further_arguments(kwargs)
        encoder = Encoder.of(backbone)
        if encoder.frame_dim is None:
            raise ValueError(
                f"A FramePretrainer trains an encoder of frames, got {with_article(backbone)} "
                "of tokens. Build it with frame_dim, or call its `for_frames(frame_dim)`."
            )
        if num_codes is not None:
            check_integer("num_codes", num_codes, at_least=2)
        # `compile` reads it, within the base class' `__init__`.
        self.num_codes = num_codes

        # === Layers ===
        self.backbone = backbone
        self.frame_head = PredictionHead(
            encoder.activation,
            use_bias=True,
            norm_bias=True,
            layer_norm_epsilon=encoder.layer_norm_epsilon,
            initializer_range=encoder.initializer_range,
            dtype=backbone.dtype_policy,
            name="frame_head",
        )
        # The loss is computed in float32 under every policy.
        self.predictions = keras.layers.Dense(
            num_codes or encoder.frame_dim,
            kernel_initializer=keras.initializers.TruncatedNormal(stddev=encoder.initializer_range),
            dtype="float32",
            name="frame_predictions",
        )

        # === Functional Model ===
        mask_positions = keras.Input(shape=(None,), dtype="int32", name="mask_positions")
        states = encoder.encode_tokens_at(backbone.input, mask_positions)
        outputs = {"mfm": self.predictions(self.frame_head(states))}
        self.unused_paths = encoder.find_unused()

        # === Data and Answers ===
        self.make_parts(preprocessor)
        super().__init__(
            inputs={**backbone.input, "mask_positions": mask_positions}, outputs=outputs, **kwargs
        )

    def make_loss(self) -> dict[str, Any]:
        """`MaskedFrameLoss`, the mean absolute error; or the cross-entropy of codes."""
        return {"mfm": MaskedFrameLoss() if self.num_codes is None else MaskedLMLoss()}

    def find_divergence(self) -> Divergence | None:
        """Of frames the mean of the squared differences, over those that count."""
        if self.num_codes is None:
            return dataclasses.replace(Divergence.of_numbers(), of_tokens=True)
        return super().find_divergence()

    def make_metrics(self) -> dict[str, Any]:
        """The accuracy of codes; none for a regression."""
        if self.num_codes is None:
            return {}
        return {"weighted_metrics": {"mfm": [MaskedLMAccuracy(name="accuracy")]}}
