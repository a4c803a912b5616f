"""What `predict` makes of the answers of a SavedModel, by its documented outputs.

No TensorFlow is needed: the answers stand here, as `serving/signatures.py` describes them, and the
head in `task.json`. Real SavedModels are in test_export.py, and of each kind in the long part
"serving".
"""

import json

import numpy as np
import pytest

from keras_bert_cli import ask_saved_model

LABELS = {"labels": ["no", "yes"]}

#: --task -> what `task.json` says of the task.
DESCRIPTIONS = {
    "classify": {
        **{"head": "TextClassifier", "problem_type": "single_label_classification"},
        **LABELS,
    },
    "multilabel": {
        **{"head": "TextClassifier", "problem_type": "multi_label_classification"},
        **LABELS,
    },
    "regress": {"head": "DocumentClassifier", "problem_type": "regression", **LABELS},
    "attributes": {"head": "AttributeClassifier", "attributes": {"size": ["no", "yes"]}},
    "relation": {"head": "RelationClassifier", **LABELS},
    "ner": {"head": "CrfTokenClassifier", "labels": ["O", "B-X"]},
    "embed": {"head": "TextEmbedder"},
    "seq2seq": {"head": "Seq2Seq"},
    "causal_lm": {"head": "CausalLM"},
    "qa": {"head": "QuestionAnswerer"},
    "choice": {"head": "MultipleChoice"},
    "ranking": {"head": "TextRanker"},
    "masks": {"head": "MaskedLM", "task": "MyMaskedLM"},
}

#: --task -> the outputs for two rows, a row a batch; and the lines of `predict`.
ANSWERS = {
    "classify": (
        {
            "labels": np.array([b"no", b"yes"]),
            "label_ids": np.int32([0, 1]),
            "probabilities": np.float32([[0.75, 0.25], [0.125, 0.875]]),
        },
        [
            {"label": "no", "probability": 0.75, "probabilities": {"no": 0.75, "yes": 0.25}},
            {"label": "yes", "probability": 0.875, "probabilities": {"no": 0.125, "yes": 0.875}},
        ],
    ),
    "multilabel": (
        {
            "labels": np.array([[b"no", b"yes"], [b"", b""]]),
            "num_labels": np.int32([2, 0]),
            "is_label": np.array([[True, True], [False, False]]),
            "probabilities": np.float32([[0.75, 0.5], [0.25, 0.125]]),
        },
        [
            {"labels": ["no", "yes"], "probabilities": {"no": 0.75, "yes": 0.5}},
            {"labels": [], "probabilities": {"no": 0.25, "yes": 0.125}},
        ],
    ),
    "regress": (
        {"scores": np.float32([[1.5, -2], [0.25, 0]])},
        [{"scores": {"no": 1.5, "yes": -2.0}}, {"scores": {"no": 0.25, "yes": 0.0}}],
    ),
    "attributes": (  # The more probable class need not be the answer.
        {
            "size": np.array([b"yes", b"no"]),
            "size_probabilities": np.float32([[0.75, 0.25], [0.75, 0.25]]),
        },
        [
            {"attributes": {"size": {"label": "yes", "probability": 0.25}}},
            {"attributes": {"size": {"label": "no", "probability": 0.75}}},
        ],
    ),
    "relation": (
        {
            "label_ids": np.int32([0, 1]),
            "probabilities": np.float32([[0.25, 0.75], [0.125, 0.875]]),
        },
        [{"label": "no", "probability": 0.25}, {"label": "yes", "probability": 0.875}],
    ),
    "ranking": (
        {"relevance": np.float32([0.5, -1])},
        [{"relevance": 0.5}, {"relevance": -1.0}],
    ),
    "ner": (
        {
            "labels": np.array([[b"X", b"Y"], [b"", b""]]),
            "starts": np.int32([[2, 7], [-1, -1]]),
            "ends": np.int32([[6, 11], [-1, -1]]),
            "byte_starts": np.int32([[2, 7], [-1, -1]]),
            "byte_ends": np.int32([[6, 11], [-1, -1]]),
            "scores": np.float32([[0.5, 0.25], [0, 0]]),
            "num_entities": np.int32([2, 0]),
        },
        [
            {
                "entities": [
                    {"label": "X", "text": "good", "start": 2, "end": 6, "score": 0.5},
                    {"label": "Y", "text": "film", "start": 7, "end": 11, "score": 0.25},
                ]
            },
            {"entities": []},
        ],
    ),
    "embed": (
        {"embedding": np.float32([[0.5, -0.5], [1, 0]])},
        [{"embedding": [0.5, -0.5]}, {"embedding": [1.0, 0.0]}],
    ),
    "seq2seq": (
        {
            "texts": np.array(["fine é".encode(), b""]),
            "target_ids": np.int32([[5, 6], [0, 0]]),
            "num_tokens": np.int32([2, 0]),
        },
        [{"target": "fine é"}, {"target": ""}],
    ),
    "causal_lm": (
        {"texts": np.array([" fine é".encode(), b""])},
        [{"continuation": " fine é"}, {"continuation": ""}],
    ),
    "qa": (
        {
            "answers": np.array([b"good", b""]),
            "starts": np.int32([2, -1]),
            "ends": np.int32([6, -1]),
            "byte_starts": np.int32([2, -1]),
            "byte_ends": np.int32([6, -1]),
            "scores": np.float32([0.75, 0.5]),
            "null_odds": np.float32([-1.5, np.inf]),
        },
        [
            {"answer": "good", "start": 2, "end": 6, "score": 0.75, "null_odds": -1.5},
            {"answer": "", "start": -1, "end": -1, "score": 0.5, "null_odds": None},
        ],
    ),
    "choice": (
        {
            "choices": np.int32([3, 0]),
            "ranking": np.int32([[3, 0, 1, 2], [0, 1, 2, 3]]),
            "probabilities": np.float32([[0.25, 0.125, 0.125, 0.5], [0.75, 0.25, 0, 0]]),
        },
        [
            {"choice": 3, "ending": "x d", "probabilities": [0.25, 0.125, 0.125, 0.5]},
            {"choice": 0, "ending": "x e", "probabilities": [0.75, 0.25, 0.0, 0.0]},
        ],
    ),
}

TEXTS = ["a good film", "it was bad"]
TABLES = {
    "qa": ("q.tsv", "question\tcontext\nwas it\ta good film\nwhy\tit was bad\n"),
    "choice": (
        "endings.csv",
        "sent1,sent2,ending0,ending1,ending2,ending3,label\n1,x,a,b,c,d,3\n2,x,e,f,g,h,1\n",
    ),
}


@pytest.fixture
def served(tmp_path, monkeypatch):
    """function(task): the path of a SavedModel whose answers stand in `ANSWERS`."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS) + "\n")
    for name, text in TABLES.values():
        (tmp_path / name).write_text(text)
    extra = tmp_path / "saved" / "assets.extra"
    extra.mkdir(parents=True)
    (tmp_path / "saved" / "saved_model.pb").touch()

    def serve(task):
        outputs, _ = ANSWERS[task]
        (extra / "task.json").write_text(json.dumps(DESCRIPTIONS[task]))

        def load(model, path, adapter=None):
            model.description = said = ask_saved_model.read_description(path, adapter)
            model.label_names, model.problem_type = said.get("labels"), said.get("problem_type")
            model.input_names = ["context", "question"] if task == "qa" else ["text"]

        def answer(model, columns, batch_size):
            assert all(len(column) == 2 for column in columns.values()) and batch_size == 1
            for row in range(2):
                batch = {name: values[row : row + 1] for name, values in outputs.items()}
                if "num_labels" in batch:  # As many columns as the batch has labels.
                    batch["labels"] = batch["labels"][:, : batch["num_labels"].max()]
                yield batch

        monkeypatch.setattr(ask_saved_model.SavedModel, "__init__", load)
        monkeypatch.setattr(ask_saved_model.SavedModel, "answer", answer)
        return tmp_path / "saved"

    return serve


@pytest.mark.parametrize("task", ANSWERS)
def test_the_kind_is_that_of_the_head(run, served, task):
    name = TABLES[task][0] if task in TABLES else "texts.txt"
    arguments = ("predict", "--model", served(task), "--input", name, "--format=jsonl")
    status, out, err = run(*arguments, "--batch_size=1")
    assert (status, err) == (0, "")
    lines = list(map(json.loads, out.splitlines()))
    for line, wanted in zip(lines, ANSWERS[task][1], strict=True):
        assert line | wanted == line
    if task not in TABLES:
        assert [line["text"] for line in lines] == TEXTS


def test_lines_of_a_table(run, served):
    for task, lines in {
        "classify": ["label\tprobability", "no\t0.750000", "yes\t0.875000"],
        "multilabel": ["labels\tprobabilities", "no,yes\t0.750000,0.500000", "\t"],
        "regress": ["no\tyes", "1.500000\t-2.000000", "0.250000\t0.000000"],
        "seq2seq": ["target", "fine é", ""],
        "qa": ["answer\tscore", "good\t0.750000", "\t0.500000"],
        "choice": ["choice\tprobability", "3\t0.500000", "0\t0.750000"],
    }.items():
        name = TABLES[task][0] if task in TABLES else "texts.txt"
        flags = ("--input", name, "--format=tsv", "--batch_size=1")
        assert run("predict", "--model", served(task), *flags)[:2] == (0, "\n".join([*lines, ""]))
    for task in ("ner", "embed"):
        flags = ("--input", "texts.txt", "--format=tsv")
        status, _, err = run("predict", "--model", served(task), *flags)
        assert status == 2 and "Choose --format jsonl" in err


def test_an_export_draws_nothing(run, served):
    arguments = ("--model", served("causal_lm"), "--input", "texts.txt", "--top_k=3")
    status, _, err = run("predict", *arguments)
    assert status == 2 and "an export, whose answers do not change" in err


def test_a_saved_model_of_another_head_or_origin(run, served, monkeypatch):
    monkeypatch.setitem(ANSWERS, "masks", ({"labels": np.array([b"a", b"b"])}, []))
    model = served("masks")
    status, _, err = run("predict", "--model", model, "--input", "texts.txt")
    assert status == 1 and "holds the export of a MyMaskedLM. Wanted a model" in err
    (model / "assets.extra" / "task.json").unlink()
    status, _, err = run("predict", "--model", model, "--input", "texts.txt")
    assert status == 1 and "task.json does not say what" in err and "Export the task again" in err
