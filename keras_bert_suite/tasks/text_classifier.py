"""Texts, or pairs of texts, to classes."""

import keras
import keras_hub

from keras_bert_suite import checkpoints
from keras_bert_suite.data.row_batches import map_columns
from keras_bert_suite.layers import Dropout
from keras_bert_suite.models import BertBackbone
from keras_bert_suite.preprocessing import SegmentPacker
from keras_bert_suite.preprocessing.label_encoding import encode_labels
from keras_bert_suite.tasks.row_task import RowTask
from keras_bert_suite.training import AdamW, LinearWarmupDecay


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class TextClassifier(RowTask, keras_hub.models.TextClassifier):
    """A text encoder with a classification layer on its pooled output.

    `fit`, `evaluate` and `predict` take raw strings (a list or array), pairs of them
    (a tuple of two lists), packed arrays (a dictionary of `token_ids`, `segment_ids`
    and `padding_mask`), or a `tf.data` or Grain dataset of batches of any of these
    with labels. Rows held in memory are shuffled each epoch and batched with rows of
    similar length, so that little is computed on padding.

    Labels are class ids, or the names in `label_names`.

    Args:
        backbone: `BertBackbone`, or any KerasHub text encoder.
        num_classes: int C, at least 2. Defaults to the number of `label_names`.
        label_names: list of C strings. Defaults to the class ids as strings.
        preprocessor: `SegmentPacker`, a KerasHub preprocessor, or None if inputs
            come packed.
        dropout: float, dropout rate of the pooled output.
        activation: None for logits, or "softmax" for probabilities.

    Outputs, of the model and of `predict`: float32 (B, C).

    Example:
    ```python
    classifier = TextClassifier.from_preset("path/to/checkpoint", num_classes=2)
    classifier.fit(texts, labels, validation_data=(dev_texts, dev_labels), epochs=3)
    classifier.predict(["a gripping, funny film"])
    ```

    Source: Devlin et al., 2018 (https://arxiv.org/abs/1810.04805), section 4.1.
    """

    backbone_cls = BertBackbone
    preprocessor_cls = SegmentPacker

    def __init__(
        self,
        backbone,
        num_classes=None,
        label_names=None,
        preprocessor=None,
        dropout=0.1,
        activation=None,
        **kwargs,
    ):
        label_names = _resolve_label_names(num_classes, label_names)
        _check_sequence_length(backbone, preprocessor)

        # === Layers ===
        self.backbone = backbone
        self.preprocessor = preprocessor
        self.dropout = Dropout(dropout, dtype=backbone.dtype_policy, name="classifier_dropout")
        self.classifier = keras.layers.Dense(
            len(label_names),
            kernel_initializer=keras.initializers.TruncatedNormal(stddev=0.02),
            dtype=backbone.dtype_policy,
            name="classifier",
        )
        # The loss is computed in float32 under every policy.
        self.output_activation = keras.layers.Activation(
            activation, dtype="float32", name="predictions"
        )

        # === Functional Model ===
        inputs = backbone.input
        pooled = self.dropout(pool_first_token(backbone(inputs)))
        outputs = self.output_activation(self.classifier(pooled))
        super().__init__(inputs=inputs, outputs=outputs, **kwargs)

        # === Config ===
        self.label_names = label_names
        self.dropout_rate = dropout

    @property
    def num_classes(self):
        """int C."""
        return len(self.label_names)

    @property
    def activation(self):
        """The function from logits to outputs."""
        return self.output_activation.activation

    @classmethod
    def from_preset(
        cls,
        preset,
        num_classes=None,
        load_weights=True,
        label_names=None,
        sequence_length=None,
        lowercase=None,
        dtype=None,
        **kwargs,
    ):
        """Builds a classifier from a checkpoint.

        Args:
            preset: directory of a preset saved by `save_to_preset`, of a Hugging Face
                checkpoint, or of an original Google TF1 checkpoint; `hf://owner/name`;
                or `kaggle://...` for a preset there.
            num_classes: int. With it, or with `label_names`, the classification layer
                is new; without, the checkpoint must have one.
            load_weights: bool, whether to load weights or only the configuration.
            label_names: list of strings.
            sequence_length: int, the most tokens in a row. Defaults to what the
                checkpoint says, and to the number of its positions.
            lowercase: bool, overrides what the checkpoint says of its vocabulary.
            dtype: string or `keras.DTypePolicy`, such as "mixed_bfloat16".
            **kwargs: other arguments of the constructor.

        Raises:
            ValueError: if the checkpoint is not one, lacks a tensor, holds a surplus or
                misshapen one, or has no classification layer when one is needed.
        """
        new_head = num_classes is not None or label_names is not None
        checkpoint = checkpoints.open_checkpoint(preset)
        if checkpoint is None:
            if new_head:
                names = _resolve_label_names(num_classes, label_names)
                kwargs.update(num_classes=len(names), label_names=names)
            if dtype is not None:
                kwargs["dtype"] = dtype
            task = super().from_preset(preset, load_weights=load_weights, **kwargs)
            if sequence_length is not None:
                task.preprocessor.sequence_length = sequence_length
            if not task.compiled:
                task.compile()
            return task

        if not new_head and checkpoint.label_names is None:
            raise ValueError(
                f"{preset} has no classification layer. Pass `num_classes` or `label_names` to "
                "get a new one."
            )
        backbone = BertBackbone(**checkpoint.backbone_config, dtype=dtype)
        task = cls(
            backbone=backbone,
            num_classes=num_classes,
            label_names=label_names if new_head else checkpoint.label_names,
            preprocessor=SegmentPacker.from_checkpoint(
                checkpoint, sequence_length=sequence_length, lowercase=lowercase
            ),
            **kwargs,
        )
        if load_weights:
            checkpoints.load_weights(backbone if new_head else task, checkpoint)
        return task

    def compile(self, optimizer="auto", loss="auto", *, metrics="auto", **kwargs):
        """Configures training, by default as BERT is fine-tuned.

        Args:
            optimizer: "auto" is `AdamW` at 5e-5 with linear warm-up over the first
                tenth of the steps that `fit` takes, and linear decay over the rest.
            loss: "auto" is sparse categorical cross-entropy.
            metrics: "auto" is accuracy.
            **kwargs: see `keras.Model.compile`.
        """
        if isinstance(optimizer, str) and optimizer == "auto":
            optimizer = AdamW(LinearWarmupDecay(5e-5))
        if isinstance(loss, str) and loss == "auto":
            loss = keras.losses.SparseCategoricalCrossentropy(
                from_logits=self.activation is not keras.activations.softmax
            )
        if isinstance(metrics, str) and metrics == "auto":
            metrics = [keras.metrics.SparseCategoricalAccuracy(name="accuracy")]
        super().compile(optimizer=optimizer, loss=loss, metrics=metrics, **kwargs)

    def preprocess_samples(self, x, y=None, sample_weight=None):
        """Turns a batch of texts and labels into packed arrays and class ids."""
        packed = isinstance(x, dict) and "token_ids" in x
        if self.preprocessor is not None and not packed:
            if isinstance(self.preprocessor, SegmentPacker):
                x = self.preprocessor(*(x if isinstance(x, tuple) else (x,)))
            else:
                x = super().preprocess_samples(map_columns(list, x))
        if y is not None:
            y = self.encode_labels(y)
        return keras.utils.pack_x_y_sample_weight(x, y, sample_weight)

    def encode_labels(self, labels):
        """Turns class ids or label names into class ids."""
        return encode_labels(labels, self.label_names)

    def get_config(self):
        return {
            **super().get_config(),
            "label_names": list(self.label_names),
            "dropout": self.dropout_rate,
            "activation": keras.activations.serialize(self.activation),
        }


def pool_first_token(outputs):
    """(B, H): a backbone's `pooled_output`, or its sequence output at the first position."""
    if isinstance(outputs, dict):
        if "pooled_output" in outputs:
            return outputs["pooled_output"]
        outputs = outputs["sequence_output"]
    return outputs[:, 0, :]


def _check_sequence_length(backbone, preprocessor):
    wanted = getattr(preprocessor, "sequence_length", None)
    available = getattr(backbone, "max_sequence_length", None)
    if wanted and available and wanted > available:
        raise ValueError(
            f"The preprocessor packs up to sequence_length={wanted} tokens, but the backbone has "
            f"positions for {available}. Pass a sequence_length of at most {available}."
        )


def _resolve_label_names(num_classes, label_names):
    if label_names is None:
        if num_classes is None:
            raise ValueError("A TextClassifier needs `num_classes` or `label_names`.")
        label_names = [str(i) for i in range(num_classes)]
    label_names = [str(name) for name in label_names]
    if num_classes is not None and num_classes != len(label_names):
        raise ValueError(
            f"num_classes={num_classes}, but there are {len(label_names)} label_names: "
            f"{label_names}."
        )
    if len(set(label_names)) != len(label_names) or len(label_names) < 2:
        raise ValueError(f"A classifier needs two or more different labels, got {label_names}.")
    return label_names
