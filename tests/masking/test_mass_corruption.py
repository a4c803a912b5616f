"""MASS beside its rule for one row, by the same draws.

`segment_of` transcribes `trainer.py` of MASS-unsupNMT, whose rows begin with a special token.
"""

import numpy as np
import pytest
from masking.test_noises import BEGINNING, CLS, MASK, TOKENIZER, draw_rows
from scipy import stats

from keras_bert_suite.masking import MassCorruption, RaggedRows
from keras_bert_suite.masking.corruption import draw_in_turn

ORDINARY = np.flatnonzero(TOKENIZER.find_ordinary()).tolist()
STEPS = ("decoder_token_ids", "decoder_positions", "target_ids")


def corrupt(ragged, **arguments):
    """The sources, lists of ids; and of each row (token read, its position, token to write)."""
    corruption = MassCorruption(TOKENIZER, **arguments)
    source, target = corruption.corrupt(ragged, draw_in_turn(1, 2, np.arange(len(ragged))))
    steps = np.stack([target[name] for name in STEPS], axis=1)
    return [
        [part.tolist() for part in np.split(array, rows.starts[1:])]
        for rows, array in ((source, source["token_ids"]), (target, steps))
    ]


def segment_of(ids, number, rate):
    draw = draw_in_turn(1, 2, np.array([number]))
    words, length = [CLS, *ids], max(1, round(len(ids) * rate))
    kind, place = draw(2)[0]
    start = 1 + int(place * (len(ids) - length + 1))
    if kind < 0.2:
        start = 1
    elif kind < 0.4:
        start = 1 + len(ids) - length
    fates, fillers = draw(len(ids))[0], draw(len(ids))[0]
    source, steps = list(words), []
    for position in range(start, start + length):
        steps.append([words[position - 1], position - 1, words[position]])
        if fates[position - 1] < 0.8:
            source[position] = MASK
        elif fates[position - 1] < 0.9:
            source[position] = ORDINARY[int(fillers[position - 1] * len(ORDINARY))]
    return source[1:], steps


@pytest.mark.parametrize("rate", [0.5, 0.15])
def test_a_segment_follows_the_rule_of_mass(rate):
    rows, ragged = draw_rows(60)
    found = zip(*corrupt(ragged, rate=rate), strict=True)
    assert list(found) == [segment_of(ids, i, rate) for i, (ids, _) in enumerate(rows)]


def test_places_and_fates():
    num_rows, size = 6000, 12
    ids = np.tile(np.array(BEGINNING[:size], "int32"), num_rows)
    arrays = {"token_ids": ids, "sentences": np.zeros_like(ids)}
    sources, steps = corrupt(RaggedRows(arrays, np.full(num_rows, size, "int32")))
    starts = np.bincount([row[0][1] for row in steps], minlength=size // 2 + 1)
    shares = np.full(size // 2 + 1, 0.6 / (size // 2 + 1))
    shares[[0, -1]] += 0.2
    assert stats.chisquare(starts, shares * num_rows).pvalue > 0.001
    before = np.array([row[positions[0][1]] for row, positions in zip(sources, steps, strict=True)])
    first = np.array([row[0][2] for row in steps])
    kept = 0.1 + 0.1 / len(ORDINARY)
    counts = [np.sum(before == MASK), np.sum(before == first)]
    counts.append(num_rows - sum(counts))
    wanted = np.array([0.8, kept, 0.2 - kept]) * num_rows
    assert stats.chisquare(counts, wanted).pvalue > 0.001


def test_arrays():
    rows, ragged = draw_rows(6)
    arrays = MassCorruption(TOKENIZER).make_arrays([ragged], 26, np.arange(6), 0)
    shapes = {name: array.shape for name, array in arrays.items()}
    assert shapes["token_ids"] == (6, 26) and shapes["target_ids"] == (6, 12)
    lengths = [round(len(ids) / 2) or 1 for ids, _ in rows]
    for name in ("decoder_padding_mask", "target_weights"):
        assert arrays[name].sum(axis=1).tolist() == lengths


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rate": 0}, "rate must be over 0 and at most 1, got 0"),
        ({"mask_token_rate": 0.95}, "must not sum to more than 1, got 0.95 and 0.1"),
    ],
)
def test_wrong_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        MassCorruption(TOKENIZER, **arguments)
