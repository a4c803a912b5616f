import numpy as np
import pytest
from scipy import stats

from keras_bert_suite.masking.token_replacement import (
    count_predictions,
    draw_uniforms,
    list_predictions,
)


def test_draws_are_those_of_philox():
    draws = draw_uniforms(7, 3, np.array([5, 0, 2**40]), 6)
    for row, row_id in enumerate([5, 0, 2**40]):
        philox = np.random.Philox(key=[7, 3], counter=[0, row_id, 0, 0])
        wanted = np.random.Generator(philox).random((6, 4))
        np.testing.assert_array_equal(draws[row], wanted)


def test_a_longer_padding_adds_numbers_at_the_end():
    row_ids = np.arange(5)
    short, long = draw_uniforms(1, 2, row_ids, 9), draw_uniforms(1, 2, row_ids, 40)
    np.testing.assert_array_equal(long[:, :9], short)


def test_a_long_seed_counts_by_its_lowest_bits():
    row_ids = np.arange(2)
    np.testing.assert_array_equal(
        draw_uniforms(2**64 + 3, 1, row_ids, 4), draw_uniforms(3, 1, row_ids, 4)
    )


def test_seeds_epochs_and_rows_share_no_number():
    keys = [(seed, epoch) for seed in range(4) for epoch in range(4)]
    draws = np.stack([draw_uniforms(*key, np.arange(16), 64) for key in keys])
    # Of 2**53 numbers 2**16 are drawn: two alike would come once in 4 million such tests.
    assert len(np.unique(draws)) == draws.size
    assert stats.kstest(draws.ravel(), "uniform").pvalue > 0.01


@pytest.mark.parametrize("rate", [0.1, 0.15, 0.5, 1.0])
@pytest.mark.parametrize("max_predictions", [None, 1, 20, 76])
def test_counts_are_googles_for_every_length(rate, max_predictions):
    lengths = np.arange(1, 1025)
    limit = 10**6 if max_predictions is None else max_predictions
    wanted = [min(limit, max(1, int(round(n * rate)))) for n in lengths.tolist()]
    assert count_predictions(lengths, rate, max_predictions).tolist() == wanted


def test_predictions_are_lined_up():
    listed = list_predictions(
        np.array([0, 0, 2]), np.array([1, 4, 3]), np.array([71, 74, 93]), (3, 3)
    )
    assert list(listed) == ["mask_positions", "mask_ids", "mask_weights"]
    positions, ids, weights = listed.values()
    assert positions.tolist() == [[1, 4, 0], [0, 0, 0], [3, 0, 0]]
    assert ids.tolist() == [[71, 74, 0], [0, 0, 0], [93, 0, 0]]
    assert weights.tolist() == [[1, 1, 0], [0, 0, 0], [1, 0, 0]]
    assert (positions.dtype, ids.dtype, weights.dtype) == ("int32", "int32", "float32")
