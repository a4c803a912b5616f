"""`keras-bert benchmark`. Its figures are those of the machine, so only their bounds are tested."""

import re

import keras
import pytest

from keras_bert_cli import benchmark, speed_process

FLAGS = ("--batch_size=2", "--length=8", "--steps=1", f"--backend={keras.config.backend()}")


def test_the_table(run, workshop, tmp_path):
    arguments = [f"--checkpoint={workshop / 'checkpoint'}", f"--output={tmp_path / 'speeds.md'}"]
    status, out, err = run("benchmark", *FLAGS, *arguments, "--rounds=1")
    assert status == 0
    assert err.startswith(f"round 1 of 1: float32 on {keras.config.backend()}: fit, rows/s ")
    assert len(err.strip().splitlines()) == 1
    assert (tmp_path / "speeds.md").read_text() == out
    model, command, machine, heading, _, line = filter(None, out.splitlines())
    assert "2 rows of 8 tokens" in model and "checkpoint" in model
    assert command.startswith("    $ ")
    assert re.search(r"\d cores of .*; one round\. ", machine)
    assert f"keras {keras.__version__}, {keras.config.backend()} " in machine
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    assert len(cells) == len(heading.strip("|").split("|")) and cells[0] == "float32"
    fit, fit_share, predict, predict_share, first_step, memory, peak = cells[2:]
    assert min(map(float, (fit, predict, memory, peak))) > 0
    assert float(first_step) >= 0  # In seconds, with one digit.
    assert all(0 <= int(share.rstrip("%")) < 100 for share in (fit_share, predict_share))


def test_what_is_measured():
    classifier = speed_process.make_classifier("tiny", None, "mixed_bfloat16")
    assert classifier.compute_dtype == "bfloat16"
    rows = speed_process.make_rows(classifier.backbone, 3, 5)
    assert set(rows) == {"token_ids", "segment_ids", "padding_mask"}
    assert rows["token_ids"].shape == (3, 5) and rows["padding_mask"].all()


def test_medians_and_spread():
    figures = {name: [1.0, 1.0, 1.0] for name in benchmark.COLUMNS}
    figures |= {"fit, rows/s": [30, 10, 20], "memory, GB": [None] * 3, "device": ["H100"] * 3}

    class Values:
        checkpoint, size, batch_size, length, rounds = None, "base", 4, 16, 3

    out = benchmark.format_report(Values, {("float32", "torch"): figures})
    assert "BERT-base, 4 rows of 16 tokens" in out
    assert "\nH100, " in out and "; medians of 3 rounds (lowest to highest). " in out
    assert "| float32 | torch | 20.0 (10.0 to 30.0) | 100% (100% to 100%) |" in out
    assert "|  | 1.00 (1.00 to 1.00) |" in out


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
