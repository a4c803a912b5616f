import keras
import numpy as np
import pytest
from small_texts import ONE_LAYER, VOCABULARY, make_reviews

from keras_bert_suite import (
    AdamW,
    AttentionPooling,
    BertBackbone,
    BiLSTMPooling,
    ConvolutionPooling,
    DocumentClassifier,
    LastLayers,
    LinearWarmupDecay,
    MeanPooling,
    ScalarMix,
    SegmentPacker,
    TextClassifier,
    WordPieceTokenizer,
)

TEXTS, LABELS = make_reviews(12)


def make_lstm():
    """A layer of Keras, which takes the mask by its name. It draws its seeds when it is made."""
    keras.utils.set_random_seed(1)
    return keras.layers.LSTM(4)


def use_first_token():
    """No pooling of its own."""


def make_classifier(dtype=None, **kwargs):
    keras.utils.set_random_seed(0)
    # One length, so that JAX compiles each step once.
    packer = SegmentPacker(WordPieceTokenizer(VOCABULARY), 16, padding_lengths=(16,))
    backbone = BertBackbone(**ONE_LAYER, dropout=0.0, dtype=dtype)
    return TextClassifier(
        backbone, label_names=["no", "yes"], preprocessor=packer, dropout=0.0, **kwargs
    )


@pytest.mark.parametrize(
    "make_pooling",
    [
        lambda: None,
        AttentionPooling,
        lambda: ConvolutionPooling(4),
        make_lstm,
        lambda: ScalarMix(pooling=AttentionPooling()),
        pytest.param(  # Devlin et al., section 5.3
            lambda: LastLayers(1, pooling=BiLSTMPooling()), marks=pytest.mark.long("combinations")
        ),
    ],
    ids=["pooled output", "attention", "convolution", "LSTM", "scalar mix", "last layers"],
)
def test_it_equals_a_frozen_encoder_without_dropout(make_pooling):
    cached, frozen = (make_classifier(pooling=make_pooling()) for _ in range(2))
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


def test_batches_of_several_lengths_and_metrics_of_compile():
    classifier = make_classifier(pooling=AttentionPooling(), dtype="mixed_bfloat16")
    classifier.preprocessor.padding_lengths = (8, 16)
    classifier.compile(metrics=[keras.metrics.SparseCategoricalAccuracy(name="mine")])
    before = classifier.backbone.get_weights()
    history = classifier.fit_on_features(
        TEXTS, LABELS, 4, 10, validation_data=(TEXTS, LABELS), optimizer="adam", verbose=0
    ).history
    assert set(history) == {"loss", "mine", "val_loss", "val_mine"}
    assert history["loss"][-1] < history["loss"][0]
    assert all(map(np.array_equal, classifier.backbone.get_weights(), before))


@pytest.mark.parametrize("make_pooling", [use_first_token, AttentionPooling])
def test_it_takes_the_arguments_of_fit(make_pooling):
    """Weights, held-out rows, the first epoch, and an open schedule for two trainings."""
    cached, frozen = (make_classifier(pooling=make_pooling()) for _ in range(2))
    frozen.backbone.trainable = False
    optimizer = AdamW(LinearWarmupDecay(0.1))
    frozen.compile(AdamW(LinearWarmupDecay(0.1)))
    weights = np.linspace(0, 2, 12)
    for arguments in (
        {"class_weight": {"yes": 3.0}, "validation_split": 0.25, "initial_epoch": 1},
        {"sample_weight": weights, "validation_data": (TEXTS, LABELS, weights)},
    ):
        given = {"batch_size": 12, "epochs": 3, "verbose": 0, **arguments}
        got = cached.fit_on_features(TEXTS, LABELS, optimizer=optimizer, **given).history
        wanted = frozen.fit(TEXTS, LABELS, **given).history
        assert got.keys() == wanted.keys()
        for name in wanted:
            np.testing.assert_allclose(got[name], wanted[name], atol=1e-4)
    both = {"class_weight": {"yes": 3.0}, "sample_weight": weights}
    with pytest.raises(ValueError, match="class_weight or sample_weight, not both"):
        cached.fit_on_features(TEXTS, LABELS, **both)


@pytest.mark.parametrize("make_pooling", [use_first_token, AttentionPooling])
def test_batches_in_the_order_of_the_rows(make_pooling):
    """Of texts of one length, so that no text has to change its place."""
    texts = [" ".join(text.split()[:3]) for text in TEXTS]
    cached, frozen = (make_classifier(pooling=make_pooling()) for _ in range(2))
    frozen.backbone.trainable = False
    frozen.compile(keras.optimizers.SGD(0.5))
    given = {"batch_size": 5, "epochs": 1, "shuffle": False, "verbose": 0}
    cached.fit_on_features(texts, LABELS, optimizer=keras.optimizers.SGD(0.5), **given)
    frozen.fit(texts, LABELS, **given)
    for got, expected in zip(cached.get_weights(), frozen.get_weights(), strict=True):
        np.testing.assert_allclose(got, expected, atol=1e-5)


def test_vectors_of_windows():
    packer = SegmentPacker(WordPieceTokenizer(VOCABULARY), 6, padding_lengths=(6,))
    classifier = DocumentClassifier(
        BertBackbone(**ONE_LAYER),
        label_names=["no", "yes"],
        preprocessor=packer,
        window_pooling=AttentionPooling(),
    )
    before = classifier.window_pooling.get_weights()
    history = classifier.fit_on_features(TEXTS, LABELS, 4, 1, verbose=0).history
    assert np.isfinite(history["loss"]).all()
    assert not all(map(np.array_equal, classifier.window_pooling.get_weights(), before))


def test_what_cannot_be_cached_is_refused():
    documents = DocumentClassifier(
        BertBackbone(**ONE_LAYER), label_names=["no", "yes"], pooling=AttentionPooling()
    )
    with pytest.raises(ValueError, match="last pooling, and the .* before it has weights"):
        documents.fit_on_features(TEXTS, LABELS)
    classifier = make_classifier(pooling=MeanPooling())
    for x, y, error in (
        ([], [], "needs at least one row"),
        (iter([(TEXTS, LABELS)]), None, "rows in memory"),
    ):
        with pytest.raises(ValueError, match=error):
            classifier.fit_on_features(x, y, verbose=0)
    held_out = iter([(TEXTS, LABELS)])
    with pytest.raises(ValueError, match="rows in memory"):
        classifier.fit_on_features(TEXTS, LABELS, validation_data=held_out, verbose=0)
