"""ONNX and LiteRT, in their own runtimes."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from keras import ops
from portable_runtimes import run_litert
from small_embedder import make_embedder
from small_tasks import make_task
from small_texts import ONE_LAYER, make_reviews

import keras_bert_suite as kbs
from keras_bert_suite.serving.input_names import choose_input_names
from keras_bert_suite.serving.onnx_ops import register_floors
from keras_bert_suite.serving.portable_formats import write_companions

pytest.importorskip("tensorflow")

TEXTS, _ = make_reviews(20)


#: Tests without an export are marked for PyTorch, which builds models faster.
pytestmark = pytest.mark.backend("tensorflow")


@pytest.fixture(scope="module")
def probabilities(classifier):
    return ops.convert_to_numpy(ops.softmax(classifier.predict(TEXTS, verbose=0)))


def rebuild_packer(folder, **kwargs):
    """The packer, from what lies beside the model alone."""
    config = json.loads((folder / "tokenizer_config.json").read_text())
    tokenizer = kbs.WordPieceTokenizer(
        folder / "vocab.txt",
        lowercase=config["do_lower_case"],
        strip_accents=config["strip_accents"],
    )
    packing = json.loads((folder / "packing.json").read_text())
    assert packing.pop("input_names") is None, "the task was never trained"
    return kbs.SegmentPacker(tokenizer, **packing, **kwargs)


@pytest.mark.parametrize("batch_size", [20, 1])
def test_onnx(classifier, probabilities, tmp_path_factory, batch_size, onnx_folder):
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(onnx_folder / "model.onnx")
    inputs = rebuild_packer(onnx_folder)(TEXTS[:batch_size])
    assert {node.name for node in session.get_inputs()} == set(inputs)
    (answer,) = session.run(["probabilities"], inputs)
    np.testing.assert_allclose(answer, probabilities[:batch_size], atol=1e-5)
    names = (onnx_folder / "label_names.txt").read_text().splitlines()
    assert names == classifier.label_names


@pytest.mark.long("serving")
def test_the_same_model_is_the_same_bytes(classifier, onnx_folder, tmp_path):
    """The layers of the second task have other names."""
    packer, names = classifier.preprocessor, classifier.label_names
    again = kbs.TextClassifier(
        kbs.BertBackbone(**ONE_LAYER), label_names=names, preprocessor=packer, name="reviews_2"
    )
    again.set_weights(classifier.get_weights())
    kbs.export_onnx(again, tmp_path / "again")
    tagger = kbs.TokenClassifier(
        classifier.backbone, label_names=["O", "B-PER"], preprocessor=packer
    )
    for folder in ("tags", "tags_again"):
        kbs.export_onnx(tagger, tmp_path / folder)
    pairs = (onnx_folder, tmp_path / "again"), (tmp_path / "tags", tmp_path / "tags_again")
    for first, second in pairs:
        names = sorted(path.name for path in first.iterdir())
        assert names == sorted(path.name for path in second.iterdir())
        for name in names:
            assert (first / name).read_bytes() == (second / name).read_bytes(), name


@pytest.mark.backend("torch")
def test_the_tokenizer_beside_it_is_hugging_face_s_too(classifier, tmp_path):
    transformers = pytest.importorskip("transformers")
    write_companions(classifier, tmp_path)
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    ours = classifier.preprocessor(TEXTS[:1])
    assert theirs(TEXTS[0])["input_ids"] == ours["token_ids"][ours["padding_mask"] == 1].tolist()


@pytest.mark.long("serving")
def test_litert(classifier, probabilities, tmp_path):
    litert = pytest.importorskip("ai_edge_litert.interpreter")
    kbs.export_litert(classifier, tmp_path / "reviews")
    # This runtime has no ops of TensorFlow's own.
    interpreter = litert.Interpreter(str(tmp_path / "reviews" / "model.tflite"))
    length = classifier.preprocessor.sequence_length
    packer = rebuild_packer(tmp_path / "reviews", padding_lengths=(length,))
    for texts in (TEXTS, TEXTS[:1]):
        answer = interpreter.get_signature_runner()(**packer(texts))
        np.testing.assert_allclose(answer["probabilities"], probabilities[: len(texts)], atol=1e-5)


@pytest.mark.long("serving")
def test_a_row_of_padding_has_a_finite_vector(tmp_path):
    embedder = make_embedder()
    packed = embedder.preprocessor(["a good film"])
    inputs = {name: np.concatenate([array, 0 * array]) for name, array in packed.items()}
    wanted = embedder.predict(inputs, verbose=0)
    assert not wanted[1].any()
    kbs.export_litert(embedder, tmp_path / "embedder")
    (answer,) = run_litert(tmp_path / "embedder", inputs).values()
    np.testing.assert_allclose(answer, wanted, atol=1e-5)


@pytest.mark.backend("torch")
@pytest.mark.parametrize("export", [kbs.export_onnx, kbs.export_openvino, kbs.export_litert])
def test_what_cannot_be_exported_is_refused(classifier, tmp_path, export):
    half = kbs.TextClassifier(
        kbs.BertBackbone(**ONE_LAYER, dtype="mixed_bfloat16"),
        num_classes=2,
        preprocessor=classifier.preprocessor,
    )
    with pytest.raises(ValueError, match="computes in bfloat16.*dtype='float32'"):
        export(half, tmp_path / "half")
    bare = kbs.TextClassifier(classifier.backbone, num_classes=2)
    with pytest.raises(ValueError, match="no preprocessor"):
        export(bare, tmp_path / "bare")
    quantized = kbs.TextClassifier(
        kbs.BertBackbone(**ONE_LAYER), num_classes=2, preprocessor=classifier.preprocessor
    )
    quantized.quantize("int8")
    # Only ONNX in float32 has such a task.
    precisions = ["float16", "int8"] if export is kbs.export_onnx else ["float32"]
    for precision in precisions:
        arguments = {} if precision == "float32" else {"precision": precision}
        with pytest.raises(ValueError, match="was quantized.* as it was before `quantize`"):
            export(quantized, tmp_path / "quantized", **arguments)
    (tmp_path / "old").mkdir()
    with pytest.raises(FileExistsError):
        export(classifier, tmp_path / "old")
    assert [path.name for path in tmp_path.iterdir()] == ["old"]


@pytest.mark.backend("torch")
@pytest.mark.parametrize("inputs", [("text",), ("premise", "hypothesis", "label")])
def test_other_numbers_of_texts_than_in_training_are_refused(inputs):
    task = SimpleNamespace(name="task", input_names=("first", "second"))
    with pytest.raises(ValueError, match="trained with rows of 2 texts, first, second, and inputs"):
        choose_input_names(task, inputs)
    assert choose_input_names(task, ("premise", "hypothesis")) == ("premise", "hypothesis")


@pytest.mark.backend("torch")
def test_a_task_that_writes_needs_its_graph(tmp_path):
    writer, _ = make_task("targets", "SegmentPacker")
    with pytest.raises(ValueError, match="is a Seq2Seq, and other runtimes have no loop"):
        kbs.export_onnx(writer, tmp_path / "writer")


@pytest.mark.backend("torch")
def test_packing_says_how_texts_are_joined(classifier, tmp_path):
    packer = kbs.SegmentPacker(
        classifier.preprocessor.tokenizer,
        sequence_length=12,
        truncation="only_second",
        head_length=5,
        segment_ids=(1, 0),
    )
    task = kbs.TextClassifier(
        classifier.backbone,
        label_names=["no", "yes"],
        preprocessor=packer,
        input_names=("premise", "hypothesis"),
    )
    write_companions(task, tmp_path)
    assert json.loads((tmp_path / "packing.json").read_text()) == {
        "input_names": ["premise", "hypothesis"],
        "sequence_length": 12,
        "truncation": "only_second",
        "head_length": 5,
        "segment_ids": [1, 0],
    }
    assert (tmp_path / "label_names.txt").read_text().splitlines() == ["no", "yes"]


@pytest.mark.parametrize(
    "dtype", ["int32", pytest.param("float32", marks=pytest.mark.long("serving"))]
)
def test_quotients_are_rounded_down(dtype, tmp_path):
    tf, tf2onnx = pytest.importorskip("tensorflow"), pytest.importorskip("tf2onnx")
    runtime = pytest.importorskip("onnxruntime")
    register_floors()
    divide = tf.function(lambda x, y: (x // y, x % y))
    signature = [tf.TensorSpec([None], dtype)] * 2
    file = str(tmp_path / "model.onnx")
    tf2onnx.convert.from_function(divide, input_signature=signature, output_path=file)
    session = runtime.InferenceSession(file)
    values = np.array([-8, -5, -1, 0, 1, 5, 8], dtype), np.array([4, 4, 4, 4, 4, 4, -3], dtype)
    names = [node.name for node in session.get_inputs()]
    quotients, rests = session.run(None, dict(zip(names, values, strict=True)))
    assert quotients.tolist() == [-2, -2, -1, 0, 0, 1, -3]
    assert rests.tolist() == [0, 3, 3, 0, 1, 1, -1]


@pytest.mark.backend("torch")
def test_a_softmax_is_not_applied_twice(classifier):
    task = kbs.TextClassifier(
        classifier.backbone,
        num_classes=2,
        preprocessor=classifier.preprocessor,
        activation="softmax",
    )
    task.set_weights(classifier.get_weights())
    packed = classifier.preprocessor(TEXTS)
    answer = task.answers.serve(ops, task(packed), packed)["probabilities"]
    wanted = ops.softmax(classifier.predict(TEXTS, verbose=0))
    wanted, answer = map(ops.convert_to_numpy, (wanted, answer))
    np.testing.assert_allclose(answer, wanted, atol=1e-5)
