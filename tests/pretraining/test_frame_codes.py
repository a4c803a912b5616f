"""Codes of frames beside SciPy's k-means."""

import numpy as np
import pytest
from scipy.cluster.vq import kmeans2, vq

from keras_bert_suite import find_codes, learn_codebook
from keras_bert_suite.pretraining import frame_codes

RNG = np.random.default_rng(0)
MEANS = RNG.normal(0, 10, (4, 3))
ROWS = [MEANS[RNG.integers(0, 4, n)] + RNG.normal(0, 0.5, (n, 3)) for n in (30, 50, 20)]
FRAMES = np.concatenate(ROWS)


def test_centers_are_those_of_scipy_from_the_same_start(monkeypatch):
    start = FRAMES[[0, 1, 2, 3, 4]]
    monkeypatch.setattr(frame_codes, "_draw_centers", lambda *_: start)
    for steps in (1, 3, 20):
        expected, _ = kmeans2(FRAMES, start, iter=steps, minit="matrix", missing="raise")
        found = learn_codebook(ROWS, 5, num_steps=steps)
        np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_clusters_are_found():
    codebook = learn_codebook(ROWS, 4, seed=2)
    assert codebook.dtype == np.float32
    distances = np.linalg.norm(codebook[:, None] - MEANS[None], axis=2)
    assert sorted(distances.argmin(axis=0)) == [0, 1, 2, 3] and distances.min(axis=0).max() < 0.5
    codes = find_codes(ROWS, codebook)
    assert [c.shape for c in codes] == [(30,), (50,), (20,)] and codes[0].dtype == np.int32
    np.testing.assert_array_equal(np.concatenate(codes), vq(FRAMES, codebook)[0])
    np.testing.assert_array_equal(learn_codebook(ROWS, 4, seed=2), codebook)
    drawn = learn_codebook(ROWS, 4, seed=2, max_frames=40)
    assert drawn.shape == (4, 3) and (drawn != codebook).any()


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([ROWS[0], np.full((2, 3), np.nan)], "Row 1 has the number nan in frame 0"),
        ([ROWS[0], ROWS[1][:, :2]], r"Row 1 must be an array \(n, 3\).*shape \(50, 2\)"),
        ([ROWS[0], ROWS[1][0]], r"Row 1 must be .*shape \(3,\)"),
        ([ROWS[0] * 1j], "Row 0 must be .* real numbers, got complex128. Take np.abs"),
        (ROWS[0], "Put a single row in a list"),
    ],
)
def test_wrong_rows_are_named(rows, message):
    for call in (lambda: learn_codebook(rows, 2), lambda: find_codes(rows, FRAMES[:4])):
        with pytest.raises(ValueError, match=message):
            call()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: learn_codebook([], 2), "learned from frames, got 0 rows without any"),
        (lambda: learn_codebook([ROWS[0][:0]], 2), "got 1 rows without any"),
        (lambda: learn_codebook(ROWS, 2, seed=-1), "seed must be .* at least 0, got -1"),
        (lambda: learn_codebook(ROWS, 2, max_frames=0), "max_frames must be .* 1, got 0"),
        (lambda: find_codes(ROWS, FRAMES[0]), r"codebook must be .* shape \(3,\)"),
        (
            lambda: find_codes(ROWS, np.where(np.arange(4)[:, None] == 2, np.nan, FRAMES[:4])),
            r"codebook must have finite numbers, got \[nan nan nan\] in row 2. Learn it anew",
        ),
        (lambda: find_codes(ROWS, FRAMES[:4, :2]), r"Row 0 must be .*\(n, 2\).*same width"),
    ],
)
def test_wrong_arguments(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_more_codes_than_frames_are_refused():
    with pytest.raises(ValueError, match="num_codes=3 is more than the 2 different frames"):
        learn_codebook([np.array([[0.0], [1.0], [1.0]])], 3)
