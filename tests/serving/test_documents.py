"""The graph of a `DocumentClassifier` takes whole documents, and answers as `predict` does."""

import keras
import numpy as np
import pytest
from peer_weights import randomize
from serving.traced import trace
from small_texts import ONE_LAYER, VOCABULARY, make_reviews

from keras_bert_suite import (
    BertBackbone,
    DocumentClassifier,
    SegmentPacker,
    WindowTransformer,
    WordPieceTokenizer,
)
from keras_bert_suite.heads.base.served import serve

tf = pytest.importorskip("tensorflow")
pytest.importorskip("tensorflow_text")

pytestmark = pytest.mark.backend("tensorflow")

TEXTS = make_reviews(6)[0]
DOCUMENTS = [" ".join(TEXTS[: i + 1]) for i in range(6)] + ["", "good " * 1000]


def test_a_graph_reads_documents():
    keras.utils.set_random_seed(2)
    packer = SegmentPacker(WordPieceTokenizer(VOCABULARY), sequence_length=8)
    classifier = randomize(
        DocumentClassifier(
            BertBackbone(**ONE_LAYER),
            label_names=["no", "yes"],
            preprocessor=packer,
            window_pooling=WindowTransformer(num_heads=2),
            max_windows=4,
            training_windows=2,
        )
    )
    graph, served = trace(classifier), serve(classifier)
    logits = classifier.predict(DOCUMENTS, verbose=0)
    wanted = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
    packed = classifier.data.pack_texts((DOCUMENTS,))
    for answer in (
        graph(text=tf.constant(DOCUMENTS)),
        served.answer_ids({name: tf.constant(array) for name, array in packed.items()}),
    ):
        np.testing.assert_allclose(answer["probabilities"], wanted, atol=1e-5)
        names = [classifier.label_names[label] for label in logits.argmax(axis=-1)]
        assert answer["labels"].numpy().astype(str).tolist() == names
    nothing = graph(text=tf.constant([], tf.string))
    assert nothing["probabilities"].shape == (0, 2)
