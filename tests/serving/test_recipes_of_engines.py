"""The recipes of docs/many_texts.md for Spark and Beam run, and have the answers of `predict`."""

import json
import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from heads.cases import FIRST
from peer_weights import randomize
from small_tasks import make_task

PAGE = Path(__file__).resolve().parents[2] / "docs/many_texts.md"

# No test installs them, for their size: `pip install pyspark apache-beam`, then the protobuf of
# constraints/test.txt again, which is newer than Beam asks for. Spark needs a Java.
pytestmark = pytest.mark.long("texts")


def read_recipe(title, folder):
    """The Python under a title of the page, with `folder` in the place of /shared."""
    text = PAGE.read_text("utf-8").partition(f"\n## {title}\n")[2]
    code = re.search(r"^```python no-run\n(.*?)^```$", text, re.M | re.S)[1]
    return code.replace("/shared", str(folder))


@pytest.fixture
def shared(tmp_path):
    """(the folder that the recipes name /shared, the answers of the model in it)."""
    task, _ = make_task("texts")
    randomize(task)
    task.save_to_preset(tmp_path / "models/sentiment")
    (tmp_path / "reviews").mkdir()
    reviews = pd.DataFrame({"id": range(len(FIRST)), "review": FIRST})
    for part in range(2):
        reviews[part::2].to_parquet(tmp_path / f"reviews/{part}.parquet")
    return tmp_path, task


def check_answers(rows, task):
    """Every row once, with its label and its probability."""
    rows = sorted(rows, key=lambda row: row["id"])
    assert [row["id"] for row in rows] == [*range(len(FIRST))]
    assert [row["label"] for row in rows] == list(task.predict_labels(FIRST, verbose=0))
    highest = task.predict_probabilities(FIRST, verbose=0).max(axis=-1)
    np.testing.assert_allclose([row["probability"] for row in rows], highest, atol=1e-6)


def test_spark(shared, monkeypatch):
    pyspark = pytest.importorskip("pyspark.sql")
    folder, task = shared
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setenv("PYTHONPATH", ":".join(entry for entry in sys.path if entry))
    builder = pyspark.SparkSession.builder.master("local[2]").config("spark.ui.enabled", False)
    with builder.config("spark.driver.bindAddress", "127.0.0.1").getOrCreate():
        exec(compile(read_recipe("Spark", folder), PAGE.name, "exec"), {"__name__": "__main__"})
    check_answers(pd.read_parquet(folder / "answers").to_dict("records"), task)


def test_beam(shared):
    pytest.importorskip("apache_beam")
    folder, task = shared
    exec(compile(read_recipe("Beam", folder), PAGE.name, "exec"), {"__name__": "__main__"})
    lines = "".join(file.read_text("utf-8") for file in (folder / "answers").iterdir()).splitlines()
    rows = [json.loads(line) for line in lines]
    assert set(rows[0]) == {"id", "label", "probability", "probabilities"}
    check_answers(rows, task)
