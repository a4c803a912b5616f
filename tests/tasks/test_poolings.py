"""A TextClassifier on a pooling of the hidden states."""

import re

import keras
import numpy as np
import pytest
from checkers import evaluate
from kerashub_models import make_distil_bert
from peer_weights import randomize, to_numpy
from small_texts import ONE_LAYER, VOCABULARY, make_reviews

from keras_bert_suite import (
    AttentionPooling,
    BertBackbone,
    BiLSTMPooling,
    ConvolutionPooling,
    FirstTokenPooling,
    LastLayers,
    MeanPooling,
    ScalarMix,
    SegmentPacker,
    TextClassifier,
    TokenClassifier,
    WordPieceTokenizer,
    export_litert,
    export_onnx,
    export_saved_model,
)
from keras_bert_suite.checkpoints import save_google_tf1, save_hugging_face
from keras_bert_suite.models import TextEncoder

TEXTS, LABELS = make_reviews(12)
LENGTH = 16

POOLINGS = {
    "first token": FirstTokenPooling,
    "mean": MeanPooling,
    "Keras' own": keras.layers.GlobalAveragePooling1D,
    "attention": AttentionPooling,
    "convolution": lambda: ConvolutionPooling(4),
    "BiLSTM": BiLSTMPooling,
    "scalar mix": lambda: ScalarMix(pooling=AttentionPooling()),
    "last layers": lambda: LastLayers(1),  # and the mean, by its name
}


def make_classifier(dtype=None, **kwargs):
    # One length, so that JAX compiles each step once.
    packer = SegmentPacker(WordPieceTokenizer(VOCABULARY), LENGTH, padding_lengths=(LENGTH,))
    kwargs = {"label_names": ["no", "yes"], "preprocessor": packer, **kwargs}
    return TextClassifier(BertBackbone(**ONE_LAYER, dropout=0.0, dtype=dtype), **kwargs)


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        pytest.param("first token", None, marks=pytest.mark.long("combinations")),
        pytest.param("mean", None, marks=pytest.mark.long("combinations")),
        ("Keras' own", None),
        pytest.param("attention", None, marks=pytest.mark.long("combinations")),
        pytest.param("attention", "mixed_bfloat16", marks=pytest.mark.long("combinations")),
        pytest.param("convolution", "mixed_bfloat16", marks=pytest.mark.long("combinations")),
        pytest.param("BiLSTM", "mixed_bfloat16", marks=pytest.mark.long("combinations")),
        ("scalar mix", "mixed_bfloat16"),
        pytest.param("last layers", "mixed_bfloat16", marks=pytest.mark.long("combinations")),
    ],
)
def test_a_classifier_with_a_pooling_is_whole(name, dtype, tmp_path):
    classifier = make_classifier(dtype, pooling=POOLINGS[name](), dropout=0.0)
    randomize(classifier)
    packed = classifier.preprocessor(TEXTS[:3])
    longer = {key: np.pad(array, [(0, 0), (0, 3)]) for key, array in packed.items()}
    longer["token_ids"][:, LENGTH:] = 7
    tolerance = 5e-2 if dtype else 1e-5
    wanted = to_numpy(evaluate(classifier, packed))
    assert wanted.dtype == "float32"
    np.testing.assert_allclose(to_numpy(evaluate(classifier, longer)), wanted, atol=tolerance)

    # Under PyTorch, a model on the layers of a backbone does not list the weights of other layers.
    weights = {w.path: w for w in (*classifier.weights, *classifier.backbone.weights)}
    before = {path: to_numpy(weight) for path, weight in weights.items()}
    history = classifier.fit(TEXTS, LABELS, batch_size=12, verbose=0).history
    assert np.isfinite(history["loss"]).all()
    moved = {path for path, w in weights.items() if (to_numpy(w) != before[path]).any()}
    idle = {path for path in before if "pooler/" in path}
    assert len(idle) == 2 and not moved & idle
    assert not idle & {variable.path for variable in classifier.trainable_variables}
    assert moved >= {w.path for w in classifier.pooling.weights}

    wanted = to_numpy(evaluate(classifier, packed))
    classifier.save(tmp_path / "classifier.keras")
    again = keras.saving.load_model(tmp_path / "classifier.keras")
    classifier.save_to_preset(tmp_path / "preset")
    for copy in (again, TextClassifier.from_preset(tmp_path / "preset", dtype=dtype)):
        assert type(copy.pooling) is type(classifier.pooling)
        np.testing.assert_allclose(to_numpy(evaluate(copy, packed)), wanted, atol=1e-6)


def test_all_layers_of_a_backbone_of_keras_hub():
    backbone, preprocessor = make_distil_bert()
    classifier = TextClassifier(
        backbone, num_classes=2, preprocessor=preprocessor, pooling=ScalarMix()
    )
    classifier.fit(TEXTS, [0, 1] * 6, verbose=0)
    assert classifier.pooling.layer_weights.shape == (2,)
    assert np.isfinite(classifier.predict(TEXTS, verbose=0)).all()


@pytest.mark.long("combinations")
@pytest.mark.parametrize("name", ["attention", "convolution", "BiLSTM", "scalar mix"])
@pytest.mark.parametrize("file_format", ["SavedModel", "ONNX", "LiteRT"])
def test_exports(name, file_format, tmp_path):
    classifier = make_classifier(pooling=POOLINGS[name](), input_names=("text",))
    randomize(classifier)
    packed = classifier.preprocessor(TEXTS)
    wanted = keras.ops.convert_to_numpy(keras.ops.softmax(classifier.predict(packed, verbose=0)))
    if file_format == "SavedModel":
        tf = pytest.importorskip("tensorflow")
        folder = export_saved_model(classifier, tmp_path / "saved")
        serve = tf.saved_model.load(str(folder)).signatures["serving_default"]
        got = serve(text=tf.constant(TEXTS))["probabilities"].numpy()
    elif file_format == "ONNX":
        runtime = pytest.importorskip("onnxruntime")
        export_onnx(classifier, tmp_path / "saved")
        session = runtime.InferenceSession(tmp_path / "saved" / "model.onnx")
        (got,) = session.run(["probabilities"], packed)
    elif name == "BiLSTM":
        pytest.skip("LiteRT has no recurrent layers on batches of any size.")
    else:
        litert = pytest.importorskip("ai_edge_litert.interpreter")
        export_litert(classifier, tmp_path / "saved")
        path = str(tmp_path / "saved" / "model.tflite")
        run = litert.Interpreter(path).get_signature_runner()
        (got,) = run(**packed).values()
    np.testing.assert_allclose(got, wanted, atol=1e-5)


@pytest.mark.parametrize(
    "make_pooling",
    [
        pytest.param(AttentionPooling, marks=pytest.mark.long("combinations")),
        lambda name: ScalarMix(AttentionPooling(), name=name),
    ],
)
def test_a_checkpoint_gets_a_pooling_with_a_new_layer(make_pooling, tmp_path):
    plain = make_classifier()
    save_hugging_face(plain, tmp_path / "checkpoint")
    save_google_tf1(plain, tmp_path / "google")
    plain.save_to_preset(tmp_path / "preset")
    for preset in (tmp_path / "checkpoint", tmp_path / "google", tmp_path / "preset"):
        with pytest.raises(ValueError, match="With `pooling`, pass `num_classes`"):
            TextClassifier.from_preset(preset, pooling=AttentionPooling())
        with pytest.warns(UserWarning, match="holds a classification layer"):
            classifier = TextClassifier.from_preset(
                preset, num_classes=3, pooling=make_pooling(name="weights_of_tokens")
            )
        assert classifier.predict(TEXTS, verbose=0).shape == (12, 3)
        got, wanted = (c.backbone.weights for c in (classifier, plain))
        for ours, theirs in zip(got, wanted, strict=True):
            np.testing.assert_array_equal(to_numpy(ours), to_numpy(theirs))

    # A new layer on a preset whose pooling is another starts from the pooled output.
    classifier.save_to_preset(tmp_path / "pooled")
    with pytest.warns(UserWarning, match="holds a classification layer"):
        assert TextClassifier.from_preset(tmp_path / "pooled", num_classes=2).pooling is None


@pytest.mark.parametrize("save", [save_hugging_face, save_google_tf1])
@pytest.mark.parametrize("name", ["mean", "attention"])
def test_formats_of_others_refuse_a_pooling(save, name, tmp_path):
    classifier = make_classifier(pooling=POOLINGS[name]())
    wanted = f"classifies the pooled output .* pooling={type(classifier.pooling).__name__}"
    with pytest.raises(ValueError, match=wanted):
        save(classifier, tmp_path / "saved")
    save(classifier.backbone, tmp_path / "backbone")


@pytest.mark.parametrize(
    ("pooling", "error"),
    [
        ("average", "pooling must be one of mean"),
        (
            keras.layers.GlobalAveragePooling1D(keepdims=True),
            "A pooling layer must return one vector (B, P)",
        ),
        (AttentionPooling(name="classifier"), 'The name "classifier" is used 2 times'),
        (LastLayers(3), "num_layers must be from 1 to 1, the number of layers"),
    ],
)
def test_wrong_poolings(pooling, error):
    with pytest.raises(ValueError, match=re.escape(error)):
        make_classifier(pooling=pooling)


@pytest.mark.long("combinations")
def test_recurrent_layers_of_keras():
    """They get the mask by its name, and are then as our layer of the same weights."""
    ours = make_classifier(pooling=BiLSTMPooling(4))
    theirs = make_classifier(pooling=keras.layers.Bidirectional(keras.layers.LSTM(4)))
    theirs.set_weights(ours.get_weights())
    np.testing.assert_allclose(
        theirs.predict(TEXTS, verbose=0), ours.predict(TEXTS, verbose=0), atol=1e-5
    )
    theirs.fit(TEXTS, LABELS, verbose=0)
    mixed = make_classifier(pooling=ScalarMix(pooling=keras.layers.LSTM(4)))
    assert mixed.predict(TEXTS, verbose=0).shape == (12, 2)


class OwnEncoder(TextEncoder):
    """An encoder of a user, which takes no packed rows."""

    def __init__(self, **kwargs):
        inputs = {name: keras.Input((None,), dtype="int32", name=name) for name in NAMES}
        table = keras.layers.ReversibleEmbedding(len(VOCABULARY), 8)
        self.transformer_layers = [keras.layers.Dense(8), keras.layers.Dense(8)]
        states = table(inputs["token_ids"])
        for layer in self.transformer_layers:
            states = layer(states)
        super().__init__(inputs=inputs, outputs={"sequence_output": states}, **kwargs)
        self.token_embedding = table


NAMES = ("token_ids", "segment_ids", "padding_mask")


def test_a_mix_of_the_layers_of_an_encoder_that_cannot_pack():
    packer = SegmentPacker(WordPieceTokenizer(VOCABULARY), LENGTH)
    arguments = {"label_names": ["no", "yes"], "preprocessor": packer}
    classifier = TextClassifier(OwnEncoder(), pooling=ScalarMix(), **arguments)
    assert classifier.predict(TEXTS[:3], verbose=0).shape == (3, 2)
    tagger = TokenClassifier(OwnEncoder(), head_layers=[ScalarMix(pooling=None)], **arguments)
    assert len(tagger.predict_tags([["good", "film"]], verbose=0)[0]) == 2
