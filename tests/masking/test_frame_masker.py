"""`FrameMasker` beside a transcription of its rule, row by row."""

import math

import numpy as np
import pytest

from keras_bert_suite import FrameMasker, FramePacker
from keras_bert_suite.masking.token_replacement import draw_uniforms

D = 2
LENGTHS = (1, 2, 5, 9, 20, 40)
SETTINGS = [
    {},
    {"rate": 0.5, "span_length": 3},
    {"rate": 1.0, "span_length": 4, "zero_rate": 0.3, "random_frame_rate": 0.4},
    {"span_length": 1, "zero_rate": 0.0, "random_frame_rate": 1.0},
]


def make_rows(lengths=LENGTHS):
    return [np.random.default_rng(n).standard_normal((n, D)).astype("float32") for n in lengths]


def hide(row, draws, rate=0.15, span_length=7, zero_rate=0.8, random_frame_rate=0.1):
    """The rule for one row (n, D) with the draws (n, 4): (the changed row, the hidden frames)."""
    n = len(row)
    size = min(span_length, n)
    start = math.floor(draws[0, 1] * size)
    if n - start < size:
        start = 0
    bounds = list(range(start, n - size + 1, size))
    number = max(1, int(n * rate // size))
    chosen = sorted(range(len(bounds)), key=lambda i: draws[i, 0])[:number]
    hidden = sorted(bounds[i] + k for i in chosen for k in range(size))
    changed = row.copy()
    for frame in hidden:
        if draws[0, 2] < zero_rate:
            changed[frame] = 0
        elif draws[0, 2] < zero_rate + random_frame_rate:
            changed[frame] = row[math.floor(draws[frame, 3] * n)]
    return changed, hidden


@pytest.mark.parametrize("settings", SETTINGS)
def test_masks_are_those_of_the_rule(settings):
    rows = make_rows() * 8
    ids, epoch, masker = np.arange(3, 3 + len(rows)), 2, FrameMasker(seed=5, **settings)
    batch = FramePacker(D, 40)(rows)
    masked = masker(batch, ids, epoch)
    draws = draw_uniforms(5, epoch, ids, 40)
    kinds = set()
    for i, row in enumerate(rows):
        changed, hidden = hide(row, draws[i], **settings)
        np.testing.assert_array_equal(masked["frames"][i, : len(row)], changed)
        assert not masked["frames"][i, len(row) :].any()
        weights = masked["mask_weights"][i]
        assert weights.sum() == len(hidden) and (np.diff(weights) <= 0).all()
        assert masked["mask_positions"][i, : len(hidden)].tolist() == hidden
        np.testing.assert_array_equal(masked["mask_targets"][i, : len(hidden)], row[hidden])
        kinds.add((not changed[hidden].any(), (changed == row).all()))
    assert len(kinds) > 1 or masker.random_frame_rate == 1
    assert [masked[n].dtype.name for n in ("frames", "mask_positions", "mask_targets")] == [
        "float32",
        "int32",
        "float32",
    ]


def test_masks_depend_on_the_row_and_the_epoch_alone():
    rows, masker = make_rows(), FrameMasker(rate=0.3, span_length=2)
    together = masker(FramePacker(D, 40)(rows), np.arange(6), 1)
    alone = masker(FramePacker(D, 40)([rows[3]]), np.array([3]), 1)
    np.testing.assert_array_equal(alone["frames"][0], together["frames"][3, :9])
    other = masker(FramePacker(D, 40)(rows), np.arange(6), 2)
    assert (other["frames"] != together["frames"]).any()
    still = FrameMasker(rate=0.3, span_length=2, dynamic=False)
    first, later = (still(FramePacker(D, 40)(rows), np.arange(6), epoch) for epoch in (0, 7))
    np.testing.assert_array_equal(first["frames"], later["frames"])


def test_rows_padded_on_the_left_have_the_same_spans():
    (row,) = make_rows((9,))
    right = FrameMasker(span_length=2)(FramePacker(D, 9, (9,))([row]), np.arange(1))
    frames = np.concatenate([np.zeros((1, 4, D), "float32"), row[None]], axis=1)
    mask = np.repeat([[0, 1]], [4, 9], axis=1)
    left = FrameMasker(span_length=2)({"frames": frames, "padding_mask": mask}, np.arange(1))
    np.testing.assert_array_equal(left["frames"][:, 4:], right["frames"])
    used = right["mask_weights"] == 1
    np.testing.assert_array_equal(
        left["mask_positions"][:, : used.shape[1]][used], right["mask_positions"][used] + 4
    )


def test_codes_are_targets():
    rows = make_rows()
    batch = FramePacker(D, 40)(rows)
    codes = np.arange(6 * 40).reshape(6, 40).astype("int32")
    masked = FrameMasker()({**batch, "codes": codes}, np.arange(6))
    used = masked["mask_weights"] == 1
    expected = np.take_along_axis(codes, masked["mask_positions"], axis=1)
    np.testing.assert_array_equal(masked["mask_targets"][used], expected[used])
    assert "codes" not in masked and masked["mask_targets"].dtype == np.int32


def test_a_share_of_the_rows_is_hidden():
    rows = make_rows((40,)) * 500
    masked = FrameMasker()(FramePacker(D, 40)(rows), np.arange(500))
    zeros = (masked["frames"] == 0).all(axis=2).any(axis=1)
    stayed = (masked["frames"] == rows[0]).all(axis=(1, 2))
    assert zeros.mean() == pytest.approx(0.8, abs=0.06)
    assert stayed.mean() == pytest.approx(0.1, abs=0.05)
    assert masked["mask_weights"].sum(axis=1).tolist() == [7] * 500


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rate": 0.0}, "rate must be over 0"),
        ({"span_length": 0}, "span_length must be an integer"),
        ({"zero_rate": 0.7, "random_frame_rate": 0.4}, "at most 1 together"),
        ({"seed": -1}, "seed must be"),
    ],
)
def test_wrong_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        FrameMasker(**arguments)


def test_wrong_batches():
    batch = FramePacker(D, 40)(make_rows())
    masker = FrameMasker()
    with pytest.raises(ValueError, match="row_ids must be the numbers of the rows"):
        masker(batch)
    with pytest.raises(ValueError, match="needs the keys frames and padding_mask"):
        masker({"token_ids": batch["padding_mask"]}, np.arange(6))
    batch["padding_mask"][2] = 0
    with pytest.raises(ValueError, match="Row 2 of the batch has no frames"):
        masker(batch, np.arange(6))
