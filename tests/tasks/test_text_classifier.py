import keras
import numpy as np
import pytest
from keras import ops
from sklearn.utils.class_weight import compute_sample_weight
from small_byte_pairs import MERGES, make_vocabulary
from small_texts import ONE_LAYER, VOCABULARY, make_reviews

from keras_bert_suite import (
    AdamW,
    BertBackbone,
    BytePairTokenizer,
    LinearWarmupDecay,
    SegmentPacker,
    TextClassifier,
    WordPieceTokenizer,
)

TEXTS, LABELS = make_reviews(48)


def make_classifier(sequence_length=16, dtype=None, dropout=0.1, **kwargs):
    tokenizer = WordPieceTokenizer(VOCABULARY)
    kwargs.setdefault("label_names", ["no", "yes"])
    # One length, so that JAX compiles each step once.
    packer = SegmentPacker(tokenizer, sequence_length, padding_lengths=(sequence_length,))
    backbone = BertBackbone(**ONE_LAYER, dropout=dropout, dtype=dtype)
    return TextClassifier(backbone, preprocessor=packer, dropout=dropout, **kwargs)


@pytest.fixture(scope="module")
def untouched():
    """A classifier that no test trains."""
    return make_classifier()


def test_it_learns_from_raw_strings():
    classifier = make_classifier()
    texts, labels = make_reviews(256, seed=1)
    classifier.compile(AdamW(LinearWarmupDecay(2e-3)))
    history = classifier.fit(texts, labels, batch_size=32, epochs=12, verbose=0)
    assert set(history.history) == {"accuracy", "loss"}
    assert len(history.epoch) == 12
    loss, accuracy = classifier.evaluate(TEXTS, LABELS, verbose=0)
    assert accuracy > 0.9 and loss < 0.4
    logits = classifier.predict(["it was good", "it was dull"], verbose=0)
    assert logits.shape == (2, 2) and logits.dtype == "float32"
    assert [classifier.label_names[i] for i in logits.argmax(-1)] == ["yes", "no"]


@pytest.mark.backend("tensorflow")
def test_tensorflow_traces_a_step_once(monkeypatch):
    """It would trace it twice if the step made variables."""
    classifier, traces = make_classifier(), []
    monkeypatch.setattr(classifier, "compute_loss", counted(classifier.compute_loss, traces))
    classifier.fit(TEXTS, LABELS, batch_size=16, verbose=0)
    assert len(traces) == 1


def counted(function, calls):
    def call(*args, **kwargs):
        calls.append(args)
        return function(*args, **kwargs)

    return call


def test_default_compile_is_berts():
    classifier = make_classifier()
    optimizer = classifier.optimizer
    assert isinstance(optimizer, AdamW) and optimizer.global_clipnorm == 1.0
    classifier.fit(TEXTS, LABELS, batch_size=16, epochs=2, verbose=0)
    # 6 steps: the warm-up is shorter than a step, and the rate has come to 0.
    assert int(optimizer.iterations) == 6
    assert float(ops.convert_to_numpy(optimizer.learning_rate)) == 0.0
    decays = {v.path: optimizer.decay_of(v) for v in classifier.trainable_weights}
    no_decay = {path for path, decay in decays.items() if decay == 0}
    assert len(decays) == 25 and len(no_decay) == 14
    assert all(path.endswith(("bias", "gamma", "beta")) for path in no_decay)
    # The schedule of a second `fit` begins where the first ended.
    classifier.fit(TEXTS, LABELS, batch_size=16, epochs=1, verbose=0)
    assert float(ops.convert_to_numpy(optimizer.learning_rate)) == 0.0
    assert int(optimizer.iterations) == 9


def test_predictions_come_in_the_order_of_the_rows():
    classifier = make_classifier()
    together = classifier.predict(TEXTS, batch_size=16, verbose=0)
    alone = classifier.predict(classifier.preprocessor(TEXTS), batch_size=16, verbose=0)
    np.testing.assert_allclose(together, alone, atol=1e-6)
    assert classifier.predict(TEXTS, batch_size=16, steps=1, verbose=0).shape == (16, 2)


def test_padding_does_not_change_predictions():
    classifier = make_classifier(sequence_length=32)
    wide = classifier.predict(TEXTS[:8], batch_size=8, verbose=0)
    classifier.preprocessor = SegmentPacker(
        classifier.preprocessor.tokenizer, 32, padding_lengths=None
    )
    np.testing.assert_allclose(
        classifier.predict(TEXTS[:8], batch_size=8, verbose=0), wide, atol=1e-5
    )


def test_batches_may_differ_in_length():
    """The first eight batches have one length, a later one another."""
    classifier = make_classifier()
    classifier.preprocessor = SegmentPacker(
        classifier.preprocessor.tokenizer, 64, padding_lengths=(16, 64)
    )
    texts = ["the film"] * 36 + ["good " * 40] * 4
    labels = ["no"] * 36 + ["yes"] * 4
    classifier.fit(texts, labels, batch_size=4, shuffle=False, verbose=0)
    assert classifier.predict(texts, batch_size=4, verbose=0).shape == (40, 2)


def test_validation_and_weights():
    classifier = make_classifier()
    history = classifier.fit(
        TEXTS,
        LABELS,
        batch_size=16,
        epochs=2,
        validation_data=(TEXTS[:20], LABELS[:20]),
        validation_split=0.5,  # Not read beside `validation_data`, as in Keras.
        class_weight={0: 1.0, 1: 2.0},
        verbose=0,
    ).history
    assert len(history["val_accuracy"]) == 2
    held_out = classifier.evaluate(TEXTS[:20], LABELS[:20], batch_size=16, verbose=0)
    assert [history["val_loss"][-1], history["val_accuracy"][-1]] == pytest.approx(held_out)
    split = classifier.fit(TEXTS, LABELS, batch_size=16, validation_split=0.25, verbose=0)
    assert "val_loss" in split.history
    zero = classifier.evaluate(TEXTS, LABELS, sample_weight=np.zeros(48), batch_size=16, verbose=0)
    assert zero[0] == 0.0


def test_class_weights_are_weights_of_rows():
    """By name and by id, in memory and in a dataset, the loss is that of sample weights."""
    import torch

    classifier = make_classifier(dropout=0.0)
    classifier.compile(AdamW(0.0))

    def loss(x, y=None, batch_size=None, **weights):
        return classifier.fit(x, y, batch_size, shuffle=False, verbose=0, **weights).history["loss"]

    rows = np.array([3.0 if label == "yes" else 1.0 for label in LABELS])
    wanted = loss(TEXTS, LABELS, 16, sample_weight=rows)
    dataset = torch.utils.data.DataLoader(list(zip(TEXTS, LABELS, strict=True)), 16)
    for got in (
        loss(TEXTS, LABELS, 16, class_weight={"yes": 3.0}),
        loss(TEXTS, LABELS, 16, class_weight={1: 3.0, "no": 1.0}),
        loss(dataset, class_weight={"yes": 3.0}),
    ):
        assert got == pytest.approx(wanted, rel=1e-4)
    balanced = compute_sample_weight("balanced", LABELS)
    wanted = loss(TEXTS, LABELS, 16, sample_weight=balanced)
    for got in (
        loss(TEXTS, LABELS, 16, class_weight="balanced"),
        loss(dataset, class_weight=classifier.balance_classes(LABELS)),
    ):
        assert got == pytest.approx(wanted, rel=1e-4)
    with pytest.raises(ValueError, match="class_weight=task.balance_classes"):
        loss(dataset, class_weight="balanced")
    with pytest.raises(ValueError, match="class_weight has 'yess'"):
        loss(TEXTS, LABELS, 16, class_weight={"yess": 3.0})
    with pytest.raises(ValueError, match="not both"):
        loss(TEXTS, LABELS, 16, class_weight={"yes": 3.0}, sample_weight=rows)


def test_batches_in_single_steps():
    """After the default compile, whose schedule has no length: the rate is the peak."""
    classifier = make_classifier(dropout=0.0)
    x, y = TEXTS[:8], LABELS[:8]
    first = classifier.test_on_batch(x, y, return_dict=True)
    classifier.reset_metrics()
    for _ in range(3):
        last = classifier.train_on_batch(x, y, class_weight={"yes": 2.0}, return_dict=True)
    assert {*first} == {*last} == {"loss", "accuracy"}
    packed = classifier.preprocessor(x)
    classifier.train_on_batch(packed, y)
    assert float(ops.convert_to_numpy(classifier.optimizer.learning_rate)) == np.float32(5e-5)
    outputs = classifier.predict_on_batch(x)
    np.testing.assert_allclose(outputs, classifier.predict(x, verbose=0), atol=1e-5)
    np.testing.assert_allclose(classifier.predict_on_batch(packed), outputs, atol=1e-5)


def test_a_batch_has_the_weights_of_its_rows():
    """Its loss is that of an evaluation with these weights."""
    classifier = make_classifier(dropout=0.0)
    x, y = TEXTS[:8], LABELS[:8]
    weights = np.array([3.0 if label == "yes" else 0.0 for label in y])
    wanted = classifier.evaluate(x, y, sample_weight=weights, verbose=0)[0]
    assert wanted != pytest.approx(classifier.evaluate(x, y, verbose=0)[0], rel=1e-3)
    classifier.compile(AdamW(0.0))
    for found in (
        lambda: classifier.test_on_batch(x, y, sample_weight=weights),
        lambda: classifier.train_on_batch(x, y, sample_weight=weights),
        lambda: classifier.train_on_batch(x, y, class_weight={"yes": 3.0, "no": 0.0}),
    ):
        classifier.reset_metrics()
        assert found()[0] == pytest.approx(wanted, rel=1e-4)


def test_one_batch_is_answered_without_a_progress_bar_unless_asked(untouched, capsys):
    alone = untouched.predict(TEXTS[:1])
    assert capsys.readouterr().out == ""
    np.testing.assert_array_equal(untouched.predict(TEXTS[:1], verbose=1), alone)
    assert "1/1" in capsys.readouterr().out


def test_a_callback_that_ends_predict_is_named(untouched):
    stop = keras.callbacks.LambdaCallback()
    stop.on_predict_batch_end = lambda *_, **__: setattr(untouched, "stop_predicting", True)
    with pytest.raises(ValueError, match="after 16 of 48 windows.*Pass a dataset"):
        untouched.predict(TEXTS, batch_size=16, callbacks=[stop], verbose=0)


def test_nothing_to_predict():
    classifier = make_classifier()
    empty = classifier.predict([])
    assert empty.shape == (0, 2) and empty.dtype == "float32"
    with pytest.raises(ValueError, match="needs at least one row"):
        classifier.fit([], [])


def test_validation_batch_size():
    sizes = []

    class Recorder(keras.callbacks.Callback):
        def on_test_batch_end(self, batch, logs=None):
            sizes.append(batch)

    make_classifier().fit(
        TEXTS, LABELS, 16, validation_data=(TEXTS, LABELS), validation_batch_size=8,
        callbacks=[Recorder()], verbose=0,
    )  # fmt: skip
    assert len(sizes) == 6


def test_steps_evaluate_the_first_rows():
    """And not the shortest, with which a whole evaluation begins."""
    classifier = make_classifier()
    wanted = classifier.evaluate(TEXTS[:8], LABELS[:8], verbose=0)
    found = classifier.evaluate(TEXTS, LABELS, batch_size=4, steps=2, verbose=0)
    assert found == pytest.approx(wanted, abs=1e-5)


def test_the_order_of_rows_follows_the_seed():
    classifier = make_classifier(dropout=0.0)
    classifier.compile(AdamW(1e-3))
    classifier.optimizer.build(classifier.trainable_variables)
    variables = [*classifier.weights, *classifier.optimizer.variables]
    initial = [ops.convert_to_numpy(variable) for variable in variables]

    def losses(seed):
        for variable, value in zip(variables, initial, strict=True):
            variable.assign(value)
        keras.utils.set_random_seed(seed)
        return classifier.fit(TEXTS, LABELS, batch_size=16, verbose=0).history["loss"]

    assert losses(1) == losses(1)
    assert losses(1) != losses(2)


def test_preset_with_a_new_head(tmp_path):
    classifier = make_classifier()
    classifier.save_to_preset(str(tmp_path / "preset"))
    with pytest.warns(UserWarning, match="left out"):
        other = TextClassifier.from_preset(
            str(tmp_path / "preset"), label_names=["a", "b", "c"], sequence_length=24
        )
    assert other.compiled and other.predict(TEXTS[:2], verbose=0).shape == (2, 3)
    assert other.preprocessor.sequence_length == 24
    np.testing.assert_array_equal(
        ops.convert_to_numpy(other.backbone.weights[0]),
        ops.convert_to_numpy(classifier.backbone.weights[0]),
    )
    packer = SegmentPacker.from_preset(str(tmp_path / "preset"))
    assert (
        packer(["the film"])["token_ids"].tolist()
        == classifier.preprocessor(["the film"])["token_ids"].tolist()
    )
    tokenizer = WordPieceTokenizer.from_preset(str(tmp_path / "preset"))
    assert tokenizer.get_vocabulary() == VOCABULARY


def test_softmax_head():
    classifier = make_classifier(activation="softmax")
    classifier.fit(TEXTS, LABELS, batch_size=16, verbose=0)
    np.testing.assert_allclose(classifier.predict(TEXTS[:16], verbose=0).sum(-1), 1, atol=1e-6)


def test_weights_in_bfloat16():
    classifier = make_classifier(dtype="bfloat16")
    history = classifier.fit(TEXTS, LABELS, batch_size=16, epochs=2, verbose=0).history
    assert np.isfinite(history["loss"]).all()
    assert classifier.predict(TEXTS[:16], verbose=0).dtype == "float32"


def test_hostile_texts():
    classifier = make_classifier()
    outputs = classifier.predict(["", "   ", "x" * 1_000_000, "good " * 5000], verbose=0)
    assert np.isfinite(outputs).all()
    np.testing.assert_allclose(outputs[0], outputs[1], atol=1e-6)


@pytest.mark.parametrize(
    ("x", "y", "error"),
    [
        (TEXTS, [2] * 48, "Label 2 at row 0 is not a whole"),
        (TEXTS, ["maybe"] * 48, "'maybe' at row 0 is not one of"),
        (None, None, "x is of type NoneType"),
        (TEXTS, LABELS[:3], "got 48 inputs, 3 labels"),
        (TEXTS, None, "needs a label for each row, got"),
        (tuple(TEXTS), LABELS, "a tuple is a pair of columns"),
        ([*TEXTS[:-1], None], LABELS, r"got None \(NoneType\) at row 47"),
        (
            np.array([*TEXTS[:-1], None], np.dtypes.StringDType(na_object=None)),
            LABELS,
            r"got None \(NoneType\) at row 47",
        ),
        ("good", ["yes"], "list of strings"),
        (list(zip(TEXTS, TEXTS, strict=True)), LABELS, "tuple of two lists"),
    ],
)
def test_wrong_input_takes_no_step(untouched, x, y, error):
    classifier = untouched
    before = classifier.get_weights()
    with pytest.raises(ValueError, match=error):
        classifier.fit(x, y, verbose=0)
    assert all(map(np.array_equal, before, classifier.get_weights()))
    assert classifier.input_names is None
    assert classifier.predict(TEXTS[:16], verbose=0).shape == (16, 2)


def test_more_tokens_than_positions():
    with pytest.raises(ValueError, match="sequence_length=65 .* positions for 64"):
        make_classifier(sequence_length=65)


def test_a_tokenizer_that_does_not_make_the_segment_ids_of_the_backbone():
    vocabulary = make_vocabulary()
    backbone = BertBackbone(**{**ONE_LAYER, "vocabulary_size": len(vocabulary)})
    packer = SegmentPacker(BytePairTokenizer(vocabulary, MERGES), sequence_length=16)
    with pytest.raises(ValueError, match="segment_ids, which a BytePair.* such as a RobertaBackb"):
        TextClassifier(backbone, num_classes=2, preprocessor=packer)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"label_names": None}, "needs `num_classes` or `label_names`"),
        ({"label_names": ["a"]}, r"2 or more different labels, got \['a'\]"),
        ({"label_names": ["a", "a"]}, "different labels"),
        ({"label_names": {"a", "b"}}, "label_names must be a list of strings, got {"),
        ({"num_classes": 3}, "num_classes=3, but there are 2 label_names"),
    ],
)
def test_wrong_labels(arguments, error):
    with pytest.raises(ValueError, match=error):
        make_classifier(**arguments)


def test_a_checkpoint_without_a_head(tmp_path):
    from transformers import BertConfig, BertModel

    config = BertConfig(
        vocab_size=len(VOCABULARY), hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=32, max_position_embeddings=64,
    )  # fmt: skip
    BertModel(config).save_pretrained(tmp_path)
    (tmp_path / "vocab.txt").write_text("\n".join(VOCABULARY), encoding="utf-8")
    with pytest.raises(ValueError, match="no classification layer for texts. Pass `num_classes`"):
        TextClassifier.from_preset(tmp_path)
    assert TextClassifier.from_preset(tmp_path, num_classes=2).num_classes == 2


def test_batches_of_strings_alone():
    """As a DataLoader of strings and a generator of lists bring them."""
    torch = pytest.importorskip("torch")
    classifier = make_classifier()
    wanted = classifier.predict(TEXTS[:6], verbose=0)
    for batches in (
        torch.utils.data.DataLoader(TEXTS[:6], batch_size=2),
        (TEXTS[i : i + 3] for i in (0, 3)),
    ):
        np.testing.assert_allclose(classifier.predict(batches, verbose=0), wanted, atol=1e-5)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"sample_weight": [1.0] * 47 + [float("nan")]}, "at least 0, got nan at row 47"),
        ({"sample_weight": [-1.0] * 48}, "got -1.0 at row 0"),
        ({"sample_weight": ["a"] * 48}, "got a at row 0"),
        ({"sample_weight": np.array([1.0] * 47 + [None])}, "got None at row 47"),
        ({"validation_data": TEXTS}, r"must be \(x, y\) or .* got a list of 48"),
        ({"validation_data": TEXTS[:2]}, "got a list of 2"),
        ({"batch_size": 0}, "batch_size must be an integer of at least 1, got 0"),
        ({"batch_size": 2.5}, "got 2.5"),
    ],
)
def test_wrong_arguments_of_fit(untouched, arguments, error):
    with pytest.raises(ValueError, match=error):
        untouched.fit(TEXTS, LABELS, verbose=0, **arguments)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"y": LABELS}, "A dataset, list_iterator, brings its own batches .* weights. Drop y"),
        ({"sample_weight": [1.0], "y": LABELS}, "Drop y, sample_weight"),
        ({"validation_split": 0.5}, "validation_split needs rows in memory. .* `validation_data`"),
    ],
)
def test_arguments_that_are_for_rows_in_memory(untouched, arguments, error):
    with pytest.raises(ValueError, match=error):
        untouched.fit(iter([(TEXTS[:2], LABELS[:2])]), verbose=0, **arguments)


def test_names_that_cannot_be_kept(tmp_path):
    with pytest.raises(ValueError, match=r"a list of strings, got \[1, 2\]"):
        make_classifier(label_names=[1, 2])
    with pytest.raises(ValueError, match="ends in .keras"):
        make_classifier().save(tmp_path / "classifier.h5")
    with pytest.raises(ValueError, match="got the string 'label'"):
        make_classifier().fit(TEXTS, "label")
    make_classifier().save_to_preset(str(tmp_path / "preset"))
    with pytest.warns(UserWarning, match="holds a classification layer. It is left out"):
        TextClassifier.from_preset(tmp_path / "preset", num_classes=2)


def test_labels_are_renamed_and_none_is_added():
    classifier = make_classifier()
    classifier.label_names = ["no", "yes"]
    assert set(classifier.predict_labels(["good"], verbose=0)) <= {"no", "yes"}
    with pytest.raises(ValueError, match="label_names must be 2 names, one for each output"):
        classifier.label_names = ["yes"]
    for names, error in (
        (["a", "a"], "different labels"),
        ({"a", "b"}, "a list"),
        ("ab", "a list"),
    ):
        with pytest.raises(ValueError, match=error):
            classifier.label_names = names
