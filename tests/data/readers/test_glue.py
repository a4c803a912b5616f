"""The official files of GLUE."""

import runpy
from pathlib import Path

import numpy as np
import pytest

from keras_bert_suite import read_glue
from keras_bert_suite.data.readers.glue import GLUE_TASKS, find_tasks

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
GLUE_SCORES = runpy.run_path(str(EXAMPLES / "glue_scores.py"))
score_glue, format_predictions = GLUE_SCORES["score_glue"], GLUE_SCORES["format_predictions"]

MNLI = "index promptID pairID genre sentence1_binary_parse sentence2_binary_parse sentence1_parse "
MNLI += "sentence2_parse sentence1 sentence2"
STSB = "index genre filename year old_index source1 source2 sentence1 sentence2"

#: task -> (names of the columns, rows, texts and labels that are read) of the training file.
OFFICIAL = {
    "cola": (None, [["gj04", "0", "*", 'He said "no.']], [['He said "no.']], ["0"]),
    "sst2": ("sentence label", [["it 's fine ", "1"]], [["it 's fine "]], ["1"]),
    "mrpc": (
        ["Quality", "#1 ID", "#2 ID", "#1 String", "#2 String"],
        [["1", "7", "8", '" A', 'B "']],
        [['" A'], ['B "']],
        ["1"],
    ),
    "stsb": (f"{STSB} score", [[*"0123456", "A", "B", "3.800"]], [["A"], ["B"]], [3.8]),
    "qqp": (
        "id qid1 qid2 question1 question2 is_duplicate",
        [[*"123", "A?", "B?", "0"]],
        [["A?"], ["B?"]],
        ["0"],
    ),
    "mnli": (
        f"{MNLI} label1 gold_label",
        [[*"01234567", "A", "B", "neutral", "entailment"]],
        [["A"], ["B"]],
        ["entailment"],
    ),
    "qnli": ("index question sentence label", [["0", "A?", "B", "not_entailment"]], [["A?"], ["B"]],
             ["not_entailment"]),
    "rte": ("index sentence1 sentence2 label", [["0", "A", "B", "entailment"]], [["A"], ["B"]],
            ["entailment"]),
    "wnli": ("index sentence1 sentence2 label", [["0", "A", "B", "1"]], [["A"], ["B"]], ["1"]),
}  # fmt: skip

#: task -> its labels, in the order of their ids in the data set "glue" of Hugging Face. Those of
#: the other tasks are "0" and "1".
NAMES = {
    "stsb": ["score"],
    "mnli": ["entailment", "neutral", "contradiction"],
    "qnli": ["entailment", "not_entailment"],
    "rte": ["entailment", "not_entailment"],
}


def write_file(folder, task, file, header, rows):
    path = folder / GLUE_TASKS[task].folder / file
    path.parent.mkdir(parents=True, exist_ok=True)
    header = header.split() if isinstance(header, str) else header
    lines = ["\t".join(row) for row in ([header] if header else []) + rows]
    path.write_text("\ufeff" + "\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("name", list(GLUE_TASKS))
def test_the_official_form(name, tmp_path):
    header, rows, texts, labels = OFFICIAL[name]
    write_file(tmp_path, name, "train.tsv", header, rows)
    read = read_glue(tmp_path, name)
    assert read.x == (tuple(texts) if len(texts) > 1 else texts[0])
    assert read.y == labels and len(read) == 1
    assert read.label_names == NAMES.get(name, ["0", "1"])
    assert list(find_tasks(tmp_path, [name])[1]) == [name]  # There is no dev file.


def test_test_files_have_no_labels(tmp_path):
    write_file(tmp_path, "cola", "test.tsv", "index sentence", [["0", "It is."]])
    assert read_glue(tmp_path, "cola", "test.tsv", labelled=False).x == ["It is."]
    write_file(tmp_path, "mnli", "test_matched.tsv", MNLI, [[*"01234567", "A", "B"]])
    read = read_glue(tmp_path, "mnli", "test_matched.tsv", labelled=False)
    assert read.x == (["A"], ["B"]) and read.y is None


def test_dev_files_of_mnli(tmp_path):
    header = f"{MNLI} label1 label2 label3 label4 label5 gold_label"
    for file in ("train.tsv", "dev_matched.tsv", "dev_mismatched.tsv"):
        rows = [[*"01234567", "A", "B", *"12345", "contradiction"]]
        write_file(tmp_path, "mnli", file, header, rows)
    (task,), missing = find_tasks(tmp_path, ["mnli"])
    assert not missing and list(task.dev) == ["matched", "mismatched"]
    assert read_glue(tmp_path, "mnli", task.dev["matched"]).y == ["contradiction"]


def test_faulty_rows_are_left_out(tmp_path):
    rows = [["0", "A", "B", "0"], ["1", "A", "0"], ["2", "A", "B", "7"], ["3", "C", "D", "1"]]
    write_file(tmp_path, "rte", "train.tsv", "index sentence1 sentence2 label", rows)
    read = read_glue(tmp_path, "rte", errors="skip")
    assert read.x == (["A", "C"], ["B", "D"]) and read.y == ["entailment", "not_entailment"]
    assert sorted(line for lines in read.left_out.values() for line in lines) == [3, 4]


def test_ids_for_labels(tmp_path):
    rows = [["A", "B", "1", "0"], ["A", "B", "0", "1"]]
    write_file(tmp_path, "rte", "train.tsv", "sentence1 sentence2 label idx", rows)
    labels = read_glue(tmp_path, "rte").y
    assert labels == ["not_entailment", "entailment"]


@pytest.mark.parametrize(
    ("name", "change", "error"),
    [
        ("rte", ["0", "A", "B", "maybe"], "line 3: the label is 'maybe', wanted one of entail"),
        ("rte", ["0", "A", "B", "2"], "the label is '2'"),
        ("rte", ["0", "A", "entailment"], "line 3: wanted the 4 fields .* and the line has 3"),
        (
            "stsb",
            [*"0123456", "A", "B", "5.1"],
            "line 3: the label is '5.1', wanted a number",
        ),
        ("stsb", [*"0123456", "A", "B", "nan"], "line 3: the label is 'nan'"),
        ("cola", ["gj04", "", "*", "A"], "line 2: the label is '', wanted one of 0, 1"),
        ("cola", ["gj04", "1", "A"], "line 2: wanted the 4 fields of the first line"),
    ],
)
def test_a_wrong_line_is_named(name, change, error, tmp_path):
    header, rows, _, _ = OFFICIAL[name]
    path = write_file(tmp_path, name, "train.tsv", header, [*rows, change])
    with pytest.raises(ValueError, match=error) as raised:
        read_glue(tmp_path, name)
    assert str(raised.value).startswith(str(path))


def test_broken_lines_of_qqp_are_left_out(tmp_path):
    header, rows, texts, _ = OFFICIAL["qqp"]
    rows = [["1", "2", "3", "A"], ["B?", "C?", "0"], *rows]
    write_file(tmp_path, "qqp", "train.tsv", header, rows)
    with pytest.warns(UserWarning, match=r"2 lines are left out, .* such as line 2"):
        read = read_glue(tmp_path, "qqp")
    assert read.x == tuple(texts)
    assert list(read.left_out.values()) == [[2, 3]]


#: From the README of the data: training rows and dev rows.
COUNTS = {
    "cola": (8551, 1043),
    "sst2": (67349, 872),
    "mrpc": (3668, 408),
    "stsb": (5749, 1500),
    "rte": (2490, 277),
    "wnli": (634, 71),
}


def test_real_files(shared_data):
    present, missing = find_tasks(shared_data / "glue", GLUE_TASKS)
    assert [task.name for task in present] == list(COUNTS)
    assert list(missing) == ["qqp", "mnli", "qnli"]
    for task in present:
        counts = tuple(
            len(read_glue(shared_data / "glue", task.name, file))
            for file in ("train.tsv", "dev.tsv")
        )
        assert counts == COUNTS[task.name]
    rows = read_glue(shared_data / "glue", "stsb", "dev.tsv")
    assert rows.x[1][0] == "A man wearing a hard hat is dancing." and rows.y[0] == 5.0
    rows = read_glue(shared_data / "glue", "mrpc", "test.tsv", labelled=False)
    assert len(rows) == 1725


def test_metrics():
    metrics = pytest.importorskip("sklearn.metrics")
    stats = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(0)
    labels, predictions = rng.integers(0, 2, (2, 50))
    names = [["0", "1"][i] for i in labels], [["0", "1"][i] for i in predictions]
    assert score_glue(GLUE_TASKS["mrpc"], *names) == {
        "f1": pytest.approx(metrics.f1_score(labels, predictions)),
        "accuracy": pytest.approx(metrics.accuracy_score(labels, predictions)),
    }
    matthews = metrics.matthews_corrcoef(labels, predictions)
    assert score_glue(GLUE_TASKS["cola"], *names) == {"matthews": pytest.approx(matthews)}
    numbers, guesses = rng.random((2, 50))
    assert score_glue(GLUE_TASKS["stsb"], list(numbers), guesses) == {
        "pearson": pytest.approx(stats.pearsonr(numbers, guesses)[0]),
        "spearman": pytest.approx(stats.spearmanr(numbers, guesses)[0]),
    }


def test_files_for_the_server():
    lines = format_predictions(GLUE_TASKS["qnli"], ["not_entailment", "entailment"])
    assert lines == "index\tprediction\n0\tnot_entailment\n1\tentailment\n"
    lines = format_predictions(GLUE_TASKS["stsb"], np.array([5.2, 1.23456, -0.1]))
    assert lines == "index\tprediction\n0\t5.000\n1\t1.235\n2\t0.000\n"
    # The names that the server asks for.
    assert sorted(file for task in GLUE_TASKS.values() for file in task.test) == sorted(
        f"{name}.tsv"
        for name in ("AX", "CoLA", "MNLI-m", "MNLI-mm", "MRPC", "QNLI", "QQP", "RTE", "SST-2",
                     "STS-B", "WNLI")
    )  # fmt: skip


def test_unknown_tasks(tmp_path):
    with pytest.raises(ValueError, match="GLUE has the tasks cola, .* got 'sst-2'"):
        read_glue(tmp_path, "sst-2")
