"""What would be lost, or would teach nothing, is refused by name."""

import copy
import pickle

import keras
import numpy as np
import pytest
from small_embedder import make_embedder, make_pairs
from small_tasks import make_task

from keras_bert_suite import CoSENT, CosineRegression, InBatchNegatives, Triplet


@pytest.mark.parametrize(
    ("format", "function"),
    [
        ("tf_saved_model", "export_saved_model"),
        ("onnx", "export_onnx"),
        ("openvino", "export_openvino"),
        ("litert", "export_litert"),
        ("other", "export_saved_model"),
    ],
)
def test_the_export_of_keras_names_ours(format, function, tmp_path):
    task, _ = make_task("texts", "SegmentPacker")
    with pytest.raises(NotImplementedError, match=f"Call keras_bert_suite.{function}"):
        task.export(tmp_path / "model", format=format)


def test_lora_is_not_saved(tmp_path):
    """Keras would save sums, of which another training would train whole kernels."""
    task, (x, _) = make_task("texts", "SegmentPacker")
    dense = task.backbone.transformer_layers[0].feedforward_output
    dense.enable_lora(2)
    dense.lora_kernel_b.assign(np.ones(dense.lora_kernel_b.shape))
    for save in (
        lambda: task.save(tmp_path / "task.keras"),
        lambda: task.save_weights(tmp_path / "task.weights.h5"),
        lambda: task.save_to_preset(tmp_path / "preset"),
        lambda: task.backbone.save(tmp_path / "backbone.keras"),
        lambda: task.backbone.save_to_preset(tmp_path / "backbone"),
        lambda: copy.deepcopy(task),
        lambda: copy.deepcopy(task.backbone),
        lambda: pickle.dumps(task),
    ):
        with pytest.raises(ValueError, match="1 layers of this .*feedforward_output, have LoRA"):
            save()
    assert not list(tmp_path.iterdir())
    with pytest.raises(ValueError, match="have LoRA"):
        keras.saving.save_model(task, tmp_path / "task.keras")
    # The remedy of the message.
    keras.saving.save_weights(task, tmp_path / "sums.weights.h5")
    new, _ = make_task("texts", "SegmentPacker")
    new.load_weights(tmp_path / "sums.weights.h5")
    wanted = task.predict(x, verbose=0)
    np.testing.assert_allclose(new.predict(x, verbose=0), wanted, rtol=0, atol=1e-5)


FIRST, SECOND = make_pairs(5)[0]


@pytest.mark.parametrize(
    ("loss", "columns", "labels", "learns_alone"),
    [
        (InBatchNegatives(), (FIRST, SECOND), None, False),
        (InBatchNegatives(), (FIRST,), None, False),
        (InBatchNegatives(), (FIRST, SECOND, SECOND[::-1]), None, True),
        (CoSENT(), (FIRST, SECOND), np.arange(5.0), False),
        (CosineRegression(), (FIRST, SECOND), np.arange(5.0) / 5, True),
        (Triplet(), (FIRST, SECOND, SECOND[::-1]), None, True),
    ],
)
def test_batches_of_one_row(loss, columns, labels, learns_alone):
    embedder = make_embedder(dropout=0.1)
    embedder.compile("sgd", loss)
    if learns_alone:
        history = embedder.fit(columns, labels, batch_size=1, verbose=0).history
        assert history["loss"][0] > 0
        return
    with pytest.raises(ValueError, match="compares the rows of a batch, and a batch has one row"):
        embedder.fit(columns, labels, batch_size=1, verbose=0)
    with pytest.warns(UserWarning, match="the last batch of each epoch has one row: 1 of 5 rows"):
        embedder.fit(columns, labels, batch_size=4, verbose=0)


@pytest.mark.parametrize("method", ["fit", "evaluate"])
def test_texts_without_a_token_to_predict(method):
    task, _ = make_task("masks", "SegmentPacker")
    with pytest.raises(ValueError, match="None of the 2 texts has a word"):
        getattr(task, method)(["", " "], verbose=0)


def test_scores_of_no_rows():
    embedder = make_embedder()
    with pytest.raises(ValueError, match="no rows to score"):
        embedder.score(([], []), [])
    with pytest.raises(ValueError, match="no rows to score"):
        embedder.score_retrieval({}, {"a": "good"}, {})
    classifier, (x, y) = make_task("attributes", "SegmentPacker")
    for rows in (0, len(x)):
        with pytest.raises(ValueError, match="no rows to score"):
            classifier.score(x[:rows], {attribute: [None] * rows for attribute in y})
    answerer, _ = make_task("questions", "SegmentPacker")
    with pytest.raises(ValueError, match="no rows to score"):
        answerer.score(([], []), [])
