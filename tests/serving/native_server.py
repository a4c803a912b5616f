"""Runs signatures of a SavedModel in a process of C, without Python: run_saved_model.c."""

import importlib.util
import shutil
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2
from tensorflow_serving.apis import prediction_log_pb2


class NativeServer:
    """The compiled program."""

    def __init__(self, program):
        self.program = program

    @classmethod
    def compile(cls, directory):
        """Compiles it into a directory against the TensorFlow that is installed."""
        compiler = shutil.which("cc")
        if compiler is None:
            pytest.skip("no C compiler")
        libraries = Path(tf.sysconfig.get_lib())
        program = Path(directory) / "run_saved_model"
        subprocess.run(
            [
                *(compiler, "-std=c11", "-Wall", "-Wextra", "-Werror", "-o", program),
                *(Path(__file__).with_name("run_saved_model.c"), f"-I{tf.sysconfig.get_include()}"),
                *sorted(libraries.glob("libtensorflow_*.so.2")),
                f"-Wl,-rpath,{libraries}",
            ],
            check=True,
        )
        return cls(program)

    def ask(self, saved_model, questions):
        """Runs signatures, one after the other, in a fresh process.

        Args:
            saved_model: `pathlib.Path`.
            questions: list of (signature name, dict of input name -> array or list of str).

        Returns:
            list of dicts, output name -> array; strings as bytes.

        Raises:
            tf.errors.OpError: if a signature refuses its inputs.
        """
        answers = self.try_to_ask(saved_model, questions)
        for answer in answers:
            if isinstance(answer, Exception):
                raise answer
        return answers

    def answer_warmup(self, saved_model):
        """Answers the warm-up requests, and checks that each row has an answer.

        Returns:
            list of (signature name, inputs, answer).
        """
        requests = [(name, inputs) for _, name, inputs in read_warmup_requests(saved_model)]
        answered = []
        for (name, inputs), answer in zip(requests, self.ask(saved_model, requests), strict=True):
            rows = len(next(iter(inputs.values())))
            assert answer and all(len(value) == rows for value in answer.values())
            answered.append((name, inputs, answer))
        return answered

    def try_to_ask(self, saved_model, questions):
        """As `ask`, but where a signature refuses its inputs, the error is the answer."""
        signatures = read_signatures(saved_model)
        requests = [_encode_request(signatures[name], inputs) for name, inputs in questions]
        package = importlib.util.find_spec("tensorflow_text").submodule_search_locations[0]
        op_libraries = sorted(Path(package, "python", "ops").glob("_*.so"))
        process = subprocess.run(
            [self.program, saved_model, *op_libraries],
            input=b"".join(requests),
            capture_output=True,
            env={"TF_CPP_MIN_LOG_LEVEL": "2"},
        )
        assert process.returncode == 0, process.stderr.decode()
        answer = memoryview(process.stdout)
        answers = []
        for name, _ in questions:
            (code,), answer = struct.unpack_from("=I", answer), answer[4:]
            if code:
                message, answer = _decode_string(answer)
                answers.append(tf.errors.OpError(None, None, message.decode(), code))
                continue
            answers.append({})
            for output in sorted(signatures[name].outputs):
                answers[-1][output], answer = _decode_tensor(answer)
        assert not answer
        return answers


def read_signatures(saved_model):
    """dict, name -> SignatureDef, of the file alone."""
    message = saved_model_pb2.SavedModel()
    message.ParseFromString((saved_model / "saved_model.pb").read_bytes())
    (graph,) = message.meta_graphs
    return {name: signature for name, signature in graph.signature_def.items() if signature.outputs}


def read_warmup_requests(saved_model):
    """What a server asks itself before others do.

    Returns:
        list of (name of the model, name of the signature, dict of input name -> array).
    """
    file = saved_model / "assets.extra" / "tf_serving_warmup_requests"
    requests = []
    for record in tf.data.TFRecordDataset(str(file)).as_numpy_iterator():
        request = prediction_log_pb2.PredictionLog.FromString(record).predict_log.request
        inputs = {name: tf.make_ndarray(value) for name, value in request.inputs.items()}
        requests.append((request.model_spec.name, request.model_spec.signature_name, inputs))
    return requests


def _encode_request(signature, inputs):
    assert set(inputs) == set(signature.inputs)
    request = struct.pack("=I", len(inputs))
    for name, value in inputs.items():
        request += _encode_string(signature.inputs[name].name)
        request += _encode_tensor(value, signature.inputs[name].dtype)
    request += struct.pack("=I", len(signature.outputs))
    for name in sorted(signature.outputs):
        request += _encode_string(signature.outputs[name].name)
    return request


def _encode_string(text):
    text = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    return struct.pack("=I", len(text)) + text


def _encode_tensor(value, dtype):
    array = np.array(value, object if dtype == tf.string else None)
    # A server compares the types, and converts nothing.
    assert tf.as_dtype(array.dtype) == dtype, (array.dtype, dtype)
    head = struct.pack(f"=II{array.ndim}q", dtype, array.ndim, *array.shape)
    if dtype == tf.string:
        return head + b"".join(map(_encode_string, array.flat))
    return head + array.tobytes()


def _decode_tensor(answer):
    """(array, the rest)."""
    dtype, rank = struct.unpack_from("=II", answer)
    shape = struct.unpack_from(f"={rank}q", answer, 8)
    answer = answer[8 + 8 * rank :]
    count = int(np.prod(shape))
    if dtype != tf.string:
        dtype = np.dtype(tf.as_dtype(dtype).as_numpy_dtype)
        size = count * dtype.itemsize
        return np.frombuffer(answer[:size], dtype).reshape(shape), answer[size:]
    strings = np.empty(count, object)
    for i in range(count):
        strings[i], answer = _decode_string(answer)
    return strings.reshape(shape), answer


def _decode_string(answer):
    """(bytes, the rest)."""
    (length,) = struct.unpack_from("=I", answer)
    return bytes(answer[4 : 4 + length]), answer[4 + length :]
