import keras
import numpy as np
import pytest
from keras import ops

from keras_bert_suite.training import (
    NDCG,
    ClassAccuracy,
    FiniteMean,
    LabelSetF1,
    MacroF1,
    MaskedLMAccuracy,
    ReplacedTokenAccuracy,
    ReplacedTokenRecall,
    TokenAccuracy,
)
from keras_bert_suite.training.keras_metrics import FittedMetric
from keras_bert_suite.training.metrics import AttributeAccuracy, is_top_scorer

RNG = np.random.default_rng(0)
LABELS = RNG.integers(0, 3, (4, 5))
SCORES = RNG.normal(size=(4, 5, 3)).astype("float32")
WEIGHTS = RNG.integers(0, 2, (4, 5)).astype("float32")


@pytest.mark.every_backend
def test_it_is_keras_accuracy():
    ours, theirs = MaskedLMAccuracy(), keras.metrics.SparseCategoricalAccuracy()
    for metric in (ours, theirs):
        metric.update_state(LABELS, SCORES, WEIGHTS)
        metric.update_state(LABELS[:2], SCORES[:2])
    assert 0 < float(ours.result()) < 1
    np.testing.assert_allclose(float(ours.result()), float(theirs.result()), rtol=1e-6)


@pytest.mark.every_backend
def test_of_equal_scores_the_first_is_the_guess():
    """As NumPy's argmax; the scores are few, so that most rows have several highest."""
    scores = RNG.integers(0, 2, (6, 40, 3)).astype("float32")
    labels = RNG.integers(0, 3, (6, 40))
    for dtype in ("float32", "bfloat16"):
        found = is_top_scorer(labels, ops.cast(scores, dtype))
        np.testing.assert_array_equal(ops.convert_to_numpy(found), scores.argmax(-1) == labels)


def test_a_collapsed_model_guesses_one_token():
    metric = MaskedLMAccuracy()
    metric.update_state(np.arange(100)[None], np.zeros((1, 100, 100), "float32"))
    assert float(metric.result()) == pytest.approx(0.01)


@pytest.mark.every_backend
def test_no_guess_is_right_where_nothing_is_a_number():
    metric = MaskedLMAccuracy()
    metric.update_state(LABELS, np.full_like(SCORES, np.nan))
    one_is_none = SCORES.copy()
    one_is_none[..., 1] = np.nan
    metric.update_state(LABELS, one_is_none)
    assert float(metric.result()) == 0


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_finite_mean_leaves_the_others_out(bad):
    ours, theirs = FiniteMean(), keras.metrics.Mean()
    for value, weight in ((2.0, 4), (bad, 9), (5.0, 3)):
        ours.update_state(ops.convert_to_tensor(value), sample_weight=weight)
    for value, weight in ((2.0, 4), (5.0, 3)):
        theirs.update_state(ops.convert_to_tensor(value), sample_weight=weight)
    assert float(ours.result()) == float(theirs.result())
    ours.update_state([bad, 1.0])
    theirs.update_state([1.0])
    assert float(ours.result()) == float(theirs.result())


def test_a_finite_mean_of_nothing_finite_is_not_a_number():
    metric = FiniteMean()
    metric.update_state(np.nan)
    assert np.isnan(float(metric.result()))
    metric.update_state(3.0)
    assert float(metric.result()) == 3
    metric.reset_state()
    assert np.isnan(float(metric.result()))


def test_tokens_of_long_batches_count_as_much():
    metric = TokenAccuracy()
    for length, right in ((2, True), (6, False)):
        labels = np.ones((1, length), "int32")
        scores = np.zeros((1, length, 2), "float32")
        scores[..., int(right)] = 1
        weights = np.array([[1, 1, *[0] * (length - 2)]], "float32")
        metric.update_state(labels, scores, weights)
    assert float(metric.result()) == 0.5


def test_replaced_tokens_are_found():
    replaced, logits = LABELS > 1, SCORES[..., 0]
    assert WEIGHTS[replaced].any() and WEIGHTS[~replaced].any()
    for metric, counted in (
        (ReplacedTokenAccuracy(), WEIGHTS),
        (ReplacedTokenRecall(), WEIGHTS * replaced),
    ):
        metric.update_state(replaced.astype("int32"), logits, WEIGHTS)
        wanted = (((logits > 0) == replaced) * counted).sum() / counted.sum()
        assert float(metric.result()) == pytest.approx(wanted, rel=1e-6)


@pytest.mark.parametrize("average", ["micro", "macro"])
def test_the_f1_of_sets_of_labels(average):
    """Against scikit-learn's. A probability above 0.6 has a logit above log(1.5)."""
    metrics = pytest.importorskip("sklearn.metrics")
    labels, logits = RNG.integers(0, 2, (9, 3)), RNG.normal(size=(9, 3)).astype("float32")
    wanted = metrics.f1_score(labels, logits > np.log(1.5), average=average)
    assert wanted != metrics.f1_score(labels, logits > 0, average=average)
    metric = LabelSetF1(average, threshold=0.6)
    metric.update_state(labels, logits)
    assert float(metric.result()) == pytest.approx(wanted, rel=1e-5)


CLASSES, TOKENS = (4, (30,)), (3, (30, 5))
#: metric -> (arguments, the most of its labels + 1, their shape, the shape of its outputs).
WEIGHED = {
    TokenAccuracy: ({}, *TOKENS, (30, 5, 3)),
    MaskedLMAccuracy: ({}, *TOKENS, (30, 5, 3)),
    ClassAccuracy: ({}, *CLASSES, (30, 4)),
    MacroF1: ({}, *CLASSES, (30, 4)),
    AttributeAccuracy: ({"sizes": [2, 2]}, 2, (30, 2), (30, 4)),
    LabelSetF1: ({"average": "macro"}, 2, (30, 3), (30, 3)),
    ReplacedTokenAccuracy: ({}, 2, (30, 5), (30, 5)),
    ReplacedTokenRecall: ({}, 2, (30, 5), (30, 5)),
    NDCG: ({}, 3, (30, 5), (30, 5)),
}
#: They have weights of batches, or hand weights on.
NOT_OF_ROWS = {FiniteMean, FittedMetric}


def list_metrics(base=keras.metrics.Metric):
    for cls in base.__subclasses__():
        yield cls
        yield from list_metrics(cls)


def test_every_metric_is_weighed():
    ours = {cls for cls in list_metrics() if cls.__module__.startswith("keras_bert_suite.")}
    assert {cls for cls in ours if cls.__name__[0] != "_"} == {*WEIGHED} | NOT_OF_ROWS


@pytest.mark.parametrize("cls", WEIGHED, ids=lambda cls: cls.__name__)
def test_a_weight_is_a_number_of_copies(cls):
    arguments, end, shape, outputs_shape = WEIGHED[cls]
    rng = np.random.default_rng(8)
    labels, outputs = rng.integers(0, end, shape), rng.normal(size=outputs_shape)
    weights = rng.integers(0, 4, len(labels))
    copies = np.repeat(np.arange(len(labels)), weights)
    of_tokens = len(shape) == 2 and cls not in (AttributeAccuracy, LabelSetF1, NDCG)
    given = np.repeat(weights[:, None], shape[1], axis=1) if of_tokens else weights
    results = []
    for rows, *sample_weight in ((slice(None), given.astype("float32")), (copies,), (slice(None),)):
        metric = cls(**arguments)
        metric.update_state(labels[rows], outputs[rows].astype("float32"), *sample_weight)
        results.append(float(metric.result()))
    assert results[0] == pytest.approx(results[1], rel=1e-5)
    assert abs(results[0] - results[2]) > 1e-3, "the weights must matter"
