"""The example clients say what is wrong with a server."""

import http.server
import importlib
import socket
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import keras_bert_suite as kbs

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


def test_the_service_of_fastapi(monkeypatch):
    testing = pytest.importorskip("fastapi.testclient")
    monkeypatch.syspath_prepend(EXAMPLES)
    rows = {"good": [0.25, 0.75], "bad": [1.0, 0.0]}
    model = SimpleNamespace(
        description={"task": "TextClassifier"},
        label_names=["no", "yes"],
        predict=lambda texts: np.array([rows[text] for text in texts]).reshape(-1, 2),
    )
    monkeypatch.setattr(kbs, "open_runtime", lambda path: model)
    client = testing.TestClient(importlib.import_module("api").app)
    assert client.get("/health").json() == {"status": "ok", "task": "TextClassifier"}
    answers = client.post("/classify", json={"texts": ["good", "bad"]}).json()
    assert answers == [
        {"label": "yes", "probabilities": {"no": 0.25, "yes": 0.75}},
        {"label": "no", "probabilities": {"no": 1.0, "yes": 0.0}},
    ]
    assert client.post("/classify", json={"texts": []}).json() == []
    assert client.post("/classify", json={"texts": ["good"] * 65}).status_code == 422
