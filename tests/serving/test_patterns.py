"""The SavedModel of a `PatternClassifier` puts texts into the pattern as the task does."""

import numpy as np
import pytest
from heads.cases import HOSTILE
from peer_weights import randomize
from serving.traced import called_or_saved
from small_tasks import make_task

tf = pytest.importorskip("tensorflow")
pytest.importorskip("tensorflow_text")

pytestmark = pytest.mark.backend("tensorflow")


@called_or_saved
def test_signatures_answer_as_the_task_does(open_signatures, tmp_path):
    task = randomize(make_task("patterns")[0])
    signatures = open_signatures(task, tmp_path)
    wanted = task.predict_probabilities(HOSTILE, verbose=0)
    packed = {name: tf.constant(array) for name, array in task.data.pack_texts((HOSTILE,)).items()}
    for found in (
        signatures["serving_default"](text=tf.constant(HOSTILE)),
        signatures["serve_ids"](**packed),
    ):
        np.testing.assert_allclose(found["probabilities"], wanted, atol=1e-5)
        labels = [label.decode() for label in found["labels"].numpy()]
        assert labels == [task.label_names[i] for i in wanted.argmax(axis=1)]


def test_scores_have_a_place_for_each_label():
    """A runtime compares the places with the labels, and an export knows no number of words."""
    layer = make_task("patterns")[0].get_layer("word_scores")
    traced = tf.function(layer).get_concrete_function(
        tf.TensorSpec([None, None, 28]), tf.TensorSpec([None, None, None], tf.int32)
    )
    assert traced.output_shapes.as_list() == [None, 2]
