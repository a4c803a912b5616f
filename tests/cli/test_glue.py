"""`keras-bert glue`."""

import json
import statistics

import pytest
from small_texts import make_reviews

STSB = "index genre filename year old_index source1 source2 sentence1 sentence2 score".split()


@pytest.fixture(scope="module")
def glue_data(tmp_path_factory):
    """Folder with CoLA and STS-B, a few rows each, and a test file of STS-B."""
    folder = tmp_path_factory.mktemp("glue_data")
    for seed, split in enumerate(("train", "dev", "test")):
        texts, labels = make_reviews(16, seed)
        numbers = [str(len(text.split()) / 4) for text in texts]
        cola = [
            ["gj04", str(int(label == "yes")), "", t]
            for t, label in zip(texts, labels, strict=True)
        ]
        stsb = [STSB, *([*"0123456", t, t, n] for t, n in zip(texts, numbers, strict=True))]
        if split == "test":
            stsb = [row[:-1] for row in stsb]
        for name, rows in (("CoLA", cola), ("STS-B", stsb)):
            if (name, split) == ("CoLA", "test"):
                continue
            (folder / name).mkdir(exist_ok=True)
            text = "\n".join(map("\t".join, rows)) + "\n"
            (folder / name / f"{split}.tsv").write_text(text)
    return folder


def test_all_tasks_and_seeds(run, workshop, glue_data, tmp_path):
    arguments = [
        "glue",
        f"--data={glue_data}",
        f"--checkpoint={workshop / 'checkpoint'}",
        f"--output={tmp_path / 'out'}",
        "--seeds=2",
        "--epochs=2",
        "--sequence_length=16",
        "--override=stsb.epochs=1",
    ]
    status, out, err = run(*arguments)
    assert (status, err) == (0, "")
    assert "sst2, mrpc, qqp, mnli, qnli, rte, wnli" in out and "cola, seed 1: training" in out
    summary = json.loads((tmp_path / "out" / "glue.json").read_text())
    curves = json.loads((tmp_path / "out" / "curves.json").read_text())
    assert list(summary["tasks"]) == list(curves) == ["cola", "stsb"]
    assert [len(curves[name]["1"]) for name in curves] == [2, 1]
    matthews = [curves["cola"][seed][-1]["matthews"] for seed in ("0", "1")]
    assert summary["tasks"]["cola"]["scores"]["matthews"] == {
        "mean": pytest.approx(statistics.mean(matthews)),
        "deviation": pytest.approx(statistics.stdev(matthews)),
        "seeds": matthews,
    }
    assert (tmp_path / "out" / "curves.png").read_bytes()[:4] == b"\x89PNG"
    for seed in (0, 1):
        folder = tmp_path / "out" / "submission" / f"seed_{seed}"
        assert [file.name for file in folder.iterdir()] == ["STS-B.tsv"]
        lines = (folder / "STS-B.tsv").read_text().splitlines()
        assert lines[0] == "index\tprediction" and len(lines) == 17
        assert 0 <= float(lines[1].split("\t")[1]) <= 5

    # A run that was killed goes on with the pairs that have not finished.
    (tmp_path / "out" / "stsb" / "seed_1.json").unlink()
    status, out, err = run(*arguments)
    assert status == 0 and "cola, seed 1: has finished" in out
    assert [line for line in out.splitlines() if line.endswith(": training")] == [
        "stsb, seed 1: training"
    ]
    assert json.loads((tmp_path / "out" / "glue.json").read_text())["tasks"].keys() == {
        "cola",
        "stsb",
    }
    status, _, err = run(*arguments, "--learning_rate=1e-3")
    assert status == 1 and "seed_0.json has the result of other settings: learning_rate was" in err


@pytest.mark.parametrize(
    ("flags", "status", "message"),
    [
        (["--override=cola.layers=3"], 2, "wanted TASK.FLAG=VALUE"),
        (["--override=cola.epochs=0"], 2, "--override=cola.epochs=0: "),
        (["--task=rte"], 1, "holds no task of GLUE: "),
        (["--checkpoint=nowhere"], 1, "nowhere does not exist"),
    ],
)
def test_wrong_flags(run, workshop, glue_data, tmp_path, flags, status, message):
    given = {"data": glue_data, "checkpoint": workshop / "checkpoint", "output": tmp_path / "out"}
    got, _, err = run("glue", *(f"--{name}={value}" for name, value in given.items()), *flags)
    assert got == status and message in err
    assert not (tmp_path / "out").exists()
