"""Scores how relevant texts are for a query from a vector of each text."""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import keras
import keras_hub
import numpy as np
from keras import ops

from keras_bert_suite import checkpoints
from keras_bert_suite.annotations import Config, Inputs, Tensor
from keras_bert_suite.argument_checks import check_below_one, check_integer
from keras_bert_suite.data.rows import Rows, read_texts
from keras_bert_suite.heads import towers
from keras_bert_suite.heads.base.feature_training import fit_on_features
from keras_bert_suite.heads.base.poolings import open_new_pooling, pool_hidden_states
from keras_bert_suite.heads.base.split_models import split_at
from keras_bert_suite.heads.base.text_data import TextData
from keras_bert_suite.heads.rankings.ranking_task import RankingTask
from keras_bert_suite.heads.vectors.vector_search import check_vectors
from keras_bert_suite.layers.heads.pair_score import PairScore
from keras_bert_suite.layers.poolings.pooling import get_pooling
from keras_bert_suite.layers.poolings.window_layers import MergeWindows
from keras_bert_suite.models.encoder import Encoder
from keras_bert_suite.runs.batches import batch_rows
from keras_bert_suite.runs.weight_lock import lock_weights

#: How many pairs of vectors are scored at once. With a width of 768 they take 200 MB.
_PAIRS_AT_ONCE = 16384


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class TwoTowerRanker(RankingTask, keras_hub.models.Task):
    """A text encoder, and a small network that scores the vectors of a query and of a text.

    It stands between a `TextEmbedder`, whose cosines cannot be learned, and a `TextRanker`, which
    reads each pair anew. The vectors of a corpus are encoded once and kept; a score of two vectors
    costs two small products of matrices. Take it where a `TextRanker` is too slow for the number of
    pairs, or where the relation of the texts is not similarity.

    Both towers are one encoder. The score is that of `PairScore`, which knows the query from the
    text. `fit` and `evaluate` take lists of candidates, and `predict` takes pairs, as those of
    `TextRanker`, but packed arrays have the query as the first text: (N, K + 1, L), and (N, 2, L)
    for pairs. `fit_on_features` trains the score on cached vectors, with the encoder as it is.
    `encode` makes vectors, and `score_matrix` scores each query with each candidate.

    An export has the signatures `encode`, from texts to vectors, and `score`, from vectors to
    relevance.

    Args:
        backbone: `BertBackbone`, or any KerasHub text encoder with a sequence output.
        pooling: as for `TextEmbedder`. The vectors are not normalized.
        hidden_dim: int, the width of the hidden layer of the score.
        preprocessor: `SegmentPacker`, a KerasHub preprocessor, or None for packed arrays only.
        dropout: float, dropout rate of the score.
        input_names: names of the two columns, and of the inputs of an export.

    Outputs of the model: float32 (B, K), logits; of `predict`: float32 (B,). A higher one is more
    relevant.

    Example:
    ```python
    ranker = TwoTowerRanker.from_preset("path/to/checkpoint")
    ranker.fit((["cheap film"], [["a dull plot", "a film for 2", "actors"]]), [[0, 1, 0]])
    vectors = ranker.encode(corpus)
    ranker.score_matrix(["cheap film"], vectors)  # float32 (1, N)
    ```

    Sources: Conneau et al., 2017, InferSent (https://arxiv.org/abs/1705.02364), section 3.1, for
    the features of a pair; Reimers and Gurevych, 2019, Sentence-BERT
    (https://arxiv.org/abs/1908.10084), section 3, for two towers of one BERT.
    """

    HEAD = towers.HEAD
    global_tokens = "none"  # As for a TextEmbedder.

    def __init__(
        self,
        backbone: keras_hub.models.Backbone,
        *,
        pooling: str | Sequence[str] | Mapping[str, Any] | keras.layers.Layer = "mean",
        hidden_dim: int = 128,
        preprocessor: keras.layers.Layer | None = None,
        dropout: float = 0.1,
        input_names: Sequence[str] | None = None,
        **kwargs: Any,
    ) -> None:
        self.check_further_arguments(kwargs)
        check_integer("hidden_dim", hidden_dim, at_least=1)
        check_below_one(dropout=dropout)

        # === Layers ===
        self.backbone = backbone
        dtype = backbone.dtype_policy.name
        summary_place = Encoder.of(backbone).summary_place
        self.pooling = get_pooling(pooling, summary_place, dtype=dtype, name="pooling")
        self.pair_score = PairScore(hidden_dim, dropout=dropout, dtype=dtype, name="pair_score")
        # The loss is computed in float32 under every policy.
        self.output_activation = keras.layers.Activation(None, dtype="float32", name="scores")

        # === Functional Model ===
        inputs = {
            name: keras.Input((None, None), dtype=tensor.dtype, name=name)
            for name, tensor in backbone.input.items()
        }
        merged = MergeWindows(name="merge_texts")(inputs)
        pooled, self.unused_paths = pool_hidden_states(backbone, self.pooling, merged)
        split = _SplitTexts(dtype="float32", name="vectors")
        vectors = split(pooled, inputs["padding_mask"])
        outputs = self.output_activation(self.pair_score(vectors[:, :1], vectors[:, 1:]))

        # === Data and Answers ===
        self.make_parts(preprocessor, input_names=input_names or self.column_names)
        super().__init__(inputs=inputs, outputs=outputs, **kwargs)

        # === Config ===
        self.hidden_dim = hidden_dim
        self.dropout = dropout
        self.__dict__["text_vectors"] = vectors  # Keras would take an attribute for a part.

    @classmethod
    def arguments_of(cls, checkpoint: Any, arguments: Config) -> tuple[Config, list[str]]:
        found = checkpoints.embedder_arguments(checkpoint)
        if found.get("dense_layers"):
            raise ValueError(
                f"{checkpoint.path} has layers after its pooling, which a TwoTowerRanker does not "
                "have. Open it as a TextEmbedder, or build a TwoTowerRanker on its backbone."
            )
        kept = {"pooling": found["pooling"]} if "pooling" in found else {}
        arguments = {**kept, **arguments}
        warnings.warn(
            f"{checkpoint.path} has no weights for a score of two vectors. They are new and "
            "random. Train them before you use their output.",
            stacklevel=4,
        )
        return arguments, ["pair_score/.*", *open_new_pooling(arguments, "pooling")]

    @property
    def width(self) -> int:
        """int, P, the width of a vector."""
        return int(self.__dict__["text_vectors"].shape[-1])

    @property
    def encoder_features(self) -> list[Tensor]:
        """What `fit_on_features` trains on: the vectors of the texts of a row, (B, S, P)."""
        return [self.__dict__["text_vectors"]]

    fit_on_features = fit_on_features

    def split_towers(self) -> tuple[keras.Model, keras.Model]:
        """(the encoder of texts, the scorer of vectors), made once."""
        # Each has a function that is compiled once.
        if "towers" not in self.__dict__:
            self.__dict__["towers"] = split_at(self, self.__dict__["text_vectors"])
        return self.__dict__["towers"]

    def drop_functions(self) -> None:
        """See `SavedTask.drop_functions`."""
        super().drop_functions()
        self.__dict__.pop("towers", None)

    def encode(self, texts: Sequence[str], batch_size: int | None = None) -> np.ndarray:
        """The vectors of texts, which `score_matrix` takes. Equal texts are encoded once.

        Args:
            texts: N str.
            batch_size: int, as for `predict`.

        Returns:
            float32 (N, P).
        """
        column = read_texts(texts)
        if not len(column):
            return np.zeros((0, self.width), "float32")
        places: dict[str, int] = {}
        inverse = [places.setdefault(text, len(places)) for text in column]
        rows = Rows((np.array([*places], object),))
        lengths = TextData.lengths(self.data, rows)
        batches, visited = batch_rows(rows, batch_size, lengths)
        encoder, _ = self.split_towers()
        vectors = []
        with lock_weights(self):
            for number in range(len(batches)):
                packed, _, _ = self.data.pack(batches[number])
                vectors.append(np.asarray(encoder.predict_on_batch(packed), "float32")[:, 0])
        return np.concatenate(vectors)[np.argsort(visited)][inverse]

    def score_matrix(
        self, queries: Inputs, candidates: Inputs, batch_size: int | None = None
    ) -> np.ndarray:
        """Scores each query with each candidate. Each text is encoded once.

        Args:
            queries, candidates: N and M str; or their vectors, from `encode`.
            batch_size: int, as for `predict`.

        Returns:
            float32 (N, M), logits.

        Raises:
            ValueError: if vectors are not float (N, P) and finite.
        """
        first, second = (self._read_vectors(x, batch_size) for x in (queries, candidates))
        scores = np.zeros((len(first), len(second)), "float32")
        _, scorer = self.split_towers()
        rows = max(1, _PAIRS_AT_ONCE // max(len(second), 1))
        with lock_weights(self):
            for row in range(0, len(first), rows):
                some = first[row : row + rows]
                for column in range(0, len(second), _PAIRS_AT_ONCE):
                    others = second[column : column + _PAIRS_AT_ONCE]
                    others = np.broadcast_to(others, (len(some), *others.shape))
                    both = np.concatenate([some[:, None], others], axis=1)
                    found = np.asarray(scorer.predict_on_batch(both))
                    scores[row : row + rows, column : column + _PAIRS_AT_ONCE] = found
        return scores

    def score_lists(self, queries: Any, lists: Any, batch_size: int | None) -> list[np.ndarray]:
        texts = [text for row in lists for text in row]
        vectors = self.encode([*queries, *texts], batch_size)
        ends = np.cumsum([len(queries), *map(len, lists)])[:-1]
        first, *rows = np.split(vectors, ends)
        return [self.score_matrix(one[None], row)[0] for one, row in zip(first, rows, strict=True)]

    def _read_vectors(self, x, batch_size):
        if not (isinstance(x, np.ndarray) and x.dtype.kind == "f"):
            return self.encode(x, batch_size)
        check_vectors(x)
        if x.shape[1] != self.width:
            raise ValueError(
                f"The vectors have {x.shape[1]} numbers, those of this ranker have {self.width}. "
                "Make them by its `encode`."
            )
        return x.astype("float32")


class _SplitTexts(keras.layers.Layer):
    """Reshapes vectors (B * S, P) to (B, S, P), for texts with the mask (B, S, L)."""

    def call(self, vectors: Tensor, padding_mask: Tensor) -> Tensor:
        shape = (-1, ops.shape(padding_mask)[1], vectors.shape[-1])
        return ops.reshape(ops.cast(vectors, "float32"), shape)
