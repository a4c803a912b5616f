"""The figures of a benchmark as Markdown."""

import sys

import pytest
from harness import result_tables as tables


def test_median_and_spread():
    assert tables.format_figures([30, 10, 20], "{:.0f}") == "20 (10 to 30)"
    assert tables.format_figures([2, 1, 3, 4]) == "2.5 (1.0 to 4.0)"
    assert tables.format_figures([1.25], "{:.2f}") == "1.25"
    assert tables.format_figures([1, None]) == ""


def test_ratios_are_those_of_a_round():
    """The second round was twice as slow for both sides."""
    assert tables.format_ratios([30, 15], [10, 5]) == "3.00x (3.00x to 3.00x)"


def test_tables():
    measured = {
        ("ours", "jax"): {"rows/s": [1, 3]},
        ("ours", "torch"): {"rows/s": [4, 4]},
        ("hub", "jax"): {"rows/s": [1, 1]},
        ("peer", "torch"): {"rows/s": [2, 4]},
    }
    table = tables.format_columns(measured, {"rows/s": "{:.1f}"}).splitlines()
    assert table[:2] == ["| side | backend | rows/s |", "| --- | --- | --- |"]
    assert table[2] == "| ours | jax | 2.0 (1.0 to 3.0) |" and len(table) == 6
    assert tables.format_comparison(measured, ["rows/s"], ["peer"]).splitlines()[2:] == [
        "| hub | jax | 2.00x (1.00x to 3.00x) |",
        "| peer | jax | 0.62x (0.50x to 0.75x) |",
        "| peer | torch | 1.50x (1.00x to 2.00x) |",
    ]


def test_the_head(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["benchmarks/crf.py", "--sides", "ours", "a peer"])
    measured = {("ours", "numpy"): {"device": [None]}, ("a", "numpy"): {"device": ["H200"]}}
    head = tables.describe_run(measured, 3, ["pytest"])
    assert head.startswith("    $ python benchmarks/crf.py --sides ours 'a peer'\n\nH200, ")
    assert "; medians of 3 rounds (lowest to highest). keras 3." in head
    assert head.endswith(f", pytest {pytest.__version__}.") and ", numpy 2" in head


def test_seeds():
    assert tables.describe_seeds([0.5, 0.7], 2) == ["0.50, 0.70", "0.60", "0.14"]
    assert tables.describe_seeds([0.5], 1) == ["0.5", "0.5", ""]
