"""Exports in float16, beside the same task in float32."""

import numpy as np
import pytest
from keras import ops
from peer_weights import randomize
from portable_runtimes import run_onnx
from small_tasks import make_task, predicted_columns
from small_texts import make_reviews

import keras_bert_suite as kbs
from keras_bert_suite.runs.batches import read

tf = pytest.importorskip("tensorflow")

TEXTS, _ = make_reviews(20)

pytestmark = [pytest.mark.backend("tensorflow"), pytest.mark.long("serving")]


@pytest.fixture(scope="module")
def probabilities(classifier):
    return ops.convert_to_numpy(ops.softmax(classifier.predict(TEXTS, verbose=0)))


def check_answers(answers, probabilities):
    assert answers.dtype == "float32"
    apart = np.abs(answers - probabilities).max()
    assert 1e-6 < apart < 3e-3


def test_saved_model(classifier, probabilities, tmp_path):
    pytest.importorskip("tensorflow_text")
    version = kbs.export_saved_model(classifier, tmp_path / "1", precision="float16")
    reader = tf.train.load_checkpoint(str(version / "variables" / "variables"))
    dtypes = reader.get_variable_to_dtype_map().items()
    assert {dtype.name for name, dtype in dtypes if name.startswith("weights/")} == {"float16"}
    answer = tf.saved_model.load(str(version)).signatures["serving_default"](text=TEXTS)
    check_answers(answer["probabilities"].numpy(), probabilities)


@pytest.mark.parametrize("task", ["texts", "masks", "words"])
def test_onnx(task, tmp_path):
    """With hidden states whose squares float16 does not hold, and a table with two uses."""
    onnx = pytest.importorskip("onnx")
    model, (x, *_) = make_task(task, "SegmentPacker", hidden_dim=32)
    randomize(model)
    # Not those of the tokens: the logits of a masked LM are products with them.
    (table,) = (w for w in model.backbone.weights if "position_embedding" in w.path)
    table.assign(table * (1000 / np.abs(table.numpy()).max()))
    for precision in ("float32", "float16"):
        kbs.export_onnx(model, tmp_path / precision, precision)
    packed = model.data.pack(model.data.window(read(model, predicted_columns(model, x))))[0]
    packed = {name: np.asarray(array, "int32") for name, array in packed.items()}
    wanted, found = (run_onnx(tmp_path / p, packed) for p in ("float32", "float16"))
    assert found.keys() == wanted.keys()
    for name, answers in found.items():
        check_answers(answers, wanted[name])
    sizes = [(tmp_path / p / "model.onnx").stat().st_size for p in ("float16", "float32")]
    assert sizes[0] < 0.75 * sizes[1]
    graph = onnx.load(tmp_path / "float16" / "model.onnx").graph
    matrices = [t.data_type for t in graph.initializer if len(t.dims) == 2]
    assert {*matrices} == {onnx.TensorProto.FLOAT16}


def test_a_runtime(classifier, probabilities, tmp_path):
    pytest.importorskip("onnxruntime")
    kbs.export_onnx(classifier, tmp_path / "half", "float16")
    runtime = kbs.open_runtime(tmp_path / "half")
    check_answers(runtime.predict(TEXTS), probabilities)
