"""Encodes texts as vectors, so that similar texts have similar vectors."""

from collections.abc import Mapping, Sequence
from typing import Any

import keras
import keras_hub
import numpy as np
from keras import ops

from keras_bert_suite import checkpoints
from keras_bert_suite.annotations import Config, Inputs, Labels, Tensor
from keras_bert_suite.argument_checks import check_integer
from keras_bert_suite.data.targets import encode_targets
from keras_bert_suite.layers.poolings.pooling import get_pooling, name_pooling
from keras_bert_suite.models import BertBackbone
from keras_bert_suite.preprocessing import SegmentPacker
from keras_bert_suite.preprocessing.text_rows import (
    interleave_packed,
    interleave_texts,
    number_texts,
    split_packed,
)
from keras_bert_suite.tasks.base.idle_weights import IdleWeights
from keras_bert_suite.tasks.base.input_checks import (
    check_input_names,
    default_names,
    order_columns,
)
from keras_bert_suite.tasks.base.row_task import RowTask
from keras_bert_suite.tasks.hidden_states import open_new_pooling, pool_hidden_states
from keras_bert_suite.tasks.semantic_search import SemanticSearch
from keras_bert_suite.tokenizers.text_inputs import is_tf_tensor
from keras_bert_suite.training import (
    EmbeddingLoss,
    InBatchNegatives,
    encode_in_parts,
    is_loss_of_keras,
)


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class TextEmbedder(SemanticSearch, IdleWeights, RowTask, keras_hub.models.Task):
    """A text encoder whose hidden states are pooled to one vector.

    `predict` takes single texts, as a list, an array or a pandas Series, and returns their
    vectors. `similarity` compares texts, and `search` finds the nearest texts of a corpus.

    `fit` takes rows of one or several texts: a list; a tuple of columns, such as `(anchors,
    positives)` or `(anchors, positives, negatives)`; a DataFrame or dict of text columns; or a
    dataset of batches. The loss decides what a row is:

    - `InBatchNegatives` (the default): pairs that match, with further texts that do not match; or
      single texts, each its own match (SimCSE);
    - `CoSENT` and `CosineRegression`: pairs with a score each, the labels `y`;
    - `Triplet`: an anchor, a text that matches and a text that does not;
    - a function or `keras.losses.Loss` of the user. Its `y_true` is the scores float32 (B,). For
      rows without scores it is numbers of the texts, int32 (B, S), and equal texts have equal
      numbers. Its `y_pred` is the vectors float32 (B, S, H) of the S texts of each row.

    Rows without scores have no `y`. A batch of a dataset is then `(x,)`, or a dict of columns;
    `validation_data` is `(x, None)`. Packed arrays are int32 (B, S, L), or (B, L) for single texts.

    Args:
        backbone: `BertBackbone`, or any KerasHub text encoder with a sequence output.
        pooling: "mean" over the tokens, "cls" for the first token, "max", "first_last_average" for
            the mean of the first and the last layer; or a layer, as for `TextClassifier`.
        normalize: bool, whether the vectors have the length 1.
        preprocessor: `SegmentPacker`, a KerasHub preprocessor, or None for packed arrays only.
        input_names: the name of the text in an export, ("text",) by default.
        column_names: names of the text columns of `fit`, such as ("question", "answer"). If it is
            None, the first `fit` on several columns sets it to the names of the columns. Columns
            with these names may come in any order.

    Outputs, of the model and of `predict`: float32 (B, H).

    Example:
    ```python
    embedder = TextEmbedder.from_preset("path/to/checkpoint")
    embedder.fit((questions, answers), batch_size=64)
    embedder.search(["how long does it take?"], answers, top_k=3)
    ```

    Source: Reimers and Gurevych, 2019, Sentence-BERT (https://arxiv.org/abs/1908.10084).
    """

    backbone_cls = BertBackbone
    preprocessor_cls = SegmentPacker
    default_rate = 2e-5
    global_tokens = "none"  # As sentence-transformers calls a Longformer.

    #: int or None, see `compile`.
    cache_batch_size: int | None = None

    def __init__(
        self,
        backbone: keras_hub.models.Backbone,
        *,
        pooling: str | Mapping[str, Any] | keras.layers.Layer = "mean",
        normalize: bool = True,
        preprocessor: keras.layers.Layer | None = None,
        input_names: str | Sequence[str] | None = None,
        column_names: Sequence[str] | None = None,
        **kwargs: Any,
    ) -> None:
        self.check_further_arguments(kwargs)

        # === Layers ===
        self.backbone = backbone
        self.preprocessor = preprocessor
        self.pooling = get_pooling(pooling, dtype=backbone.dtype_policy.name, name="pooling")
        # Vectors are compared in float32 under every policy.
        self.vectors = (
            keras.layers.UnitNormalization(dtype="float32", name="vectors")
            if normalize
            else keras.layers.Activation(None, dtype="float32", name="vectors")
        )

        # === Functional Model ===
        inputs = backbone.input
        pooled, self.idle_paths = pool_hidden_states(backbone, self.pooling)
        outputs = self.vectors(pooled)
        super().__init__(inputs=inputs, outputs=outputs, **kwargs)

        # === Config ===
        self.normalize = normalize
        self.input_names = check_input_names(input_names)
        self.column_names = check_input_names(column_names)

    @classmethod
    def arguments_of(
        cls, checkpoint: Any, arguments: dict[str, Any]
    ) -> tuple[dict[str, Any], list[str]]:
        arguments = {**checkpoints.embedder_arguments(checkpoint), **arguments}
        arguments, new_parts = super().arguments_of(checkpoint, arguments)
        return arguments, [*new_parts, *open_new_pooling(arguments, "pooling")]

    def compile(
        self,
        optimizer: str | keras.optimizers.Optimizer = "auto",
        loss: Any = "auto",
        *,
        cache_batch_size: int | None = None,
        **kwargs: Any,
    ) -> None:
        """Configures training; see `RowTask.compile`.

        Args:
            optimizer, loss, **kwargs: as for `RowTask.compile`.
            cache_batch_size: int, how many texts go through the encoder at once in training. The
                encoder then takes only the memory of these texts, for any `batch_size`, and a step
                takes about a third more time. None encodes all texts of a batch at once.
        """
        if cache_batch_size is not None:
            check_integer("cache_batch_size", cache_batch_size, at_least=1)
        self.cache_batch_size = cache_batch_size
        super().compile(optimizer, loss, **kwargs)

    def make_loss(self) -> keras.losses.Loss:
        return InBatchNegatives()

    def read_loss(self, loss: Any) -> Any:
        if is_loss_of_keras(loss):
            raise ValueError(
                f"The loss {loss!r} of Keras does not compare vectors with scores. For scores, "
                "compile with CosineRegression() or CoSENT(); without scores, with "
                "InBatchNegatives() or Triplet()."
            )
        return loss

    def get_compile_config(self) -> Config:
        config = super().get_compile_config()
        return {**config, "cache_batch_size": self.cache_batch_size} if config else config

    def call(
        self,
        inputs: dict[str, Tensor],
        training: bool | None = None,
        mask: Tensor = None,
        **kwargs: Any,
    ) -> Tensor:
        """float32 (N, H), the vectors of packed texts (N, L)."""
        encode = super().call
        if not training or self.cache_batch_size is None:
            return encode(inputs, training=training, mask=mask, **kwargs)
        return encode_in_parts(
            self, lambda part: encode(part, training=True), inputs, self.cache_batch_size
        )

    def compute_loss(
        self,
        x: Tensor = None,
        y: Tensor = None,
        y_pred: Tensor = None,
        sample_weight: Tensor = None,
        training: bool = True,
    ) -> Tensor:
        """The loss of vectors (B S, H), which the loss object gets as (B, S, H)."""
        vectors = self._group_by_row(y_pred, y)
        return super().compute_loss(x, y, vectors, sample_weight, training=training)

    def compute_metrics(
        self, x: Tensor, y: Tensor, y_pred: Tensor, sample_weight: Tensor = None
    ) -> dict[str, Tensor]:
        """The metrics of vectors (B S, H), which the metrics get as (B, S, H)."""
        return super().compute_metrics(x, y, self._group_by_row(y_pred, y), sample_weight)

    def _group_by_row(self, vectors: Tensor, y: Tensor) -> Tensor:
        """Vectors (B S, H) as (B, S, H), for `y` (B,) or (B, S). A replica may have no rows."""
        if vectors is None or y is None:
            return vectors
        num_texts = -1
        if len(y.shape) == 2:  # Numbers of the texts.
            num_texts = ops.shape(y)[1]
        elif isinstance(self.loss, EmbeddingLoss):
            num_texts, _ = self.loss.num_texts
        return ops.reshape(vectors, (ops.shape(y)[0], num_texts, vectors.shape[-1]))

    @property
    def pooling_name(self) -> str | None:
        """The name of the pooling, or None for a layer of the user."""
        return name_pooling(self.pooling)

    @property
    def needs_labels(self) -> bool:  # type: ignore[override]
        """bool, whether `fit` and `evaluate` need scores."""
        return isinstance(self.loss, EmbeddingLoss) and self.loss.takes_scores

    def encode_labels(self, labels: Labels) -> Labels:
        """Turns the scores of rows into float32 (N,)."""
        if is_tf_tensor(labels):
            return encode_targets(labels, 1)[:, 0] if _holds_numbers(labels) else _refuse(labels)
        scores = np.asarray(labels)
        if scores.dtype.kind not in "biuf":
            return _refuse(labels)
        scores = scores.astype("float32")
        if scores.ndim == 2 and scores.shape[1] == 1:
            scores = scores[:, 0]
        if scores.ndim != 1 or not np.isfinite(scores).all():
            raise ValueError(
                "The scores of a TextEmbedder must be one finite number for each row, no NaN, got "
                f"an array of shape {scores.shape}."
            )
        if isinstance(self.loss, EmbeddingLoss):
            self.loss.check_scores(scores)
        return scores

    def arrange_columns(
        self, inputs: tuple[Any, ...], names: tuple[str, ...] | None, labelled: bool
    ) -> tuple[Any, ...]:
        if len(inputs) > 1 and self.column_names is None:
            self.column_names = names or default_names(len(inputs))
        return order_columns(inputs, names, self.column_names)

    def preprocess(self, x: Inputs, y: Labels = None, sample_weight: Labels = None) -> Any:
        if isinstance(x, tuple) and len(x) > 1:
            raise ValueError(
                f"predict takes single texts, got rows of {len(x)} texts. Call it for each column, "
                "or compare columns with `similarity_pairwise(first_texts, second_texts)`."
            )
        return super().preprocess(x, y, sample_weight)

    def preprocess_training(self, x: Inputs, y: Labels = None, sample_weight: Labels = None) -> Any:
        """Packs the texts of rows one after the other.

        Args:
            x: tuple of S text columns (B,), or dict of packed arrays (B, S, L) or (B, L).
            y: scores (B,), or None.
            sample_weight: (B,), or None.

        Returns:
            tuple (packed arrays (B S, L), y, sample_weight). If `y` is None, numbers of the texts,
            int32 (B, S), take its place.

        Raises:
            ValueError: if the loss does not take such rows.
        """
        columns = split_packed(x) if isinstance(x, dict) else x
        if isinstance(self.loss, EmbeddingLoss):
            self.loss.check_rows(len(columns), y is not None)
            if len(columns) == 1:
                columns = columns * 2  # The text and its positive.
        if isinstance(x, dict):
            packed = interleave_packed(columns)
        else:
            packed = self.pack_texts((interleave_texts(columns),))
        if y is None:
            y = number_texts(packed["token_ids"], len(columns))
        return keras.utils.pack_x_y_sample_weight(packed, y, sample_weight)

    def serving_outputs(self, outputs: Tensor, packed: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The answers of a server: `embedding` float32 (B, H)."""
        return {"embedding": outputs}

    def get_config(self) -> Config:
        return {
            **super().get_config(),
            "pooling": keras.layers.serialize(self.pooling),
            "normalize": self.normalize,
            "input_names": self.input_names and list(self.input_names),
            "column_names": self.column_names and list(self.column_names),
        }


def _holds_numbers(tensor):
    return tensor.dtype.is_floating or tensor.dtype.is_integer


def _refuse(labels):
    raise ValueError(
        "The labels of a TextEmbedder are scores, got labels of type "
        f"{getattr(labels, 'dtype', type(labels).__name__)}. If they are texts: a tuple of two is "
        "read as (x, y). Pass columns of texts as x=(first_texts, second_texts), in datasets as a "
        "dict, and in `validation_data` as ((first_texts, second_texts), None)."
    )
