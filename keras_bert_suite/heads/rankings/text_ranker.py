"""Scores how relevant texts are for a query, and orders them: a cross-encoder, or reranker."""

import warnings
from typing import Any

import keras
import keras_hub

from keras_bert_suite.annotations import Config, Tensor
from keras_bert_suite.heads import rankings
from keras_bert_suite.heads.base.pair_scorer import PairScorer
from keras_bert_suite.heads.rankings.ranking_task import RankingTask


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class TextRanker(RankingTask, PairScorer, keras_hub.models.Task):
    """A text encoder with a layer that scores a query and a text: a cross-encoder, or reranker.

    It reads both texts together, so it is slower and more accurate than a comparison of vectors.
    Search with a `TextEmbedder`, and order its results with a `TextRanker`.

    `fit` and `evaluate` take lists of candidates: a tuple of two columns `(queries, texts)`, in
    which a row of texts is a list of any length; a DataFrame or dict of the columns `query` and
    `text`; packed arrays (N, K, L); or datasets of batches of these. The label of a row is a list
    with the relevance of each candidate: 1 or 0, such as a click, or a grade. `read_rankings` reads
    tables with a candidate in each row. `batch_size` counts lists: a step reads all candidates.

    `predict` takes pairs, as many texts as queries. `rank` orders lists.

    Args:
        backbone: `BertBackbone`, or any KerasHub text encoder.
        preprocessor: `SegmentPacker`, a KerasHub preprocessor, or None for packed arrays only.
        dropout: float, dropout rate of the pooled output.
        input_names: names of the two columns, and of the inputs of an export.

    Outputs, of the model and of `predict`: float32 (B,), logits. A higher one is more relevant.

    Example:
    ```python
    ranker = TextRanker.from_preset("path/to/checkpoint")
    ranker.fit((["cheap film"], [["a dull plot", "a film for 2", "actors"]]), [[0, 1, 0]])
    ranker.predict((["cheap film"], ["a film for 3"]))
    ranker.rank("cheap film", ["a dull plot", "a film for 3"], top_k=1)
    ```

    Source: Nogueira and Cho, 2019 (https://arxiv.org/abs/1901.04085).
    """

    HEAD = rankings.HEAD
    scorer_name = "classifier"  # Cross-encoders of transformers are classifiers with one output.

    def make_outputs(self) -> tuple[dict[str, Tensor], Tensor]:
        return self.backbone.input, self.score_pairs(self.backbone.input)[:, 0]

    @classmethod
    def arguments_of(cls, checkpoint: Any, arguments: Config) -> tuple[Config, list[str]]:
        head = checkpoint.heads.get("classifier", {})
        if len(head.get("label_names", ())) == 1:
            return {"dropout": head.get("dropout", 0.1), **arguments}, []
        warnings.warn(
            f"{checkpoint.path} has no weights for a classification layer with one output. They "
            "are new and random. Train them before you use their output.",
            stacklevel=4,
        )
        return arguments, ["classifier/.*"]
