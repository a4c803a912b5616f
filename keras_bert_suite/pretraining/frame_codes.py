"""Codes of frames: the clusters that k-means finds, as targets of a pretraining."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_bert_suite.argument_checks import check_integer
from keras_bert_suite.preprocessing.frame_packer import read_frame_rows

#: How many frames are compared with all centers at once.
_BLOCK = 65536


def learn_codebook(
    rows: Sequence[Any],
    num_codes: int,
    *,
    num_steps: int = 20,
    max_frames: int = 200_000,
    seed: int = 0,
) -> np.ndarray:
    """Learns the centers of clusters of frames by k-means.

    The first centers are drawn by k-means++: each is a frame, drawn in proportion to the square of
    its distance from the centers before. A step moves each center to the mean of its frames. A
    center without frames stays.

    Args:
        rows: list of N float arrays (n, D).
        num_codes: int K, the number of clusters, at most the number of different frames.
        num_steps: int, the most steps. It ends before, when no frame changes its cluster.
        max_frames: int. Of more frames so many are drawn to learn from.
        seed: int, not negative.

    Returns:
        float32 (K, D).

    Raises:
        ValueError: if there are fewer different frames than `num_codes`; if a row is no array
            (n, D) of finite numbers, or has another width than the first row, which it names; or if
            an argument is out of its range.

    Source: Arthur and Vassilvitskii, 2007, "k-means++"; Hsu et al., 2021, HuBERT
    (https://arxiv.org/abs/2106.07447), section 2, for codes of k-means as targets.
    """
    check_integer("num_codes", num_codes, at_least=1)
    check_integer("num_steps", num_steps, at_least=1)
    check_integer("max_frames", max_frames, at_least=1)
    check_integer("seed", seed)
    rng = np.random.default_rng(seed)
    column = read_frame_rows(rows, None, "All rows have the width of the first.", "float64")
    if not sum(map(len, column)):
        raise ValueError(f"A codebook is learned from frames, got {len(column)} rows without any.")
    frames = np.concatenate(column)
    if len(frames) > max_frames:
        frames = frames[rng.choice(len(frames), max_frames, replace=False)]
    centers = _draw_centers(frames, num_codes, rng)
    before = None
    for _ in range(num_steps):
        codes = _find_nearest(frames, centers)
        if before is not None and (codes == before).all():
            break
        counts = np.bincount(codes, minlength=num_codes)
        sums = np.zeros_like(centers)
        np.add.at(sums, codes, frames)
        centers = np.where(counts[:, None] > 0, sums / np.maximum(counts, 1)[:, None], centers)
        before = codes
    return centers.astype("float32")


def find_codes(rows: Sequence[Any], codebook: np.ndarray) -> list[np.ndarray]:
    """The code of each frame: the row of a codebook (K, D) that is nearest to it.

    Returns:
        list of N int32 (n,).

    Raises:
        ValueError: if a row is no array (n, D) of finite numbers, which it names, or the codebook
            no array (K, D).
    """
    centers = np.asarray(codebook, "float64")
    if centers.ndim != 2 or not len(centers):
        raise ValueError(
            "codebook must be an array (K, D), as learn_codebook returns, got the shape "
            f"{centers.shape}."
        )
    broken = np.flatnonzero(~np.isfinite(centers).all(axis=1))
    if len(broken):
        raise ValueError(
            f"codebook must have finite numbers, got {centers[broken[0]]} in row {broken[0]}. "
            "Learn it anew."
        )
    advice = "Learn the codebook from frames of the same width."
    column = read_frame_rows(rows, centers.shape[1], advice, "float64")
    return [_find_nearest(row, centers).astype("int32") for row in column]


def _draw_centers(frames, number, rng):
    centers = [frames[rng.integers(len(frames))]]
    distances = ((frames - centers[0]) ** 2).sum(axis=1)
    while len(centers) < number:
        total = distances.sum()
        if total <= 0:
            raise ValueError(
                f"num_codes={number} is more than the {len(centers)} different frames. Use fewer "
                "codes, or more frames."
            )
        centers.append(frames[rng.choice(len(frames), p=distances / total)])
        distances = np.minimum(distances, ((frames - centers[-1]) ** 2).sum(axis=1))
    return np.stack(centers)


def _find_nearest(frames, centers):
    """int64 (T,), the nearest of the centers (K, D) for each of the frames (T, D)."""
    squares = (centers**2).sum(axis=1)
    blocks = np.split(frames, range(_BLOCK, len(frames), _BLOCK))
    return np.concatenate([(squares - 2 * block @ centers.T).argmin(axis=1) for block in blocks])
