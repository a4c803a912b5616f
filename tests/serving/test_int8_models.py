"""Products of matrices in 8-bit integers, in ONNX Runtime and OpenVINO."""

import json

import numpy as np
import pytest
from keras import ops
from portable_runtimes import run_onnx, run_openvino
from small_texts import make_reviews

import keras_bert_suite as kbs
from keras_bert_suite.serving.int8_models import MOST_CALIBRATION_ROWS, read_calibration

pytest.importorskip("tensorflow")

TEXTS, _ = make_reviews(20)
CALIBRATION = make_reviews(40, seed=3)[0]

pytestmark = pytest.mark.backend("tensorflow")


@pytest.fixture(scope="module")
def probabilities(classifier):
    return ops.convert_to_numpy(ops.softmax(classifier.predict(TEXTS, verbose=0)))


@pytest.fixture(scope="module")
def packed(classifier):
    return classifier.preprocessor(TEXTS)


@pytest.fixture(scope="module")
def openvino_folder(classifier, tmp_path_factory):
    """An export in float32. Not to be written to."""
    pytest.importorskip("openvino")
    folder = tmp_path_factory.mktemp("openvino") / "float32"
    kbs.export_openvino(classifier, folder)
    return folder


@pytest.mark.long("serving")
def test_the_files_of_openvino(openvino_folder, probabilities, packed):
    one = {name: array[:1] for name, array in packed.items()}
    for inputs in (packed, one):
        got = run_openvino(openvino_folder, inputs)["probabilities"]
        np.testing.assert_allclose(got, probabilities[: len(got)], atol=1e-5)
    names = {path.name for path in openvino_folder.iterdir()}
    companions = {"vocab.txt", "tokenizer_config.json", "packing.json", "task.json"}
    companions |= {"label_names.txt", "model_card.md"}
    assert names == {"model.xml", "model.bin", *companions}


@pytest.mark.long("serving")
def test_int8_onnx(classifier, probabilities, packed, tmp_path):
    onnx = pytest.importorskip("onnx")
    folder = tmp_path / "reviews"
    kbs.export_onnx(classifier, folder, "int8")
    assert sorted(path.name for path in folder.glob("*.onnx")) == ["model.onnx"]
    answer = run_onnx(folder, packed)["probabilities"]
    np.testing.assert_allclose(answer, probabilities, atol=0.05)
    assert np.abs(answer - probabilities).max() > 1e-6, "it computed in float32"

    model = onnx.load(folder / "model.onnx")
    integers = [
        tensor.dims
        for tensor in model.graph.initializer
        if tensor.data_type == onnx.TensorProto.INT8
    ]
    matrices = [variable for variable in classifier.weights if variable.path.endswith("/kernel")]
    assert sum(len(dims) == 2 for dims in integers) == len(matrices)


@pytest.mark.long("serving")
def test_int8_openvino(classifier, openvino_folder, probabilities, packed, tmp_path):
    pytest.importorskip("nncf")
    kbs.export_openvino(classifier, tmp_path / "int8", "int8", CALIBRATION)
    answer = run_openvino(tmp_path / "int8", packed)["probabilities"]
    np.testing.assert_allclose(answer, probabilities, atol=0.05)
    assert np.abs(answer - probabilities).max() > 1e-6, "it computed in float32"
    folders = (tmp_path / "int8", openvino_folder)
    sizes = [(folder / "model.bin").stat().st_size for folder in folders]
    assert sizes[0] < 0.6 * sizes[1]
    names = [{path.name for path in folder.iterdir()} for folder in folders]
    assert names[0] == names[1]


def test_calibration_is_read_as_predict_reads_texts(classifier):
    batches = read_calibration(classifier, CALIBRATION[:3])
    wanted = [classifier.preprocessor([text]) for text in CALIBRATION[:3]]
    for got, batch in zip(batches, wanted, strict=True):
        assert {name: array.tolist() for name, array in got.items()} == {
            name: array.tolist() for name, array in batch.items()
        }
    assert len(read_calibration(classifier, CALIBRATION * 10)) == MOST_CALIBRATION_ROWS


@pytest.mark.parametrize(
    ("export", "arguments", "message"),
    [
        (kbs.export_onnx, {"precision": "int4"}, "one of float32, float16, int8, got 'int4'"),
        (kbs.export_openvino, {"precision": "int4"}, "must be one of float32, int8, got 'int4'"),
        (kbs.export_openvino, {"calibration_texts": TEXTS}, "are for precision='int8'"),
        (kbs.export_openvino, {"precision": "int8"}, "needs calibration_texts"),
        (
            kbs.export_openvino,
            {"precision": "int8", "calibration_texts": []},
            "calibration_texts has no rows",
        ),
    ],
)
def test_bad_arguments(classifier, tmp_path, export, arguments, message):
    pytest.importorskip("tf2onnx")
    pytest.importorskip("openvino")
    pytest.importorskip("nncf")
    with pytest.raises(ValueError, match=message):
        export(classifier, tmp_path / "reviews", **arguments)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long("serving")
def test_pairs_and_words(classifier, tmp_path):
    """Calibration takes the rows of other tasks: pairs of texts, and texts for a tagger."""
    pytest.importorskip("nncf")
    packer = classifier.preprocessor
    pairs = kbs.TextClassifier(
        classifier.backbone, num_classes=2, preprocessor=packer, input_names=("a", "b")
    )
    kbs.export_openvino(pairs, tmp_path / "pairs", "int8", (CALIBRATION, CALIBRATION[::-1]))
    inputs = packer.pack(TEXTS, TEXTS[::-1])
    wanted = ops.convert_to_numpy(ops.softmax(pairs.predict((TEXTS, TEXTS[::-1]), verbose=0)))
    got = run_openvino(tmp_path / "pairs", inputs)["probabilities"]
    np.testing.assert_allclose(got, wanted, atol=0.05)
    packing = json.loads((tmp_path / "pairs" / "packing.json").read_text())
    assert packing["input_names"] == ["a", "b"]

    tagger = kbs.TokenClassifier(
        classifier.backbone, label_names=["O", "B-PER"], preprocessor=packer
    )
    kbs.export_openvino(tagger, tmp_path / "tags", "int8", CALIBRATION)
    answer = run_openvino(tmp_path / "tags", packer.pack(TEXTS))["probabilities"]
    assert answer.shape[::2] == (20, 2) and np.allclose(answer.sum(-1), 1, atol=1e-5)
