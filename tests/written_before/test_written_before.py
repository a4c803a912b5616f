"""What an older version wrote opens and answers as it did; `make.py` says how it was written."""

import copy
import dataclasses
import json
import tarfile
import zipfile
from pathlib import Path

import keras
import numpy as np
import pytest
from tables import short_for

import keras_bert_suite as kbs
from keras_bert_suite.corpus import open_corpus

FILES = Path(__file__).with_name("files.tar.xz")
TASKS = (
    *("text_classifier", "regression", "attributes", "tagger", "chains", "spans", "relations"),
    *("questions", "choices", "rankings", "documents", "vectors", "masks", "pretraining"),
    *("replaced_tokens", "targets", "cross_attention"),
)
#: `open_runtime` opens no pretraining, no `Seq2Seq`, and no `SentencePieceTokenizer` as such.
EXPORTED = [name for name in TASKS[: TASKS.index("pretraining")] if name != "rankings"]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    with tarfile.open(FILES) as archive:
        archive.extractall(folder, filter="data")
    return folder


@pytest.fixture(scope="module")
def wanted(files):
    return json.loads((files / "wanted.json").read_text("utf-8"))


def train(task, x, y, weights=None):
    """One step."""
    task.fit(join(x), read(y), sample_weight=read(weights), batch_size=4, shuffle=False, verbose=0)


def join(x):
    """The rows of some columns, or the arrays of a pretraining."""
    return read(x) if isinstance(x, dict) else x[0] if len(x) == 1 else tuple(x)


def read(value):
    """Lists of numbers of one shape as arrays."""
    if isinstance(value, dict):
        return {key: read(part) for key, part in value.items()}
    try:
        array = np.array(value)
    except ValueError:
        return value
    kinds = {"i": "int32", "f": "float32"}
    return array.astype(kinds[array.dtype.kind]) if array.dtype.kind in kinds else value


def to_plain(value):
    """What JSON can hold of answers."""
    if dataclasses.is_dataclass(value):
        value = dataclasses.asdict(value)
    if isinstance(value, dict):
        return {key: to_plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(part) for part in value]
    return value.tolist() if hasattr(value, "tolist") else value


def assert_same(found, wanted, place="", atol=1e-4):
    """Numbers are near, and all else is equal."""
    if isinstance(wanted, dict):
        assert set(found) == set(wanted), place
        for key, value in wanted.items():
            assert_same(found[key], value, f"{place}/{key}", atol)
    elif isinstance(wanted, list):
        assert len(found) == len(wanted), place
        for index, value in enumerate(wanted):
            assert_same(found[index], value, f"{place}/{index}", atol)
    else:
        wanted = pytest.approx(wanted, abs=atol) if type(wanted) is float else wanted
        assert found == wanted, place


def skip_draws(name):
    if name == "replaced_tokens" and keras.config.backend() != "torch":
        pytest.skip("The answers are about tokens that PyTorch has drawn.")


def check_answers(model, x, wanted, atol=1e-4, **arguments):
    for method, answers in wanted.items():
        found = to_plain(getattr(model, method)(join(x), **arguments))
        assert_same(found, answers, method, atol)


#: How near answers are after a step of training, where Adam makes the rounding of a processor
#: large. With 0.5 the texts are compared, and hardly the scores.
ATOL_AFTER = {"questions": 0.5}


#: What Keras writes of each layer, which is no argument of ours.
OF_KERAS = ("module", "build_config", "shared_object_id", "activity_regularizer", "autocast")


def assert_holds(new, old, place=""):
    """Every key of an old configuration is in the new one with its value."""
    if isinstance(old, dict):
        for key, value in old.items():
            if key not in OF_KERAS:
                assert key in new, f"{place}/{key}"
                assert_holds(new[key], value, f"{place}/{key}")
    elif isinstance(old, list) and len(old) == len(new):
        for index, value in enumerate(old):
            assert_holds(new[index], value, f"{place}/{index}")
    else:
        assert new == old, place


@pytest.mark.filterwarnings("ignore:.* targets have words that the vocabulary lacks")
@pytest.mark.parametrize(
    "name",
    short_for(
        TASKS,
        *("text_classifier", "regression", "tagger", "chains", "spans", "questions", "vectors"),
        *("masks", "pretraining", "cross_attention"),
        part="combinations",
    ),
)
def test_a_keras_file(name, files, wanted):
    skip_draws(name)
    file, case = files / "tasks" / name / "task.keras", wanted["tasks"][name]
    task = keras.saving.load_model(file)
    assert type(task) is getattr(kbs, case["class"])
    check_answers(task, case["x"], case["before"], verbose=0)
    with zipfile.ZipFile(file) as archive:
        old = json.loads(archive.read("config.json"))
    optimizer = old["compile_config"]["optimizer"]
    if "backend.torch" in optimizer["module"]:  # Of Keras' own, each backend has another class.
        del optimizer["registered_name"]
    assert_holds(keras.saving.serialize_keras_object(task), old)
    x, y, *weights = case["rows"]
    if name == "pretraining":  # The task makes the labels of `sbo`.
        y, *weights = ({k: v for k, v in part.items() if k != "sbo"} for part in (y, *weights))
    train(task, x, y, *weights)  # The optimizer, its moments and its schedule go on, too.
    check_answers(task, case["x"], case["after"], ATOL_AFTER.get(name, 1e-4), verbose=0)


#: A preset and a `.keras` file of a task have the same configuration and weights.
PRESETS = short_for(
    TASKS, "text_classifier", "chains", "pretraining", "cross_attention", part="combinations"
)


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset(name, files, wanted):
    skip_draws(name)
    case = wanted["tasks"][name]
    task = getattr(kbs, case["class"]).from_preset(files / "tasks" / name / "preset")
    check_answers(task, case["x"], case["before"], verbose=0)


@pytest.mark.parametrize("name", EXPORTED)
def test_a_runtime(name, files, wanted):
    pytest.importorskip("onnxruntime")
    case = wanted["tasks"][name]
    check_answers(kbs.open_runtime(files / "tasks" / name / "onnx"), case["x"], case["runtime"])


def test_a_training_goes_on(files, wanted):
    case = wanted["tasks"]["text_classifier"]
    task = keras.saving.load_model(files / "tasks" / "text_classifier" / "task.keras")
    x, y = case["rows"]
    checkpoint, batches = kbs.TrainingCheckpoint(files / "run", every=1), []
    counting = keras.callbacks.LambdaCallback(
        on_train_batch_end=lambda batch, logs: batches.append(batch)
    )
    task.fit(join(x), read(y), batch_size=2, epochs=2, verbose=0, callbacks=[checkpoint, counting])
    assert len(batches) == 2
    check_answers(task, case["x"], wanted["run"], verbose=0)


def test_a_corpus(files, wanted):
    assert read_documents(files / "corpus") == wanted["corpus"]


def read_documents(folder):
    corpus = open_corpus(folder)
    return [
        [corpus.tokens(document).tolist(), corpus.sentences(document).tolist()]
        for document in range(corpus.num_documents)
    ]


@pytest.mark.parametrize("precision", ["float32", "int8", "binary"])
def test_an_index(precision, files, wanted):
    embedder = keras.saving.load_model(files / "tasks" / "vectors" / "task.keras")
    case = wanted["indexes"][precision]
    found = embedder.search(case["queries"], kbs.VectorIndex.load(files / "indexes" / precision))
    assert_same(to_plain(found), case["hits"])


def test_objects(files):
    for old in json.loads((files / "objects.json").read_text("utf-8")):
        found = keras.saving.deserialize_keras_object(copy.deepcopy(old))
        assert type(found).__name__ == old["class_name"]
        assert_holds(keras.saving.serialize_keras_object(found), old, old["class_name"])
