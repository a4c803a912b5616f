"""The SavedModel of a `ZeroShotClassifier` takes texts and labels."""

import numpy as np
import pytest
from serving.traced import called_or_saved
from small_tasks import make_task

tf = pytest.importorskip("tensorflow")
pytest.importorskip("tensorflow_text")

pytestmark = pytest.mark.backend("tensorflow")

TEXTS = ["a good film", "", "好 good " + "the plot " * 30]
LABELS = ["plot", "good film", "bad"]


@called_or_saved
@pytest.mark.parametrize("multi_label", [False, True], ids=["one", "several"])
def test_signatures_take_labels(open_signatures, tmp_path, multi_label):
    task, _ = make_task("entailments")
    arguments = {"label_names": task.label_names, "multi_label": multi_label}
    task = type(task)(task.backbone, preprocessor=task.preprocessor, **arguments)
    task.classifier.kernel.assign(
        np.random.default_rng(0).normal(size=task.classifier.kernel.shape)
    )
    signatures = open_signatures(task, tmp_path)
    texts, labels = tf.constant(TEXTS), tf.constant([LABELS] * len(TEXTS))
    found = signatures["serving_default"](text=texts, labels=labels)
    wanted = task.predict(TEXTS, labels=LABELS, verbose=0)
    np.testing.assert_allclose(found["probabilities"], wanted, atol=1e-5)
    if multi_label:
        np.testing.assert_array_equal(found["is_label"], wanted > 0.5)
    else:
        chosen = [LABELS[place].encode() for place in wanted.argmax(axis=1)]
        assert found["labels"].numpy().tolist() == chosen
    own = signatures["own_labels"](text=texts)
    np.testing.assert_allclose(own["probabilities"], task.predict(TEXTS, verbose=0), atol=1e-5)
    with pytest.raises(tf.errors.InvalidArgumentError):
        signatures["serving_default"](text=texts, labels=labels[:2])
