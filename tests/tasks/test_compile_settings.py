"""What `compile` was given is what a file says and what a training does, on every backend."""

import inspect
import json
import re
import zipfile

import keras
import numpy as np
import pytest
from small_tasks import make_task
from small_texts import ONE_LAYER
from tables import everywhere_for

from keras_bert_suite import (
    AdamW,
    BertBackbone,
    ElectraBackbone,
    ElectraPretrainer,
    ElmoBackbone,
    LinearWarmupDecay,
    Pretrainer,
    SegmentPacker,
    TextClassifier,
    TextEmbedder,
    read_table,
)
from keras_bert_suite.foreign_arguments import FOREIGN_ARGUMENTS
from keras_bert_suite.training.bert_optimizer import BertOptimizer


@pytest.fixture
def classifier():
    return TextClassifier(BertBackbone(**ONE_LAYER), num_classes=2)


def read_compile_config(file):
    with zipfile.ZipFile(file) as archive:
        return json.loads(archive.read("config.json"))["compile_config"]


@pytest.mark.every_backend
def test_auto_compilation_is_chosen_by_the_backend_that_opens_the_file(classifier, tmp_path):
    for given in ({}, {"jit_compile": "auto"}, {"run_eagerly": True}):
        classifier.compile(**given)
        classifier.save(tmp_path / "task.keras")
        config = read_compile_config(tmp_path / "task.keras")
        assert config["jit_compile"] == "auto"
        loaded = keras.saving.load_model(tmp_path / "task.keras")
        # `compile` has chosen by the backend, too: under JAX to compile, under PyTorch not to.
        chosen = classifier.jit_compile and "run_eagerly" not in given
        assert (loaded.jit_compile, loaded.run_eagerly) == (chosen, "run_eagerly" in given)


@pytest.mark.parametrize("given", [True, False])
def test_a_chosen_compilation_is_kept(classifier, given, tmp_path):
    classifier.compile(jit_compile=given)
    classifier.save(tmp_path / "task.keras")
    loaded = keras.saving.load_model(tmp_path / "task.keras")
    assert loaded.jit_compile is given
    loaded.save(tmp_path / "again.keras")
    assert read_compile_config(tmp_path / "again.keras")["jit_compile"] is given


OPTIMIZERS = ("SGD", "RMSprop", "Adam", "AdamW", "Adadelta", "Adagrad", "Adamax", "Nadam", "Lion")


@pytest.mark.parametrize("name", everywhere_for(OPTIMIZERS, "Adam", "SGD"))
def test_an_optimizer_of_keras_that_pytorch_has_saved(classifier, name):
    """Under PyTorch, Keras writes `keras.src.backend.torch.optimizers.torch_adam` for Adam."""
    config = {
        "module": f"keras.src.backend.torch.optimizers.torch_{name.lower()}",
        "class_name": name,
        "registered_name": name,
        "config": {"learning_rate": 0.25},
    }
    classifier.compile_from_config({"optimizer": config})
    assert type(classifier.optimizer) is type(getattr(keras.optimizers, name)())
    assert float(classifier.optimizer.learning_rate) == 0.25
    scaled = keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD())
    scaled = keras.saving.serialize_keras_object(scaled)
    scaled["config"]["inner_optimizer"] = config
    classifier.compile_from_config({"optimizer": scaled})
    assert type(classifier.optimizer.inner_optimizer) is type(getattr(keras.optimizers, name)())


@pytest.mark.every_backend
def test_a_step_of_ones_own_is_taken():
    steps = []

    class OwnStep(TextClassifier):
        def train_step(self, *arguments):
            steps.append(1)
            return super().train_step(*arguments)

    classifier = OwnStep(BertBackbone(**ONE_LAYER), num_classes=2)
    classifier.compile()
    classifier.fit(*make_rows(), verbose=0)
    assert steps


def make_rows():
    rng = np.random.default_rng(0)
    ids = rng.integers(5, ONE_LAYER["vocabulary_size"], (8, 8)).astype("int32")
    mask = np.ones_like(ids)
    return {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": mask}, ids[:, 0] % 2


def fit_and_find_changes(task):
    """The paths of the weights that a `fit` has changed."""
    before = {weight.path: keras.ops.convert_to_numpy(weight).copy() for weight in task.weights}
    task.fit(*make_rows(), batch_size=4, verbose=0)
    after = {weight.path: keras.ops.convert_to_numpy(weight) for weight in task.weights}
    return {path for path, value in after.items() if (value != before[path]).any()}


@pytest.mark.every_backend
def test_freezing_after_compile(classifier):
    """It counts from the next step on."""
    classifier.compile(AdamW(1e-2))
    classifier.backbone.trainable = False
    assert {path.split("/")[0] for path in fit_and_find_changes(classifier)} == {"classifier"}
    classifier.backbone.trainable = True
    assert "embeddings/token_embedding/embeddings" in fit_and_find_changes(classifier)


@pytest.mark.parametrize(
    ("task", "ratio"),
    # 10,000 of a million steps in the papers of BERT and ELECTRA; a tenth in a fine-tuning.
    [
        (lambda: TextClassifier(BertBackbone(**ONE_LAYER), num_classes=2), 0.1),
        (lambda: Pretrainer(BertBackbone(**ONE_LAYER)), 0.01),
        (lambda: ElectraPretrainer(ElectraBackbone(**ONE_LAYER)), 0.01),
    ],
)
def test_the_warm_up_of_the_default_optimizer(task, ratio):
    assert task().optimizer._learning_rate.warmup_ratio == ratio


def test_a_task_that_is_not_compiled_says_so(classifier, tmp_path):
    classifier.save(tmp_path / "task.keras")
    task = keras.saving.load_model(tmp_path / "task.keras", compile=False)
    for method in (task.fit, task.train_on_batch, task.test_on_batch):
        with pytest.raises(ValueError, match="call `compile"):
            method(*make_rows())


@pytest.mark.parametrize(
    ("argument", "meant"),
    [
        ("epoch", "Did you mean 'epochs'"),
        ("batchsize", "Did you mean 'batch_size'"),
        ("validationdata", "Did you mean 'validation_data'"),
        ("per_device_train_batch_size", "Did you mean 'batch_size'"),
        ("learning_rate", "The rate belongs to `compile`"),
    ],
)
def test_a_misspelled_argument_of_fit(classifier, argument, meant):
    with pytest.raises(TypeError, match=f"fit has no argument '{argument}'. {meant}"):
        classifier.fit(*make_rows(), **{argument: 1})


def test_arguments_of_compile_and_of_other_libraries(classifier):
    with pytest.raises(TypeError, match="compile has no argument 'lr'. The rate belongs"):
        classifier.compile(lr=2e-5)
    with pytest.raises(TypeError, match="Did you mean 'technique'"):
        classifier.compile(tecnique=None)


def test_the_table_names_arguments():
    """What it advises exists."""
    functions = (
        *(TextClassifier.from_preset, TextClassifier, TextClassifier.fit, TextClassifier.compile),
        *(AdamW, LinearWarmupDecay, BertBackbone, SegmentPacker, keras.Model.compile),
        *(BertOptimizer, TextEmbedder, TextEmbedder.predict, ElmoBackbone, read_table),
    )
    known = {name for function in functions for name in inspect.signature(function).parameters}
    flags = {"checkpoint", "train", "dev", "output", "seed", "feature_columns"}
    for name, (names, place) in FOREIGN_ARGUMENTS.items():
        words = re.findall(r"`(\w+)`", place) + re.findall(r"(\w+)=", place)
        calls = {"from_preset", "fit", "predict", "compile", "SegmentPacker", "save_to_preset"}
        calls |= {"TextClassifier", "DocumentClassifier", "read_table"}
        assert {*names, *words} - calls <= known | flags, name


@pytest.mark.backend("torch")
def test_a_step_may_be_called_by_itself():
    task, (x, y) = make_task("texts")
    task.compile("sgd")
    batch = {name: keras.ops.convert_to_tensor(a) for name, a in task.data.pack_texts((x,)).items()}
    before = task.get_weights()
    task.train_step((batch, keras.ops.convert_to_tensor(np.zeros(len(x), "int32"))))
    assert any((a != b).any() for a, b in zip(before, task.get_weights(), strict=True))
