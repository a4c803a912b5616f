"""A logistic regression on vectors, fitted to the optimum."""

import numpy as np

from keras_bert_suite.heads.base.probabilities import softmax

#: The size of the gradient at which the fit ends, and the most steps. Of a convex function some ten
#: steps are enough.
_TOLERANCE, _MOST_STEPS = 1e-8, 200


def fit_logistic_regression(vectors, labels, num_classes, strength=1.0):
    """Finds the weights of the layer from vectors to logits that minimize a penalized loss.

    The loss is sum of the cross-entropies of all rows, times `strength`, plus half the sum of the
    squared weights, without the biases. For two classes this is the sum for the one vector that is
    the difference of both columns. So it is the optimum of scikit-learn's `LogisticRegression(C=
    strength)`. Newton's steps, whose directions conjugate gradients find: it draws nothing, and has
    no learning rate.

    Args:
        vectors: float (N, H).
        labels: int (N,), each of the C classes at least once.
        num_classes: int C, at least 2.
        strength: float above 0, how much the rows count beside the penalty.

    Returns:
        (float64 (H, C), float64 (C,)), the weights and the biases of a layer.
    """
    vectors = np.asarray(vectors, "float64")
    # The optimum is a sum of the rows. So few rows of wide vectors need few numbers.
    _, sizes, basis = np.linalg.svd(vectors, full_matrices=False)
    basis = basis[sizes > 1e-12 * max(sizes.max(), 1e-300)]
    rows = np.concatenate([vectors @ basis.T, np.ones((len(vectors), 1))], axis=1)
    # The columns of two classes are opposite, and half as long as their difference.
    penalty = np.full((rows.shape[1], 1), 2.0 if num_classes == 2 else 1.0)
    penalty[-1] = 0.0
    targets = np.eye(num_classes)[labels]
    weights = np.zeros((rows.shape[1], num_classes))
    for _ in range(_MOST_STEPS):
        shares = softmax(rows @ weights)
        gradient = strength * rows.T @ (shares - targets) + penalty * weights
        if np.abs(gradient).max() < _TOLERANCE * max(strength, 1.0):
            break

        def curve(x, shares=shares):
            moved = shares * (rows @ x)
            moved -= shares * moved.sum(axis=1, keepdims=True)
            return strength * rows.T @ moved + penalty * x

        step = _solve(curve, -gradient)
        weights = _search_line(
            lambda w: _measure(rows, targets, w, penalty, strength), weights, step, gradient
        )
    return basis.T @ weights[:-1], weights[-1]


def _measure(rows, targets, weights, penalty, strength):
    logits = rows @ weights
    logits -= logits.max(axis=1, keepdims=True)
    losses = np.log(np.exp(logits).sum(axis=1)) - (targets * logits).sum(axis=1)
    return strength * losses.sum() + (penalty * weights**2).sum() / 2


def _solve(curve, wanted):
    """The x with curve(x) = wanted, by conjugate gradients, as near as a step needs."""
    x, residual = np.zeros_like(wanted), wanted.copy()
    direction, square = residual, (residual**2).sum()
    goal = square * min(0.25, np.sqrt(square)) ** 2 * 1e-4
    for _ in range(2 * wanted.size):
        if square <= goal:
            break
        bent = curve(direction)
        across = (direction * bent).sum()
        if across <= 0:  # A direction in which nothing changes: all logits of a row alike.
            break
        x = x + square / across * direction
        residual = residual - square / across * bent
        square, before = (residual**2).sum(), square
        direction = residual + square / before * direction
    return x


def _search_line(measure, weights, step, gradient):
    """The weights after the step, or after a part of it, after which the loss is lower."""
    before, slope, share = measure(weights), (gradient * step).sum(), 1.0
    while share > 1e-10:
        if measure(weights + share * step) <= before + 1e-4 * share * slope:
            return weights + share * step
        share /= 2
    return weights + step  # The loss is flat to its last digit.
