"""A job answers each row of its files once, whatever stops it."""

import json
import os

import fsspec
import keras
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from peer_weights import randomize
from small_embedder import make_embedder
from small_texts import ONE_LAYER, VOCABULARY, make_reviews

import keras_bert_suite as kbs
from keras_bert_suite.many_texts import answer_job as job
from keras_bert_suite.many_texts.input_slices import (
    count_rows_before,
    cut_files,
    find_files,
    read_rows,
)

TEXTS = [*make_reviews(40)[0], "good \U0001f600", "é" * 30]
IDS = list(range(100, 100 + len(TEXTS)))


def make_classifier(seed=1):
    keras.utils.set_random_seed(seed)
    packer = kbs.SegmentPacker(kbs.WordPieceTokenizer(VOCABULARY), sequence_length=16)
    backbone = kbs.BertBackbone(**ONE_LAYER)
    task = kbs.TextClassifier(backbone, label_names=["no", "yes"], preprocessor=packer)
    randomize(task)
    return task


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """(a classifier, its folder). Not to be changed."""
    folder, task = tmp_path_factory.mktemp("model") / "model", make_classifier()
    task.save_to_preset(folder)
    return task, folder


@pytest.fixture
def reviews(tmp_path):
    """A folder of the texts in each format, two files of Parquet."""
    folder = tmp_path / "reviews"
    folder.mkdir()
    half = len(TEXTS) // 2
    for number, rows in enumerate((slice(half), slice(half, None))):
        table = pa.table({"id": IDS[rows], "review": TEXTS[rows], "stars": [1.5] * half})
        pq.write_table(table, folder / f"{number}.parquet", row_group_size=8)
    frame = pd.DataFrame({"id": IDS, "review": TEXTS})
    frame.to_json(folder / "all.jsonl", orient="records", lines=True)
    frame.to_csv(folder / "all.csv", index=False)
    frame.to_csv(folder / "all.tsv", index=False, sep="\t")
    (folder / "all.txt").write_text("\n".join(TEXTS))
    return folder


def read_answers(folder):
    return pd.concat(map(pd.read_parquet, sorted(folder.glob("part-*.parquet"))))


@pytest.mark.parametrize("name", ["*.parquet", "all.jsonl", "all.csv", "all.tsv", "all.txt"])
def test_the_answers_of_the_task(model, reviews, tmp_path, name):
    task, folder = model
    column = "text" if name.endswith("txt") else "review"
    predictor = kbs.BatchPredictor(folder, column, None if column == "text" else ["id"])
    report = kbs.predict_files(predictor, f"{reviews}/{name}", tmp_path / "out", slice_bytes=600)
    assert report.rows == len(TEXTS) and report.slices == len(list((tmp_path / "out").glob("p*")))
    assert report.slices == 1 if name[-3:] in ("csv", "tsv") else report.slices > 2
    found = read_answers(tmp_path / "out")
    if column == "review":
        assert found.pop("id").astype(int).tolist() == IDS
    else:
        assert found.pop("text").tolist() == TEXTS
    assert list(found) == ["label", "probability", "probabilities"]
    wanted = task.predict_probabilities(TEXTS, verbose=0)
    shares = np.stack([list(row.values()) for row in found["probabilities"]])
    np.testing.assert_allclose(shares, wanted, rtol=0, atol=1e-6)


@pytest.mark.parametrize("size", [1, 7, 50, 333, 10**6])
@pytest.mark.parametrize("name", ["0.parquet", "all.jsonl", "all.txt"])
def test_slices_have_each_row_once(reviews, name, size):
    slices = cut_files(find_files(str(reviews / name)), size)
    column = "text" if name == "all.txt" else "review"
    found, numbers = [], []
    for part in slices:
        for rows in read_rows(part, [column], batch_rows=5):
            texts = rows.columns[column]
            found += texts if isinstance(texts, list) else texts.to_pylist()
            numbers += range(count_rows_before(part) + rows.first, len(found))
    assert found == TEXTS[: len(found)] and numbers == list(range(len(found)))
    assert len(found) == len(TEXTS) // (2 if name == "0.parquet" else 1)


def test_a_job_that_was_stopped_goes_on(model, reviews, tmp_path, monkeypatch):
    predictor = kbs.BatchPredictor(model[1], "review")
    arguments = (predictor, f"{reviews}/*.parquet", tmp_path / "out")
    whole = kbs.predict_files(predictor, arguments[1], tmp_path / "whole", slice_bytes=600)
    calls, answer = [], job.SliceWorker.__call__

    def stop_at(worker, part):
        calls.append(part.number)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return answer(worker, part)

    with monkeypatch.context() as context:
        context.setattr(job.SliceWorker, "__call__", stop_at)
        with pytest.raises(KeyboardInterrupt):
            kbs.predict_files(*arguments, slice_bytes=600)
    assert len(list((tmp_path / "out").glob("part-*"))) == 2
    (tmp_path / "out" / "part-000001.parquet").unlink()
    report = kbs.predict_files(*arguments, slice_bytes=600)
    assert report.done_before == 1 and report.slices == whole.slices
    pd.testing.assert_frame_equal(read_answers(tmp_path / "out"), read_answers(tmp_path / "whole"))
    again = kbs.predict_files(*arguments, slice_bytes=600)
    assert (again.rows, again.done_before) == (0, whole.slices)


def test_a_part_that_is_being_written_is_not_there(model, reviews, tmp_path, monkeypatch):
    def fail(self, batch):
        if len(batch):
            raise RuntimeError("the machine burns")
        return answer(self, batch)

    answer = kbs.BatchPredictor.__call__
    predictor = kbs.BatchPredictor(model[1], "review")
    monkeypatch.setattr(kbs.BatchPredictor, "__call__", fail)
    with pytest.raises(RuntimeError, match="burns"):
        kbs.predict_files(predictor, f"{reviews}/*.parquet", tmp_path / "out")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["_plan.json"]


def test_answers_of_two_jobs_share_no_folder(model, reviews, tmp_path):
    files, out = f"{reviews}/*.parquet", tmp_path / "out"
    kbs.predict_files(kbs.BatchPredictor(model[1], "review"), files, out)
    other = tmp_path / "other"
    make_classifier(seed=2).save_to_preset(other)
    for predictor, name in (
        (kbs.BatchPredictor(other, "review"), "model"),
        (kbs.BatchPredictor(model[1], "review", ["id"]), "columns"),
    ):
        with pytest.raises(ValueError, match=f"answers of another job: its {name} is"):
            kbs.predict_files(predictor, files, out)
    os.utime(reviews / "0.parquet", (1, 1))
    with pytest.raises(ValueError, match="answers of another job: its files is"):
        kbs.predict_files(kbs.BatchPredictor(model[1], "review"), files, out)
    with pytest.raises(FileExistsError, match="holds 0.parquet, and no plan of a job"):
        kbs.predict_files(kbs.BatchPredictor(model[1], "review"), files, reviews)


def test_texts_that_are_missing(model, tmp_path):
    rows = [{"id": i, "text": text} for i, text in enumerate(TEXTS)]
    rows[7]["text"], rows[30] = 5, {"id": 30}
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    predictor, out = kbs.BatchPredictor(model[1]), tmp_path / "out"
    arguments = {"slice_bytes": 400}
    with pytest.raises(ValueError, match="rows.jsonl, row 8, cannot be answered.*holds 5, wanted"):
        kbs.predict_files(predictor, str(path), out, **arguments)
    # The rows before are there, and the job goes on with the flag.
    report = kbs.predict_files(predictor, str(path), out, skip_invalid=True, **arguments)
    assert report.left_out == 2
    assert read_answers(out)["id"].tolist() == [i for i in range(len(TEXTS)) if i not in (7, 30)]
    left_out = [json.loads(file.read_text()) for file in sorted((out / "_left_out").iterdir())]
    assert [row["row"] for row in left_out] == [8, 31]
    assert left_out[1] == {
        "file": f"file://{path}",
        "row": 31,
        "fault": "the column 'text' holds None, wanted a text",
    }


def test_tables_without_a_text(model, tmp_path):
    (tmp_path / "a.csv").write_text('id,text\n1,"two\nlines"\n2,\n')
    predictor = kbs.BatchPredictor(model[1])
    with pytest.raises(ValueError, match="a.csv, row 2, cannot be answered: the column 'text' h"):
        kbs.predict_files(predictor, str(tmp_path / "a.csv"), tmp_path / "out")
    (tmp_path / "b.csv").write_text("id,text\n1,a,b\n")
    with pytest.raises(ValueError, match="b.csv, row 1, has 3 fields, and the first line names 2"):
        kbs.predict_files(predictor, str(tmp_path / "b.csv"), tmp_path / "out2")
    assert not (tmp_path / "out2").exists()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.jsonl", b'{"text": "a"}\n{"text":\n', "a.jsonl, row 2, is not JSON: Expecting value"),
        ("a.jsonl", b'{"text": "a"}\n["b"]\n', r'a.jsonl, row 2, holds b?.*\["b"\].*wanted an obj'),
        ("a.txt", b"a\nb\n\xff\n", "a.txt, row 3, is not UTF-8: .*0xff.* Convert it"),
        (
            "a.orc",
            b"a",
            "a.orc ends in none of .*parquet.*jsonl.* Convert it, or choose other files",
        ),
        ("a.txt", b"", "a.txt has no rows. Pass files with texts"),
    ],
)
def test_files_that_cannot_be_read(model, tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=message):
        kbs.predict_files(kbs.BatchPredictor(model[1]), str(tmp_path / name), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_folder_is_its_files_of_any_format(reviews):
    (reviews / "notes.md").write_text("no texts")
    (reviews / "more").mkdir()
    (reviews / "more" / "b.txt").write_text("a")
    names = [file["path"].removeprefix(f"file://{reviews}/") for file in find_files(str(reviews))]
    wanted = ["0.parquet", "1.parquet", "all.csv", "all.jsonl", "all.tsv", "all.txt", "more/b.txt"]
    assert names == wanted


def test_nothing_is_written_for_a_job_that_cannot_begin(model, reviews, tmp_path):
    predictor, out = kbs.BatchPredictor(model[1], "review"), tmp_path / "out"
    for name, arguments, error, message in (
        ("*.orc", {}, FileNotFoundError, "matches no file. Pass a file, a folder, or a pattern"),
        ("*.csv", {"engine": "spark"}, ValueError, "engine must be one of local, ray"),
        ("*.csv", {"workers": 2}, ValueError, "are for engine='ray'. Leave them out"),
        ("*.csv", {"format": "csv"}, ValueError, "format must be one of parquet, jsonl"),
        ("*.txt", {}, ValueError, "has no columns 'review'. There are text. Name the columns"),
    ):
        with pytest.raises(error, match=message):
            kbs.predict_files(predictor, f"{reviews}/{name}", out, **arguments)
    with pytest.raises(ValueError, match="no columns 'ids'"):
        other = kbs.BatchPredictor(model[1], "review", ["ids"])
        kbs.predict_files(other, f"{reviews}/*.parquet", out)
    with pytest.raises(ValueError, match="have the column 'label' already"):
        pq.write_table(pa.table({"text": ["a"], "label": [1]}), tmp_path / "labels.parquet")
        kbs.predict_files(kbs.BatchPredictor(model[1]), str(tmp_path / "labels.parquet"), out)
    with pytest.raises(
        ValueError, match="must be of JSON, got .'verbose': .*}: Object of type set"
    ):
        other = kbs.BatchPredictor(model[1], "review", verbose={0})
        kbs.predict_files(other, f"{reviews}/*.csv", out)
    assert not out.exists()


def test_texts_none_of_which_can_be_answered(model, tmp_path):
    (tmp_path / "a.jsonl").write_text('{"text": 5}\n{"text": null}\n')
    predictor = kbs.BatchPredictor(model[1])
    files = str(tmp_path / "a.jsonl")
    report = kbs.predict_files(predictor, files, tmp_path / "out", skip_invalid=True)
    assert (report.rows, report.left_out) == (0, 2)
    assert list(pq.read_table(tmp_path / "out" / "part-000000.parquet")["text"]) == []


def test_columns_of_another_type(model, tmp_path):
    for number, value in enumerate((1, "one")):
        row = json.dumps({"text": "good", "id": value})
        (tmp_path / f"{number}.jsonl").write_text(row + "\n")
    with pytest.raises(ValueError, match="1.jsonl, row 1, or a later one has another type in the"):
        files = f"{tmp_path}/*.jsonl"
        kbs.predict_files(kbs.BatchPredictor(model[1]), files, tmp_path / "out")


def test_json_lines_may_lack_a_value(model, tmp_path):
    rows = [{"text": "good", "id": 1}, {"text": "bad"}, {"id": 3, "text": "dull", "more": 5}]
    for number, row in enumerate(rows):
        (tmp_path / f"{number}.jsonl").write_text(json.dumps(row) + "\n")
    predictor = kbs.BatchPredictor(model[1])
    kbs.predict_files(predictor, f"{tmp_path}/*.jsonl", tmp_path / "out")
    found = read_answers(tmp_path / "out")
    assert list(found)[:3] == ["text", "id", "label"]
    assert found["id"].tolist()[::2] == [1, 3] and np.isnan(found["id"].iloc[1])


def test_half_characters_of_json_are_replaced(model, tmp_path):
    ids = ["\ud83d!", None, {"a": ["\ud83d"], "b": 2}]
    for number, value in enumerate(ids):
        row = {"text": "good", "id": value}
        (tmp_path / f"{number}.jsonl").write_text(json.dumps(row) + "\n")
        out = tmp_path / f"out{number}"
        kbs.predict_files(kbs.BatchPredictor(model[1]), f"{tmp_path}/{number}.jsonl", out)
    found = [read_answers(tmp_path / f"out{number}")["id"].iloc[0] for number in range(3)]
    assert (
        found[:2] == ["\ufffd!", None] and list(found[2]["a"]) == ["\ufffd"] and found[2]["b"] == 2
    )


def test_a_remote_file_system(model, reviews):
    files = fsspec.filesystem("memory")
    files.put_file(str(reviews / "all.jsonl"), "/bucket/all.jsonl")
    predictor, out = kbs.BatchPredictor(model[1], "review", ["id"]), "memory://bucket/out"
    report = kbs.predict_files(predictor, "memory://bucket/*.jsonl", out, slice_bytes=1500)
    assert (report.done_before, report.rows) == (0, len(TEXTS)) and report.slices > 1
    files.rm("/bucket/out/part-000001.parquet")
    again = kbs.predict_files(predictor, "memory://bucket/*.jsonl", out, slice_bytes=1500)
    assert (again.slices, again.done_before) == (report.slices, report.slices - 1)
    ids = []
    for number in range(report.slices):
        with files.open(f"/bucket/out/part-{number:06}.parquet", "rb") as file:
            ids += pq.read_table(file)["id"].to_pylist()
    assert ids == IDS


def test_json_lines(model, reviews, tmp_path):
    predictor = kbs.BatchPredictor(model[1], "review")
    for format in ("jsonl", "parquet"):
        kbs.predict_files(predictor, f"{reviews}/0.parquet", tmp_path / format, format=format)
    lines = (tmp_path / "jsonl" / "part-000000.jsonl").read_text().splitlines()
    wanted = pq.read_table(tmp_path / "parquet" / "part-000000.parquet").to_pylist()
    assert list(map(json.loads, lines)) == wanted


def test_vectors_are_one_index(reviews, tmp_path):
    embedder = make_embedder()
    randomize(embedder)
    embedder.save_to_preset(tmp_path / "embedder")
    out = tmp_path / "vectors"
    predictor = kbs.BatchPredictor(tmp_path / "embedder", "review", ["id"])
    kbs.predict_files(predictor, f"{reviews}/*.parquet", out, slice_bytes=600)
    index, wanted = kbs.VectorIndex.load(out), embedder.index(TEXTS, ids=IDS)
    np.testing.assert_allclose(index.vectors, wanted.vectors, rtol=0, atol=1e-6)
    assert index.ids == IDS
    (hits,) = embedder.search(["the film was good"], index, top_k=3)
    assert hits[0].id == embedder.search(["the film was good"], wanted, top_k=3)[0][0].id
    other = make_embedder()
    with pytest.raises(ValueError, match="made by another embedder"):
        other.search(["good"], index)
    # `faiss` reads the vectors of the index, too.
    faiss = pytest.importorskip("faiss")
    flat = faiss.IndexFlatIP(index.width)
    flat.add(index.vectors)
    queries = embedder.predict(["the film was good"], verbose=0)
    assert IDS[flat.search(queries, 1)[1][0][0]] == hits[0].id
    lines, other = tmp_path / "lines", tmp_path / "other"
    kbs.predict_files(predictor, f"{reviews}/1.parquet", lines, format="jsonl")
    with pytest.raises(ValueError, match="lines has parts in jsonl. Write them in parquet"):
        kbs.VectorIndex.load(lines)
    kbs.predict_files(predictor, f"{reviews}/1.parquet", other)
    pq.write_table(pa.table({"id": [1]}), other / "part-000000.parquet")
    with pytest.raises(
        ValueError, match="other has no column 'embedding'. Pass what keras-bert em"
    ):
        kbs.VectorIndex.load(other)
    plan = other / "_plan.json"
    plan.write_text(plan.read_text().replace("parquet", "parquets"))
    with pytest.raises(ValueError, match="other/_plan.json .*Restore it, or remove the folder"):
        kbs.VectorIndex.load(other)
    (out / "part-000001.parquet").unlink()
    with pytest.raises(ValueError, match="parts, and no part-000001.parquet. Give the job again"):
        kbs.VectorIndex.load(out)


def test_the_digest_of_a_worker(model, tmp_path, reviews):
    predictor = kbs.BatchPredictor(model[1], "review")
    slices = cut_files(find_files(f"{reviews}/0.parquet"), 10**6)
    worker = job.SliceWorker(predictor, job.AnswerFolder(str(tmp_path)), "another", False)
    worker.choose_schema(slices)
    worker._is_checked = False  # As in a process that got it.
    found = worker(slices[0])
    assert "is not the model of the job" in found["fault"] and not list(tmp_path.glob("part*"))
