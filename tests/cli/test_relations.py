"""`finetune`, `evaluate` and `predict` on files of SemEval 2010 task 8, and on tables."""

import json

import numpy as np
import pytest

from keras_bert_cli import main

NAMES = ["Other", "Same(e1,e2)", "Same(e2,e1)"]


def write_semeval(path, num_rows, seed):
    """The label says which entity is "good"."""
    rng = np.random.default_rng(seed)
    with open(path, "w") as file:
        for row in range(num_rows):
            first, between, second = rng.choice(["bad", "plot", "film", "good"], 3)
            label = NAMES[1 if first == "good" else 2 if second == "good" else 0]
            text = f"the <e1>{first}</e1> {between} <e2>{second}</e2>."
            file.write(f'{row}\t"{text}"\n{label}\nComment:\n\n')


@pytest.fixture(scope="module")
def related(workshop, tmp_path_factory):
    """Folder of a model and its data. Not to be written to."""
    folder = tmp_path_factory.mktemp("related")
    write_semeval(folder / "train.txt", 256, seed=1)
    write_semeval(folder / "dev.txt", 32, seed=2)
    arguments = [
        *("finetune", "--task=relation", f"--checkpoint={workshop / 'checkpoint'}", "--epochs=12"),
        *(f"--train={folder / 'train.txt'}", f"--dev={folder / 'dev.txt'}"),
        *("--entity_states=averages", "--learning_rate=5e-3", "--sequence_length=32"),
        f"--output={folder / 'model.keras'}",
    ]
    assert main(arguments) == 0
    return folder


def test_a_model_is_trained_and_evaluated(related, run, tmp_path):
    model = ("--model", related / "model.keras")
    files = ("--input", related / "dev.txt", "--json", tmp_path / "scores.json")
    status, out, err = run("evaluate", *model, *files)
    assert (status, err) == (0, "")
    scores = json.loads((tmp_path / "scores.json").read_text())
    assert scores["macro_f1"] > 0.9 and scores["relations"]["Same"]["rows"] > 10
    assert "macro_f1" in out and "Same" in out and scores["label_names"] == NAMES
    lines = (related / "dev.txt").read_text().splitlines()
    (tmp_path / "alone.txt").write_text("\n".join(lines[::4]))
    (tmp_path / "texts.txt").write_text("\n".join(line.split('"')[1] for line in lines[::4]))
    predicted = []
    for path in (related / "dev.txt", tmp_path / "alone.txt", tmp_path / "texts.txt"):
        status, out, err = run("predict", *model, "--input", path)
        assert (status, err) == (0, "")
        predicted.append(out.splitlines())
    assert predicted[0] == predicted[1] == predicted[2]
    found = [line.split("\t")[0] for line in predicted[0][1:]]
    right = sum(a == b for a, b in zip(found, lines[1::4], strict=True))
    assert right / 32 == scores["accuracy"]


def test_a_table_of_texts(related, run, tmp_path):
    table = tmp_path / "dev.tsv"
    lines = (related / "dev.txt").read_text().splitlines()
    texts = (line.split('"')[1] for line in lines[::4])
    rows = zip(texts, lines[1::4], strict=True)
    table.write_text("text\tlabel\n" + "".join(f"{text}\t{label}\n" for text, label in rows))
    model = ("--model", related / "model.keras")
    printed = [run("evaluate", *model, "--input", path) for path in (table, related / "dev.txt")]
    assert printed[0] == printed[1]


def test_a_long_text_is_cut_around_its_entities(workshop, run, tmp_path):
    """So there is no advice to keep the end, which this task cannot do."""
    lines = [f'{i}\t"{"film " * 40}<e1>a</e1> <e2>b</e2>"\n{NAMES[i]}\n' for i in range(2)]
    (tmp_path / "long.txt").write_text("".join(lines))
    status, out, _ = run(
        *("finetune", "--task=relation", f"--checkpoint={workshop / 'checkpoint'}", "--epochs=1"),
        *(f"--train={tmp_path / 'long.txt'}", "--sequence_length=16"),
        f"--output={tmp_path / 'model.keras'}",
    )
    assert status == 0 and "--truncation" not in out


def test_wrong_rows(related, run, tmp_path):
    wrong = tmp_path / "wrong.txt"
    wrong.write_text((related / "dev.txt").read_text().replace("</e2>", ""))
    evaluate = ("evaluate", "--model", related / "model.keras", "--input")
    for arguments, message in (
        ((wrong,), "has the marker </e2> 0 times, wanted once"),
        ((related / "dev.txt", "--text_column=text"), "--text_column is for tables"),
    ):
        status, _, err = run(*evaluate, *arguments)
        assert status in (1, 2) and message in err
