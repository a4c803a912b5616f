import keras
import numpy as np
import pytest
from keras import ops
from kerashub_models import make_distil_bert
from peer_weights import to_numpy
from small_embedder import LENGTH, make_embedder, make_pairs
from small_texts import ONE_LAYER, make_reviews

from keras_bert_suite import (
    AdamW,
    BatchAllTriplet,
    BertBackbone,
    CoSENT,
    CosineRegression,
    InBatchNegatives,
    LinearWarmupDecay,
    TextEmbedder,
    TrainingCheckpoint,
    Triplet,
)

PAIRS, SCORES = make_pairs(12)
FIRST, SECOND = PAIRS
THIRD = make_reviews(12, seed=7)[0]


@pytest.fixture(scope="module")
def embedder():
    """An untrained embedder, not to be changed."""
    return make_embedder()


def test_it_learns_from_raw_strings_in_bfloat16_part_by_part():
    embedder = make_embedder(dtype="mixed_bfloat16", dropout=0.1)
    pairs, scores = make_pairs(128, seed=3)
    held_out = make_pairs(96, seed=9)  # batches of one shape
    embedder.compile(AdamW(LinearWarmupDecay(1e-2)), CoSENT(), cache_batch_size=32)
    history = embedder.fit(
        pairs, scores, batch_size=32, epochs=6, validation_data=held_out, verbose=0
    ).history
    assert set(history) == {"loss", "val_loss"}
    found = embedder.score(*held_out)
    assert set(found) == {"spearman", "pearson"} and found["spearman"] > 0.7
    vectors = embedder.predict(FIRST, verbose=0)
    assert vectors.shape == (12, 16) and vectors.dtype == "float32"
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-3)


@pytest.mark.parametrize(
    "loss, x, y",
    [
        (InBatchNegatives(0.1), FIRST, None),
        (InBatchNegatives(0.1), (FIRST, SECOND, THIRD), None),
        pytest.param(CosineRegression(), PAIRS, SCORES, marks=()),
        pytest.param(
            Triplet(),
            {"anchor": FIRST, "positive": SECOND, "negative": THIRD},
            None,
            marks=(),
        ),
        (lambda y, vectors: ops.sum(vectors[:, 0] * vectors[:, 1], axis=-1), PAIRS, None),
    ],
    ids=["SimCSE", "hard negatives", "cosine regression", "triplets", "own function"],
)
def test_rows_of_each_loss(loss, x, y):
    embedder = make_embedder(dropout=0.1 if isinstance(x, list) else 0.0)
    embedder.compile(AdamW(1e-3), loss)
    columns = (x, x) if isinstance(x, list) else x
    columns = tuple(columns.values()) if isinstance(columns, dict) else columns
    vectors = np.stack([embedder.predict(texts, verbose=0) for texts in columns], axis=1)
    numbers = np.unique(np.stack(columns, axis=1), return_inverse=True)[1].reshape(12, -1)
    wanted = np.mean(to_numpy(loss(numbers.astype("int32") if y is None else y, vectors)))
    got = embedder.evaluate(x, y, batch_size=12, verbose=0)
    assert got == pytest.approx(float(wanted), rel=1e-4)
    packed = stack_packed(embedder, columns[:1] if isinstance(x, list) else columns)
    assert embedder.evaluate(packed, y, batch_size=12, verbose=0) == pytest.approx(got, rel=1e-4)
    before = embedder.get_weights()
    embedder.fit(x, y, batch_size=4, verbose=0)
    moved = [bool((a != b).any()) for a, b in zip(before, embedder.get_weights(), strict=True)]
    # The pooler has no part in the vectors.
    assert len(moved) - sum(moved) <= 3


def test_rows_with_different_numbers_of_negatives():
    """The loss is a transcription of the rule, over the texts that there are."""
    embedder = make_embedder()
    anchors, positives = ["the good film", "the bad plot", "a cat"], ["good", "bad", "cat"]
    negatives = [["the film", "a plot"], [], ["dull"]]
    unit = embedder.predict([*anchors, *positives, "the film", "a plot", "dull"], verbose=0)
    unit = unit / np.linalg.norm(unit, axis=-1, keepdims=True)
    logits = unit[:3] @ unit[3:].T / 0.05
    wanted = (np.log(np.exp(logits).sum(axis=1)) - np.diag(logits)).mean()
    embedder.compile("sgd", InBatchNegatives(distinct_texts=True))
    rows = (anchors, positives, negatives)
    assert embedder.evaluate(rows, verbose=0) == pytest.approx(wanted, rel=1e-4)
    embedder.fit(rows, validation_data=((anchors, positives, [["dull"], [], []]), None), verbose=0)
    assert embedder.column_names is None
    embedder.compile("sgd", Triplet())
    with pytest.raises(ValueError, match="Triplet takes rows of the same number of texts"):
        embedder.fit((anchors, positives, [["dull"], [], ["dull"]]), verbose=0)
    with pytest.raises(ValueError, match="negatives of row 1 are 'film', wanted a list of texts"):
        embedder.fit((anchors, positives, [["dull"], "film", []]), verbose=0)


def test_scores_and_labels_may_be_one_column():
    embedder = make_embedder()
    for loss, x, y in ((CoSENT(), PAIRS, SCORES), (BatchAllTriplet(5.0), FIRST, np.arange(12) % 3)):
        embedder.compile("sgd", loss)
        wanted = embedder.evaluate(x, y, batch_size=12, verbose=0)
        found = embedder.evaluate(x, y[:, None], batch_size=12, verbose=0)
        assert found == pytest.approx(wanted, rel=1e-5) and wanted > 0


def test_equal_views_are_refused():
    embedder = make_embedder(dropout=0.0)
    embedder.compile(AdamW(1e-3))
    refused = pytest.raises(ValueError, match="All dropout rates of this embedder are 0")
    with refused:
        embedder.fit(FIRST, batch_size=4, verbose=0)
    with refused:
        embedder.train_on_batch(FIRST)
    embedder.fit(PAIRS, batch_size=4, verbose=0)
    # One rate is enough: that of the attention, or of a layer of the user.
    for drops in ({"attention_dropout": 0.1}, {"pooling": DroppedMean()}):
        arguments = {**ONE_LAYER, "dropout": 0.0, **drops}
        pooling = arguments.pop("pooling", "mean")
        backbone = BertBackbone(**arguments)
        twin = TextEmbedder(backbone, pooling=pooling, preprocessor=embedder.preprocessor)
        twin.fit(FIRST, batch_size=4, verbose=0)


class DroppedMean(keras.layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.drop = keras.layers.Dropout(0.1)

    def call(self, states, mask=None):
        return ops.mean(self.drop(states), axis=1)


def stack_packed(embedder, columns):
    """Packed arrays (B, S, L), or (B, L) of one column."""
    packed = [embedder.preprocessor.pack(column) for column in columns]
    stacked = {name: np.stack([arrays[name] for arrays in packed], axis=1) for name in packed[0]}
    return packed[0] if len(columns) == 1 else stacked


def test_columns_by_name_may_come_in_any_order():
    embedder = make_embedder()
    embedder.compile(AdamW(1e-3), Triplet())
    named = {"anchor": FIRST, "positive": SECOND, "negative": THIRD}
    embedder.fit(named, batch_size=12, verbose=0)
    assert embedder.column_names == ("anchor", "positive", "negative")
    assert embedder.input_names is None
    wanted = embedder.evaluate(named, batch_size=12, verbose=0)
    reverse = dict(reversed(named.items()))
    assert embedder.evaluate(reverse, batch_size=12, verbose=0) == pytest.approx(wanted)
    with pytest.raises(ValueError, match="The columns are named a, b, c"):
        embedder.evaluate({"a": FIRST, "b": SECOND, "c": THIRD}, verbose=0)
    vectors = embedder.predict({"text": FIRST}, verbose=0)
    np.testing.assert_array_equal(vectors, embedder.predict(FIRST, verbose=0))


def test_datasets_of_rows_without_scores():
    import grain
    import tensorflow as tf

    embedder = make_embedder()
    embedder.compile(AdamW(1e-3), InBatchNegatives())
    named = {"anchor": FIRST, "positive": SECOND}
    tensors = tf.data.Dataset.from_tensor_slices(named).batch(6)
    rows = [{"anchor": a, "positive": b} for a, b in zip(FIRST, SECOND, strict=True)]
    loss = embedder.fit(tensors, verbose=0, shuffle=False).history["loss"]
    assert np.isfinite(loss).all() and embedder.column_names == ("anchor", "positive")
    wanted = embedder.evaluate(tensors, verbose=0)
    batches = grain.MapDataset.source(rows).batch(6)
    assert embedder.evaluate(batches, verbose=0) == pytest.approx(wanted, rel=1e-4)


def test_comparing_and_searching(embedder):
    vectors = embedder.predict(SECOND, verbose=0)
    queries = embedder.predict(FIRST[:3], verbose=0)
    cosines = queries @ vectors.T
    np.testing.assert_allclose(embedder.similarity(FIRST[:3], vectors), cosines, atol=1e-5)
    pairwise = embedder.similarity_pairwise(FIRST[:3], SECOND[:3])
    np.testing.assert_allclose(pairwise, np.diag(cosines[:, :3]), atol=1e-5)
    hits = embedder.search(FIRST[:3], SECOND, top_k=4)
    assert [[hit.id for hit in row] for row in hits] == np.argsort(-cosines)[:, :4].tolist()
    assert embedder.search(queries, vectors, top_k=4) == embedder.search(queries, vectors, 4)
    batches = ((SECOND[i : i + 4],) for i in range(0, 12, 4))
    ids = [[hit.id for hit in row] for row in embedder.search(FIRST[:3], batches, top_k=4)]
    assert ids == [[hit.id for hit in row] for row in hits]
    corpus = {f"d{i}": text for i, text in enumerate(SECOND)}
    relevant = {"q0": {f"d{np.argsort(-cosines[0])[1]}"}, "q1": [f"d{np.argmax(cosines[1])}"]}
    texts = {f"q{i}": text for i, text in enumerate(FIRST[:3])}
    found = embedder.score_retrieval(texts, corpus, relevant, top_k=(1, 2))
    assert found["mrr"] == pytest.approx(0.75)
    assert (found["recall@1"], found["recall@2"]) == (0.5, 1.0)
    lists = [[np.argsort(-cosines[0])[1]], [np.argmax(cosines[1])], ()]
    assert embedder.score_retrieval(FIRST[:3], SECOND, lists, top_k=(1, 2)) == found
    # The last of twelve is only found by a search for all.
    last = {"q0": [f"d{np.argmin(cosines[0])}"]}
    found = embedder.score_retrieval(texts, corpus, last, top_k=(11, 12))
    assert (found["recall@11"], found["recall@12"]) == (0.0, 1.0)
    assert embedder.predict([], verbose=0).shape == (0, 16)


def test_bad_input(embedder):
    def refuses(message, function, *args, **kwargs):
        with pytest.raises(ValueError, match=message):
            function(*args, **kwargs)

    refuses("The corpus is empty", embedder.search, ["the film"], [])
    refuses(
        "top_k must be an integer of at least 1, got 0",
        embedder.search,
        ["the film"],
        FIRST,
        top_k=0,
    )
    refuses("rows of 2 texts. Call it for each column", embedder.predict, PAIRS, verbose=0)
    refuses("takes rows without scores", embedder.fit, PAIRS, SCORES, verbose=0)
    refuses("pairs|x=\\(first_texts, second_texts\\)", embedder.fit, FIRST, SECOND, verbose=0)
    refuses(
        "prompts must be a dict of name -> str", TextEmbedder, embedder.backbone, prompts={"q": 3}
    )
    refuses("has no classes", embedder.fit, PAIRS, class_weight={0: 1.0}, verbose=0)
    refuses("at least one row", embedder.fit, ([], []), verbose=0)
    refuses(
        "relevant\\['q'\\] must be a collection of document ids, got 'd12'",
        embedder.score_retrieval,
        *({"q": "good"}, {"d12": "bad"}, {"q": "d12"}),
    )
    for wrong, message in (
        ([0, 1], r"relevant\[0\] must be a collection of document ids, got 0. One id is a set"),
        ([["bad"], []], "'bad' is relevant to query 0, but is no id of the corpus.*are positions"),
        ([[0]], "needs an entry for each of the 2 queries, got 1"),
    ):
        refuses(message, embedder.score_retrieval, ["good", "film"], ["bad", "plot"], wrong)
    refuses("the same place, got 3 and 1 texts", embedder.similarity_pairwise, FIRST[:3], FIRST[:1])
    refuses("Texts must be in an order, got a set", embedder.predict, {"good", "bad"}, verbose=0)
    for ids in ("ab", {1, 2}):
        refuses("ids must be a list", embedder.index, FIRST[:2], ids=ids, verbose=0)
    with pytest.raises(
        TypeError, match=r"TextEmbedder.predict has no argument 'prompt_name'.*'prompt'"
    ):
        embedder.predict(FIRST, prompt_name="query")
    refuses("a dict or a list of texts, got the text", embedder.score_retrieval, "a", ["b"], [[0]])
    pairs = list(zip(*PAIRS, strict=True))[:2]
    refuses(r"got a list of 2. Pass tuple\(map\(list, zip", embedder.score, pairs, SCORES[:2])
    three = {"a": FIRST[:2], "b": SECOND[:2], "c": FIRST[:2]}
    refuses("two columns of texts, got 3. Pass a tuple", embedder.score, three, SCORES[:2])
    named = {"a": FIRST[:2], "b": SECOND[:2]}
    assert embedder.score(named, SCORES[:2]) == embedder.score((FIRST[:2], SECOND[:2]), SCORES[:2])
    relevant = {"q": ["missing"]}
    refuses(
        "'missing' is relevant to query 'q'",
        embedder.score_retrieval,
        *({"q": "good"}, {"d": "bad"}, relevant),
    )
    refuses("finite score for each of 12 pairs.* \\(3,\\)", embedder.score, PAIRS, SCORES[:3])
    refuses("a score that is NaN", embedder.score, PAIRS, [1, 0, np.nan] + [0] * 9)
    for loss in (
        "mse",
        "MultipleNegativesRankingLoss",
        keras.losses.MeanSquaredError(),
        keras.losses.mean_squared_error,
    ):
        refuses("compile with CosineRegression", embedder.compile, loss=loss)
    refuses(
        "could not convert string to float: 'high'",
        embedder.score,
        PAIRS,
        [1.0, "high"] + [0.0] * 10,
    )
    nan = np.full((2, 16), np.nan, "float32")
    for other in (embedder.search, embedder.similarity):
        refuses("vector at row 0 has NaN", other, nan, FIRST)
        refuses("vector at row 0 has NaN", other, FIRST, nan)
    refuses("cache_batch_size must be .* got 0", embedder.compile, cache_batch_size=0)
    refuses("pooling must be one of", make_embedder, pooling="average")
    embedder.compile(loss=CoSENT())
    refuses("got the score 1.0 for all of 12 rows", embedder.fit, PAIRS, [1.0] * 12, verbose=0)
    embedder.compile(loss=CosineRegression())
    refuses("got 5.0 at row 0", embedder.fit, PAIRS, 5.0 * np.ones(12), verbose=0)
    refuses("a label for each row", embedder.fit, PAIRS, verbose=0)
    refuses("got nan at row 2", embedder.fit, PAIRS, [1.0, 0.5, np.nan] + [0.0] * 9, verbose=0)
    refuses("rows of 2 texts, got rows of 3", embedder.fit, (*PAIRS, THIRD), SCORES, verbose=0)
    embedder.compile()


def test_one_dense_layer_needs_no_list(embedder):
    one = TextEmbedder(embedder.backbone, dense_layers=keras.layers.Dense(3))
    assert [layer.units for layer in one.dense_layers] == [3] and one.output_shape == (None, 3)


@pytest.mark.parametrize("pooling", ["first_last_average", "learned"])
def test_saved_embedders_are_whole(tmp_path, pooling):
    if pooling == "learned":
        pooling = LearnedPooling(name="learned")
    embedder = make_embedder(pooling=pooling, normalize=False, column_names=("a", "b"))
    embedder.compile(loss=InBatchNegatives(0.2), cache_batch_size=7)
    wanted = embedder.predict(FIRST, verbose=0)
    embedder.save(tmp_path / "embedder.keras")
    again = keras.saving.load_model(tmp_path / "embedder.keras")
    assert again.cache_batch_size == 7 and again.loss.temperature == 0.2
    embedder.save_to_preset(tmp_path / "preset")
    for copy in (again, TextEmbedder.from_preset(tmp_path / "preset")):
        assert copy.pooling_name == embedder.pooling_name and not copy.normalize
        assert copy.column_names == ("a", "b")
        np.testing.assert_allclose(copy.predict(FIRST, verbose=0), wanted, atol=1e-6)


@keras.saving.register_keras_serializable(package="tests")
class LearnedPooling(keras.layers.Layer):
    """A weighted sum of the tokens, with a weight for each feature."""

    def build(self, sequence_output_shape, padding_mask_shape):
        self.scale = self.add_weight(shape=(sequence_output_shape[-1],), name="scale")

    def call(self, sequence_output, padding_mask):
        mask = ops.cast(padding_mask, sequence_output.dtype)[:, :, None]
        return ops.sum(sequence_output * mask, axis=1) * self.scale

    def compute_output_shape(self, sequence_output_shape, padding_mask_shape):
        return (sequence_output_shape[0], sequence_output_shape[-1])


def test_an_encoder_of_keras_hub():
    backbone, preprocessor = make_distil_bert()
    for pooling in ("mean", "first_last_average"):
        embedder = TextEmbedder(backbone, pooling=pooling, preprocessor=preprocessor)
        vectors = embedder.predict(FIRST, verbose=0)
        assert vectors.shape == (12, 8) and np.isfinite(vectors).all()
    packed = preprocessor(FIRST, y=None)
    mask = np.asarray(packed["padding_mask"])[:, :, None].astype("float32")
    states = to_numpy(backbone({name: np.asarray(array) for name, array in packed.items()}))
    pooled = (states * mask).sum(axis=1) / mask.sum(axis=1)
    embedder = TextEmbedder(backbone, preprocessor=preprocessor, normalize=False)
    np.testing.assert_allclose(embedder.predict(FIRST, verbose=0), pooled, atol=1e-5)


def test_an_interrupted_fit_goes_on(tmp_path):
    """With cached gradients and dropout, whose random states the checkpoint holds."""

    class Stop(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            if batch == 3:
                raise KeyboardInterrupt

    def train(folder, *callbacks):
        keras.utils.set_random_seed(1)
        embedder = make_embedder(dropout=0.1)
        embedder.compile(AdamW(LinearWarmupDecay(1e-2)), InBatchNegatives(), cache_batch_size=4)
        checkpoint = TrainingCheckpoint(folder, every=2)
        try:
            embedder.fit(
                PAIRS, batch_size=2, epochs=1, callbacks=[checkpoint, *callbacks], verbose=0
            )
        except KeyboardInterrupt:
            return None
        return embedder.get_weights()

    wanted = train(tmp_path / "whole")
    assert train(tmp_path / "stopped", Stop()) is None
    for a, b in zip(train(tmp_path / "stopped"), wanted, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)


def test_the_length_of_a_batch_may_change(embedder):
    assert embedder.preprocessor.sequence_length == LENGTH
    long = embedder.predict(["good " * 40, "good"], batch_size=1, verbose=0)
    assert long.shape == (2, 16)
