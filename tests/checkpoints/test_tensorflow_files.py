"""`tf_model.h5` beside what transformers' classes for TensorFlow computed from it."""

import zipfile
from pathlib import Path

import numpy as np
import pytest
from peer_weights import to_numpy

import keras_bert_suite as kbs

FILES = Path(__file__).parent / "tensorflow_files"
TASKS = {
    "roberta_tags": kbs.TokenClassifier,
    "distil_bert_classes": kbs.TextClassifier,
    "albert_classes": kbs.TextClassifier,
    "electra_tags": kbs.TokenClassifier,
}


def unpack(name, path):
    """The inputs of the model, and the outputs of transformers."""
    with zipfile.ZipFile(FILES / f"{name}.zip") as archive:
        archive.extractall(path)
    with np.load(path / "outputs.npz") as arrays:
        outputs = dict(arrays)
    inputs = {key: outputs.pop(key).astype("int32") for key in ("token_ids", "padding_mask")}
    return inputs, outputs


@pytest.mark.parametrize("name", TASKS)
def test_a_fine_tuned_head(name, tmp_path):
    inputs, outputs = unpack(name, tmp_path)
    task = TASKS[name].from_preset(tmp_path, preprocessor=None)
    if "segment_ids" in task.input:
        inputs["segment_ids"] = np.zeros_like(inputs["token_ids"])
    logits = to_numpy(task(inputs))
    seen = inputs["padding_mask"] == 1 if logits.ndim == 3 else slice(None)
    assert np.ptp(outputs["logits"]) > 0.1
    np.testing.assert_allclose(logits[seen], outputs["logits"][seen], atol=1e-5)


def test_both_heads_of_pretraining(tmp_path):
    inputs, outputs = unpack("bert_pretraining", tmp_path)
    pretrainer = kbs.Pretrainer.from_preset(tmp_path, preprocessor=None)
    inputs["segment_ids"] = np.zeros_like(inputs["token_ids"])
    inputs["mask_positions"] = np.tile(np.arange(5, dtype="int32"), (2, 1))
    found = pretrainer(inputs)
    wanted = outputs["prediction_logits"][:, :5]
    np.testing.assert_allclose(to_numpy(found["mlm"]), wanted, atol=1e-5)
    wanted = outputs["seq_relationship_logits"]
    np.testing.assert_allclose(to_numpy(found["nsp"]), wanted, atol=1e-5)


def test_a_damaged_file(tmp_path):
    unpack("albert_classes", tmp_path)
    content = (tmp_path / "tf_model.h5").read_bytes()
    (tmp_path / "tf_model.h5").write_bytes(content[: len(content) // 2])
    with pytest.raises(ValueError, match="tf_model.h5"):
        kbs.TextClassifier.from_preset(tmp_path, preprocessor=None)
