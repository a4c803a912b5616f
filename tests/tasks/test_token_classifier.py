import keras
import numpy as np
import pandas
import pytest
from sklearn.utils.class_weight import compute_class_weight
from small_texts import ONE_LAYER, VOCABULARY, make_reviews

from keras_bert_suite import (
    AdamW,
    BertBackbone,
    EntityF1,
    LinearWarmupDecay,
    SegmentPacker,
    TokenClassifier,
    WordPieceTokenizer,
)
from keras_bert_suite.checkpoints import save_hugging_face
from keras_bert_suite.heads.tags.entities import Entity

LABELS = ["O", "B-POS", "I-POS"]


def tag(words):
    """A run of "good" is an entity."""
    tags = []
    for before, word in zip([None, *words], words, strict=False):
        tags.append("O" if word != "good" else "I-POS" if before == "good" else "B-POS")
    return tags


ROWS = [text.split() for text in make_reviews(48)[0]]
ROWS[3] = ["good", "good", "\x01", "films", "filmsly"] * 12
ROWS[4] = []
TAGS = [tag(row) for row in ROWS]


def make_tagger(sequence_length=16, **kwargs):
    tokenizer = WordPieceTokenizer(VOCABULARY)
    # One length, so that JAX compiles each step once.
    packer = SegmentPacker(tokenizer, sequence_length, padding_lengths=(sequence_length,))
    kwargs.setdefault("label_names", LABELS)
    return TokenClassifier(BertBackbone(**ONE_LAYER), preprocessor=packer, **kwargs)


@pytest.fixture(scope="module")
def tagger():
    keras.utils.set_random_seed(0)
    tagger = make_tagger()
    tagger.compile(AdamW(LinearWarmupDecay(3e-3)))
    tagger.history_of_fit = tagger.fit(
        ROWS, TAGS, batch_size=16, epochs=12, validation_split=0.25, verbose=0
    ).history
    return tagger


def test_it_learns(tagger):
    history = tagger.history_of_fit
    assert set(history) == {"accuracy", "loss", "val_accuracy", "val_loss"}
    assert history["val_accuracy"][-1] > 0.95
    loss, accuracy = tagger.evaluate(ROWS, TAGS, verbose=0)
    assert loss < 0.2 and accuracy > 0.95
    scores = tagger.score(ROWS, TAGS)
    assert scores["f1"] > 0.9 and set(scores["types"]) == {"POS"}


def test_each_word_is_answered_for_once(tagger):
    """Also words without a token, and those of a text of many windows."""
    tags = tagger.predict_tags(ROWS, verbose=0)
    assert [len(row) for row in tags] == [len(row) for row in ROWS]
    assert tags[3][2::5] == ["O"] * 12
    probabilities = tagger.predict_probabilities(ROWS, verbose=0)
    for row, words in zip(probabilities, ROWS, strict=True):
        assert row.shape == (len(words), 3)
        np.testing.assert_allclose(row.sum(axis=-1), 1, atol=1e-5)


HOLLOW = "\u200b"  # A space of no width is no token.


@pytest.mark.parametrize(
    ("rows", "true", "decoded"),
    [
        ([f"good {HOLLOW} film".split()], ["BII"], ["BII"]),
        ([f"good {HOLLOW} {HOLLOW} film a".split()], ["BIIIO"], ["BIIIO"]),
        ([f"good {HOLLOW} film".split()], ["BOB"], ["BOB"]),
        ([f"good {HOLLOW} a".split()], ["BIO"], ["BOO"]),
        ([f"{HOLLOW} good a".split()], ["BIO"], ["OIO"]),
        ([["good"], [HOLLOW, "film"], [HOLLOW], []], ["B", "OI", "B", ""], ["B", "OI", "O", ""]),
        ([["a", *f"good {HOLLOW}".split() * 20, "film"]], ["OB" + "I" * 40], ["OB" + "I" * 40]),
    ],
)  # fmt: skip
def test_words_without_a_token(tagger, monkeypatch, rows, true, decoded):
    """If all words with a token are right, F1 is that of run_ner, which drops the other words."""
    metrics = pytest.importorskip("seqeval.metrics")
    names = {"O": "O", "B": "B-POS", "I": "I-POS"}
    true, decoded = (
        [[names[letter] for letter in row] for row in tags] for tags in (true, decoded)
    )
    windows = tagger.data.window(tagger.data.read(rows, true))
    _, labels, _ = tagger.data.pack(windows)
    outputs = [10 * row for row in np.eye(3, dtype="float32")[labels]]
    assert tagger.answers.decode_tags(outputs, windows) == decoded
    for row in tagger.answers.decode(outputs, windows):
        assert all(entity.score == pytest.approx(1, abs=1e-3) for entity in row)
    probabilities = tagger.answers.decode_probabilities(outputs, windows)
    assert [[LABELS[i] for i in row.argmax(axis=-1)] for row in probabilities] == decoded

    def predict_with(self, decode, *arguments, **kwargs):
        return decode(outputs, windows)

    monkeypatch.setattr(TokenClassifier, "predict_with", predict_with)
    kept = [
        [tag for tag, word in zip(tags, words, strict=True) if word != HOLLOW]
        for tags, words in zip(true, rows, strict=True)
    ]
    wanted = metrics.f1_score(kept, kept)
    assert wanted == 1 and tagger.score(rows, true)["f1"] == wanted


def test_entities_of_words_and_of_texts(tagger):
    (of_words,) = tagger.predict([["a", "good", "plot", "."]], verbose=0)
    assert of_words == [Entity("POS", "good", 1, 2, of_words[0].score)]
    texts = ["", "  a\tGOOD plot. ", " ".join(["the"] * 40 + ["good"] + ["the"] * 40)]
    answers = tagger.predict(texts, verbose=0)
    for text, entities in zip(texts, answers, strict=True):
        assert [text[e.start : e.end] for e in entities] == [e.text for e in entities]
    assert [[e.text for e in entities] for entities in answers] == [[], ["GOOD"], ["good"]]
    assert tagger.predict([text.encode() for text in texts], verbose=0) == answers
    assert answers[1][0].start == 4 and 0 < answers[1][0].score <= 1


def test_windows_see_as_much_as_a_whole_row(tagger):
    """In a window of all tokens the answers are those of the model itself, first pieces alone."""
    (row,) = tagger.predict_probabilities([["films", "good", "filmsly"]], verbose=0)
    packed = tagger.preprocessor.pack(["films good filmsly"])
    logits = tagger.predict(packed, verbose=0)[0]
    wanted = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
    np.testing.assert_allclose(row, wanted[[1, 3, 4]], atol=1e-5)


def test_every_kind_of_rows(tagger):
    wanted = tagger.predict_tags(ROWS, verbose=0)
    column = pandas.Series(ROWS)
    table = pandas.DataFrame({"words": column, "tags": TAGS})
    of_series = list(map(pandas.Series, ROWS))
    for x in (column, column.to_numpy(), {"words": ROWS}, table[["words"]], of_series):
        assert tagger.predict_tags(x, batch_size=8, verbose=0) == wanted
    assert tagger.score(ROWS, table[["tags"]]) == tagger.score(ROWS, TAGS)
    assert tagger.predict_tags(ROWS, batch_size=8, steps=2, verbose=0) == wanted[:16]
    batches = ((ROWS[i : i + 8],) for i in range(0, 48, 8))
    assert tagger.predict_tags(batches, steps=6, verbose=0) == wanted
    assert tagger.predict([]) == []


def test_a_callback_ends_predict(tagger):
    class Stop(keras.callbacks.Callback):
        def on_predict_batch_end(self, batch, logs=None):
            self.model.stop_predicting = True

    class StopAtOnce(keras.callbacks.Callback):
        def on_predict_begin(self, logs=None):
            self.model.stop_predicting = True

    for callback, answered in ((Stop(), 8), (StopAtOnce(), 0)):
        with pytest.raises(ValueError, match=f"after {answered} of 58 windows.*Pass a dataset"):
            tagger.predict(ROWS, batch_size=8, callbacks=[callback], verbose=0)
    wanted = tagger.predict_tags(ROWS, verbose=0)
    batches = ((ROWS[i : i + 8],) for i in range(0, 48, 8))
    assert tagger.predict_tags(batches, callbacks=[Stop()], verbose=0) == wanted[:8]


@pytest.mark.parametrize("method", ["predict", "predict_tags", "predict_probabilities"])
def test_no_rows(tagger, method):
    class Stop(keras.callbacks.Callback):
        def on_predict_begin(self, logs=None):
            self.model.stop_predicting = True

    predict = getattr(tagger, method)
    for x in ([], pandas.Series([], dtype=object), {"words": []}, pandas.DataFrame({"words": []})):
        assert predict(x, verbose=0) == []
    assert predict(iter([([],), ([],)]), verbose=0) == []
    assert predict(iter([(["good"],)]), callbacks=[Stop()], verbose=0) == []
    assert len(predict(iter([([],), ([["good"]],)]), verbose=0)) == 1
    rows_without_words = predict({"words": [[], []]}, verbose=0)
    assert [len(row) for row in rows_without_words] == [0, 0]
    with pytest.raises(ValueError, match="no batches. Add rows"):
        predict(iter([]), verbose=0)
    assert tagger.score([], [])["entities"] == 0
    assert tagger.predict_on_batch([]).shape == (0, 16, 3)


def test_datasets_of_words(tagger):
    class Batches(keras.utils.PyDataset):
        def __len__(self):
            return 6

        def __getitem__(self, index):
            return ROWS[8 * index : 8 * index + 8], TAGS[8 * index : 8 * index + 8]

    wanted = tagger.evaluate(ROWS, TAGS, verbose=0)
    assert tagger.evaluate(Batches(), verbose=0)[1] == pytest.approx(wanted[1], abs=1e-5)
    before = tagger.get_weights()
    assert np.isfinite(tagger.fit(Batches(), verbose=0).history["loss"]).all()
    tagger.set_weights(before)


def test_packed_arrays(tagger):
    """Tokens with a negative label count for nothing."""
    packed = tagger.preprocessor.pack(["the good film", "good"])
    labels = np.tile([-100, -1], (2, 8))
    labels[0, 1:4], labels[1, 1] = [0, 1, 0], 1
    loss, accuracy = tagger.evaluate(packed, labels, verbose=0)
    words = [["the", "good", "film"], ["good"]], [["O", "B-POS", "O"], ["B-POS"]]
    assert (loss, accuracy) == pytest.approx(tagger.evaluate(*words, verbose=0), abs=1e-5)
    logits = tagger.predict(packed, verbose=0)
    assert logits.shape == (2, 16, 3)
    probabilities = tagger.predict_probabilities(packed, verbose=0)
    np.testing.assert_array_equal(probabilities.argmax(-1), logits.argmax(-1))
    np.testing.assert_allclose(probabilities.sum(axis=-1), 1, atol=1e-6)
    is_word = labels >= 0
    labels[is_word] = (logits[is_word].argmax(-1) + 1) % 3
    wrong = tagger.inspect(packed, labels)
    assert {(answer.row, answer.place) for answer in wrong} == {(0, 1), (0, 2), (0, 3), (1, 1)}
    shorter = {name: array[:, :8] for name, array in packed.items()}
    with pytest.raises(ValueError, match="size 16 and .* size 8"):
        tagger.predict(iter([(packed,), (shorter,)]), verbose=0)


def test_packed_arrays_are_weighted_and_scored(tagger):
    """A weight for each row, of as many rows as a row has tokens, is no weight for each token."""
    packed = tagger.preprocessor.pack(["the good film"] * 15 + ["good"])
    labels = np.tile([-100, -1], (16, 8))
    labels[:15, 1:4], labels[15, 1] = [0, 1, 0], 1
    rows = [["the", "good", "film"]] * 15 + [["good"]], [["O", "B-POS", "O"]] * 15 + [["B-POS"]]
    weights = np.arange(16) / 4
    wanted = tagger.evaluate(*rows, sample_weight=weights, verbose=0)
    by_token = np.repeat(weights[:, None], 16, axis=1)
    for given in (weights, by_token):
        got = tagger.evaluate(packed, labels, sample_weight=given, verbose=0)
        assert got == pytest.approx(wanted, abs=1e-5)
    assert tagger.score(packed, labels) == tagger.score(*rows)
    for y, sample_weight, error in (
        (labels[:, :8], None, r"labels of packed arrays .* \(16, 16\), got \(16, 8\)"),
        (labels, np.ones((16, 3)), r"weights .* \(16,\) or \(16, 16\), got \(16, 3\)"),
        (np.full((16, 16), "O"), None, "must be integers .* <U1 of shape"),
    ):
        with pytest.raises(ValueError, match=error):
            tagger.evaluate(packed, y, sample_weight=sample_weight, verbose=0)


@pytest.mark.backend("torch")  # The other backends keep the state of a dropout in its layer.
def test_weights(tagger):
    loss = tagger.evaluate(ROWS, TAGS, sample_weight=np.zeros(48), verbose=0)[0]
    assert loss == 0
    before = tagger.get_weights()
    first = tagger.test_on_batch(ROWS[:3], TAGS[:3], return_dict=True)
    tagger.reset_metrics()
    assert set(first) == {"loss", "accuracy"}
    losses = []
    # Tokens that do not count do not count with the weight of a class, either.
    for class_weight in (None, {"O": 1.0}, {"O": 0.5, "B-POS": 2.0}):
        keras.utils.set_random_seed(0)
        tagger.set_weights(before)
        logs = tagger.train_on_batch(
            ROWS[:3], TAGS[:3], class_weight=class_weight, return_dict=True
        )
        losses.append(float(logs["loss"]))
        tagger.reset_metrics()
    assert losses[1] == pytest.approx(losses[0], rel=1e-6) and losses[2] != losses[0]
    words = [tag for row in TAGS for tag in row]
    classes = np.unique(words)
    weights = compute_class_weight("balanced", classes=classes, y=words)
    wanted = dict(zip(classes, weights, strict=True))
    assert tagger.balance_classes(TAGS) == pytest.approx(wanted)
    tagger.set_weights(before)


def test_a_checkpoint_of_hugging_face(tagger, tmp_path):
    save_hugging_face(tagger, tmp_path / "hf")
    twin = TokenClassifier.from_preset(tmp_path / "hf", sequence_length=16)
    assert twin.label_names == LABELS
    wanted = tagger.predict(ROWS, verbose=0)
    for got, entities in zip(twin.predict(ROWS, verbose=0), wanted, strict=True):
        assert [(e.label, e.start, e.end) for e in got] == [
            (e.label, e.start, e.end) for e in entities
        ]
        assert [e.score for e in got] == pytest.approx([e.score for e in entities], abs=1e-5)


@pytest.mark.parametrize(
    ("x", "y", "error"),
    [
        ([["a"], ["b", "c"]], [["O"], ["O"]], r"Row 1 has 2 words, .* and 1 labels"),
        ([["a", "b"]], [["O", "B-NEG"]], "Label 'B-NEG' at row 0, word 1 is not one of"),
        ([["a", "b"]], [[0, 3]], "Label 3 at row 0, word 1"),
        ([["a", None]], [["O", "O"]], r"got .'a', None. \(list\) at row 0"),
        ([["a"], None], [["O"], ["O"]], r"got None \(NoneType\) at row 1"),
        ([["a"]], ["O"], "Wanted a label for each word, got 'O'"),
        (["a text"], [["O", "O"]], "Row 0 is a text, and labels belong to words"),
        ("a text", [["O"]], "Put it in a list"),
        ([["a"]], None, "a label for each"),
        ([["a"], ["b"]], [["O"]], "lists of tags for 2 rows"),
        ([["a", "b"]], [{"O", "B-POS"}], "Wanted a label for each word, got .* row 0"),
        ([["a", "b"]], [["O", ["O"]]], r"Label \['O'\] at row 0, word 1"),
        ([["a"]], [[b"\xff"]], "at row 0, word 0 is not one of"),
        (({"a": 1}, {"b": 2}), [["O"]], "x has 2 columns"),
    ],
)
def test_wrong_input_takes_no_step(tagger, x, y, error):
    before = tagger.get_weights()
    with pytest.raises(ValueError, match=error):
        tagger.fit(x, y, verbose=0)
    assert all(map(np.array_equal, before, tagger.get_weights()))


def test_ragged_words_of_tensorflow(tagger):
    """Words and tags of a batch are ragged tensors, with or without a name."""
    tf = pytest.importorskip("tensorflow")
    words, tags = tf.ragged.constant(ROWS), tf.ragged.constant(TAGS)
    ids = tf.ragged.map_flat_values(lambda tags: tf.cast(tags == "B-POS", tf.int32), tags)
    dataset = tf.data.Dataset.from_tensor_slices((words, tags)).batch(16)
    named = tf.data.Dataset.from_tensor_slices(({"words": words}, ids)).batch(16).repeat()
    before = tagger.get_weights()
    history = tagger.fit(named, steps_per_epoch=3, validation_data=dataset, verbose=0).history
    assert np.isfinite([*history["loss"], *history["val_loss"]]).all()
    tagger.set_weights(before)
    accuracy = tagger.evaluate(ROWS, TAGS, verbose=0)[1]
    assert tagger.evaluate(dataset, verbose=0)[1] == pytest.approx(accuracy, abs=1e-5)
    inputs = dataset.map(lambda words, tags: (words,))
    assert tagger.predict_tags(inputs, verbose=0) == tagger.predict_tags(ROWS, verbose=0)


def test_wrong_words_of_tensorflow(tagger):
    tf = pytest.importorskip("tensorflow")
    dataset = tf.data.Dataset.from_tensor_slices((["good"], [[1]])).batch(1)
    with pytest.raises(ValueError, match="Row 0 is a text, .* Split it into a list of words"):
        tagger.fit(dataset, verbose=0)


def test_batches_of_a_data_loader(tagger):
    import torch

    def column(rows):
        return [row for row, _ in rows]

    def collate(rows):
        return column(rows), [torch.tensor([LABELS.index(tag) for tag in tags]) for _, tags in rows]

    rows = list(zip(ROWS, TAGS, strict=True))
    loader = torch.utils.data.DataLoader(rows, 16, collate_fn=collate)
    wanted = tagger.evaluate(ROWS, TAGS, verbose=0)
    assert tagger.evaluate(loader, verbose=0)[1] == pytest.approx(wanted[1], abs=1e-5)
    tags = tagger.predict_tags(ROWS[:7], verbose=0)
    loader = torch.utils.data.DataLoader(rows[:7], 3, collate_fn=column)
    assert tagger.predict_tags(loader, verbose=0) == tags
    # Its own function makes columns of first words, second words and so on.
    loader = torch.utils.data.DataLoader([(["a", "good"], ["O", "B-POS"])] * 4, 2)
    with pytest.raises(ValueError, match="Pass the DataLoader a `collate_fn`"):
        tagger.evaluate(loader, verbose=0)


@pytest.mark.parametrize(
    ("tags", "error"), [([["B-NEG"]], "'B-NEG' at row 0"), ([["O", "O"]], "1 words, .* 2 labels")]
)
def test_entity_f1_checks_its_tags_before_training(tagger, tags, error):
    before = tagger.get_weights()
    with pytest.raises(ValueError, match=error):
        tagger.fit(ROWS[:16], TAGS[:16], verbose=0, callbacks=[EntityF1([["good"]], tags)])
    assert all(map(np.array_equal, before, tagger.get_weights()))
