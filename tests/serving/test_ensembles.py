"""The exports of an ensemble answer as its `predict`, whichever tokenizers its tasks have."""

import json

import numpy as np
import pytest
from heads.cases import CASES
from peer_weights import randomize
from serving.traced import call_signatures, trace
from small_tasks import BYTE_PAIRS, SENTENCE_PIECES, assert_close, make_task
from small_texts import ONE_LAYER, VOCABULARY, make_reviews

import keras_bert_suite as kbs
from keras_bert_suite.serving.portable_formats import _make_served_model
from keras_bert_suite.serving.task_description import describe_task

TEXTS, LABELS = make_reviews(6)
OTHERS = make_reviews(6, seed=1)[0]

TENSORFLOW = pytest.mark.backend("tensorflow")
LONG = pytest.mark.long("serving")


def make_tasks(name, kinds=("SegmentPacker",) * 2):
    return [randomize(make_task(name, kind)[0], seed) for seed, kind in enumerate(kinds)]


@TENSORFLOW
@pytest.mark.parametrize(
    "kinds",
    [
        pytest.param(("SegmentPacker",) * 2, marks=LONG, id="one tokenizer"),
        pytest.param(("SegmentPacker", BYTE_PAIRS, SENTENCE_PIECES), id="three tokenizers"),
    ],
)
def test_classes(kinds):
    ensemble = kbs.Ensemble(make_tasks("texts", kinds), [3, *[1] * (len(kinds) - 1)])
    ensemble.tune_thresholds(TEXTS, LABELS)
    served = call_signatures(ensemble)["serving_default"](text=TEXTS)
    wanted = ensemble.predict_probabilities(TEXTS, verbose=0)
    assert_close(served["probabilities"].numpy(), wanted)
    labels = [label.decode() for label in served["labels"].numpy()]
    assert labels == ensemble.predict_labels(TEXTS, verbose=0)


@LONG
@TENSORFLOW
@pytest.mark.parametrize("name", ["words", "chains", "spans"])
def test_entities(name):
    ensemble = kbs.Ensemble(make_tasks(name), [1, 2])
    served = trace(ensemble)(text=TEXTS)
    found = ensemble.predict(TEXTS, verbose=0)
    assert served["num_entities"].numpy().tolist() == [len(row) for row in found]
    for row, entities in enumerate(found):
        for key in ("starts", "ends", "scores"):
            wanted = [getattr(entity, key.removesuffix("s")) for entity in entities]
            got = served[key].numpy()[row, : len(wanted)]
            np.testing.assert_allclose(got, wanted, atol=2e-4)


@LONG
@TENSORFLOW
def test_questions_and_vectors():
    ensemble = kbs.Ensemble(make_tasks("questions"), [1, 2])
    served = trace(ensemble, 2)(question=TEXTS, context=OTHERS)
    found = ensemble.predict((TEXTS, OTHERS), verbose=0)
    assert [text.decode() for text in served["answers"].numpy()] == [a.text for a in found]
    assert_close(served["scores"].numpy(), np.array([a.score for a in found]))
    ensemble = kbs.Ensemble(make_tasks("vectors", ("SegmentPacker", BYTE_PAIRS)))
    assert_close(trace(ensemble)(text=TEXTS)["embedding"].numpy(), ensemble.predict(TEXTS))


@LONG
@TENSORFLOW
def test_relations_of_other_tokenizers_are_checked():
    """A task of a mixed ensemble refuses rows as it does alone."""
    import tensorflow as tf

    tasks = make_tasks("relations")
    packer = tasks[1].preprocessor
    tasks[1].preprocessor = kbs.SegmentPacker(packer.tokenizer, 14, padding_lengths=(14,))
    ensemble = kbs.Ensemble(tasks)
    assert not ensemble.cuts_alike
    rows = CASES["relations"].rows
    serve = trace(ensemble)
    wanted = ensemble.predict(rows, verbose=0)
    assert_close(serve(text=rows)["probabilities"].numpy(), np.exp(wanted))
    with pytest.raises(tf.errors.InvalidArgumentError, match="Each row must have the markers"):
        serve(text=["<e1>a</e1> film"])


@LONG
@TENSORFLOW
def test_columns_beside_the_texts():
    """Each task reads a column as it learned it."""
    tasks = []
    for seed in range(2):
        packer = kbs.SegmentPacker(kbs.WordPieceTokenizer(VOCABULARY), 16)
        column = {"kind": "number", "mean": seed * 3.0, "std": 1.0 + seed}
        task = kbs.TextClassifier(
            kbs.BertBackbone(**ONE_LAYER), 2, preprocessor=packer, features={"stars": column}
        )
        task.input_names = ("text",)
        tasks.append(randomize(task, seed))
    ensemble = kbs.Ensemble(tasks)
    stars = np.arange(6, dtype="float32")
    wanted = ensemble.predict_probabilities({"text": TEXTS, "stars": stars}, verbose=0)
    assert_close(wanted, np.mean([
        task.predict_probabilities({"text": TEXTS, "stars": stars}, verbose=0) for task in tasks
    ], axis=0))  # fmt: skip
    import tensorflow as tf

    from keras_bert_suite.heads.base.served import serve

    served = serve(ensemble).answer_texts((tf.constant(TEXTS), tf.constant(stars)))
    assert_close(served["probabilities"].numpy(), wanted)


@LONG
@TENSORFLOW
def test_one_saved_model(tmp_path):
    tf = pytest.importorskip("tensorflow")
    tasks = make_tasks("texts", ("SegmentPacker", BYTE_PAIRS))
    ensemble = kbs.Ensemble(tasks, [3, 1])
    wanted = ensemble.predict_probabilities(TEXTS, verbose=0)
    path = kbs.export_saved_model(ensemble, tmp_path / "model")
    for task in tasks:
        task.set_weights([0 * weight for weight in task.get_weights()])  # The file has its own.
    signatures = tf.saved_model.load(str(path)).signatures
    assert {*signatures} == {"serving_default", "serve_examples"}
    assert_close(
        signatures["serving_default"](text=tf.constant(TEXTS))["probabilities"].numpy(), wanted
    )
    said = json.loads((path / "assets.extra" / "task.json").read_text())
    assert (said["task"], said["labels"]) == ("TextClassifier", ["no", "yes"])
    assert said["ensemble"] == {
        "weights": [0.75, 0.25],
        "average": "probabilities",
        "thresholds": None,
    }


@LONG
@TENSORFLOW
def test_half_precision_of_all_tasks(tmp_path):
    tf = pytest.importorskip("tensorflow")
    ensemble = kbs.Ensemble(make_tasks("texts"))
    path = kbs.export_saved_model(ensemble, tmp_path / "model", precision="float16")
    model = tf.saved_model.load(str(path))
    serve = model.signatures["serving_default"]
    got = serve(text=tf.constant(TEXTS))["probabilities"].numpy()
    np.testing.assert_allclose(got, ensemble.predict_probabilities(TEXTS, verbose=0), atol=5e-3)
    matrices = {weight.dtype for weight in model.weights if len(weight.shape) == 2}
    assert matrices == {tf.float16}


@LONG
@TENSORFLOW
def test_a_runtime_opens_it(tmp_path):
    pytest.importorskip("tf2onnx")
    pytest.importorskip("onnxruntime")
    ensemble = kbs.Ensemble(make_tasks("chains"), [1, 3])
    kbs.export_onnx(ensemble, tmp_path / "model")
    runtime = kbs.open_runtime(tmp_path / "model")
    wanted = ensemble.predict(TEXTS, verbose=0)
    for found, entities in zip(runtime.predict(TEXTS), wanted, strict=True):
        assert [(e.label, e.start, e.end) for e in found] == [
            (e.label, e.start, e.end) for e in entities
        ]


@TENSORFLOW
def test_the_model_of_other_runtimes():
    tasks = make_tasks("texts")
    ensemble = kbs.Ensemble(tasks)
    model = _make_served_model(ensemble)
    packed = tasks[0].preprocessor(TEXTS)
    wanted = ensemble.predict_probabilities(TEXTS, verbose=0)
    assert_close(model.predict(packed, verbose=0)["probabilities"], wanted)
    description = describe_task(ensemble)
    assert description["head"] == "TextClassifier" and description["sequence_length"] == 16


def test_formats_that_take_ids(tmp_path):
    mixed = kbs.Ensemble(make_tasks("texts", ("SegmentPacker", BYTE_PAIRS)))
    with pytest.raises(ValueError, match="other tokenizers or lengths.*Export a SavedModel"):
        kbs.export_onnx(mixed, tmp_path / "onnx")
    half = kbs.Ensemble([make_task("texts")[0], make_task("texts", dtype="bfloat16")[0]])
    with pytest.raises(ValueError, match="computes in bfloat16.*float32 only"):
        kbs.export_openvino(half, tmp_path / "openvino")
    tasks = make_tasks("texts")
    tasks[1].quantize("int8")
    with pytest.raises(ValueError, match="was quantized, which LiteRT cannot compute"):
        kbs.export_litert(kbs.Ensemble(tasks), tmp_path / "litert")
    with pytest.raises(ValueError, match="precision must be None for a task that was quantized"):
        kbs.export_saved_model(kbs.Ensemble(tasks), tmp_path / "1", precision="float16")


@LONG
def test_an_ensemble_of_another_backend(tmp_path):
    """Under PyTorch and JAX its tasks go into the process of TensorFlow one by one."""
    tf = pytest.importorskip("tensorflow")
    tasks = make_tasks("chains")
    ensemble = kbs.Ensemble(tasks, [3, 1])
    path = kbs.export_saved_model(ensemble, tmp_path / "model")
    served = tf.saved_model.load(str(path)).signatures["serving_default"](text=tf.constant(TEXTS))
    found = ensemble.predict(TEXTS, verbose=0)
    assert served["num_entities"].numpy().tolist() == [len(row) for row in found]
    scores = [score for row in found for score in [entity.score for entity in row]]
    got = served["scores"].numpy()
    np.testing.assert_allclose(got[got > 0], scores, atol=2e-4)
