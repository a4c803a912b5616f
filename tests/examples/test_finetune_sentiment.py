"""examples/finetune_sentiment.py and its notebook."""

import re
import runpy
from pathlib import Path

import nbformat
from nbclient import NotebookClient

from keras_bert_cli.demo import RECIPE

REPOSITORY = Path(__file__).resolve().parents[2]
SCRIPT = REPOSITORY / "examples" / "finetune_sentiment.py"


def test_script(examples, monkeypatch, capsys):
    monkeypatch.chdir(examples)
    names = runpy.run_path(str(examples / SCRIPT.name))
    assert len(names["train"]["sentence"]) == 32, "read the tests' sentences, not the real ones"
    answers = capsys.readouterr().out.splitlines()[-2:]
    assert [answer.partition(": ")[2] for answer in answers] == names["texts"]
    assert {answer.partition(": ")[0] for answer in answers} <= {"negative", "positive"}


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
    source = SCRIPT.read_text(encoding="utf-8")
    assert f"LinearWarmupDecay({RECIPE['learning_rate']:.0e}".replace("e-0", "e-") in source
    assert f"set_random_seed({RECIPE['seed']})" in source
    for name in ("batch_size", "epochs", "sequence_length"):
        assert f"{name}={RECIPE[name]}" in source
