"""What heads ask of an encoder, answered by two LSTMs: an encoder without transformer blocks."""

import keras
import keras_hub
import numpy as np
import pytest
import small_tasks
from heads.cases import BATCH_SIZE, FIRST, LABELS, LENGTH, PAIRS, TASKS
from serving.traced import called_or_saved
from small_tasks import compile_model, make_task
from small_texts import TINY, VOCABULARY
from tables import short_for

from keras_bert_suite import (
    FGM,
    ElectraPretrainer,
    MaskedLM,
    MeanPooling,
    Pretrainer,
    RelationClassifier,
    ScalarMix,
    SegmentPacker,
    Seq2Seq,
    TextClassifier,
    TextEmbedder,
    TokenClassifier,
    WordPieceTokenizer,
    encode_with_attention,
)
from keras_bert_suite.models import BertBackbone, Encoder, TextEncoder

#: Two need a decoder, and one transformer layers. The others read an encoder as "texts" do.
LEFT_OUT = ("continuations", "targets", "exits", "pairs", "label sets", "numbers")


@keras.saving.register_keras_serializable(package="tests")
class LstmEncoder(TextEncoder):
    """Two LSTMs. With `pooled` the maximum of the states is the vector of a row."""

    def __init__(self, vocabulary_size, hidden_dim=4, pooled=True, *, dtype=None, **kwargs):
        self.vocabulary_size, self.hidden_dim, self.pooled = vocabulary_size, hidden_dim, pooled
        self.token_embedding = keras.layers.ReversibleEmbedding(
            vocabulary_size, hidden_dim, dtype=dtype, name="token_embedding"
        )
        names = ("token_ids", "padding_mask")
        inputs = {name: keras.Input((None,), dtype="int32", name=name) for name in names}
        is_token = inputs["padding_mask"] != 0
        states = [self.token_embedding(inputs["token_ids"])]
        for i in range(2):
            layer = keras.layers.LSTM(
                hidden_dim, return_sequences=True, dtype=dtype, name=f"lstm_{i}"
            )
            # `where` drops the mask of Keras, by which it would weigh the losses of a task.
            x = layer(states[-1], mask=is_token)
            states.append(keras.ops.where(is_token[:, :, None], x, 0.0))
        self.hidden_states = states
        outputs = states[-1]
        if pooled:
            outputs = {"sequence_output": outputs, "pooled_output": keras.ops.max(outputs, axis=1)}
        super().__init__(inputs=inputs, outputs=outputs, dtype=dtype, **kwargs)

    def get_config(self):
        own = ("vocabulary_size", "hidden_dim", "pooled")
        return {**super().get_config(), **{name: getattr(self, name) for name in own}}


def make_lstms(**arguments):
    """(encoder, packer)."""
    packer = SegmentPacker(WordPieceTokenizer(VOCABULARY), LENGTH, padding_lengths=(LENGTH,))
    return LstmEncoder(len(VOCABULARY), **arguments), packer


def make_plain():
    """The same layers in a backbone that says nothing of itself."""
    encoder, packer = make_lstms(pooled=False)

    class Plain(keras_hub.models.Backbone):
        pass

    plain = Plain(inputs=encoder.input, outputs=encoder.output)
    with pytest.raises(ValueError, match="A Plain has no token_embedding"):
        MaskedLM(plain)
    plain.token_embedding = encoder.token_embedding
    return plain, packer


@pytest.mark.parametrize(
    "task",
    short_for(
        [task for task in TASKS if task not in LEFT_OUT],
        # Vectors of rows, states of tokens, of several texts, of places, of all layers; the table.
        *("texts", "words", "towers", "relations", "vectors", "masks"),
        part="combinations",
    ),
)
def test_a_head_on_lstms(task, tmp_path, monkeypatch):
    monkeypatch.setattr(small_tasks, "make_parts", lambda *_: make_lstms())
    kind = "none" if task == "pretraining" else "SegmentPacker"
    model, (x, y, *weights) = make_task(task, kind)
    compile_model(model)
    before = model.backbone.get_layer("lstm_0").get_weights()
    weights = {"sample_weight": weights[0]} if weights else {}
    history = model.fit(x, y, BATCH_SIZE, verbose=0, **weights).history
    assert np.isfinite(history["loss"]).all()
    assert not np.array_equal(before[0], model.backbone.get_layer("lstm_0").get_weights()[0])
    columns = small_tasks.predicted_columns(model, x)
    wanted = small_tasks.predict(model, x=columns)
    model.save(tmp_path / "task.keras")
    again = keras.saving.load_model(tmp_path / "task.keras")
    small_tasks.assert_close(small_tasks.predict(again, x=columns), wanted)


@pytest.mark.backend("tensorflow")
@pytest.mark.parametrize("task", short_for(["texts", "words"], "words", part="serving"))
@called_or_saved
def test_signatures_of_lstms(task, open_signatures, tmp_path, monkeypatch):
    tf = pytest.importorskip("tensorflow")
    monkeypatch.setattr(small_tasks, "make_parts", lambda *_: make_lstms())
    model, _ = make_task(task, "SegmentPacker")
    model.input_names = ("text",)
    answer = open_signatures(model, tmp_path)["serving_default"](text=tf.constant(FIRST))
    name = "labels" if task == "words" else "probabilities"
    assert len(answer[name]) == len(FIRST)


@pytest.mark.parametrize("make", [lambda: make_lstms(pooled=False), make_plain])
def test_an_encoder_without_vectors_of_rows(make):
    """It names no token that stands for a row. Heads that need one say so; others work."""
    encoder, packer = make()
    for build in (
        lambda: TextClassifier(encoder, 2),
        lambda: Pretrainer(encoder),
        lambda: RelationClassifier(encoder, 2, entity_states="averages"),
    ):
        with pytest.raises(ValueError, match="has no pooled_output, and no token stands for a row"):
            build()
    for pooling in ("cls", ["mean", "cls"]):
        with pytest.raises(ValueError, match="this encoder has no such token"):
            TextEmbedder(encoder, pooling=pooling)
    classifier = TextClassifier(
        encoder, label_names=["no", "yes"], pooling="mean", preprocessor=packer
    )
    packed = classifier.preprocess_samples(FIRST)
    states = encoder({name: packed[name] for name in encoder.input})
    mean = MeanPooling()(states, packed["padding_mask"])
    wanted = keras.ops.convert_to_numpy(classifier.classifier(mean))
    np.testing.assert_allclose(classifier.predict(FIRST, verbose=0), wanted, atol=1e-6)


def test_layers_of_lstms():
    encoder, packer = make_lstms(pooled=False)
    packed = packer.pack(FIRST)
    packed = {name: packed[name] for name in encoder.input}
    embedder = TextEmbedder(encoder, pooling="first_last_average", normalize=False)
    states = [encoder.get_layer("token_embedding")(packed["token_ids"])]
    for name in ("lstm_0", "lstm_1"):
        states.append(encoder.get_layer(name)(states[-1], mask=packed["padding_mask"] != 0))
    mean = MeanPooling()((states[1] + states[2]) / 2, packed["padding_mask"])
    wanted = keras.ops.convert_to_numpy(mean)
    np.testing.assert_allclose(embedder.predict(packed, verbose=0), wanted, atol=1e-6)
    tagger = TokenClassifier(encoder, 2, head_layers=ScalarMix(pooling=None))
    assert tagger.predict(packed, verbose=0).shape == (len(FIRST), packed["token_ids"].shape[1], 2)


def test_what_lstms_cannot_do():
    encoder, packer = make_lstms()
    assert not encoder.remat
    with pytest.raises(ValueError, match="LstmEncoder has no blocks to compute a second time"):
        encoder.remat = True
    classifier = TextClassifier(encoder, label_names=["no", "yes"], preprocessor=packer)
    with pytest.raises(
        ValueError, match="layers of a LstmEncoder cannot hide the rows of a packed row"
    ):
        classifier.fit(PAIRS, LABELS, sequence_packing=True, verbose=0)
    with pytest.raises(ValueError, match="those of a LstmEncoder cannot be moved"):
        classifier.compile(technique=FGM(1.0))
    with pytest.raises(ValueError, match="a LstmEncoder"):
        Seq2Seq(encoder)
    with pytest.raises(ValueError, match="got a LstmEncoder"):
        ElectraPretrainer(encoder)
    with pytest.raises(ValueError, match="A LstmEncoder names no transformer layers"):
        encode_with_attention(encoder, packer.pack(FIRST))


def test_of():
    ours = BertBackbone(**TINY)
    assert Encoder.of(ours) is ours
    theirs = keras_hub.models.BertBackbone(**TINY)
    encoder = Encoder.of(theirs)
    assert (encoder.summary_place, encoder.packs_sequences) == ("first", False)
    assert encoder.vocabulary_size == theirs.vocabulary_size
    assert encoder.token_embedding is theirs.token_embedding
    assert encoder.list_calls() == theirs.transformer_layers
