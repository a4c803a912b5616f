"""Several adapters on one encoder, served by name from one SavedModel."""

import json
import shutil

import numpy as np
import pyarrow as pa
import pytest
from small_tasks import make_parts
from small_texts import make_reviews

import keras_bert_suite as kbs
from keras_bert_cli import ask_saved_model

TEXTS, _ = make_reviews(4)


def make_tasks(folder):
    """Two tasks on one encoder."""
    for name, labels, adaptation in (
        ("mood", ["no", "yes"], kbs.LoRA(2)),
        ("topic", ["a", "b", "c"], kbs.PromptTuning(2)),
    ):
        backbone, packer = make_parts("SegmentPacker", {})
        if not (folder / "base").exists():
            backbone.save_to_preset(folder / "base")
            packer.tokenizer.save_to_preset(folder / "base")
        backbone = kbs.BertBackbone.from_preset(folder / "base")
        task = kbs.TextClassifier(backbone, preprocessor=packer, label_names=labels)
        task.adapt(adaptation, verbose=False)
        for weight in task.trainable_weights:
            weight.assign(weight + 0.1 * np.arange(weight.shape[-1]))
        task.save_adapter(folder / name)
    first = kbs.TextClassifier.from_adapter(folder / "mood", folder / "base")
    return first, kbs.TextClassifier.from_adapter(folder / "topic", first)


@pytest.mark.backend("tensorflow")
def test_each_adapter_is_a_signature(tmp_path):
    check_signatures(tmp_path)


@pytest.mark.long("serving")
@pytest.mark.backend("torch")
def test_they_go_to_the_process_of_tensorflow(tmp_path):
    check_signatures(tmp_path)


def check_signatures(tmp_path):
    import tensorflow as tf
    import tensorflow_text  # noqa: F401

    tasks = make_tasks(tmp_path)
    path = kbs.export_adapters(tasks, tmp_path / "served", verbose=0)
    model = tf.saved_model.load(str(path))
    arrays = {"mood_arrays", "topic_arrays"}
    assert {*model.signatures} == {"mood", "topic", "serving_default", *arrays}
    for task, names in zip(tasks, (("mood", "serving_default"), ("topic",)), strict=True):
        wanted = task.predict_probabilities(TEXTS)
        for name in names:
            answers = model.signatures[name](text=tf.constant(TEXTS))
            np.testing.assert_allclose(answers["probabilities"], wanted, atol=1e-5)
            assert {*answers["labels"].numpy()} <= {label.encode() for label in task.label_names}
    for task, name in zip(tasks, ("mood", "topic"), strict=True):
        served = ask_saved_model.SavedModel(path, name)
        assert served.label_names == list(task.label_names) and served.input_names == ["text"]
        (answers,) = served.answer({"text": TEXTS}, batch_size=4)
        wanted = task.predict_probabilities(TEXTS)
        np.testing.assert_allclose(answers["probabilities"], wanted, atol=1e-5)
        runtime = kbs.open_runtime(path, adapter=name)
        np.testing.assert_allclose(runtime.predict_probabilities(TEXTS), wanted, atol=1e-5)
        assert list(runtime.predict_labels(TEXTS)) == list(task.predict_labels(TEXTS))
    found = kbs.BatchPredictor(path, adapter="topic")(pa.table({"text": TEXTS}))
    assert found["label"].to_pylist() == list(tasks[1].predict_labels(TEXTS))
    for name in ("other", None):
        for open_by_name in (ask_saved_model.SavedModel, kbs.open_runtime):
            message = f"has the adapters mood, topic, got adapter={name!r}. Choose one of them"
            with pytest.raises(ValueError, match=message):
                open_by_name(path, name)
    alone = shutil.copytree(path / "assets.extra/mood", tmp_path / "alone")
    with pytest.raises(ValueError, match="has one task, and no adapters, got adapter='mood'"):
        kbs.open_runtime(alone, "mood")
    described = json.loads((path / "assets.extra/topic/task.json").read_text())
    assert described["labels"] == ["a", "b", "c"]
    # The encoder is there once.
    values = sum(x.numpy().nbytes for x in model.weights)
    assert values == sum(4 * int(np.prod(w.shape)) for w in tasks[0].weights) + 4 * (16 * 3 + 3)


def test_tasks_that_do_not_go_together(tmp_path):
    first, second = make_tasks(tmp_path)
    alone = kbs.TextClassifier.from_adapter(tmp_path / "topic", tmp_path / "base")
    with pytest.raises(ValueError, match=r"'mood' and 'topic' are on two backbones.*from_adapter"):
        kbs.export_adapters([first, alone], tmp_path / "served")
    with pytest.raises(ValueError, match="got the names mood, mood"):
        kbs.export_adapters([first, first], tmp_path / "served")
    other = kbs.TextClassifier.from_adapter(tmp_path / "topic", first, "mood_arrays")
    with pytest.raises(ValueError, match="got the names mood, mood_arrays"):
        kbs.export_adapters([first, other], tmp_path / "served")
    plain = kbs.TextClassifier(make_parts("SegmentPacker", {})[0], num_classes=2)
    with pytest.raises(ValueError, match="Each task needs an adapter, got a TextClassifier"):
        kbs.export_adapters([plain], tmp_path / "served")
    plain = kbs.TextClassifier(first.backbone, preprocessor=first.preprocessor, num_classes=2)
    with pytest.raises(
        ValueError, match="adapter of its own, got a TextClassifier .*'mood_arrays'"
    ):
        kbs.export_adapters([first, plain], tmp_path / "served")
    with pytest.raises(ValueError, match="tasks must be a list of tasks, got <TextClassifier"):
        kbs.export_adapters(first, tmp_path / "served")
    with pytest.raises(ValueError, match="at least one task"):
        kbs.export_adapters([], tmp_path / "served")
    assert second.backbone is first.backbone
