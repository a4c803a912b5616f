"""Against all paths of small chains, and against the CRF of pytorch-crf."""

import itertools

import keras
import numpy as np
import pytest
from keras import ops
from peer_weights import randomize, to_numpy

from keras_bert_suite.layers import ConditionalRandomField
from keras_bert_suite.layers.heads.chain_decoding import find_best_paths, find_marginals

B, L, C = 4, 6, 3
LENGTHS = np.array([4, 1, 0, 6])
#: Label 2 may not begin a chain, follow label 0, or end a chain.
ALLOWED = [[True] * 4 for _ in range(4)]
ALLOWED[0][2] = ALLOWED[3][2] = ALLOWED[2][3] = False
#: Label 1 may end a chain, and not begin it.
BEGINS = [[True] * 4 for _ in range(4)]
BEGINS[3][1] = False


def make_crf(**arguments):
    crf = ConditionalRandomField(C, **arguments)
    crf.build((None, None, C))
    for seed, weight in enumerate(crf.weights):
        weight.assign(np.random.default_rng(seed).normal(size=weight.shape))
    return crf


def random_emissions(seed=0):
    return np.random.default_rng(seed).normal(size=(B, L, C)).astype("float32")


def score_paths(crf, emissions, length, allowed=None, goes_on=(False, False)):
    """dict of path -> score, for all paths of one chain."""
    starts, ends, transitions = (to_numpy(w).astype("float64") for w in crf.weights)
    scores = {}
    for path in itertools.product(range(C), repeat=length):
        steps = list(itertools.pairwise([C, *path, C])) if length else []
        if allowed is not None and not all(allowed[a][b] for a, b in steps):
            continue
        score = sum(emissions[t, label] for t, label in enumerate(path))
        score += sum(transitions[a, b] for a, b in steps[1:-1])
        if length:
            score += starts[path[0]] * (not goes_on[0]) + ends[path[-1]] * (not goes_on[1])
        scores[path] = score
    return scores


def place_labels(rng):
    """(labels (B, L) with -1 between them, the places of the labels)."""
    labels = np.full((B, L), -1, "int32")
    places = [np.sort(rng.permutation(L)[:n]) for n in LENGTHS]
    for row, place in enumerate(places):
        labels[row, place] = rng.integers(0, C, len(place))
    return labels, places


def log_sum(scores):
    return np.logaddexp.reduce(list(scores)) if scores else 0.0


@pytest.mark.parametrize("constrained", [False, True])
@pytest.mark.parametrize("goes_on", [(False, False), (True, False), (False, True)])
def test_the_likelihood_is_that_of_all_paths(constrained, goes_on):
    crf = make_crf(allowed=ALLOWED, constrained_training=constrained)
    rng = np.random.default_rng(3)
    labels, places = place_labels(rng)
    labels[labels == 2] = 1
    for row, place in enumerate(places):  # A mark within a chain says nothing.
        within = labels[row, place[0] : place[-1]] if len(place) else place
        within[within == -1] = -2
    for row in range(B):  # A mark beside the chain, where there is room for one.
        if goes_on[0] and len(places[row]):
            labels[row, : places[row][0]] = -2
        if goes_on[1] and len(places[row]):
            labels[row, places[row][-1] + 1 :] = -2
    emissions = random_emissions()
    got = to_numpy(crf.negative_log_likelihood(labels, emissions))
    for row, place in enumerate(places):
        marked = tuple(
            (labels[row] == -2)[s].any()
            for s in (
                slice(place[0] if len(place) else 0),
                slice(place[-1] + 1 if len(place) else L, L),
            )
        )
        # A chain that goes on may begin with any label.
        allowed = [list(r) for r in ALLOWED]
        if marked[0]:
            allowed[C] = [True] * 4
        if marked[1]:
            for r in allowed:
                r[C] = True
        scores = score_paths(
            crf, emissions[row, place], len(place), allowed if constrained else None, marked
        )
        wanted = log_sum(scores.values()) - scores[tuple(labels[row, place])] if len(place) else 0
        assert got[row] == pytest.approx(wanted, abs=1e-5)


@pytest.mark.every_backend
@pytest.mark.parametrize(
    "allowed", [None, ALLOWED, BEGINS], ids=["free", "constrained", "constrained at one end"]
)
def test_the_best_path_and_the_marginals(allowed):
    crf = make_crf(allowed=allowed)
    emissions = random_emissions(1)
    best = to_numpy(crf.decode(emissions, LENGTHS))
    marginals = to_numpy(crf.marginals(emissions, LENGTHS))
    for row, length in enumerate(LENGTHS):
        scores = score_paths(crf, emissions[row], length, allowed)
        total = log_sum(scores.values())
        assert tuple(best[row, :length]) == max(scores, key=scores.get)
        wanted = np.zeros((L, C))
        for path, score in scores.items():
            wanted[range(length), list(path)] += np.exp(score - total)
        np.testing.assert_allclose(marginals[row], wanted, atol=1e-5)
        assert not best[row, length:].any()
    one = to_numpy(crf.decode(emissions[:, :1], np.array([1, 1, 0, 1])))
    assert one.shape == (B, 1) and one[2, 0] == 0
    for row in (0, 1, 3):
        scores = score_paths(crf, emissions[row], 1, allowed)
        assert (one[row, 0],) == max(scores, key=scores.get)


def flatten(rows, lengths):
    return np.concatenate([row[:n] for row, n in zip(rows, lengths, strict=True)])


def test_numpy_decodes_as_tensors_do():
    """Chains of all lengths, with ties."""
    crf = make_crf(allowed=ALLOWED)
    rng = np.random.default_rng(5)
    lengths = rng.integers(0, 30, 20)
    emissions = rng.integers(-3, 3, (20, 30, C)).astype("float32")
    emissions[0] = 0
    flat, scores = flatten(emissions, lengths), crf.read_scores()
    np.testing.assert_array_equal(
        find_best_paths(flat, lengths, *scores),
        flatten(to_numpy(crf.decode(emissions, lengths)), lengths),
    )
    np.testing.assert_allclose(
        find_marginals(flat, lengths, *scores),
        flatten(to_numpy(crf.marginals(emissions, lengths)), lengths),
        atol=1e-5,
    )
    nothing = np.zeros(0, "int64")
    assert find_best_paths(np.zeros((0, C), "float32"), nothing, *scores).shape == (0,)
    assert find_marginals(np.zeros((0, C), "float32"), nothing, *scores).shape == (0, C)


def torch_twin(crf):
    torchcrf = pytest.importorskip("torchcrf")
    import torch

    twin = torchcrf.CRF(C, batch_first=True)
    with torch.no_grad():
        for ours, theirs in zip(
            crf.weights,
            (twin.start_transitions, twin.end_transitions, twin.transitions),
            strict=True,
        ):
            theirs.copy_(torch.tensor(to_numpy(ours)))
    return twin


@pytest.mark.every_backend
def test_likelihood_gradient_and_path_are_those_of_pytorch_crf():
    import torch

    crf = make_crf()
    twin = torch_twin(crf)
    lengths = np.array([6, 4, 1, 3])
    mask = np.arange(L) < lengths[:, None]
    emissions, rng = random_emissions(7) * 3, np.random.default_rng(7)
    labels = np.where(mask, rng.integers(0, C, (B, L)), -1).astype("int32")
    weights = np.array([1.0, 2.0, 0.5, 0.0], "float32")

    theirs = torch.tensor(emissions, requires_grad=True)
    tags, tensor_mask = torch.tensor(np.maximum(labels, 0)).long(), torch.tensor(mask)
    wanted = -twin(theirs, tags, tensor_mask, reduction="none")
    (wanted * torch.tensor(weights)).sum().backward()
    got, gradients = differentiate(crf, labels, emissions, weights)
    np.testing.assert_allclose(got, wanted.detach().numpy(), atol=1e-5)
    parameters = (twin.start_transitions, twin.end_transitions, twin.transitions)
    for ours, tensor in zip(gradients, [theirs, *parameters], strict=True):
        np.testing.assert_allclose(ours, tensor.grad.numpy(), atol=1e-5)
    path = to_numpy(crf.decode(emissions, lengths))
    assert [list(row[:n]) for row, n in zip(path, lengths, strict=True)] == twin.decode(
        theirs, tensor_mask
    )


def differentiate(crf, labels, emissions, weights):
    """The losses, and the gradients of their weighted sum: of the emissions and of the weights."""
    values = [emissions, *map(to_numpy, crf.weights)]

    def losses(emissions, *scores):
        with keras.StatelessScope(list(zip(crf.weights, scores, strict=True))):
            return crf.negative_log_likelihood(labels, emissions)

    backend = keras.config.backend()
    if backend == "tensorflow":
        import tensorflow as tf

        @tf.function
        def run(*tensors):
            with tf.GradientTape() as tape:
                tape.watch(tensors)
                got = losses(*tensors)
                total = tf.reduce_sum(got * weights)
            return got, tape.gradient(total, tensors)

        got, gradients = run(*map(tf.constant, values))
    elif backend == "jax":
        import jax

        def run(*tensors):
            got = losses(*tensors)
            return (got * weights).sum(), got

        gradients, got = jax.jit(jax.grad(run, argnums=(0, 1, 2, 3), has_aux=True))(*values)
    else:
        import torch

        tensors = [torch.tensor(value, requires_grad=True) for value in values]
        got = losses(*tensors)
        (got * torch.tensor(weights)).sum().backward()
        got, gradients = got.detach(), [tensor.grad for tensor in tensors]
    return to_numpy(got), [to_numpy(gradient) for gradient in gradients]


def test_the_chain_skips_what_does_not_count():
    """Also half precision, and a label that is marked by any negative number but -2."""
    crf = randomize(make_crf())
    emissions = random_emissions()
    labels = np.array([[-1, 0, -1, 1, 2, -1]] * B, "int32")
    wanted = to_numpy(crf.negative_log_likelihood(labels[:, [1, 3, 4]], emissions[:, [1, 3, 4]]))
    labels[0][labels[0] < 0] = -100
    np.testing.assert_allclose(
        to_numpy(crf.negative_log_likelihood(labels, emissions)), wanted, atol=1e-5
    )
    half = ops.cast(emissions, "bfloat16")
    np.testing.assert_allclose(
        to_numpy(crf.negative_log_likelihood(labels, half)), wanted, atol=0.1
    )


def test_the_layer_returns_the_emissions():
    for policy in ("float32", "mixed_bfloat16"):
        crf = ConditionalRandomField(C, dtype=policy)
        emissions = random_emissions()
        got = crf(emissions)
        assert keras.backend.standardize_dtype(got.dtype) == crf.compute_dtype
        np.testing.assert_allclose(to_numpy(got), emissions, rtol=0.01)
        assert tuple(got.shape) == crf.compute_output_shape(emissions.shape)


def test_wrong_shapes():
    with pytest.raises(ValueError, match=r"allowed must have the shape \(4, 4\), .* got \(3, 3\)"):
        ConditionalRandomField(C, allowed=np.ones((3, 3)))
    with pytest.raises(ValueError, match="is for 3 labels, got emissions"):
        ConditionalRandomField(C).build((None, None, 4))
