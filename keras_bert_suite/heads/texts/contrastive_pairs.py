"""Pairs of labelled texts, which match or not, for an embedder that learns of few texts."""

import itertools

import numpy as np

from keras_bert_suite.argument_checks import check_choice, check_integer

#: How many pairs of each kind there are, of all positive and negative ones.
_STRATEGIES = {"oversampling": max, "undersampling": min, "unique": None}


def make_pairs(labels, strategy="oversampling", iterations=None, max_pairs=None, seed=0):
    """Pairs of rows that have the same label, and pairs of rows that have not.

    All pairs of N rows, also of a row with itself, come in a random order. Then positive and
    negative pairs take turns. Of the kind that has fewer pairs than are wanted, the first ones come
    again.

    Args:
        labels: int (N,).
        strategy: "oversampling" for as many pairs of each kind as the larger kind has,
            "undersampling" for as many as the smaller kind has, "unique" for each pair once.
        iterations: int R, for R N pairs of each kind instead; or None.
        max_pairs: int, at least 2, the most different pairs, half of each kind; or None.
        seed: int, of the order.

    Returns:
        (int64 (M, 2), the rows of each pair; float32 (M,), 1 for pairs with the same label and 0).

    Raises:
        ValueError: for an argument out of its range, or if there are no two labels.

    Source: Tunstall et al., 2022, SetFit (https://arxiv.org/abs/2209.11055), section 3; the pairs
    are those of its code, `ContrastiveDataset`, up to the order of a fixed seed there.
    """
    check_choice("strategy", strategy, tuple(_STRATEGIES))
    if iterations is not None:
        check_integer("iterations", iterations, at_least=1)
    if max_pairs is not None:
        check_integer("max_pairs", max_pairs, at_least=2)
    labels = np.asarray(labels)
    if len(np.unique(labels)) < 2:
        raise ValueError(
            f"Pairs of the same and of other labels need two labels, got {len(labels)} rows with "
            f"{len(np.unique(labels))}. Pass rows of two labels or more."
        )
    pairs = np.stack(np.triu_indices(len(labels)), axis=-1)
    pairs = np.random.default_rng(seed).permutation(pairs)
    is_positive = labels[pairs[:, 0]] == labels[pairs[:, 1]]
    half = None if max_pairs is None else max_pairs // 2
    kinds = [pairs[is_positive][:half], pairs[~is_positive][:half]]
    sizes = [len(kind) for kind in kinds]
    if iterations is not None:
        sizes = [iterations * len(labels)] * 2
    elif strategy != "unique":
        sizes = [_STRATEGIES[strategy](sizes)] * 2
    rows = [kind[np.arange(size) % len(kind)] for kind, size in zip(kinds, sizes, strict=True)]
    turns = [
        (pair, score)
        for both in itertools.zip_longest(*map(list, rows))
        for pair, score in zip(both, (1.0, 0.0), strict=True)
        if pair is not None
    ]
    return np.array([pair for pair, _ in turns]), np.array([s for _, s in turns], "float32")
