import keras
import numpy as np
import pytest
from small_texts import ONE_LAYER, VOCABULARY, make_reviews

from keras_bert_suite import (
    AttentionPooling,
    BertBackbone,
    MeanPooling,
    SegmentPacker,
    TextClassifier,
    WordPieceTokenizer,
)

TEXTS, LABELS = make_reviews(12)


def make_classifier(**kwargs):
    keras.utils.set_random_seed(0)
    # One length, so that JAX compiles each step once.
    packer = SegmentPacker(WordPieceTokenizer(VOCABULARY), 16, padding_lengths=(16,))
    backbone = BertBackbone(**ONE_LAYER, dropout=0.0)
    return TextClassifier(
        backbone, label_names=["no", "yes"], preprocessor=packer, dropout=0.0, **kwargs
    )


def test_it_equals_a_frozen_encoder_without_dropout():
    cached, frozen = make_classifier(), make_classifier()
    before, trainable = cached.backbone.get_weights(), len(cached.trainable_variables)
    history = cached.fit_on_features(
        TEXTS,
        LABELS,
        batch_size=12,
        epochs=2,
        validation_data=(TEXTS[:4], LABELS[:4]),
        optimizer=keras.optimizers.SGD(0.5),
        verbose=0,
    ).history
    frozen.backbone.trainable = False
    frozen.compile(keras.optimizers.SGD(0.5))
    wanted = frozen.fit(TEXTS, LABELS, batch_size=12, epochs=2, verbose=0).history
    np.testing.assert_allclose(history["loss"], wanted["loss"], atol=1e-5)
    assert set(history) == {"loss", "accuracy", "val_loss", "val_accuracy"}
    for got, expected in zip(cached.get_weights(), frozen.get_weights(), strict=True):
        np.testing.assert_allclose(got, expected, atol=1e-5)

    # The task is whole: nothing of the encoder moved, nothing was frozen.
    assert all(map(np.array_equal, cached.backbone.get_weights(), before))
    assert len(cached.trainable_variables) == trainable
    np.testing.assert_allclose(
        cached.predict(TEXTS, verbose=0), frozen.predict(TEXTS, verbose=0), atol=1e-5
    )


@pytest.mark.backend_free
def test_what_cannot_be_cached_is_refused():
    with pytest.raises(ValueError, match="AttentionPooling\\) before it has weights to train"):
        make_classifier(pooling=AttentionPooling()).fit_on_features(TEXTS, LABELS)
    classifier = make_classifier(pooling=MeanPooling())
    for x, y, error in (
        ([], [], "needs at least one row"),
        (iter([(TEXTS, LABELS)]), None, "rows in memory"),
    ):
        with pytest.raises(ValueError, match=error):
            classifier.fit_on_features(x, y, verbose=0)
