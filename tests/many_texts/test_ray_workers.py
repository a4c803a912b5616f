"""Two workers of Ray answer as one process does, also where a worker is killed."""

import os
import signal
import threading

import pandas as pd
import psutil
import pytest
from small_texts import make_reviews

import keras_bert_suite as kbs

ray = pytest.importorskip("ray.data")
pytestmark = pytest.mark.long("faults")

TEXTS = make_reviews(4000)[0]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """The folder of an embedder."""
    from peer_weights import randomize
    from small_embedder import make_embedder

    folder = tmp_path_factory.mktemp("model") / "model"
    embedder = make_embedder()
    randomize(embedder)
    embedder.save_to_preset(folder)
    return folder


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """The pattern of two files with a text in each line."""
    folder = tmp_path_factory.mktemp("texts")
    for number in range(2):
        (folder / f"{number}.txt").write_text("\n".join(TEXTS[2000 * number :][:2000]))
    return f"{folder}/*.txt"


def kill_workers(times, stop):
    """Kills a worker that has begun, so many times."""
    killed = []
    while len(killed) < times and not stop.wait(0.2):
        for child in find_workers():
            if child.pid not in killed and child.cpu_times().user > 2:
                os.kill(child.pid, signal.SIGKILL)
                killed.append(child.pid)
                break
    return killed


def find_workers():
    found = []
    for child in psutil.Process().children(recursive=True):
        try:
            if "MapWorker" in " ".join(child.cmdline()):
                found.append(child)
        except psutil.Error:
            pass
    return found


def test_a_killed_worker_loses_no_row(model, texts, tmp_path):
    predictor = kbs.BatchPredictor(model)
    stop, killed = threading.Event(), []
    thread = threading.Thread(target=lambda: killed.extend(kill_workers(2, stop)))
    thread.start()
    arguments = {"slice_bytes": 8000}
    report = kbs.predict_files(
        predictor, texts, tmp_path / "ray", engine="ray", workers=2, **arguments
    )
    stop.set()
    thread.join()
    assert killed and report.rows == len(TEXTS)
    kbs.predict_files(predictor, texts, tmp_path / "local", **arguments)
    found, wanted = (pd.read_parquet(tmp_path / name) for name in ("ray", "local"))
    assert found["text"].tolist() == wanted["text"].tolist() == TEXTS
    pd.testing.assert_series_equal(found["embedding"], wanted["embedding"], rtol=0, atol=1e-6)
    # The fault of a text comes back with its file and its row.
    (tmp_path / "bad.jsonl").write_text('{"text": "good"}\n{"text": null}\n')
    with pytest.raises(ValueError, match="bad.jsonl, row 2, cannot be answered"):
        path = str(tmp_path / "bad.jsonl")
        kbs.predict_files(predictor, path, tmp_path / "bad", engine="ray", workers=1)
    # A thread that goes on would start Ray anew.
    assert not [t for t in threading.enumerate() if t.name.startswith("StreamingExecutor")]


def test_a_cluster_that_is_not_there(model, texts, tmp_path):
    with pytest.raises(ConnectionError, match="no Ray cluster at 127.0.0.1:1: .*ray start --head"):
        kbs.predict_files(
            kbs.BatchPredictor(model),
            texts,
            tmp_path / "out",
            engine="ray",
            ray_address="127.0.0.1:1",
        )
    assert not (tmp_path / "out").exists()
