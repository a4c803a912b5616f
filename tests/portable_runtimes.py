"""Exported models in the runtimes they are made for."""

import pytest

from keras_bert_suite import export_litert, export_onnx, export_openvino


def run_onnx(folder, inputs):
    """dict of the outputs of `model.onnx` in a folder for a dict of arrays."""
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(folder / "model.onnx")
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs), strict=True))


def run_openvino(folder, inputs):
    """As `run_onnx`, in float32 also on a CPU with bfloat16."""
    openvino = pytest.importorskip("openvino")
    precision = {"INFERENCE_PRECISION_HINT": "f32"}
    answers = openvino.compile_model(folder / "model.xml", "CPU", precision)(inputs)
    return {output.get_any_name(): array for output, array in answers.items()}


def run_litert(folder, inputs):
    """As `run_onnx`; rows are of the packer's `sequence_length`."""
    litert = pytest.importorskip("ai_edge_litert.interpreter")
    return litert.Interpreter(str(folder / "model.tflite")).get_signature_runner()(**inputs)


#: (function that exports a task, function that runs the export).
PORTABLE = {
    "ONNX": (export_onnx, run_onnx),
    "OpenVINO": (export_openvino, run_openvino),
    "LiteRT": (export_litert, run_litert),
}
