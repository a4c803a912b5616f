"""Classifies documents of any length: one answer for all windows of a document."""

from collections.abc import Mapping
from typing import Any, Self

import keras
import keras_hub
from keras import ops

from keras_bert_suite.annotations import Config, Tensor
from keras_bert_suite.argument_checks import check_integer
from keras_bert_suite.heads import documents
from keras_bert_suite.heads.base.poolings import check_pooled, open_new_pooling
from keras_bert_suite.heads.base.task import part_attribute
from keras_bert_suite.heads.texts.text_classifier import TextClassifier
from keras_bert_suite.layers.poolings.pooling import call_pooling, get_pooling
from keras_bert_suite.layers.poolings.window_layers import MergeWindows, WindowSampler, find_windows


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class DocumentClassifier(TextClassifier):
    """A `TextClassifier` for texts that are longer than the encoder takes.

    A document is cut into windows of the preprocessor's `sequence_length`. The encoder makes a
    vector of each window, as a `TextClassifier` does of each text. `window_pooling` pools these
    vectors to one vector, and the classification layer gives one answer for the document. Training
    uses all windows, or a random sample of them.

    A row is a document, or other texts and then a document, such as a question and a document. The
    other texts are repeated in each window. `fit`, `evaluate` and `predict` take rows as a
    `TextClassifier` does; packed arrays are (B, W, L) for W windows.

    A document may have any length. The model reads at most `max_windows` windows of a document. If
    it has more windows, the model reads the first window, the last window, and windows at equal
    distances between them. So a step with B documents takes the memory of at most B `max_windows`
    texts.

    Args:
        backbone, num_classes, label_names, problem_type, pooling, dropout, activation, thresholds,
            features, input_names: as for `TextClassifier`. `pooling` makes the vector of a window.
        window_pooling: "mean" or "max"; or a layer that makes one vector of the vectors of the
            windows, such as `AttentionPooling()` or `WindowTransformer()`. It is called with the
            vectors (B, W, P) and a mask (B, W), 0 after the last window of a document.
        preprocessor: `SegmentPacker`, or None for packed arrays only. Its `truncation` is not used.
        max_windows: int, the maximum number of windows of a document that the model sees.
        stride: int, tokens from the start of a window to the start of the next. None is the
            number of document tokens in a window, so that windows do not overlap.
        query_length: int, the maximum number of tokens to keep of each text before the document;
            None as for `SegmentPacker.pack_windows`.
        training_windows: int, or None. In training, the model sees a fresh random sample of this
            many windows of each document, in the order of the document. The other windows take no
            time and no memory. None trains with all windows.

    Outputs, of the model and of `predict`: float32 (B, C).

    Example:
    ```python
    classifier = DocumentClassifier.from_preset(
        "path/to/checkpoint", num_classes=2, sequence_length=256, window_pooling="max"
    )
    classifier.fit(documents, labels, batch_size=8, epochs=3)
    classifier.predict_labels(documents)
    ```

    Source: Pappagari et al., 2019 (https://arxiv.org/abs/1910.10781). Dai and Callan, 2019
    (https://arxiv.org/abs/1905.09217), for the maximum over windows that repeat a query.
    """

    # KerasHub's `TextClassifier.from_preset` chooses a class by the preset's backbone. With
    # `BertBackbone` here, it could choose this class.
    backbone_cls = keras_hub.models.Backbone
    HEAD = documents.HEAD
    head_defaults = {**TextClassifier.head_defaults, "window_pooling": "mean"}

    max_windows = part_attribute("data", "max_windows")
    stride = part_attribute("data", "stride")
    query_length = part_attribute("data", "query_length")

    def __init__(
        self,
        backbone: keras_hub.models.Backbone,
        num_classes: int | None = None,
        *,
        window_pooling: str | Mapping[str, Any] | keras.layers.Layer = "mean",
        max_windows: int = 32,
        stride: int | None = None,
        query_length: int | None = None,
        training_windows: int | None = None,
        **kwargs: Any,
    ) -> None:
        check_integer("max_windows", max_windows, at_least=1)
        if training_windows is not None:
            check_integer("training_windows", training_windows, at_least=1)
        self._window_settings = {
            "max_windows": max_windows,
            "stride": stride,
            "query_length": query_length,
        }
        dtype = backbone.dtype_policy
        self.window_pooling = get_pooling(window_pooling, dtype=dtype.name, name="window_pooling")
        self.window_sampler = None
        if training_windows is not None:
            self.window_sampler = WindowSampler(training_windows, name="window_sampler")
        super().__init__(backbone, num_classes, **kwargs)

    def find_part_settings(self) -> dict[str, Any]:
        return self._window_settings

    def make_inputs(self) -> dict[str, Tensor]:
        """The inputs of the windows, by name: symbolic (B, W, L)."""
        return {
            name: keras.Input((None, None), dtype=tensor.dtype, name=name)
            for name, tensor in self.backbone.input.items()
        }

    def encode_rows(self, inputs: dict[str, Tensor]) -> Tensor:
        if self.window_sampler is not None:
            inputs = self.window_sampler(inputs)
        windows = MergeWindows(name="merge_windows")(inputs)
        vectors = super().encode_rows(windows)
        vectors, mask = _SplitWindows(name="split_windows")(vectors, inputs["padding_mask"])
        pooled = call_pooling(self.window_pooling, vectors, mask)
        check_pooled(pooled, self.window_pooling)
        return pooled

    @property
    def training_windows(self) -> int | None:
        """int, the maximum number of windows of a document in training; None for all."""
        return self.window_sampler and self.window_sampler.num_windows

    @property
    def splits_batches(self) -> str | None:
        return None if self.window_sampler is None else "training_windows"

    @property
    def pooling_layers(self) -> tuple[keras.layers.Layer, ...]:
        return (*super().pooling_layers, self.window_pooling)

    @classmethod
    def arguments_of(cls, checkpoint: Any, arguments: Config) -> tuple[Config, list[str]]:
        arguments, new_parts = super().arguments_of(checkpoint, arguments)
        return arguments, [*new_parts, *open_new_pooling(arguments, "window_pooling")]

    @classmethod
    def load_keras_preset(cls, loader: Any, load_weights: bool, **arguments: Any) -> Self:
        if "window_pooling" in arguments and not cls.has_new_head(arguments):
            raise ValueError(
                "The classification layer of a preset is for the window_pooling that it was "
                "trained with. With `window_pooling`, pass `num_classes` or `label_names` to get "
                "a new layer."
            )
        return super().load_keras_preset(loader, load_weights, **arguments)


class _SplitWindows(keras.layers.Layer):
    """Reshapes vectors (B * W, P) to (B, W, P), and makes the mask of windows (B, W)."""

    def call(self, vectors: Tensor, padding_mask: Tensor) -> tuple[Tensor, Tensor]:
        shape = (-1, ops.shape(padding_mask)[1], vectors.shape[-1])
        return ops.reshape(vectors, shape), find_windows(padding_mask)
