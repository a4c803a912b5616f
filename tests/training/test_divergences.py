"""Against the divergences of `torch.distributions`, and of all paths of small chains."""

import dataclasses
import itertools

import numpy as np
import pytest
import torch
from keras import ops
from peer_weights import to_numpy
from small_tasks import make_task
from torch.distributions import Bernoulli, Categorical, kl_divergence

from keras_bert_suite import RankingLoss
from keras_bert_suite.layers import ConditionalRandomField
from keras_bert_suite.training import Divergence, OutputForm

RNG = np.random.default_rng(0)
P, Q = RNG.normal(size=(2, 4, 3)).astype("float32")


def softmax(x):
    return np.exp(x) / np.exp(x).sum(-1, keepdims=True)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def of_classes(p, q):
    return kl_divergence(*(Categorical(logits=torch.tensor(x)) for x in (p, q))).numpy()


def of_sets(p, q):
    return kl_divergence(*(Bernoulli(logits=torch.tensor(x)) for x in (p, q))).sum(-1).numpy()


def of_numbers(p, q):
    return ((p - q) ** 2).mean(-1)


@pytest.mark.every_backend
@pytest.mark.parametrize(
    ("form", "make", "oracle"),
    [
        (OutputForm("classes"), np.array, of_classes),
        (OutputForm("classes", from_logits=False), softmax, of_classes),
        (OutputForm("label sets"), np.array, of_sets),
        (OutputForm("label sets", from_logits=False), sigmoid, of_sets),
        (OutputForm("numbers"), np.array, of_numbers),
    ],
    ids=["classes", "probabilities", "sets", "shares", "numbers"],
)
def test_the_divergence_of_a_form(form, make, oracle):
    divergence = Divergence.of_form(form)
    p, q = (ops.convert_to_tensor(make(x)) for x in (P, Q))
    np.testing.assert_allclose(to_numpy(divergence.one_way(None, p, q)), oracle(P, Q), atol=1e-6)
    both = oracle(P, Q) if form.kind == "numbers" else oracle(P, Q) + oracle(Q, P)
    np.testing.assert_allclose(to_numpy(divergence.symmetric(None, p, q)), both, atol=1e-6)


LISTS = np.array([[1, 0, -1], [0, 2, 1], [2, -1, -1], [-1, -1, -1]], "int32")


def of_attributes(p, q):
    """Three labels of the second attribute count twice."""
    return of_classes(p[:, :2], q[:, :2]) + 2 * of_classes(p[:, 2:], q[:, 2:])


def of_lists(p, q):
    """Places after the last candidate have a negative label."""
    rows = [[x[row][LISTS[row] >= 0] for x in (p, q)] for row in range(3)]
    return np.array([*(of_classes(*row) for row in rows), 0.0])


def of_candidates(p, q):
    each = kl_divergence(*(Bernoulli(logits=torch.tensor(x)) for x in (p, q))).numpy()
    return np.array([each[row][LISTS[row] >= 0].mean() for row in range(3)] + [0.0])


def of_spans(p, q):
    return of_sets(p.reshape(4, -1), q.reshape(4, -1))


@pytest.mark.parametrize(
    ("name", "settings", "compiled", "shape", "oracle"),
    [
        ("attributes", {"attribute_weights": {"length": 2.0}}, {}, (4, 5), of_attributes),
        ("rankings", {}, {}, (4, 3), of_lists),
        ("rankings", {}, {"loss": RankingLoss("pointwise")}, (4, 3), of_candidates),
        ("spans", {}, {}, (4, 1, 2, 2), of_spans),
    ],
    ids=["attributes", "lists", "candidates", "spans"],
)
def test_the_divergence_of_a_task_of_its_own(name, settings, compiled, shape, oracle):
    task = make_task(name)[0]
    task = type(task).from_config({**task.get_config(), "backbone": task.backbone, **settings})
    task.compile(**compiled)
    p, q = np.random.default_rng(2).normal(size=(2, *shape)).astype("float32")
    divergence = task.find_divergence()
    labels, *outputs = map(ops.convert_to_tensor, (LISTS, p, q))
    found = to_numpy(divergence.one_way(labels, *outputs))
    np.testing.assert_allclose(found, oracle(p, q), atol=1e-5)
    found = to_numpy(divergence.symmetric(labels, *outputs))
    np.testing.assert_allclose(found, oracle(p, q) + oracle(q, p), atol=1e-5)


def test_others_have_none():
    assert Divergence.of_form(OutputForm("others")) is None


@pytest.mark.every_backend
def test_the_divergence_of_chains():
    """The sum over all paths of the tokens with a label."""
    crf = ConditionalRandomField(3)
    crf.build((None, None, 3))
    for seed, weight in enumerate(crf.weights):
        weight.assign(np.random.default_rng(seed).normal(size=weight.shape))
    labels = np.array([[0, -1, 2, 1], [-1, 1, -1, 0], [-1, -1, -1, -1]], "int32")
    p, q = np.random.default_rng(1).normal(size=(2, 3, 4, 3)).astype("float32")
    found = to_numpy(crf.divergence(labels, ops.convert_to_tensor(p), ops.convert_to_tensor(q)))
    starts, ends, transitions = (to_numpy(w).astype("float64") for w in crf.weights)

    def find_shares(emissions):
        scores = [
            starts[path[0]]
            + ends[path[-1]]
            + sum(emissions[range(len(path)), path])
            + sum(transitions[a, b] for a, b in itertools.pairwise(path))
            for path in itertools.product(range(3), repeat=len(emissions))
        ]
        return softmax(np.array(scores))

    for row in range(2):
        kept = labels[row] >= 0
        a, b = (find_shares(x[row][kept].astype("float64")) for x in (p, q))
        assert found[row] == pytest.approx((a * np.log(a / b)).sum(), abs=1e-5)
    assert found[2] == 0


def test_chains_of_another_task_at_a_temperature():
    """Its transitions are other ones, and all scores are divided by the temperature."""
    layers = [ConditionalRandomField(3) for _ in range(2)]
    for seed, crf in enumerate(layers):
        crf.build((None, None, 3))
        for place, weight in enumerate(crf.weights):
            weight.assign(np.random.default_rng([seed, place]).normal(size=weight.shape))
    labels = np.zeros((1, 4), "int32")
    p, q = np.random.default_rng(1).normal(size=(2, 1, 4, 3)).astype("float32")
    shares = []
    for crf, emissions in zip(layers, (p[0], q[0]), strict=True):
        starts, ends, transitions = (to_numpy(w).astype("float64") for w in crf.weights)
        scores = [
            starts[path[0]]
            + ends[path[-1]]
            + sum(emissions[range(4), path])
            + sum(transitions[a, b] for a, b in itertools.pairwise(path))
            for path in itertools.product(range(3), repeat=4)
        ]
        shares.append(softmax(np.array(scores) / 2))
    found = layers[1].divergence(labels, *map(ops.convert_to_tensor, (p, q)), layers[0], 2.0)
    a, b = shares
    assert float(to_numpy(found)[0]) == pytest.approx((a * np.log(a / b)).sum(), abs=1e-5)


@pytest.mark.parametrize("form", [OutputForm("classes"), OutputForm("label sets")])
def test_probabilities_at_a_temperature_are_logits_at_it(form):
    squash = softmax if form.kind == "classes" else sigmoid
    shares = Divergence.of_form(dataclasses.replace(form, from_logits=False))
    wanted = Divergence.of_form(form).one_way(None, *map(ops.convert_to_tensor, (P / 3, Q / 3)))
    p, q = (ops.convert_to_tensor(squash(x)) for x in (P, Q))
    found = shares.at_temperature(3.0).one_way(None, p, q)
    np.testing.assert_allclose(to_numpy(found), to_numpy(wanted), atol=1e-5)
