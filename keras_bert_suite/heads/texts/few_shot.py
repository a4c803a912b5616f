"""Learns to classify texts from a few rows of each label: SetFit."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from keras_bert_suite.argument_checks import check_integer, check_positive, with_article
from keras_bert_suite.heads.texts.contrastive_pairs import make_pairs
from keras_bert_suite.heads.texts.logistic_regression import fit_logistic_regression
from keras_bert_suite.heads.texts.text_classifier import TextClassifier
from keras_bert_suite.heads.vectors.text_embedder import TextEmbedder
from keras_bert_suite.layers.poolings.embedding_pooling import EmbeddingPooling
from keras_bert_suite.layers.poolings.pooling import PromptlessPooling
from keras_bert_suite.runs.batches import DEFAULT_BATCH_SIZE
from keras_bert_suite.training import AdamW, CosineRegression, LinearWarmupDecay


def fit_few_shot(
    embedder: TextEmbedder,
    x: Sequence[str],
    y: Sequence[Any],
    *,
    label_names: Sequence[str] | None = None,
    strategy: Literal["oversampling", "undersampling", "unique"] = "oversampling",
    iterations: int | None = None,
    max_pairs: int | None = None,
    epochs: int = 1,
    batch_size: int = 16,
    learning_rate: float = 2e-5,
    strength: float = 1.0,
    seed: int = 0,
    verbose: str | int = "auto",
) -> TextClassifier:
    """Tunes an embedder on pairs of few labelled texts, and makes a classifier of it.

    First the embedder learns that texts with the same label are near, by `CosineRegression` on
    pairs with the scores 1 and 0: N rows have N (N + 1) / 2 pairs, so eight rows of a label are
    many. Then a logistic regression on the vectors is fitted to its optimum, and becomes the
    classification layer. Take it for 8 to 64 rows of a label, with an embedder that knows the
    language; with thousands of rows `TextClassifier.fit` is as good and needs fewer steps.

    The classifier is one like any other: it is saved, exported, scored, and trained further. It
    shares the backbone with the embedder, which is changed.

    Args:
        embedder: `TextEmbedder`, best one trained on pairs, such as a paraphrase model. Its
            `compile` is replaced.
        x: N texts.
        y: N labels, names or ids.
        label_names: list of str, in the order of the ids; None for the names in `y`, sorted, or for
            the ids as names.
        strategy, iterations, max_pairs: which pairs, see `make_pairs`. "unique" takes each pair
            once; "oversampling" repeats pairs, so that as many match as not; `iterations` is the
            R of the paper, 20 there, and makes 2 R N pairs.
        epochs: int, over the pairs. 0 leaves the embedder as it is, and fits the layer alone.
        batch_size: int, pairs of a step.
        learning_rate: float, the peak of the embedder's.
        strength: float above 0, how much the rows count beside the penalty of the weights: C of
            scikit-learn.
        seed: int, of the pairs.
        verbose: as for `fit`.

    Returns:
        `TextClassifier` that returns logits.

    Raises:
        ValueError: if `x` holds no single texts, there is one label, a label of `label_names` has
            no row, or for an argument out of its range.

    Source: Tunstall et al., 2022, SetFit (https://arxiv.org/abs/2209.11055), section 3. Rates and
    pairs by default are those of its code. There the vectors are normalized as the embedder does.
    """
    if not isinstance(embedder, TextEmbedder):
        raise ValueError(
            f"fit_few_shot tunes a TextEmbedder, got {with_article(embedder)}. Make one: "
            "TextEmbedder.from_preset(...), or TextEmbedder(task.backbone, preprocessor=...)."
        )
    check_integer("epochs", epochs)
    check_positive("learning_rate", learning_rate)
    check_positive("strength", strength)
    names = _name_labels(y) if label_names is None else list(label_names)
    classifier = TextClassifier(
        embedder.backbone,
        label_names=names,
        pooling=_pool_as(embedder),
        preprocessor=embedder.preprocessor,
    )
    classifier.take_adapter_of(embedder)
    rows = classifier.data.read(x, y, labelled=True)
    if rows.is_packed or len(rows.inputs) > 1 or rows.labels.ndim > 1:
        raise ValueError(
            "fit_few_shot takes single texts with one label each, got "
            f"{'packed arrays' if rows.is_packed else f'rows of {len(rows.inputs)} texts'} and "
            f"labels of shape {rows.labels.shape}. Call `fit` of a TextClassifier for others."
        )
    texts, labels = rows.inputs[0], rows.labels
    missing = [name for i, name in enumerate(names) if not (labels == i).any()]
    if missing:
        raise ValueError(f"The label {missing[0]!r} has no row. Add one, or leave the label out.")
    if epochs:
        pairs, scores = make_pairs(labels, strategy, iterations, max_pairs, seed)
        embedder.compile(AdamW(LinearWarmupDecay(learning_rate)), CosineRegression())
        columns = texts[pairs[:, 0]].tolist(), texts[pairs[:, 1]].tolist()
        embedder.fit(columns, scores, batch_size=batch_size, epochs=epochs, verbose=verbose)
    vectors = embedder.predict(texts.tolist(), DEFAULT_BATCH_SIZE, verbose=0)
    classifier.classifier.set_weights(
        fit_logistic_regression(vectors, labels, len(names), strength)
    )
    return classifier


def _pool_as(embedder):
    """The pooling of a classifier that reads the vectors of an embedder."""
    pooling = embedder.pooling
    if isinstance(pooling, PromptlessPooling):
        pooling = pooling.pooling  # A text without a prompt is pooled whole.
    if not embedder.dense_layers and not embedder.normalize and embedder.dimensions is None:
        return pooling
    return EmbeddingPooling(
        pooling,
        embedder.dense_layers,
        embedder.normalize,
        embedder.dimensions,
        dtype=embedder.backbone.dtype_policy.name,
        name="pooling",
    )


def _name_labels(y):
    """The names of labels that are names or ids, in the order of the ids."""
    labels = np.asarray(y).tolist()
    if all(isinstance(label, str) for label in labels):
        return sorted(set(labels))
    if all(isinstance(label, int) and label >= 0 for label in labels):
        return [str(label) for label in range(max(labels, default=0) + 1)]
    wrong = next(label for label in labels if not isinstance(label, str))
    raise ValueError(
        f"Labels are all names or all ids, got {wrong!r} among them. fit_few_shot takes one label "
        "for each text."
    )
