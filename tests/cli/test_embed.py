"""`finetune --task embed`, `evaluate`, `predict`, `embed` and `search`."""

import json
import re
import types

import numpy as np
import pytest
from small_embedder import make_pairs

import keras_bert_suite as kbs
from keras_bert_cli import search


def write_pairs(path, num_rows, seed):
    (first, second), scores = make_pairs(num_rows, seed)
    rows = zip(first, second, [str(5 * score) for score in scores], strict=True)
    lines = ["\t".join(row) for row in [("question", "answer", "score"), *rows]]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return first, second


COLUMNS = ("--text_column=question", "--text_pair_column=answer")


@pytest.fixture(scope="module")
def folder(workshop, tmp_path_factory):
    """Folder of an embedder, `embedder`, and `pairs.tsv`. Not to be written to."""
    from keras_bert_cli import main

    folder = tmp_path_factory.mktemp("embedded")
    write_pairs(folder / "pairs.tsv", 64, seed=1)
    write_pairs(folder / "dev.tsv", 16, seed=2)
    rows = [("good film", "a dull plot"), ("bad films", "it was good")]
    lines = ["question\tanswer\tscore", *("\t".join((*row, row[0])) for row in rows)]
    (folder / "queries.tsv").write_text("\n".join(lines) + "\n")
    arguments = [
        *("finetune", "--task=embed", f"--checkpoint={workshop / 'checkpoint'}", *COLUMNS),
        *(f"--train={folder / 'pairs.tsv'}", f"--dev={folder / 'dev.tsv'}", "--epochs=1"),
        *("--label_column=score", "--sequence_length=16", f"--output={folder / 'embedder'}"),
    ]
    assert main(arguments) == 0
    return folder


def test_an_embedder_is_trained_and_evaluated(folder, run, tmp_path):
    embedder = kbs.TextEmbedder.from_preset(folder / "embedder")
    assert isinstance(embedder.loss, kbs.InBatchNegatives)  # A preset holds no training.
    assert embedder.preprocessor.sequence_length == 16
    arguments = ("--model", folder / "embedder", "--input", folder / "dev.tsv", *COLUMNS)
    scores = tmp_path / "scores.json"
    status, out, err = run("evaluate", *arguments, "--label_column=score", "--json", scores)
    assert (status, err) == (0, "") and out.startswith("rows 16, spearman ")
    assert json.loads(scores.read_text()).keys() == {"rows", "spearman", "pearson"}
    status, _, err = run("evaluate", *arguments, "--png", tmp_path / "a.png")
    assert status == 2 and "--png is for --task" in err
    status, out, err = run("evaluate", *arguments)
    assert (status, err) == (0, "")
    assert "mrr 0." in out and "recall@5" in out
    first, second = make_pairs(16, seed=2)[0]
    relevant = {
        text: {b for a, b in zip(first, second, strict=True) if a == text} for text in first
    }
    corpus = {text: text for text in second}
    wanted = embedder.score_retrieval(dict(zip(first, first, strict=True)), corpus, relevant)
    assert f"mrr {wanted['mrr']:.4f}" in out
    # Each query finds itself before its match.
    negatives = ("--input", folder / "queries.tsv", *COLUMNS, "--negative_column=score")
    status, out, _ = run("evaluate", *arguments[:2], *negatives)
    assert status == 0 and "recall@1 0.0000" in out


def test_pairs_without_scores_are_called_matches(folder, run, workshop, tmp_path):
    """A column of scores that no flag names is not read, whatever its name."""
    table = folder / "queries.tsv"
    arguments = ("--task=embed", "--checkpoint", workshop / "checkpoint", "--train", table)
    arguments += (*COLUMNS, "--epochs=1", "--output", tmp_path / "matches")
    status, out, _ = run("finetune", *arguments)
    assert status == 0
    assert "2 training pairs, read as matches, since no --label_column" in out


def test_texts_are_embedded_and_found(folder, run, tmp_path):
    first, second = make_pairs(16, seed=2)[0]
    (tmp_path / "docs.txt").write_text("\n".join(second) + "\n")
    embedder = kbs.TextEmbedder.from_preset(folder / "embedder")
    model = ("--model", folder / "embedder")
    files = ("--corpus", tmp_path / "docs.txt", "--vectors", tmp_path / "vectors.npy")
    output = ("--output", tmp_path / "vectors.npy")
    status, out, err = run("embed", *model, "--input", tmp_path / "docs.txt", *output)
    assert (status, err) == (0, "") and "16 vectors of 16 numbers" in out
    vectors = np.load(tmp_path / "vectors.npy")
    np.testing.assert_allclose(vectors, embedder.predict(second, verbose=0), atol=1e-5)
    wanted = embedder.search(first[:2], vectors, top_k=3)
    query = ("--query", first[0], "--query", first[1], "--top_k=3")
    status, out, err = run("search", *model, *files, *query, "--format=jsonl")
    assert (status, err) == (0, "")
    found = [json.loads(line) for line in out.splitlines()]
    assert [row["query"] for row in found] == first[:2]
    for row, hits in zip(found, wanted, strict=True):
        assert [hit["id"] for hit in row["hits"]] == [hit.id for hit in hits]
        assert all(hit["text"] == second[hit["id"]] for hit in row["hits"])
    status, out, err = run("search", *model, *files[:2], *query)
    assert (status, err) == (0, "") and "score" in out
    shown = [float(score) for score in re.findall(r"-?\d\.\d{4}\b", out)]
    assert shown == pytest.approx([hit.score for hits in wanted for hit in hits], abs=1e-3)
    np.save(tmp_path / "vectors.npy", vectors[:3])
    status, out, err = run("search", *model, *files, *query)
    assert status == 1 and "(3, 16)" in err and "has 16 texts" in err


@pytest.mark.long("serving")
@pytest.mark.backend("tensorflow")
def test_a_saved_model_gives_the_vectors_of_the_embedder(folder, run, tmp_path):
    (tmp_path / "texts.txt").write_text("the film was good\ndull\n\n")
    model = ("--model", folder / "embedder")
    assert run("export", *model, "--output", tmp_path / "saved")[0] == 0
    answers = []
    for model in (folder / "embedder", tmp_path / "saved" / "1"):
        arguments = ("--input", tmp_path / "texts.txt", "--batch_size=2")
        status, out, err = run("predict", "--model", model, *arguments)
        assert (status, err) == (0, "")
        answers.append([json.loads(line) for line in out.splitlines()])
    embedder_rows, saved_rows = answers
    assert [row["text"] for row in saved_rows] == ["the film was good", "dull", ""]
    for row, wanted in zip(saved_rows, embedder_rows, strict=True):
        np.testing.assert_allclose(row["embedding"], wanted["embedding"], atol=1e-5)


def test_an_embedder_becomes_a_folder_of_sentence_transformers(folder, run, tmp_path):
    to = ("--to=huggingface", "--output", tmp_path / "converted")
    status, out, err = run("convert", "--input", folder / "embedder", *to)
    assert (status, err) == (0, "") and (tmp_path / "converted" / "modules.json").is_file()
    status, out, err = run("convert", "--input", tmp_path / "converted", *to, "--overwrite")
    assert (status, err) == (0, "")
    to = ("--to=google_tf1", "--output", tmp_path / "google")
    status, out, err = run("convert", "--input", tmp_path / "converted", *to)
    assert status == 1 and "no place for its pooling" in err


def test_bad_input(folder, run, tmp_path):
    (tmp_path / "empty.txt").write_text("")
    bad = tmp_path / "bad.tsv"
    bad.write_text("question\tanswer\tscore\na\tb\thigh\n")
    nan = tmp_path / "nan.tsv"
    nan.write_text(bad.read_text().replace("high", "nan"))
    model = ("--model", folder / "embedder")
    for arguments, status, message in (
        (("search", *model, "--corpus", tmp_path / "empty.txt", "--query=a"), 1, "is empty"),
        (("search", *model, "--corpus", bad), 2, "pass --query, or a file of queries"),
        (("embed", *model, "--input", bad, "--output=vectors.txt"), 2, "ends in .npy"),
        (("evaluate", *model, "--input", bad, *COLUMNS[:1]), 2, "from pairs of texts"),
        (
            ("evaluate", *model, "--input", bad, *COLUMNS, "--label_column=score"),
            1,
            "bad.tsv, line 2: the label in the column 'score' is 'high'. Wanted a finite number",
        ),
        (
            ("evaluate", *model, "--input", nan, *COLUMNS, "--label_column=score"),
            1,
            "nan.tsv, line 2: the label in the column 'score' is 'nan'. Wanted a finite number",
        ),
        (
            ("search", *model, "--corpus", tmp_path / "x.json", "--query=a"),
            1,
            "x.json: No such file",
        ),
        (("embed", *model, "--input", tmp_path / "x.xlsx", "--output=v.npy"), 1, "Save it as CSV"),
        (("predict", *model, "--input", tmp_path / "x.txt", "--format=tsv"), 1, "x.txt"),
        (("predict", *model, "--input", bad, *COLUMNS), 1, "rows of 2, question, answer. Name"),
    ):
        got, _, err = run(*arguments)
        assert got == status and message in err, err


class Trap:
    """Its pickle, when it is opened, makes a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (self.path, "w")


def test_a_file_of_vectors_runs_no_code(tmp_path):
    vectors, opened = tmp_path / "vectors.npy", tmp_path / "opened"
    np.save(vectors, np.array([[Trap(str(opened))]], object), allow_pickle=True)
    with pytest.raises(ValueError, match="vectors.npy is no file of vectors .*keras-bert embed"):
        search._read_vectors(types.SimpleNamespace(vectors=vectors, corpus="docs.txt"), 1)
    assert not opened.exists()
