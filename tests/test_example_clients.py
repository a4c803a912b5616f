"""The example clients say what is wrong with a server."""

import copy
import http.server
import importlib
import socket
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from small_texts import ONE_LAYER, VOCABULARY

import keras_bert_suite as kbs
from keras_bert_suite.serving.runtime import TaskRuntime

EXAMPLES = Path(__file__).resolve().parents[1] / "examples" / "serving"


def ask(client, server):
    command = [sys.executable, EXAMPLES / client, "a film", "--server", server]
    return subprocess.run(command, capture_output=True, text=True, timeout=200)


@pytest.fixture
def free_port():
    with socket.socket() as listener:
        listener.bind(("localhost", 0))
        return listener.getsockname()[1]


@pytest.mark.parametrize(
    "client", ["ask_rest.py", pytest.param("ask_grpc.py", marks=pytest.mark.long("serving"))]
)
def test_no_server(client, free_port):
    if client == "ask_grpc.py":
        pytest.importorskip("tensorflow_serving")
    run = ask(client, f"localhost:{free_port}")
    assert run.returncode == 1 and "Traceback" not in run.stderr
    assert f"No server answers at localhost:{free_port}" in run.stderr


class Refusal(http.server.BaseHTTPRequestHandler):
    def do_POST(self):  # noqa: N802, its name in the base class
        self.send_error(404, "no model sentiment")

    def log_message(self, *args):
        pass


def test_a_server_that_refuses():
    with http.server.HTTPServer(("localhost", 0), Refusal) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        run = ask("ask_rest.py", f"localhost:{server.server_port}")
        server.shutdown()
    assert run.returncode == 1 and "refuses the request" in run.stderr
    assert "no model sentiment" in run.stderr


@pytest.fixture
def start_service(monkeypatch):
    """function(classifier, run): a client of the service, for a runtime that computes by `run`."""
    testing = pytest.importorskip("fastapi.testclient")
    monkeypatch.syspath_prepend(EXAMPLES)

    def start(classifier, run):
        answers = copy.copy(classifier.answers)
        answers.are_logits = False
        said = {"task": "TextClassifier", "labels": classifier.label_names}
        shapes = [(len(classifier.label_names),)]
        runtime = TaskRuntime(said, classifier.data, answers, run, shapes)
        monkeypatch.setattr(kbs, "open_runtime", lambda path: runtime)
        monkeypatch.delitem(sys.modules, "api", raising=False)
        return testing.TestClient(importlib.import_module("api").app)

    return start


def make_classifier(**arguments):
    packer = kbs.SegmentPacker(kbs.WordPieceTokenizer(VOCABULARY), 16)
    backbone = kbs.BertBackbone(**ONE_LAYER)
    names = ["no", "yes"]
    return kbs.TextClassifier(backbone, label_names=names, preprocessor=packer, **arguments)


def read_length(inputs):
    """Probabilities of a model that finds longer texts more probably to be "yes"."""
    yes = inputs["padding_mask"].sum(axis=1) / 8
    return [np.stack([1 - yes, yes], axis=1).astype("float32")]


def test_the_service_of_fastapi(start_service):
    client = start_service(make_classifier(), read_length)
    assert client.get("/health").json() == {"status": "ok", "task": "TextClassifier"}
    answers = client.post("/classify", json={"texts": ["good film plot", ""]}).json()
    assert answers == [
        {"label": "yes", "probabilities": {"no": 0.375, "yes": 0.625}},
        {"label": "no", "probabilities": {"no": 0.75, "yes": 0.25}},
    ]
    assert client.post("/classify", json={"texts": []}).json() == []
    assert client.post("/classify", json={"texts": ["good"] * 65}).status_code == 422


@pytest.mark.parametrize(
    ("arguments", "labels"),
    [
        ({"thresholds": [0.8, 0.2]}, ["yes", "yes"]),
        (
            {"thresholds": [0.3, 0.7], "problem_type": "multi_label_classification"},
            [["no"], ["no"]],
        ),
    ],
    ids=["classes", "sets"],
)
def test_the_service_answers_by_the_thresholds(start_service, arguments, labels):
    client = start_service(make_classifier(**arguments), read_length)
    answers = client.post("/classify", json={"texts": ["good film plot", ""]}).json()
    assert [answer["label"] for answer in answers] == labels


def test_the_service_takes_columns(start_service):
    classifier = make_classifier(features={"price": "number", "shop": ["north", "south"]})
    classifier.learn_features({"text": ["a", "b"], "price": [1, 3], "shop": ["north", None]})

    def read_price(inputs):
        yes = 1.0 * (inputs["features"][:, 0] > 0)
        return [np.stack([1 - yes, yes], axis=1).astype("float32")]

    client = start_service(classifier, read_price)
    columns = {"price": [9, -5.5], "shop": ["north", None]}
    answers = client.post("/classify", json={"texts": ["good", "good"], "columns": columns}).json()
    assert [answer["label"] for answer in answers] == ["yes", "no"]
    refusal = client.post("/classify", json={"texts": ["good"]})
    assert refusal.status_code == 422 and "reads the columns price, shop" in refusal.text
    other = {
        "texts": ["good"],
        "columns": {"text": ["x" * 30_000], "price": [9], "shop": ["north"]},
    }
    refusal = client.post("/classify", json=other)
    assert refusal.status_code == 422 and "text is the column of the texts" in refusal.text
