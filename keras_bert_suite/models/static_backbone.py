"""Static vectors: a table with a vector for each token, and no layers."""

from typing import Any, ClassVar

import keras

from keras_bert_suite.annotations import Config, Dtype
from keras_bert_suite.argument_checks import (
    check_further_arguments,
    check_integer,
    check_not_negative,
)
from keras_bert_suite.layers.poolings.pooling import MeanPooling
from keras_bert_suite.models.text_encoder import TextEncoder


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class StaticBackbone(TextEncoder):
    """A table of vectors, one for each token, wherever the token stands.

    The vector of a text is the mean of the vectors of its tokens. A text is encoded some hundred
    times as fast as by a transformer, and rows may have any length. `distill_static` makes the
    table of a trained `TextEmbedder`. Heads that need the words around a word, such as those for
    entities, learn little on it.

    Rows have no special tokens: `SegmentPacker(tokenizer, add_special_tokens=False)`. A text
    without tokens has the vector 0.

    Inputs, a dictionary: `token_ids` and `padding_mask`, int32 (B, L), the mask 1 on tokens and 0
    on padding.

    Outputs, a dictionary: `sequence_output` (B, L, H), the vectors of the tokens; `pooled_output`
    (B, H), their mean.

    Args:
        vocabulary_size: int V.
        hidden_dim: int H, the width of the vectors.
        initializer_range: float, standard deviation of a new table.
        dtype: string or `keras.DTypePolicy`. Means are computed in float32.

    Example:
    ```python
    tokenizer = WordPieceTokenizer("vocab.txt")
    packer = SegmentPacker(tokenizer, add_special_tokens=False)
    backbone = StaticBackbone(tokenizer.vocabulary_size(), hidden_dim=256)
    embedder = TextEmbedder(backbone, preprocessor=packer)
    ```

    Raises:
        ValueError: if a size is no positive integer.

    Source: `StaticEmbedding` of sentence-transformers, and model2vec
    (https://github.com/MinishLab/model2vec).
    """

    #: The widths of model2vec's potion-base-2M, 4M, 8M and 32M, and of static-retrieval-mrl-en-v1.
    sizes: ClassVar[dict[str, Config]] = {
        size: {"hidden_dim": hidden_dim}
        for size, hidden_dim in (
            *(("tiny", 64), ("mini", 128), ("small", 256)),
            *(("medium", 512), ("base", 1024)),
        )
    }
    #: The names of the model's inputs.
    input_names: tuple[str, ...] = ("token_ids", "padding_mask")

    def __init__(
        self,
        vocabulary_size: int,
        hidden_dim: int,
        *,
        initializer_range: float = 0.02,
        dtype: Dtype | None = None,
        **kwargs: Any,
    ) -> None:
        check_further_arguments(type(self), kwargs, ("name", "trainable"))
        check_integer("vocabulary_size", vocabulary_size, at_least=1)
        check_integer("hidden_dim", hidden_dim, at_least=1)
        check_not_negative("initializer_range", initializer_range)

        # === Config ===
        self.vocabulary_size = vocabulary_size
        self.hidden_dim = hidden_dim
        self.initializer_range = initializer_range

        # === Layers ===
        self.token_embedding = keras.layers.ReversibleEmbedding(
            vocabulary_size,
            hidden_dim,
            embeddings_initializer=keras.initializers.TruncatedNormal(stddev=initializer_range),
            dtype=dtype,
            name="token_embedding",
        )
        self.embeddings = self.token_embedding
        self.mean = MeanPooling(dtype=dtype, name="mean")

        # === Functional Model ===
        inputs = {name: keras.Input((None,), dtype="int32", name=name) for name in self.input_names}
        vectors = self.token_embedding(inputs["token_ids"])
        outputs = {
            "sequence_output": vectors,
            "pooled_output": self.mean(vectors, inputs["padding_mask"]),
        }
        super().__init__(inputs=inputs, outputs=outputs, dtype=dtype, **kwargs)
