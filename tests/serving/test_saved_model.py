import os
import resource
import shutil
import subprocess
import sys

import numpy as np
import pytest
from keras import ops
from serving.traced import called_or_saved
from small_texts import make_reviews

from keras_bert_cli import ask_saved_model
from keras_bert_suite import Pretrainer, TextClassifier, export_saved_model
from keras_bert_suite.serving import version_path
from keras_bert_suite.serving.input_names import choose_input_names
from keras_bert_suite.serving.server_files import write_batching_parameters

tf = pytest.importorskip("tensorflow")
pytest.importorskip("tensorflow_text")

pytestmark = pytest.mark.backend("tensorflow")

TEXTS, _ = make_reviews(20)
HOSTILE = ["", "   ", "x" * 1_000_000, "good " * 1000, "\x00\ufffd", "GOOD Film\u0301!"]


@pytest.fixture(scope="module")
def served(saved_model):
    return tf.saved_model.load(str(saved_model)).signatures["serving_default"]


def probabilities(classifier, texts):
    return ops.convert_to_numpy(ops.softmax(classifier.predict(texts, verbose=0)))


@pytest.mark.parametrize("texts", [TEXTS, HOSTILE, TEXTS[:1]])
def test_equals_predict(classifier, served, texts):
    check_answers(classifier, served, texts)


@pytest.mark.long("serving")
@pytest.mark.backend("torch")
def test_another_backend_writes_it_in_a_process_of_tensorflow(classifier, served):
    check_answers(classifier, served, TEXTS)


def check_answers(classifier, served, texts):
    answer = served(text=tf.constant(texts))
    wanted = probabilities(classifier, texts)
    np.testing.assert_allclose(answer["probabilities"], wanted, atol=1e-5)
    np.testing.assert_array_equal(answer["label_ids"], wanted.argmax(-1))
    names = [classifier.label_names[i] for i in wanted.argmax(-1)]
    assert [label.decode() for label in answer["labels"].numpy()] == names


def test_invalid_utf8_is_dropped_and_no_texts_are_no_answers(classifier, served):
    answer = served(text=tf.constant([b"the \xff\xfe film", b"\xc3", "the film", ""]))
    first, second, third, fourth = answer["probabilities"].numpy()
    np.testing.assert_allclose(first, third, atol=1e-6)
    np.testing.assert_allclose(second, fourth, atol=1e-6)
    assert served(text=tf.constant([], tf.string))["labels"].shape == (0,)


def test_a_row_does_not_depend_on_the_others(served):
    short = served(text=tf.constant(["film"]))["probabilities"].numpy()
    mixed = served(text=tf.constant(["film", "good " * 12]))["probabilities"].numpy()
    np.testing.assert_allclose(short[0], mixed[0], atol=1e-6)


def test_label_names(classifier, saved_model):
    names = (saved_model / "assets.extra" / "label_names.txt").read_text()
    assert names.splitlines() == classifier.label_names


@called_or_saved
def test_pairs(classifier, open_signatures, tmp_path):
    names = ("premise", "hypothesis")
    serve = open_signatures(classifier, tmp_path, names)["serving_default"]
    answer = serve(premise=tf.constant(TEXTS), hypothesis=tf.constant(TEXTS[::-1]))
    wanted = probabilities(classifier, (TEXTS, TEXTS[::-1]))
    np.testing.assert_allclose(answer["probabilities"], wanted, atol=1e-5)


@pytest.mark.long("serving")
def test_a_fresh_process_without_keras(classifier, saved_model):
    """As a server loads it: TensorFlow and the ops of TensorFlow Text, nothing of Keras."""
    process = subprocess.run(
        [sys.executable, "-P", ask_saved_model.__file__, str(saved_model), "the film was good"],
        capture_output=True,
        text=True,
    )
    assert process.returncode == 0, process.stderr
    wanted = probabilities(classifier, ["the film was good"])[0]
    assert classifier.label_names[wanted.argmax()] in process.stdout
    assert f"{wanted.max():.1%}" in process.stdout


@pytest.mark.backend("torch")
def test_an_existing_version_stays_as_it_is(classifier, tmp_path):
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "saved_model.pb").write_bytes(b"old")
    with pytest.raises(FileExistsError, match="exists"):
        export_saved_model(classifier, tmp_path / "1")
    assert (tmp_path / "1" / "saved_model.pb").read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["1"]


def test_a_full_disk_leaves_the_old_version_alone(classifier, saved_model, tmp_path):
    """No file may grow beyond 20 kB here: to who writes it, the disk is full."""
    model = tmp_path / "reviews"
    shutil.copytree(saved_model, model / "1")
    before = {path: path.read_bytes() for path in model.rglob("*") if path.is_file()}
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, limit[1]))
    try:
        with pytest.raises(Exception, match="(?i)file too large|failed|could not|write"):
            export_saved_model(classifier, model)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert {path: path.read_bytes() for path in model.rglob("*") if path.is_file()} == before
    assert os.listdir(model) == ["1"]


def test_versions(saved_model, tmp_path):
    assert saved_model.name == "1"
    assert version_path(tmp_path / "new").name == "1"
    for name in ("2", "10", "007", "not-a-version", "11.tmp"):
        (tmp_path / name).mkdir()
    assert version_path(tmp_path) == tmp_path / "11"
    assert version_path(tmp_path / "7") == tmp_path / "7"


def test_batching_parameters(saved_model, tmp_path):
    def read(path):
        lines = (path / "batching_params.pbtxt").read_text().splitlines()
        sizes = [int(line.split()[1]) for line in lines if line.startswith("allowed_batch_sizes:")]
        (most,) = [line for line in lines if line.startswith("max_batch_size")]
        return sizes, most

    assert read(saved_model) == ([1, 2, 4, 8, 16, 32], "max_batch_size { value: 32 }")
    write_batching_parameters(tmp_path, 20)
    assert read(tmp_path) == ([1, 2, 4, 8, 16, 20], "max_batch_size { value: 20 }")


@pytest.mark.backend("torch")
@pytest.mark.parametrize(
    ("input_names", "inputs", "wanted"),
    [
        (None, None, ("text",)),
        (None, ("a", "b"), ("a", "b")),
        (("text",), "sentence", ("sentence",)),
        (("premise", "hypothesis"), None, ("premise", "hypothesis")),
        (("premise", "hypothesis"), ("text",), "trained with rows of 2 texts, premise, hypothesis"),
        (("text",), ("a", "b"), "trained with rows of 1 texts, text, and .* names 2"),
        (("sentence 1",), None, "got \\('sentence 1',\\). Pass such names as `inputs`"),
    ],
)
def test_input_names(classifier, input_names, inputs, wanted):
    task = TextClassifier(classifier.backbone, num_classes=2, input_names=input_names)
    if isinstance(wanted, tuple):
        assert choose_input_names(task, inputs) == wanted
        return
    with pytest.raises(ValueError, match=wanted):
        choose_input_names(task, inputs)


@pytest.mark.backend("torch")
def test_bad_arguments(classifier, tmp_path, monkeypatch):
    for inputs in (("a", "a"), ("sentence 1",), ("текст",), ("_text",), ("class",), ("self",), ()):
        with pytest.raises(ValueError, match="must be different names"):
            export_saved_model(classifier, tmp_path / "1", inputs=inputs)
    with pytest.raises(ValueError, match="max_batch_size must be an integer of at least 1, got 0"):
        export_saved_model(classifier, tmp_path / "1", max_batch_size=0)
    bare = TextClassifier(classifier.backbone, num_classes=2)
    with pytest.raises(ValueError, match="no preprocessor"):
        export_saved_model(bare, tmp_path / "1")
    pretrainer = Pretrainer(classifier.backbone, preprocessor=classifier.preprocessor)
    with pytest.raises(ValueError, match="A Pretrainer cannot be exported"):
        export_saved_model(pretrainer, tmp_path / "1")
    assert not list(tmp_path.iterdir())
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ImportError, match="tensorflow tensorflow-text tensorflow-serving-api"):
        export_saved_model(classifier, tmp_path / "1")


def test_a_damaged_saved_model_is_refused(saved_model, tmp_path):
    """TensorFlow compares the checksums of variables only."""
    copy = shutil.copytree(saved_model, tmp_path / "1")
    names = {path.relative_to(copy).as_posix() for path in copy.rglob("*") if path.is_file()}
    lines = (copy / "SHA256SUMS").read_text().splitlines()
    # A server or a person reads the others, and they may be tuned.
    others = {"SHA256SUMS", "batching_params.pbtxt", "fingerprint.pb"}
    others |= {"assets.extra/tf_serving_warmup_requests", "assets.extra/model_card.md"}
    assert {line.partition("  ")[2] for line in lines} == names - others
    with open(copy / "batching_params.pbtxt", "a") as file:
        file.write("# tuned")
    assert ask_saved_model.SavedModel(copy).input_names
    content = bytearray((copy / "saved_model.pb").read_bytes())
    content[len(content) // 2] ^= 1
    (copy / "saved_model.pb").write_bytes(content)
    with pytest.raises(ValueError, match="saved_model.pb does not have its SHA-256"):
        ask_saved_model.SavedModel(copy)
