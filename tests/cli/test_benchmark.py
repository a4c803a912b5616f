"""`keras-bert benchmark`. Its figures are those of the machine, so only their bounds are tested."""

import re

import keras
import pytest

from keras_bert_cli import benchmark, speed_process

FLAGS = ("--batch_size=2", "--length=8", "--steps=1", f"--backend={keras.config.backend()}")


def test_the_table(run, workshop, tmp_path):
    arguments = [f"--checkpoint={workshop / 'checkpoint'}", f"--output={tmp_path / 'speeds.md'}"]
    status, out, err = run("benchmark", *FLAGS, *arguments, "--rounds=1")
    assert (status, err.strip()) == (0, f"round 1 of 1: {keras.config.backend()}, float32")
    assert (tmp_path / "speeds.md").read_text() == out
    model, _, machine, _, heading, _, line = out.strip().splitlines()
    assert "2 rows of 8 tokens" in model and "checkpoint" in model
    assert re.search(r"\d cores of ", machine) and f"keras {keras.__version__}" in machine
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    assert len(cells) == len(heading.strip("|").split("|")) and cells[1] == "float32"
    fit, fit_share, predict, predict_share, first_step, memory, peak = cells[2:]
    assert min(map(float, (fit, predict, memory, peak))) > 0
    assert float(first_step) >= 0  # In seconds, with one digit.
    assert all(0 <= int(share.rstrip("%")) < 100 for share in (fit_share, predict_share))


@pytest.mark.backend_free
def test_what_is_measured():
    """BERT-base has 85 million weights in its layers, and the products of its attention."""
    classifier = speed_process.make_classifier("tiny", None, "mixed_bfloat16")
    assert classifier.compute_dtype == "bfloat16"
    rows = speed_process.make_rows(classifier.backbone, 3, 5)
    assert set(rows) == {"token_ids", "segment_ids", "padding_mask"}
    assert rows["token_ids"].shape == (3, 5) and rows["padding_mask"].all()

    class Base:
        num_layers, hidden_dim, intermediate_dim = 12, 768, 3072

    attention = 12 * 2 * 2 * 128 * 128 * 768
    operations = speed_process.count_operations(Base, 128)
    assert operations == 128 * 2 * 12 * 12 * 768**2 + attention


@pytest.mark.backend_free
def test_medians_and_spread():
    figures = dict.fromkeys((name for name, _, _ in benchmark.COLUMNS), 1.0)
    runs = [{**figures, "fit": fit, "memory": None, "device": "H100"} for fit in (30, 10, 20)]

    class Values:
        checkpoint, size, batch_size, length, rounds = None, "base", 4, 16, 3

    out = benchmark.format_report(Values, {("torch", "float32"): runs})
    assert "BERT-base, 4 rows of 16 tokens" in out and "\nH100, " in out
    assert "| torch | float32 | 20.0 (10.0 to 30.0) | 100% (100% to 100%) |" in out
    assert "|  | 1.00 (1.00 to 1.00) |" in out


@pytest.mark.backend_free
@pytest.mark.parametrize(
    ("flag", "message", "wanted"),
    [
        ("--dtypes=float31", "float31", 2),
        ("--dtypes=", "--dtypes takes", 2),
        ("--output=no/such/folder.md", "no such folder", 2),
        ("--checkpoint=nothing", "nothing", 1),
        ("--length=9999", "--length 9999 is more than the 512 positions of the model.", 1),
    ],
)
def test_errors(run, flag, message, wanted):
    status, out, err = run("benchmark", *FLAGS, "--size=tiny", flag)
    assert (status, out) == (wanted, "")
    assert message in err and len(err.strip().splitlines()) == 1
