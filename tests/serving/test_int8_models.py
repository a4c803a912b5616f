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


@pytest.fixture(scope="module")
def calibrated_folder(classifier, tmp_path_factory):
    """An ONNX export in 8-bit integers, with scales of `CALIBRATION`. Not to be written to."""
    folder = tmp_path_factory.mktemp("onnx") / "int8"
    kbs.export_onnx(classifier, folder, "int8", CALIBRATION)
    return folder


@pytest.mark.long("serving")
def test_the_files_of_openvino(openvino_folder, probabilities, packed):
    one = {name: array[:1] for name, array in packed.items()}
    for inputs in (packed, one):
        got = run_openvino(openvino_folder, inputs)["probabilities"]
        np.testing.assert_allclose(got, probabilities[: len(got)], atol=1e-5)
    names = {path.name for path in openvino_folder.iterdir()}
    companions = {"vocab.txt", "tokenizer_config.json", "packing.json", "task.json"}
    companions |= {"label_names.txt"}
    assert names == {"model.xml", "model.bin", *companions}


@pytest.mark.long("serving")
@pytest.mark.parametrize("calibrated", [True, False], ids=["calibrated", "scales of each batch"])
def test_int8_onnx(classifier, probabilities, packed, tmp_path, calibrated, request):
    onnx = pytest.importorskip("onnx")
    if calibrated:
        folder = request.getfixturevalue("calibrated_folder")
    else:
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


@pytest.mark.long("serving")
def test_calibrated_answers_do_not_depend_on_the_batch(calibrated_folder, packed):
    together = run_onnx(calibrated_folder, packed)["probabilities"]
    for row in range(5):
        alone = {name: array[row : row + 1] for name, array in packed.items()}
        got = run_onnx(calibrated_folder, alone)["probabilities"]
        np.testing.assert_allclose(got, together[row : row + 1], atol=1e-6)


def test_calibration_is_read_as_predict_reads_texts(classifier):
    batches = read_calibration(classifier, CALIBRATION[:3])
    wanted = [classifier.preprocessor([text]) for text in CALIBRATION[:3]]
    for got, batch in zip(batches, wanted, strict=True):
        assert {name: array.tolist() for name, array in got.items()} == {
            name: array.tolist() for name, array in batch.items()
        }
    assert len(read_calibration(classifier, CALIBRATION * 10)) == MOST_CALIBRATION_ROWS
    assert read_calibration(classifier, None) is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"precision": "int4"}, "precision must be one of float32, int8, got 'int4'"),
        ({"calibration_texts": TEXTS}, "calibration_texts are for precision='int8'"),
        ({"precision": "int8", "calibration_texts": []}, "calibration_texts has no rows"),
    ],
)
@pytest.mark.parametrize("export", [kbs.export_onnx, kbs.export_openvino])
def test_bad_arguments(classifier, tmp_path, export, arguments, message):
    pytest.importorskip("tf2onnx")
    pytest.importorskip("openvino")
    with pytest.raises(ValueError, match=message):
        export(classifier, tmp_path / "reviews", **arguments)
    assert list(tmp_path.iterdir()) == []


def test_openvino_needs_texts_for_int8(classifier, tmp_path):
    with pytest.raises(ValueError, match="needs calibration_texts"):
        kbs.export_openvino(classifier, tmp_path / "reviews", "int8")


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
    kbs.export_onnx(tagger, tmp_path / "tags", "int8", CALIBRATION)
    answer = run_onnx(tmp_path / "tags", packer.pack(TEXTS))["probabilities"]
    assert answer.shape[::2] == (20, 2) and np.allclose(answer.sum(-1), 1, atol=1e-5)
