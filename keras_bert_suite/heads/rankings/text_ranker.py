"""Scores how relevant texts are for a query, and orders them: a cross-encoder, or reranker."""

import warnings
from collections.abc import Sequence
from typing import Any

import keras
import keras_hub
import numpy as np
from keras import ops

from keras_bert_suite.annotations import Config, Inputs, Labels, Tensor
from keras_bert_suite.argument_checks import check_integer
from keras_bert_suite.heads import rankings
from keras_bert_suite.heads.base.input_checks import check_in_memory
from keras_bert_suite.heads.base.pair_scorer import PairScorer
from keras_bert_suite.heads.rankings.rows import list_pairs, read_lists
from keras_bert_suite.heads.vectors.scores import score_rankings
from keras_bert_suite.heads.vectors.vector_search import SearchHit
from keras_bert_suite.training import (
    NDCG,
    Divergence,
    OutputForm,
    RankingLoss,
    compare_switches,
)


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class TextRanker(PairScorer, keras_hub.models.Task):
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
    column_names = ("query", "text")
    loss_advice = (
        "It would count the places after the last candidate of a list, whose label is -1. Compile "
        "with RankingLoss('listwise'), 'pairwise' or 'pointwise', or with a loss of yours that "
        "leaves them out."
    )
    metric_advice = (
        "It would count the places after the last candidate of a list, whose label is -1. Pass "
        "keras_bert_suite.training.NDCG(top_k=10). `score` has MRR and recall."
    )

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

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Configures training; see `Task.compile`. `RankingLoss` says which losses there are."""
        super().compile(*args, **kwargs)
        self.data.compares = getattr(self.loss, "kind", None) in ("listwise", "pairwise")

    def make_loss(self) -> keras.losses.Loss:
        """The "listwise" `RankingLoss`."""
        return RankingLoss()

    def make_metrics(self) -> dict[str, Any]:
        """nDCG at 10."""
        return {"metrics": [NDCG()]}

    def relabel(self, x: Any, y: Any, y_pred: Any, sample_weight: Any) -> tuple[Any, ...]:
        """Gives the loss and the metrics scores (B, K), a row for each list."""
        if y is not None and y_pred is not None:
            y_pred = ops.reshape(y_pred, ops.shape(y))
        return y, y_pred, sample_weight

    def find_divergence(self) -> Divergence:
        """The divergence of the shares of the candidates of a list, softmax of their scores.

        With a "pointwise" loss, the mean over the candidates: each is relevant or not, by itself.
        """

        def compare(y_true: Any, p: Tensor, q: Tensor) -> Tensor:
            # Places after the last candidate have a negative label.
            is_candidate = y_true >= 0
            p, q = (
                ops.where(is_candidate, ops.cast(ops.reshape(x, ops.shape(y_true)), "float32"), 0.0)
                for x in (p, q)
            )
            if getattr(self.loss, "kind", None) == "pointwise":
                number = ops.sum(ops.cast(is_candidate, "float32"), axis=-1)
                return ops.divide_no_nan(ops.sum(compare_switches(p, q), axis=-1), number)
            p, q = (ops.where(is_candidate, x, -1e9) for x in (p, q))
            return Divergence.of_form(OutputForm("classes")).one_way(y_true, p, q)

        return Divergence.of(compare)

    def rank(
        self,
        query: str | Sequence[str],
        texts: Sequence[Any],
        top_k: int | None = None,
        batch_size: int | None = None,
    ) -> Any:
        """Orders the candidates of a query, or of several queries, the best first.

        Args:
            query, texts: str and a list of str; or N str and N lists of str.
            top_k: int, how many candidates are returned; None for all.
            batch_size: int, as for `predict`.

        Returns:
            list, or N lists, of `SearchHit`: `id` is the position in `texts`, `score` the logit.
        """
        if isinstance(query, str):
            return self.rank([query], [texts], top_k, batch_size)[0]
        if top_k is not None:
            check_integer("top_k", top_k, at_least=1)
        queries, lists = read_lists(query, texts, self.input_names)
        if not lists.size:
            return []
        scores = self.predict(list_pairs(queries, lists), batch_size, verbose=0)
        ends = np.cumsum([len(row) for row in lists])[:-1]
        return [
            [SearchHit(int(i), float(row[i])) for i in np.argsort(-row, kind="stable")[:top_k]]
            for row in np.split(scores, ends)
        ]

    def score(
        self,
        x: Inputs,
        y: Labels,
        batch_size: int | None = None,
        top_k: Sequence[int] = (1, 5, 10),
    ) -> dict[str, float]:
        """Ranks lists, and scores the rankings. Lists without a relevant candidate are left out.

        Args:
            x, y: as for `fit`, texts in memory.
            batch_size: int, 32 by default.
            top_k: ints, the values of k.

        Returns:
            dict of `mrr`, and for each k `recall@k` and `ndcg@k`; see `score_rankings`.
        """
        check_in_memory(x)
        rows = self.data.read(x, y, labelled=True)
        rows = rows.take(np.flatnonzero([labels.max() > 0 for labels in rows.labels]))
        if rows.is_packed or not len(rows):
            raise ValueError(
                f"Wanted lists of texts with a relevant candidate in one of them, got {len(rows)} "
                f"such rows{' of packed arrays' * rows.is_packed}."
            )
        queries, lists = rows.inputs
        rankings = self.rank(queries, lists, batch_size=batch_size)
        relevant = [dict(enumerate(labels.tolist())) for labels in rows.labels]
        return score_rankings([[hit.id for hit in row] for row in rankings], relevant, top_k)
