"""Each text encoder of KerasHub, with its own preprocessor, under each head.

`make test` has the head that asks most of an encoder, for each encoder that no other test has.
"""

import keras
import keras_hub
import numpy as np
import pytest
from kerashub_models import ENCODERS, MODELS, SIZES
from small_texts import make_reviews

from keras_bert_suite import (
    ConvolutionPooling,
    CrfTokenClassifier,
    DocumentClassifier,
    EntitySpanClassifier,
    MaskedLM,
    MultipleChoice,
    QuestionAnswerer,
    ScalarMix,
    SegmentPacker,
    TextClassifier,
    TextEmbedder,
    TokenClassifier,
    encode_with_attention,
    export_saved_model,
)

TEXTS, LABELS = make_reviews(8)
OTHERS = make_reviews(8, seed=1)[0]

#: KerasHub's graph of byte pairs takes up to 90 seconds to trace.
NOT_EXPORTED = ("RoBERTa",)


def classify(backbone, preprocessor):
    """(task, arguments of `fit`, input of `predict`)."""
    task = TextClassifier(backbone, label_names=["no", "yes"], preprocessor=preprocessor)
    return task, (TEXTS, LABELS), TEXTS


def classify_mixed_layers(backbone, preprocessor):
    task = TextClassifier(
        backbone,
        label_names=["no", "yes"],
        pooling=ScalarMix(pooling=ConvolutionPooling(2, widths=(2,))),
        preprocessor=preprocessor,
    )
    return task, (TEXTS, LABELS), TEXTS


def embed(backbone, preprocessor):
    task = TextEmbedder(backbone, preprocessor=preprocessor)
    return task, ((TEXTS, OTHERS),), TEXTS


def label_tokens(backbone, preprocessor):
    task = TokenClassifier(backbone, num_classes=3)
    packed = preprocessor(TEXTS, y=None)
    packed = {name: np.asarray(array).astype("int32") for name, array in packed.items()}
    return task, (packed, packed["token_ids"] % 3), packed


HEADS = {
    "TextClassifier": classify,
    "TextClassifier on all layers": classify_mixed_layers,
    "TextEmbedder": embed,
    "TokenClassifier": label_tokens,
}


def choose(backbone, preprocessor):
    task = MultipleChoice(backbone, preprocessor=preprocessor)
    rows = (TEXTS, [[text, other] for text, other in zip(TEXTS, OTHERS, strict=True)])
    return task, (rows, np.arange(len(TEXTS)) % 2), rows


HEADS["MultipleChoice"] = choose


def label_words(backbone, preprocessor, cls=TokenClassifier):
    task = cls(backbone, label_names=["O", "B-X", "I-X"], preprocessor=preprocessor)
    return task, (WORDS, [["B-X", *["O"] * (len(row) - 1)] for row in WORDS]), TEXTS


def label_chains(backbone, preprocessor):
    return label_words(backbone, preprocessor, CrfTokenClassifier)


def find_spans(backbone, preprocessor):
    task = EntitySpanClassifier(backbone, label_names=["X"], preprocessor=preprocessor)
    return task, (WORDS, [[(0, 2, "X")] for _ in WORDS]), TEXTS


def answer_questions(backbone, preprocessor):
    task = QuestionAnswerer(backbone, preprocessor=preprocessor)
    rows = (OTHERS, TEXTS)
    return task, (rows, [(0, len(row[0])) for row in WORDS]), rows


def classify_documents(backbone, preprocessor):
    task = DocumentClassifier(backbone, label_names=["no", "yes"], preprocessor=preprocessor)
    documents = [f"{text} {other}" for text, other in zip(TEXTS, OTHERS, strict=True)]
    return task, (documents, LABELS), documents


def guess_words(backbone, preprocessor):
    task = MaskedLM(backbone, preprocessor=preprocessor)
    mask = task.preprocessor.tokenizer.mask_token
    return task, (TEXTS,), [f"{mask} {text}" for text in TEXTS]


WORDS = [text.split() for text in TEXTS]

#: The heads that must know where in a text a token is.
PLACED_HEADS = {
    "TokenClassifier": label_words,
    "CrfTokenClassifier": label_chains,
    "EntitySpanClassifier": find_spans,
    "QuestionAnswerer": answer_questions,
    "DocumentClassifier": classify_documents,
    "MaskedLM": guess_words,
}

#: Of the others, two are taggers as well, and one reads windows as questions do.
SHORT = [("DistilBERT", head) for head in ("TokenClassifier", "QuestionAnswerer", "MaskedLM")]

#: The encoders whose tokenizer none of ours replaces.
NO_PACKER = ("DeBERTaV3",)


def list_cells():
    for name in ENCODERS:
        for head in HEADS:
            is_long = name not in ("ALBERT", "DeBERTaV3") or head != "TextClassifier on all layers"
            marks = [pytest.mark.long("combinations")] if is_long else []
            yield pytest.param(name, head, marks=marks, id=f"{head} - {name}")


@pytest.mark.parametrize(("name", "head"), list(list_cells()))
def test_a_head_on_an_encoder(name, head, tmp_path):
    task, training, x = HEADS[head](*ENCODERS[name]())
    before = task.get_weights()
    history = task.fit(*training, batch_size=8, verbose=0).history
    assert np.isfinite(history["loss"]).all()
    assert not all(map(np.array_equal, before, task.get_weights()))
    wanted = task.predict(x, verbose=0)
    assert np.isfinite(wanted).all()
    task.save(tmp_path / "task.keras")
    again = keras.saving.load_model(tmp_path / "task.keras")
    np.testing.assert_allclose(again.predict(x, verbose=0), wanted, atol=1e-6)


@pytest.mark.parametrize("name", [name for name in ENCODERS if name not in NO_PACKER])
def test_a_packer_in_place_of_a_preprocessor(name):
    backbone, preprocessor = ENCODERS[name]()
    task = TokenClassifier(backbone, num_classes=2, preprocessor=preprocessor)
    assert isinstance(task.preprocessor, SegmentPacker)
    for columns in ((TEXTS,), (TEXTS, OTHERS)):
        wanted = preprocessor(columns if len(columns) > 1 else TEXTS, y=None)
        got = task.preprocessor.pack(*columns)
        length = got["token_ids"].shape[1]
        for key in backbone.input:
            array = np.asarray(wanted[key])
            np.testing.assert_array_equal(got[key], array[:, :length], err_msg=key)
        assert not np.asarray(wanted["padding_mask"])[:, length:].any()


# The pieces of a tokenizer that knows few of the words are too many for a window.
@pytest.mark.filterwarnings("ignore:.* answers are in no window as a whole:UserWarning")
@pytest.mark.parametrize(
    ("name", "head"),
    [
        pytest.param(
            *(name, head),
            marks=() if (name, head) in SHORT else pytest.mark.long("combinations"),
        )
        for name in ENCODERS
        if name not in NO_PACKER
        for head in PLACED_HEADS
    ],
)
def test_a_head_that_knows_where_tokens_are(name, head, tmp_path):
    task, training, x = PLACED_HEADS[head](*ENCODERS[name]())
    history = task.fit(*training, batch_size=8, verbose=0).history
    assert np.isfinite(history["loss"]).all()
    wanted = task.predict(x, verbose=0)
    assert len(wanted) == len(TEXTS)
    task.save(tmp_path / "task.keras")
    again = keras.saving.load_model(tmp_path / "task.keras")
    np.testing.assert_equal(again.predict(x, verbose=0), wanted)


def test_a_head_reads_the_states_of_an_encoder():
    """A dense layer on the first token, or on each token; a span never touches padding."""
    backbone, preprocessor = ENCODERS["DistilBERT"]()
    packed = preprocessor(TEXTS, y=None)
    packed = {key: np.asarray(array).astype("int32") for key, array in packed.items()}
    states = keras.ops.convert_to_numpy(backbone(packed, training=False))

    def score(layer, states):
        kernel, bias = layer.get_weights()
        return states @ kernel + bias

    for task, name, transform in (
        (TextClassifier(backbone, num_classes=2), "classifier", lambda x: x[:, 0]),
        (TokenClassifier(backbone, num_classes=3), "token_classifier", lambda x: x),
        (QuestionAnswerer(backbone), "span_labeler", lambda x: x),
    ):
        wanted = score(task.get_layer(name), transform(states))
        if name == "span_labeler":
            is_token = packed["padding_mask"][:, None] > 0
            wanted = np.where(is_token, wanted.transpose(0, 2, 1), -1e9)
        np.testing.assert_allclose(task.predict(packed, verbose=0), wanted, atol=1e-5)


@pytest.mark.parametrize("name", NO_PACKER)
@pytest.mark.parametrize("head", PLACED_HEADS)
def test_a_tokenizer_that_does_not_tell_is_refused(name, head):
    with pytest.raises(ValueError, match="which does not say where in a text a token is"):
        task, training, _ = PLACED_HEADS[head](*ENCODERS[name]())
        task.fit(*training, verbose=0)


@pytest.mark.long("combinations")
@pytest.mark.backend("tensorflow")
@pytest.mark.parametrize("name", [name for name in ENCODERS if name not in NOT_EXPORTED])
@pytest.mark.parametrize("head", ["TextClassifier", "TextClassifier on all layers", "TextEmbedder"])
def test_an_export(name, head, tmp_path):
    tf = pytest.importorskip("tensorflow")
    task, _, texts = HEADS[head](*ENCODERS[name]())
    task.input_names = ("text",)
    wanted = task.predict(texts, verbose=0)
    folder = export_saved_model(task, tmp_path / "task")
    answer = tf.saved_model.load(str(folder)).signatures["serving_default"](text=tf.constant(texts))
    if head == "TextEmbedder":
        got = answer["embedding"].numpy()
    else:
        wanted = keras.ops.convert_to_numpy(keras.ops.softmax(wanted))
        got = answer["probabilities"].numpy()
    np.testing.assert_allclose(got, wanted, atol=1e-5)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.long("combinations") if name in MODELS else [])
        for name in ENCODERS
    ],
)
def test_attention_of_an_encoder(name):
    backbone, preprocessor = ENCODERS[name]()
    packed = {key: np.asarray(array) for key, array in preprocessor(TEXTS[:2], y=None).items()}
    if name == "DeBERTaV3":
        with pytest.raises(ValueError, match="does not give its attention"):
            encode_with_attention(backbone, packed)
        return
    got = encode_with_attention(backbone, packed)
    number = 2 if name == "ALBERT" else 1
    assert (len(got["attentions"]), len(got["hidden_states"])) == (number, number + 1)
    outputs = backbone({key: packed[key] for key in backbone.input}, training=False)
    last = outputs["sequence_output"] if isinstance(outputs, dict) else outputs
    np.testing.assert_allclose(
        got["hidden_states"][-1], keras.ops.convert_to_numpy(last), atol=1e-5
    )
    np.testing.assert_allclose(got["attentions"][-1].sum(-1), 1.0, atol=1e-5)
    is_padding = ~packed["padding_mask"].astype(bool)
    assert not got["attentions"][-1].transpose(0, 3, 1, 2)[is_padding].any()


def test_an_encoder_without_a_padding_mask_is_refused():
    sizes = {name: size for name, size in SIZES.items() if name != "num_heads"}
    backbone = keras_hub.models.FNetBackbone(vocabulary_size=20, max_sequence_length=8, **sizes)
    with pytest.raises(ValueError, match="A FNetBackbone has no input padding_mask"):
        TextClassifier(backbone, num_classes=2, pooling=ScalarMix())
    with pytest.raises(ValueError, match="A FNetBackbone has no input padding_mask"):
        TextEmbedder(backbone)


def test_a_classifier_of_keras_hub_that_is_not_read(tmp_path):
    backbone, preprocessor = ENCODERS["DeBERTaV3"]()
    theirs = keras_hub.models.DebertaV3TextClassifier(
        backbone, num_classes=2, preprocessor=preprocessor
    )
    theirs.save_to_preset(str(tmp_path / "preset"))
    ours = TextClassifier.from_preset(tmp_path / "preset", num_classes=2)
    np.testing.assert_array_equal(ours.backbone.get_weights()[0], backbone.get_weights()[0])
