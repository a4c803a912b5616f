"""Every line and file of JSON is JSON: other programs read no Infinity and no NaN."""

import json

import pytest

from keras_bert_cli.kinds.kind import dump_json, format_json

INFINITY, NAN = float("inf"), float("nan")


def refuse(constant):
    raise AssertionError(constant)


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ({"null_odds": INFINITY}, {"null_odds": None}),
        ({"pearson": NAN, "rows": 8}, {"pearson": None, "rows": 8}),
        ({"a": [1.5, (-INFINITY, "NaN")]}, {"a": [1.5, [None, "NaN"]]}),
        ({"nested": {"f1": NAN}, "flag": True}, {"nested": {"f1": None}, "flag": True}),
        ([0.0, -0.5, 1e308, None], [0.0, -0.5, 1e308, None]),
    ],
)
def test_numbers_are_finite(value, wanted):
    for indent in (None, 2):
        assert json.loads(dump_json(value, indent), parse_constant=refuse) == wanted


def test_lines():
    (line,) = format_json({"text": ["电影"]}, [{"score": NAN}])
    assert line == '{"text": "电影", "score": null}\n'
