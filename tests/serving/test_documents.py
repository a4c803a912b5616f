"""The graph of a `DocumentClassifier` takes whole documents, and answers as `predict` does."""

import keras
import numpy as np
import pytest
from peer_weights import randomize
from serving.traced import called_or_saved
from small_texts import ONE_LAYER, VOCABULARY, make_reviews

from keras_bert_suite import (
    BertBackbone,
    DocumentClassifier,
    SegmentPacker,
    WindowTransformer,
    WordPieceTokenizer,
)

tf = pytest.importorskip("tensorflow")
pytest.importorskip("tensorflow_text")

pytestmark = pytest.mark.backend("tensorflow")

TEXTS = make_reviews(6)[0]
DOCUMENTS = [" ".join(TEXTS[: i + 1]) for i in range(6)] + ["", "good " * 1000]


@called_or_saved
def test_signatures_read_documents(open_signatures, tmp_path):
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
    signatures = open_signatures(classifier, tmp_path)
    serve_texts = signatures["serving_default"]
    logits = classifier.predict(DOCUMENTS, verbose=0)
    wanted = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
    packed = classifier.data.pack_texts((DOCUMENTS,))
    for answer in (
        serve_texts(text=tf.constant(DOCUMENTS)),
        signatures["serve_ids"](**{name: tf.constant(array) for name, array in packed.items()}),
    ):
        np.testing.assert_allclose(answer["probabilities"], wanted, atol=1e-5)
        names = [classifier.label_names[label] for label in logits.argmax(axis=-1)]
        assert answer["labels"].numpy().astype(str).tolist() == names
    nothing = serve_texts(text=tf.constant([], tf.string))
    assert nothing["probabilities"].shape == (0, 2)
