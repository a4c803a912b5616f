"""The clients of examples/serving, before servers that speak TensorFlow Serving's protocols."""

import json
import runpy
import sys
import threading
from concurrent import futures
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

tf = pytest.importorskip("tensorflow")
grpc = pytest.importorskip("grpc")
pytest.importorskip("tensorflow_serving")

pytestmark = pytest.mark.backend("tensorflow")

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "serving"
TEXTS = ["A gripping, funny film.", "Ein schöner Film 好"]


def answer(texts):
    """(labels, probabilities): what the servers of this test say, each text another thing."""
    labels = ["yes" if "gripping" in text else "no" for text in texts]
    return labels, [[0.25, 0.75] if label == "yes" else [0.875, 0.125] for label in labels]


@pytest.fixture
def grpc_server():
    from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc

    class Service(prediction_service_pb2_grpc.PredictionServiceServicer):
        def Predict(self, request, context):
            spec = request.model_spec
            assert (spec.name, spec.signature_name) == ("sentiment", "serving_default")
            (name,) = request.inputs
            texts = [text.decode() for text in tf.make_ndarray(request.inputs[name])]
            assert name == "text"
            response = predict_pb2.PredictResponse()
            for name, value in zip(("labels", "probabilities"), answer(texts), strict=True):
                response.outputs[name].CopyFrom(tf.make_tensor_proto(value))
            return response

    server = grpc.server(futures.ThreadPoolExecutor(1))
    prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(Service(), server)
    port = server.add_insecure_port("localhost:0")
    server.start()
    yield f"localhost:{port}"
    server.stop(None)


@pytest.fixture
def rest_server():
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            assert self.path == "/v1/models/sentiment:predict" and list(body) == ["inputs"]
            labels, probabilities = answer(body["inputs"]["text"])
            self.send_response(200)
            self.end_headers()
            outputs = {"labels": labels, "probabilities": probabilities}
            self.wfile.write(json.dumps({"outputs": outputs}).encode())

        def log_message(self, *args):
            pass

    server = HTTPServer(("localhost", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"localhost:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("protocol", ["grpc", "rest"])
def test_client(protocol, request, monkeypatch, capsys):
    server = request.getfixturevalue(f"{protocol}_server")
    script = str(FOLDER / f"ask_{protocol}.py")
    monkeypatch.setattr(sys, "argv", [script, "--server", server, *TEXTS])
    runpy.run_path(script, run_name="__main__")
    assert capsys.readouterr().out.splitlines() == [
        f"yes 0.750  {TEXTS[0]}",
        f"no 0.875  {TEXTS[1]}",
    ]
