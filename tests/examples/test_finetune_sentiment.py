"""examples/finetune_sentiment.py and its notebook."""

import re
import runpy
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

REPOSITORY = Path(__file__).resolve().parents[2]
SCRIPT = REPOSITORY / "examples" / "finetune_sentiment.py"


@pytest.mark.long("examples")
def test_script(examples, monkeypatch, capsys):
    monkeypatch.chdir(examples)
    names = runpy.run_path(str(examples / SCRIPT.name))
    assert len(names["train"].x) == 32, "read the tests' sentences, not the real ones"
    answers = capsys.readouterr().out.splitlines()[-2:]
    assert [answer.partition(": ")[2] for answer in answers] == names["texts"]
    assert {answer.partition(": ")[0] for answer in answers} <= {"negative", "positive"}


@pytest.mark.long("examples")
def test_notebook_runs(examples):
    notebook = nbformat.read(examples / "finetune_sentiment.ipynb", as_version=4)
    path = {"metadata": {"path": str(examples)}}
    NotebookClient(notebook, timeout=300, kernel_name="python3", resources=path).execute()
    *_, answers, picture = notebook.cells
    assert re.search(
        r"^(negative|positive): A gripping, funny film\.$", answers.outputs[-1].text, re.M
    )
    assert "image/png" in picture.outputs[-1].data


def test_it_is_the_recipe_of_the_demo():
    demo, example = (
        re.sub(r"\s+", " ", (SCRIPT.parent / name).read_text(encoding="utf-8"))
        for name in ("demo.py", SCRIPT.name)
    )
    recipe = re.search(r"classifier = .* bias_correction=True\)\)", example)[0]
    assert recipe in demo
    for setting in ("set_random_seed(0)", "batch_size=32", "epochs=3"):
        assert setting in demo and setting in example
