"""Prompts and endings in every form, against literal columns."""

import numpy as np
import pandas
import pytest

from keras_bert_suite.heads.choices.rows import check_collated_lists, read_choice_rows

PROMPTS = ["It rains.", "It snows."]
ENDINGS = [["wet", "dry", "hot"], ["cold", "warm", "hot"]]


@pytest.mark.parametrize(
    "x",
    [
        (PROMPTS, ENDINGS),
        [PROMPTS, ENDINGS],
        (np.array(PROMPTS), np.array(ENDINGS)),
        {"endings": ENDINGS, "prompt": PROMPTS},
        pandas.DataFrame({"endings": ENDINGS, "prompt": PROMPTS}),
    ],
    ids=lambda x: type(x).__name__,
)
def test_every_form(x):
    rows = read_choice_rows(x, [2, 0], [0.5, 2.0])
    assert [column.tolist() for column in rows.inputs] == [
        PROMPTS,
        ["wet", "cold"],
        ["dry", "warm"],
        ["hot", "hot"],
    ]
    assert rows.labels.tolist() == [2, 0] and rows.labels.dtype == "int32"
    assert rows.weights.tolist() == [0.5, 2.0]


def test_no_rows():
    rows = read_choice_rows(([], []), [])
    assert len(rows.inputs) == 1 and rows.labels.tolist() == []


def test_packed_arrays():
    packed = {"token_ids": np.ones((2, 3, 4), "int32")}
    assert read_choice_rows(packed, [2, 0]).labels.tolist() == [2, 0]
    with pytest.raises(ValueError, match="an integer from 0 to 2, got"):
        read_choice_rows(packed, [2, 3])
    with pytest.raises(ValueError, match="columns prompt and endings, .* got token_ids of the"):
        read_choice_rows({"token_ids": np.ones((2, 4))}, [0, 0])


def test_batches_that_pytorch_has_collated():
    collated = [("wet", "cold"), ("dry", "warm")]
    for x in ((("It rains.",) * 2, collated), {"prompt": PROMPTS, "endings": collated}):
        with pytest.raises(ValueError, match="another `collate_fn`"):
            check_collated_lists(x, ("prompt", "endings"))
    check_collated_lists((PROMPTS, ENDINGS), ("prompt", "endings"))
    check_collated_lists((PROMPTS, collated), ("prompt", "endings"))
