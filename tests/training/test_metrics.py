import keras
import numpy as np

from keras_bert_suite.training import MaskedLMAccuracy

RNG = np.random.default_rng(0)
LABELS = RNG.integers(0, 3, (4, 5))
SCORES = RNG.normal(size=(4, 5, 3)).astype("float32")
WEIGHTS = RNG.integers(0, 2, (4, 5)).astype("float32")


def test_it_is_keras_accuracy():
    ours, theirs = MaskedLMAccuracy(), keras.metrics.SparseCategoricalAccuracy()
    for metric in (ours, theirs):
        metric.update_state(LABELS, SCORES, WEIGHTS)
        metric.update_state(LABELS[:2], SCORES[:2])
    assert 0 < float(ours.result()) < 1
    np.testing.assert_allclose(float(ours.result()), float(theirs.result()), rtol=1e-6)


def test_no_guess_is_right_where_nothing_is_a_number():
    metric = MaskedLMAccuracy()
    metric.update_state(LABELS, np.full_like(SCORES, np.nan))
    assert float(metric.result()) == 0


def test_config_round_trip():
    twin = keras.metrics.deserialize(keras.metrics.serialize(MaskedLMAccuracy(name="x")))
    assert isinstance(twin, MaskedLMAccuracy) and twin.name == "x"
