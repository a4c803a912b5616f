"""`finetune`, `evaluate` and `predict` on sentences with a tag on each word."""

import functools
import json

import pytest
from small_texts import make_reviews

import keras_bert_suite as kbs
from keras_bert_cli import main
from keras_bert_cli.kinds.ner import HEADS
from keras_bert_cli.saved_tasks import open_task


def write_sentences(path, num_rows, seed):
    """Every "good" is an entity."""
    lines = []
    for text in make_reviews(num_rows, seed)[0]:
        lines += [f"{word} {'I-POS' if word == 'good' else 'O'}" for word in text.split()] + [""]
    path.write_text("\n".join(lines), encoding="utf-8")


@pytest.fixture(scope="module")
def tagged(workshop, tmp_path_factory):
    """Folder of a tagger and its data. Not to be written to."""
    folder = tmp_path_factory.mktemp("tagged")
    write_sentences(folder / "train.txt", 96, seed=1)
    write_sentences(folder / "dev.txt", 24, seed=2)
    arguments = [
        *("finetune", "--task=ner", f"--checkpoint={workshop / 'checkpoint'}"),
        *(f"--train={folder / 'train.txt'}", f"--dev={folder / 'dev.txt'}", "--epochs=6"),
        *(f"--test={folder / 'dev.txt'}", "--learning_rate=5e-3", "--sequence_length=16"),
        *("--tag_scheme=BIO", f"--output={folder / 'tagger'}", "--batch_size=16"),
    ]
    assert main(arguments) == 0
    return folder


def test_a_tagger_is_trained_and_evaluated(tagged, run, tmp_path):
    tagger = kbs.TokenClassifier.from_preset(tagged / "tagger")
    assert tagger.label_names == ["O", "B-POS"]
    arguments = ("--model", tagged / "tagger", "--input", tagged / "dev.txt")
    status, out, err = run(
        "evaluate", *arguments, "--tag_scheme=BIO", "--json", tmp_path / "scores.json"
    )
    assert (status, err) == (0, "")
    scores = json.loads((tmp_path / "scores.json").read_text())
    assert scores["rows"] == 24 and set(scores["types"]) == {"POS"}
    assert scores["f1"] > 0.8 and f"f1 {scores['f1']:.4f}" in out

    (tmp_path / "texts.txt").write_text("the film was good\ndull\n")
    status, out, err = run(
        "predict", "--model", tagged / "tagger", "--input", tmp_path / "texts.txt"
    )
    assert (status, err) == (0, "")
    first, second = map(json.loads, out.splitlines())
    (entity,) = tagger.predict(["the film was good"], verbose=0)[0]
    assert first["text"] == "the film was good"
    assert first["entities"] == [
        {"label": "POS", "text": "good", "start": 13, "end": 17, "score": round(entity.score, 6)}
    ]
    assert second == {"text": "dull", "entities": []}


@pytest.mark.long("serving")
@pytest.mark.backend("tensorflow")
def test_a_saved_model_finds_entities(tagged, run, tmp_path):
    """Those of the tagger, in the order of the texts, over several batches."""
    export = ("--model", tagged / "tagger", "--output", tagged / "saved/1")
    assert run("export", *export)[0] == 0
    texts = ["the film was good", "", "dull", "good 好good , good", "bad"]
    (tmp_path / "texts.csv").write_text("\n".join(["review", *(f'"{text}"' for text in texts)]))
    answers = []
    for model in ("tagger", "saved/1"):
        arguments = ("--input", tmp_path / "texts.csv", "--text_column=review", "--batch_size=2")
        status, out, err = run("predict", "--model", tagged / model, *arguments)
        assert (status, err) == (0, "")
        answers.append(list(map(json.loads, out.splitlines())))
    assert [row["text"] for row in answers[0]] == texts
    assert sum(len(row["entities"]) for row in answers[0]) >= 3
    for row, wanted in zip(answers[1], answers[0], strict=True):
        scores, others = ([e.pop("score") for e in r["entities"]] for r in (row, wanted))
        assert scores == pytest.approx(others, abs=1e-5)
        assert row == wanted


@pytest.fixture(scope="module")
def taggers(workshop, tagged):
    """Function: head -> path of a tagger, and the scheme of its tags. Not to be written to.

    `softmax` has learned words with tags, and the others spans of annotation tools.
    """
    for name, seed in (("train.jsonl", 1), ("dev.json", 2)):
        rows = [
            {"text": text, "label": [[text.index("good"), text.index("good") + 4, "POS"]]}
            for text in make_reviews(80, seed)[0]
            if "good" in text
        ]
        (tagged / name).write_text("\n".join(map(json.dumps, rows)))

    @functools.cache
    def train(head):
        if head == "softmax":
            return str(tagged / "tagger"), "BIO"
        model = str(tagged / f"{head}.keras")
        arguments = [
            *(
                "finetune",
                "--task=ner",
                f"--head={head}",
                f"--checkpoint={workshop / 'checkpoint'}",
            ),
            *(f"--train={tagged / 'train.jsonl'}", f"--dev={tagged / 'dev.json'}", "--epochs=1"),
            *("--learning_rate=5e-2", "--sequence_length=16", "--batch_size=16"),
            *("--tag_scheme=BIOES", f"--output={model}"),
        ]
        assert main(arguments) == 0
        return model, "BIOES"

    return train


@pytest.mark.parametrize("head", HEADS)
def test_every_head(taggers, tagged, run, tmp_path, head):
    """Evaluated and asked, with the head named only once, and in the scheme of its own tags."""
    model, scheme = taggers(head)
    tagger = open_task(model)
    assert type(tagger).__name__ == HEADS[head]
    files = ("--json", tmp_path / "scores.json", "--png", tmp_path / "scores.png")
    lines = ("--input", tagged / "dev.txt", f"--tag_scheme={scheme}")
    status, out, err = run("evaluate", "--model", model, *lines, *files)
    assert (status, err) == (0, "")
    text = (tagged / "dev.txt").read_text()
    rows = [[line.split() for line in row.splitlines()] for row in text.strip().split("\n\n")]
    words = [[word for word, _ in row] for row in rows]
    spans = [[(i, i + 1, "POS") for i, (_, tag) in enumerate(row) if tag != "O"] for row in rows]
    entity = "S-POS" if scheme == "BIOES" else "B-POS"
    tags = [[entity if tag != "O" else "O" for _, tag in row] for row in rows]
    wanted = tagger.score(words, spans if head == "global_pointer" else tags)
    assert json.loads((tmp_path / "scores.json").read_text()) == {"rows": 24, **wanted}
    assert (tmp_path / "scores.png").read_bytes()[:4] == b"\x89PNG"

    read = kbs.read_annotations(tagged / "dev.json", None if head == "global_pointer" else scheme)
    assert head == "softmax" or tagger.label_names == read.label_names
    spans = ("--input", tagged / "dev.json", "--json", tmp_path / "spans.json")
    assert run("evaluate", "--model", model, *spans)[0] == 0
    wanted = {"rows": len(read), **tagger.score(read.x, read.y)}
    assert json.loads((tmp_path / "spans.json").read_text()) == wanted

    (tmp_path / "texts.txt").write_text("the film was good\n")
    status, out, err = run("predict", "--model", model, "--input", tmp_path / "texts.txt")
    assert (status, err) == (0, "")
    (entities,) = tagger.predict(["the film was good"], verbose=0)
    got = [(e["label"], e["start"], e["end"]) for e in json.loads(out)["entities"]]
    assert got == [(e.label, e.start, e.end) for e in entities]


@pytest.mark.parametrize(
    ("head", "flags", "message"),
    [
        ("crf", [], "are IOB1, in which an entity begins with I. With --head crf pass"),
        ("crf", ["--tag_scheme=BIO", "--class_weight=balanced"], "--class_weight is for --head"),
        (
            "global_pointer",
            ["--tag_column=1", "--tag_scheme=BIO"],
            "labels, got []",
        ),
    ],
)
def test_wrong_heads(workshop, tagged, run, tmp_path, head, flags, message):
    (tmp_path / "train.txt").write_text("O O\nO O\n\n" if "1" in str(flags) else "O I-A\nO O\n")
    status, _, err = run(
        *("finetune", "--task=ner", f"--head={head}", f"--checkpoint={workshop / 'checkpoint'}"),
        *(f"--train={tmp_path / 'train.txt'}", f"--output={tmp_path / 'model.keras'}", *flags),
    )
    assert status in (1, 2) and message in err


def test_a_tagger_takes_no_questions_and_no_pairs(tagged, run, tmp_path):
    (tmp_path / "texts.txt").write_text("the film was good\n")
    question = ("--input", tmp_path / "texts.txt", "--question=was it")
    status, _, err = run("predict", "--model", tagged / "tagger", *question)
    assert status == 2 and "--question is for --task qa, not for --task ner" in err
    (tmp_path / "pairs.tsv").write_text("a\tb\ngood\tgood\n")
    pairs = ("--input", tmp_path / "pairs.tsv", "--text_column=a", "--text_pair_column=b")
    status, _, err = run("predict", "--model", tagged / "tagger", *pairs)
    assert status == 1 and "got rows of 2, a, b. Name the columns" in err


@pytest.mark.parametrize(
    ("content", "flags", "message"),
    [
        ("good\n", [], "line 1: got 1 fields"),
        (
            "good B-NEG\n",
            [],
            "B-NEG",
        ),
        (
            "good B-POS\n",
            ["--delimiter=tab"],
            "for other tables, not for --task ner",
        ),
        ("good B-POS\n", ["--text_column=text"], "--text_column is for other tables"),
        ("good B-POS\n", ["--noheader"], "--header is for other tables"),
        ("good B-POS\n", ["--target_column=x"], "is for --task seq2seq, not for --task ner"),
        ("good B-POS\n", ["--span_errors=fix"], "--span_errors is for .json, .jsonl files"),
        ('{"text": "good ", "label": [[0, 5, "POS"]]}', [], "has spaces at its border"),
        ('{"text": "good ", "label": []}', ["--max_tags=9"], "--max_tags is for words and tags"),
    ],
)
def test_wrong_sentences(tagged, run, tmp_path, content, flags, message):
    path = tmp_path / ("dev.json" if content[0] == "{" else "dev.txt")
    path.write_text(content)
    arguments = ("--model", tagged / "tagger", "--input", path, *flags)
    status, _, err = run("evaluate", *arguments)
    assert status in (1, 2) and message in err
