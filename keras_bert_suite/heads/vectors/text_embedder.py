"""Encodes texts as vectors, so that similar texts have similar vectors."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import keras
import keras_hub
import numpy as np
from keras import ops

from keras_bert_suite import checkpoints
from keras_bert_suite.annotations import Config, Inputs, Tensor
from keras_bert_suite.argument_checks import check_integer
from keras_bert_suite.heads import vectors
from keras_bert_suite.heads.base.poolings import open_new_pooling, pool_hidden_states
from keras_bert_suite.heads.base.split_models import TaskPart
from keras_bert_suite.heads.base.task import Task, part_attribute
from keras_bert_suite.heads.vectors.data import add_prompt
from keras_bert_suite.heads.vectors.semantic_search import SemanticSearch
from keras_bert_suite.heads.vectors.static_vectors import encode_static
from keras_bert_suite.layers import PROMPT_ARGUMENT
from keras_bert_suite.layers.poolings.pooling import (
    PromptlessPooling,
    get_pooling,
    name_pooling,
    name_poolings,
)
from keras_bert_suite.models.encoder import Encoder
from keras_bert_suite.training import (
    Divergence,
    EmbeddingLoss,
    InBatchNegatives,
    encode_in_parts,
)
from keras_bert_suite.training.embedding_losses import normalize as scale_to_unit_length


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class TextEmbedder(SemanticSearch, Task, keras_hub.models.Task):
    """A text encoder whose hidden states are pooled to one vector.

    `predict` takes single texts, as a list, an array or a pandas Series, and returns their
    vectors. `similarity` compares texts, and `search` finds the nearest texts of a corpus.

    `fit` takes rows of one or several texts: a list; a tuple of columns, such as `(anchors,
    positives)` or `(anchors, positives, negatives)`, where the negatives of a row are a text, or a
    list of any number of texts; a DataFrame or dict of text columns; or a dataset of batches. The
    loss decides the form of a row:

    - `InBatchNegatives` (the default): pairs that match, with further texts that do not match; or
        single texts, each matched with itself (SimCSE);
    - `CoSENT` and `CosineRegression`: pairs with a score each, the labels `y`;
    - `Triplet`: an anchor, a text that matches and a text that does not;
    - `BatchAllTriplet` and `BatchHardTriplet`: single texts with a label each, `y`;
    - `MarginMSE` and `DistilledScores`: a query and its candidates, and a teacher's score for each
        candidate, `y` (N, S - 1);
    - `VectorRegression`: single texts, or a text and its translations, and a teacher's vector for
        each row, `y` (N, H);
    - `Matryoshka`: as the loss that it wraps;
    - a function or `keras.losses.Loss` of the user. Its `y_true` is the scores float32 (B,). For
      rows without scores it is numbers of the texts, int32 (B, S), and equal texts have equal
      numbers; -1 is no text. Its `y_pred` is the vectors float32 (B, S, H) of the S texts of each
      row.

    Rows without scores have no `y`. A batch of a dataset is then `(x,)`, or a dict of columns;
    `validation_data` is `(x, None)`. Packed arrays are int32 (B, S, L), or (B, L) for single texts.

    Args:
        backbone: `BertBackbone`, or any KerasHub text encoder with a sequence output.
        pooling: "mean" over the tokens, "cls" for the summary token, "last" for the last token,
            "max", "weighted_mean" with more weight for later tokens, "first_last_average" for the
            mean of the first and the last layer; a list of several, whose vectors are concatenated;
            or a layer, as for `TextClassifier`.
        dense_layers: list of `keras.layers.Dense`, or their configurations, that the pooled vector
            goes through; or one layer. A reason is another width, as in distiluse.
        normalize: bool, whether the vectors have the length 1. With `dimensions` they are shorter,
            because they are cut afterwards.
        dimensions: int, how many of the first numbers of a vector are kept, for an embedder that
            was trained so that they are enough (Matryoshka; Kusupati et al., 2022,
            https://arxiv.org/abs/2205.13147). As in sentence-transformers, the vector is cut after
            it was normalized; `similarity` and `search` normalize it again. None keeps all.
        preprocessor: `SegmentPacker`, a KerasHub preprocessor, or None for packed arrays only.
        input_names: the name of the text in an export, ("text",) by default.
        column_names: names of the text columns of `fit`, such as ("question", "answer"). If it is
            None, the first `fit` on several columns sets it to the names of the columns. Columns
            with these names may come in any order.
        prompts: dict of name -> str that `predict(texts, prompt=name)` puts before each text, such
            as `{"query": "query: "}`. The files of sentence-transformers have them, too.

    Outputs, of the model and of `predict`: float32 (B, H).

    Example:
    ```python
    embedder = TextEmbedder.from_preset("path/to/checkpoint")
    embedder.fit((questions, answers), batch_size=64)
    embedder.search(["how long does it take?"], answers, top_k=3)
    ```

    Source: Reimers and Gurevych, 2019, Sentence-BERT (https://arxiv.org/abs/1908.10084).
    """

    HEAD = vectors.HEAD
    global_tokens = "none"  # As sentence-transformers calls a Longformer.
    loss_advice = (
        "It does not compare vectors with scores. For scores, compile with CosineRegression() or "
        "CoSENT(); for labels, with BatchHardTriplet(); without either, with InBatchNegatives() or "
        "Triplet()."
    )
    metric_advice = (
        "It does not compare vectors with scores. `score` and `score_retrieval` score held-out "
        "texts. A function of your own gets the scores (B,) and the vectors (B, S, H)."
    )

    column_names = part_attribute("data", "column_names")
    changeable = frozenset({"prompts"})

    #: int or None, see `compile`.
    cache_batch_size: int | None = None

    @property
    def splits_batches(self) -> str | None:
        return None if self.cache_batch_size is None else "cache_batch_size"

    def __init__(
        self,
        backbone: keras_hub.models.Backbone,
        *,
        pooling: str | Sequence[str] | Mapping[str, Any] | keras.layers.Layer = "mean",
        dense_layers: keras.layers.Layer | Sequence[Mapping[str, Any] | keras.layers.Layer] = (),
        normalize: bool = True,
        dimensions: int | None = None,
        preprocessor: keras.layers.Layer | None = None,
        input_names: str | Sequence[str] | None = None,
        column_names: Sequence[str] | None = None,
        prompts: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> None:
        self.check_further_arguments(kwargs)

        # === Layers ===
        self.backbone = backbone
        dtype = backbone.dtype_policy.name
        summary_place = Encoder.of(backbone).summary_place
        self.pooling = get_pooling(pooling, summary_place, dtype=dtype, name="pooling")
        self.dense_layers = _open_layers(dense_layers)
        # Vectors are compared in float32 under every policy. With Keras' UnitNormalization, which
        # divides by the length before it takes a minimum, LiteRT answers with NaN for the vector 0.
        scale = scale_to_unit_length if normalize else None
        self.vectors = keras.layers.Activation(scale, dtype="float32", name="vectors")

        # === Functional Model ===
        inputs = backbone.input
        pooled, self.unused_paths = pool_hidden_states(backbone, self.pooling)
        for layer in self.dense_layers:
            pooled = layer(pooled)
        outputs = self.vectors(pooled)
        if dimensions is not None:
            check_integer("dimensions", dimensions, at_least=1)
            if dimensions > outputs.shape[-1]:
                raise ValueError(
                    f"dimensions must be at most {outputs.shape[-1]}, the width of the vectors, "
                    f"got {dimensions}."
                )
            outputs = outputs[:, :dimensions]

        # === Data and Answers ===
        self.make_parts(preprocessor, input_names=input_names, column_names=column_names)
        super().__init__(inputs=inputs, outputs=outputs, **kwargs)

        # === Config ===
        self.normalize = normalize
        self.dimensions = dimensions
        self.prompts = _read_prompts(prompts)

    @classmethod
    def arguments_of(cls, checkpoint: Any, arguments: Config) -> tuple[Config, list[str]]:
        given = arguments
        arguments = {**checkpoints.embedder_arguments(checkpoint), **arguments}
        arguments, new_parts = super().arguments_of(checkpoint, arguments)
        if "dense_layers" in given:
            layers = _open_layers(given["dense_layers"])
            arguments["dense_layers"] = layers
            new_parts = [*new_parts, *(f"{re.escape(layer.name)}/.*" for layer in layers)]
        if not arguments.pop("include_prompt", True):
            arguments["pooling"] = PromptlessPooling(arguments["pooling"], name="pooling")
        return arguments, [*new_parts, *open_new_pooling(arguments, "pooling")]

    def compile(
        self,
        optimizer: str | keras.optimizers.Optimizer = "auto",
        loss: Any = "auto",
        *,
        cache_batch_size: int | None = None,
        **kwargs: Any,
    ) -> None:
        """Configures training; see `Task.compile`.

        Args:
            optimizer, loss, **kwargs: as for `Task.compile`.
            cache_batch_size: int, how many texts go through the encoder at once in training. The
                encoder then takes only the memory of these texts, for any `batch_size`, and a step
                takes about a third more time. None encodes all texts of a batch at once.
        """
        if cache_batch_size is not None:
            check_integer("cache_batch_size", cache_batch_size, at_least=1)
        self.cache_batch_size = cache_batch_size
        super().compile(optimizer, loss, **kwargs)
        self.data.labels.loss = self.loss if isinstance(self.loss, EmbeddingLoss) else None
        self.data.labels.width = self.output_shape[-1]
        if self.data.labels.loss is not None:
            self.loss.check_width(self.output_shape[-1])
        rates = [getattr(layer, "rate", 0.0) for layer in self._flatten_layers()]
        self.data.has_dropout = any(rates)

    def make_loss(self) -> keras.losses.Loss:
        return InBatchNegatives()

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
        encode: Any = super().call
        if not training or self.cache_batch_size is None:
            return encode(inputs, training=training, mask=mask, **kwargs)
        if keras.config.backend() == "tensorflow":
            # It encodes parts again outside of this call, where Keras 3.16 does not hand `training`
            # from `call` to the layers.
            encode = TaskPart.of(self, self.input, self.output, "encode_again")
        return encode_in_parts(
            self, lambda part: encode(part, training=True), inputs, self.cache_batch_size
        )

    def predict(
        self,
        x: Inputs = None,
        batch_size: int | None = None,
        steps: int | None = None,
        *,
        prompt: str | None = None,
        **kwargs: Any,
    ) -> Any:
        """Returns the vectors of texts, float32 (N, H); see `Task.predict`.

        Of a `StaticBackbone` they are made without a graph, and without a progress bar.

        Args:
            prompt: the name of a prompt of `prompts`, which is put before each text. `x` is then a
                list, an array or a pandas Series of str.
            x, batch_size, steps, **kwargs: as for `Task.predict`.

        Raises:
            ValueError: if there is no such prompt, or `x` holds no texts in memory.
        """
        if prompt is not None:
            x = add_prompt(self.prompts, prompt, x)
            if not self.pools_prompts:
                length = self.count_prompt_tokens(self.prompts[prompt])
                x = {**self.data.pack_texts((x,)), PROMPT_ARGUMENT: np.full(len(x), length)}
        if steps is None and not kwargs.get("callbacks"):
            vectors = encode_static(self, x, batch_size, kwargs)
            if vectors is not None:
                return vectors
        # Not the method of the base: an `Ensemble` of embedders has this method, too.
        answers = self.answers
        return self.predict_with(answers.decode, x, batch_size, steps, answers.condense, **kwargs)

    @property
    def pools_prompts(self) -> bool:
        """Whether the tokens of a prompt are pooled, and not only read."""
        return not isinstance(self.pooling, PromptlessPooling)

    def count_prompt_tokens(self, prompt: str) -> int:
        """The tokens of a row before its text, where the text begins with a prompt."""
        mask = self.preprocessor([prompt])["padding_mask"]
        # Without the token that ends a text, which follows the prompt only here.
        has_end = getattr(self.preprocessor, "add_special_tokens", True)
        return int(ops.sum(ops.cast(mask, "int32"))) - int(has_end)

    def find_divergence(self) -> Divergence:
        """The squared distance of the vectors of a text."""
        return Divergence.of_numbers(is_mean=False)

    def relabel(self, x: Any, y: Any, y_pred: Any, sample_weight: Any) -> tuple[Any, ...]:
        """Gives the loss and the metrics vectors (B, S, H) of the S texts of each row."""
        return y, self._split_by_row(y_pred, y), sample_weight

    def _split_by_row(self, vectors: Tensor, y: Tensor) -> Tensor:
        """Vectors (B S, H) as (B, S, H), for `y` (B,) or (B, S). A replica may have no rows."""
        if vectors is None or y is None:
            return vectors
        num_texts = -1
        if isinstance(self.loss, EmbeddingLoss):
            num_texts = self.loss.count_texts(y, ops.shape(vectors)[0])
        elif len(y.shape) == 2:  # Numbers of the texts.
            num_texts = ops.shape(y)[1]
        return ops.reshape(vectors, (ops.shape(y)[0], num_texts, vectors.shape[-1]))

    @property
    def pooling_name(self) -> str | None:
        """The name of the pooling, or None for a layer of the user."""
        return name_pooling(self.pooling)

    @property
    def pooling_names(self) -> list[str | None]:
        """The names of the poolings that are concatenated; None for a layer of the user."""
        return name_poolings(self.pooling)


def _open_layers(layers):
    """list of the layers that follow the pooling, of one layer or of a list."""
    return list(map(_open_layer, [layers] if isinstance(layers, keras.layers.Layer) else layers))


def _open_layer(layer):
    return keras.layers.deserialize(dict(layer)) if isinstance(layer, Mapping) else layer


def _read_prompts(prompts):
    prompts = prompts or {}
    if isinstance(prompts, Mapping) and all(isinstance(text, str) for text in prompts.values()):
        return dict(prompts)
    raise ValueError(f"prompts must be a dict of name -> str, got {prompts!r}.")
