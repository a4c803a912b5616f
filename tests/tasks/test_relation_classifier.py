import contextlib

import keras
import numpy as np
import pytest
import torch
from peer_weights import randomize, to_numpy
from small_byte_pairs import MERGES, make_vocabulary
from small_texts import ONE_LAYER, VOCABULARY

from keras_bert_suite import (
    AdamW,
    BertBackbone,
    BytePairTokenizer,
    LinearWarmupDecay,
    RelationClassifier,
    RobertaBackbone,
    SegmentPacker,
    TextClassifier,
    WordPieceTokenizer,
    export_saved_model,
)
from keras_bert_suite.heads.relations.relation_classifier import MARKERS
from keras_bert_suite.layers.heads.entity_states import EntityAverages

NAMES = ["Other", "Same(e1,e2)", "Same(e2,e1)"]


def make_rows(number, seed=0):
    """The label is 1 if the first entity is "good", 2 if the second is, else 0."""
    rng = np.random.default_rng(seed)
    texts, labels = [], []
    for _ in range(number):
        first, between, second, last = rng.choice(["bad", "plot", "film", "good"], 4)
        texts.append(f"{last} <e1>{first}</e1> {between} <e2>{second}</e2> {last}")
        labels.append(1 if first == "good" else 2 if second == "good" else 0)
    return texts, [NAMES[label] for label in labels]


def make_tokenizer(markers=MARKERS):
    tokenizer = WordPieceTokenizer(VOCABULARY)
    tokenizer.add_tokens(list(markers), special=True)
    return tokenizer


def make_classifier(length=16, tokenizer=None, **kwargs):
    tokenizer = tokenizer or make_tokenizer()
    backbone = BertBackbone(**{**ONE_LAYER, "vocabulary_size": tokenizer.vocabulary_size()})
    packer = SegmentPacker(tokenizer, length, padding_lengths=(length,))
    return RelationClassifier(backbone, label_names=NAMES, preprocessor=packer, **kwargs)


def test_it_learns():
    keras.utils.set_random_seed(0)
    classifier = make_classifier(entity_states="averages", dropout=0.0)
    classifier.compile(AdamW(LinearWarmupDecay(3e-3)))
    texts, labels = make_rows(256)
    classifier.fit(texts, labels, batch_size=32, epochs=20, sequence_packing=True, verbose=0)
    texts, labels = make_rows(40, seed=1)
    scores = classifier.score(texts, labels)
    assert scores["accuracy"] > 0.9 and scores["macro_f1"] > 0.9
    assert set(scores["relations"]) == {"Same"}
    found = classifier.predict_labels(texts, verbose=0)
    assert np.mean([a == b for a, b in zip(found, labels, strict=True)]) == scores["accuracy"]


def test_another_name_of_rows_without_a_relation():
    classifier = randomize(make_classifier())
    texts, labels = make_rows(30)
    scores = classifier.score(texts, labels, other="Same")
    assert set(scores["relations"]) == {"Other"}
    wanted, found = (
        np.array(names) == "Other"
        for names in (labels, classifier.predict_labels(texts, verbose=0))
    )
    other = scores["relations"]["Other"]
    assert other["rows"] == wanted.sum()
    assert other["recall"] == pytest.approx((wanted & found).sum() / wanted.sum())


@pytest.mark.parametrize("entity_states", ["markers", "averages"])
def test_the_states_that_are_classified(entity_states):
    """The last layer computes the states of the markers alone, and so equals the whole one."""
    classifier = randomize(make_classifier(entity_states=entity_states))
    texts = make_rows(5)[0]
    packed = classifier.data.pack(classifier.data.window(classifier.data.read(texts)))[0]
    states = to_numpy(classifier.backbone(packed)["sequence_output"])
    ids = packed["token_ids"].tolist()
    known = [classifier.preprocessor.tokenizer.token_to_id(marker) for marker in MARKERS]
    places = [[row.index(marker) for marker in known] for row in ids]
    if entity_states == "markers":
        pairs = zip(states, places, strict=True)
        wanted = [np.concatenate([row[first], row[second]]) for row, (first, _, second, _) in pairs]
    else:
        wanted = compute_r_bert(states, places, classifier.averages)
    kernel, bias = map(to_numpy, classifier.relation_classifier.weights)
    np.testing.assert_allclose(
        classifier.predict(texts, verbose=0), np.array(wanted) @ kernel + bias, atol=1e-5
    )


def compute_r_bert(states, places, layer):
    """Equations 1 to 3 of Wu and He: W0 tanh(H0) + b0, and W1 tanh(mean of an entity) + b1."""
    states = torch.tensor(states)
    (w0, b0), (w1, b1) = (
        [torch.tensor(to_numpy(weight)) for weight in dense.weights]
        for dense in (layer.summary_dense, layer.entity_dense)
    )
    rows = []
    for row, (first, end, second, last) in zip(states, places, strict=True):
        entities = [row[first + 1 : end].mean(dim=0), row[second + 1 : last].mean(dim=0)]
        summary = torch.tanh(row[0]) @ w0 + b0
        rows.append(torch.cat([summary, *(torch.tanh(mean) @ w1 + b1 for mean in entities)]))
    return torch.stack(rows).numpy()


def test_an_entity_without_a_token():
    layer = EntityAverages(dropout=0.0)
    states = np.full((1, 5, 4), np.nan, "float32")
    found = to_numpy(layer(states, np.ones((1, 4), "float32"), np.array([[1, 2, 3, 4]], "int32")))
    assert np.isfinite(found).all()


def test_a_long_text_is_cut_around_its_entities():
    classifier = randomize(make_classifier(length=12))
    entities = "<e1>good</e1> a <e2>film</e2>"  # 7 tokens of 10
    for text, kept in (
        (f"{'bad ' * 30}{entities}{' plot' * 30}", f"bad {entities} plot plot"),
        (f"{'bad ' * 30}{entities}", f"bad bad bad {entities}"),
        (f"{entities}{' plot' * 30}", f"{entities} plot plot plot"),
    ):
        np.testing.assert_array_equal(
            classifier.predict([text], verbose=0), classifier.predict([kept], verbose=0)
        )


WRONG = {
    "bad <e1>film</e1> <e2>plot": "Row 1, .* has the marker </e2> 0 times, wanted once. Mark",
    "<e1>a</e1> <e1>b</e1> <e2>c</e2>": "the marker <e1> 2 times",
    "</e1>a<e1> <e2>b</e2>": "Row 1, .* has an end marker before its start",
    f"<e1>a</e1> {'bad ' * 30} <e2>b</e2>": "36 tokens from its first marker .* more than the 14",
}


@pytest.mark.parametrize("text", WRONG)
def test_wrong_markers(text):
    classifier = make_classifier()
    classifier.compile()
    rows = ["<e1>a</e1> <e2>b</e2>", text]
    with pytest.raises(ValueError, match=WRONG[text]):
        classifier.fit(rows, [0, 1], verbose=0)
    with pytest.raises(ValueError, match=WRONG[text]):
        classifier.predict(rows, verbose=0)


def test_wrong_arguments():
    with pytest.raises(ValueError, match="in one text, got rows of 2 texts"):
        make_classifier().predict((["a"], ["b"]))
    with pytest.raises(ValueError, match="markers must be 4 different strings"):
        make_classifier(markers=["$", "$", "#", "#"])
    classifier = make_classifier(tokenizer=WordPieceTokenizer(VOCABULARY))
    packed = {name: np.ones((1, 8), "int32") for name in classifier.input}
    for rows in (["<e1>a</e1> <e2>b</e2>"], packed):
        with pytest.raises(ValueError, match="does not know the markers <e1>, .*from_preset"):
            classifier.predict(rows, verbose=0)
    classifier = make_classifier()
    classifier.preprocessor = SegmentPacker(WordPieceTokenizer(VOCABULARY), 16)
    with pytest.raises(ValueError, match="The tokenizer does not know the markers <e1>, .*add_tok"):
        classifier.predict(["<e1>a</e1> <e2>b</e2>"], verbose=0)


@pytest.mark.every_backend
def test_another_tokenizer_brings_other_ids_of_markers():
    """Compiled functions have read the earlier ids."""
    rows = ["the <e1>film</e1> was a <e2>plot</e2>"]
    classifier = make_classifier(entity_states="markers")
    randomize(classifier)
    classifier.predict(rows, verbose=0)
    tokenizer = make_tokenizer(MARKERS[::-1])
    classifier.preprocessor = SegmentPacker(tokenizer, 16, padding_lengths=(16,))
    fresh = make_classifier(tokenizer=tokenizer, entity_states="markers")
    fresh.set_weights(classifier.get_weights())
    assert (
        classifier.marker_ids
        == fresh.marker_ids
        == (*range(len(VOCABULARY), len(VOCABULARY) + 4),)[::-1]
    )
    np.testing.assert_allclose(
        classifier.predict(rows, verbose=0), fresh.predict(rows, verbose=0), atol=1e-6
    )


@pytest.mark.parametrize("markers", [MARKERS, ("<e1>", "good", "<e2>", "plot")])
def test_a_checkpoint_without_markers(tmp_path, markers):
    """The vocabulary grows by the markers that it lacks; the other weights stay."""
    backbone = BertBackbone(**ONE_LAYER)
    packer = SegmentPacker(WordPieceTokenizer(VOCABULARY), 16)
    TextClassifier(backbone, 2, preprocessor=packer).save_to_preset(tmp_path / "before")
    backbone.save_to_preset(tmp_path / "backbone")
    packer.save_to_preset(tmp_path / "backbone")
    for folder in ("before", "backbone"):
        with pytest.warns(match="left out") if folder == "before" else contextlib.nullcontext():
            classifier = RelationClassifier.from_preset(
                tmp_path / folder, label_names=NAMES, markers=markers
            )
        new = [marker for marker in markers if marker not in VOCABULARY]
        assert classifier.backbone.vocabulary_size == len(VOCABULARY) + len(new)
        assert classifier.marker_ids == tuple(
            VOCABULARY.index(m) if m in VOCABULARY else len(VOCABULARY) + new.index(m)
            for m in markers
        )
        embedding = to_numpy(classifier.backbone.token_embedding.embeddings)
        old = to_numpy(backbone.token_embedding.embeddings)
        np.testing.assert_array_equal(embedding[: len(VOCABULARY)], old)
        assert classifier.compiled
    first, end, second, last = markers
    texts = [f"{first}bad{end} a {second}film{last}"]
    classifier.save_to_preset(tmp_path / "after")
    again = RelationClassifier.from_preset(tmp_path / "after")
    np.testing.assert_array_equal(
        again.predict(texts, verbose=0), classifier.predict(texts, verbose=0)
    )
    bare = RelationClassifier.from_preset(tmp_path / "after", preprocessor=None)
    assert bare.preprocessor is None


def test_byte_pairs():
    tokenizer = BytePairTokenizer(make_vocabulary(), MERGES)
    tokenizer.add_tokens(list(MARKERS), special=True)
    sizes = {**ONE_LAYER, "vocabulary_size": tokenizer.vocabulary_size()}
    packer = SegmentPacker(tokenizer, 16)
    classifier = RelationClassifier(RobertaBackbone(**sizes), 2, preprocessor=packer)
    assert classifier.predict(["a <e1>é</e1> b<e2>c</e2>"], verbose=0).shape == (1, 2)


@pytest.mark.long("serving")
def test_a_saved_model_refuses_wrong_markers(tmp_path):
    tf = pytest.importorskip("tensorflow")
    text = "a <e1>bad</e1> film <e2>plot</e2>"
    export_saved_model(make_classifier(), tmp_path / "1")
    model = tf.saved_model.load(str(tmp_path / "1"))
    serve = model.signatures["serving_default"]
    assert serve(text=tf.constant([text]))["labels"].shape == (1,)
    for wrong in (
        *("a <e1>bad</e1> film", text + "<e1>good</e1>"),
        *("a </e1>bad<e1> film <e2>plot</e2>", "a <e1>bad</e1> film </e2>plot<e2>"),
    ):
        with pytest.raises(tf.errors.InvalidArgumentError, match="once"):
            serve(text=tf.constant([text, wrong]))
