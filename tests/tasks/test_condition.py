"""Tasks on an encoder whose norms depend on a condition."""

import keras
import numpy as np
import pandas as pd
import pytest
from peer_weights import randomize, to_numpy
from small_texts import ONE_LAYER, VOCABULARY

import keras_bert_suite as kbs

TOKENIZER = kbs.WordPieceTokenizer(VOCABULARY)
#: Whether a text has "good", and its condition: the label is whether one of both holds alone.
IS_GOOD, IS_TURNED = np.repeat([0, 1, 0, 1], 8), np.repeat([0, 0, 1, 1], 8)
TEXTS = [f"{'good' if good else 'bad'} {('film', 'plot')[i % 2]}" for i, good in enumerate(IS_GOOD)]
CONDITION = np.eye(2)[IS_TURNED]
X = {"text": TEXTS, "condition": CONDITION}
WORDS = [text.split() for text in TEXTS]


def make_backbone(**arguments):
    arguments = {"dropout": 0.0, "norm_condition": kbs.NormCondition(2), **arguments}
    return kbs.BertBackbone(**ONE_LAYER, **arguments)


def make_task(cls=kbs.TextClassifier, backbone=None, **arguments):
    if cls not in (kbs.CausalLM, kbs.Seq2Seq):
        arguments = {"num_classes": 2, "dropout": 0.0, **arguments}
    packer = kbs.SegmentPacker(TOKENIZER, 16)
    return cls(backbone or make_backbone(), preprocessor=packer, **arguments)


def test_it_learns_what_text_and_condition_say_together(tmp_path):
    """The exclusive or: neither the text nor the condition says anything by itself."""
    keras.utils.set_random_seed(0)
    task = make_task(backbone=make_backbone(initializer_range=0.2), pooling="mean")
    labels = (IS_GOOD ^ IS_TURNED).tolist()
    task.compile(keras.optimizers.Adam(2e-2))
    task.fit(X, labels, batch_size=16, epochs=30, verbose=0)
    assert task.predict_labels(X) == list(map(str, labels))
    assert task.input_names == ("text",)
    probabilities = task.predict(X, verbose=0)
    turned = task.predict({**X, "condition": CONDITION[:, ::-1]}, verbose=0)
    assert ((probabilities > 0.5) != (turned > 0.5)).all()

    task.save(tmp_path / "task.keras")
    again = keras.saving.load_model(tmp_path / "task.keras")
    frame = pd.DataFrame({"text": TEXTS, "condition": CONDITION.tolist()})
    np.testing.assert_allclose(again.predict(frame, verbose=0), probabilities, rtol=0, atol=1e-6)
    task.save_to_preset(tmp_path / "preset")
    preset = kbs.TextClassifier.from_preset(tmp_path / "preset")
    packed = preset.preprocess_samples(X)
    assert packed["condition"].dtype == "float32"
    np.testing.assert_allclose(preset.predict(packed, verbose=0), probabilities, rtol=0, atol=1e-5)


def test_a_checkpoint_answers_as_before():
    plain = randomize(make_task(backbone=make_backbone(norm_condition=None)))
    task = make_task(backbone=plain.backbone.add_condition(kbs.NormCondition(2)))
    task.classifier.set_weights(plain.classifier.get_weights())
    np.testing.assert_allclose(
        task.predict(X, verbose=0), plain.predict(TEXTS, verbose=0), rtol=0, atol=1e-5
    )


def test_an_adapter_trains_and_saves_the_condition(tmp_path):
    """Two copies of an encoder draw other hidden layers of the condition, and are one base."""
    plain = make_backbone(norm_condition=None)
    condition = kbs.NormCondition(2, 3)
    task, again = (make_task(backbone=plain.add_condition(condition)) for _ in range(2))
    task.adapt(kbs.BitFit(), verbose=False)
    trained = {weight.path for weight in task.backbone.trainable_weights}
    assert {path for path in trained if path.endswith("_kernel")} == task.backbone.new_paths
    for weight in task.trainable_weights:
        weight.assign(np.random.default_rng(0).normal(size=weight.shape))
    task.save_adapter(tmp_path / "adapter")
    again.load_adapter(tmp_path / "adapter")
    np.testing.assert_allclose(answer(again, X), answer(task, X), rtol=0, atol=1e-6)


def answer(task, x):
    """The outputs for rows, as one array."""
    return np.concatenate([np.ravel(output) for output in task.predict(x, verbose=0)])


#: Tasks with labels for the rows X, and their rows with the column of words in the place of texts.
TAGS = [["0", "1"]] * len(TEXTS)
HEADS = {
    "numbers": (
        {"problem_type": "regression", "num_classes": None, "label_names": ["n"]},
        IS_GOOD.astype("float32"),
    ),
    "sets": ({"problem_type": "multi_label_classification"}, [["0", "1"]] * len(TEXTS)),
}


@pytest.mark.parametrize("name", HEADS)
def test_numbers_and_sets_of_rows(name):
    arguments, labels = HEADS[name]
    task = make_task(**arguments)
    task.fit(X, labels, batch_size=16, verbose=0)
    randomize(task)
    both = answer(task, X), answer(task, {**X, "condition": CONDITION[:, ::-1]})
    assert np.abs(both[0] - both[1]).max() > 1e-3
    by_row = [answer(task, {"text": [TEXTS[i]], "condition": CONDITION[i : i + 1]}) for i in (3, 9)]
    width = len(both[0]) // len(TEXTS)
    for i, row in zip((3, 9), by_row, strict=True):
        np.testing.assert_allclose(row, both[0][i * width : (i + 1) * width], rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    "cls", [kbs.TokenClassifier, kbs.CrfTokenClassifier, kbs.EntitySpanClassifier]
)
def test_rows_of_words_whose_windows_share_the_condition(cls):
    """A row of several windows has the outputs of a row with its condition in each of them."""
    labels = [[(0, 1, "0")]] * len(WORDS) if cls is kbs.EntitySpanClassifier else TAGS
    task = make_task(cls)
    x = {"words": WORDS, "condition": CONDITION}
    task.fit(x, labels, batch_size=16, verbose=0)
    long = {"words": [WORDS[0], WORDS[0] * 20], "condition": [[1, 0], [0.5, 0.25]]}
    rows = task.data.window(task.data.read(long))
    assert len(rows) > 3
    inputs, _, _ = task.data.pack(rows)
    wanted = np.array(long["condition"], "float32")[rows.sources]
    np.testing.assert_array_equal(inputs["condition"], wanted)
    randomize(task)
    packed = task.preprocess_samples(x)
    others = {**packed, "condition": packed["condition"][:, ::-1].copy()}
    one, other = (np.asarray(to_numpy(task(p, training=False))) for p in (packed, others))
    assert np.abs(one - other).max() > 1e-3
    with pytest.raises(ValueError, match="32 rows, 31 conditions"):
        task.predict({**x, "condition": CONDITION[1:]}, verbose=0)


def test_it_continues_texts_by_their_condition():
    """Writing token by token has the logits of the model on whole rows; and so have beams."""
    backbone = randomize(make_backbone(attention_pattern="left_to_right"), seed=3)
    model = make_task(kbs.CausalLM, backbone, max_length=4)
    x = {"text": ["film", "film"], "condition": np.eye(2)}
    rows = model.data.read(x)
    for sampler in ("greedy", "beam"):
        model.compile(sampler=sampler)
        written = model.predict(x)
        assert written == [
            model.predict({"text": ["film"], "condition": [row]})[0] for row in np.eye(2)
        ]
    packed = model.data.add_columns(model.data.pack_sources(rows.inputs[0], 4), rows.features)
    packed = keras.tree.map_structure(keras.ops.convert_to_tensor, packed)
    state, ids = model.decoder.start(packed, 4), packed["token_ids"]
    tokens = keras.ops.convert_to_tensor(np.array([ids[0, 1], ids[1, 1]], "int32"))
    logits, state = model.decoder.step(tokens, state)
    places = keras.ops.ones((2, 1), "int32")
    whole = model({**packed, "mask_positions": places}, training=False)
    np.testing.assert_allclose(to_numpy(logits), to_numpy(whole)[:, 0], rtol=0, atol=1e-4)
    assert np.abs(to_numpy(logits)[0] - to_numpy(logits)[1]).max() > 1e-2


def test_it_writes_targets_by_their_condition():
    keras.utils.set_random_seed(0)
    backbone = make_backbone(attention_pattern="seq2seq", initializer_range=0.2)
    writer = make_task(kbs.Seq2Seq, backbone, max_target_length=3)
    writer.compile(keras.optimizers.Adam(2e-2))
    x = {"text": ["film plot"] * 32, "condition": CONDITION}
    targets = [("bad", "good")[turned] for turned in IS_TURNED]
    writer.fit(x, targets, batch_size=16, epochs=15, verbose=0)
    assert writer.predict(x) == targets
    assert writer.score(x, targets)["exact_match"] == 100


def with_condition(condition):
    return {"text": TEXTS, "condition": condition}


def test_forms_of_a_condition():
    task = make_task()
    wanted = task.predict(X, verbose=0)
    rows = {"text": TEXTS, "condition": iter(CONDITION.tolist())}
    np.testing.assert_array_equal(task.predict(rows, verbose=0), wanted)
    assert task.predict({"text": [], "condition": []}, verbose=0).shape == (0, wanted.shape[1])


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (TEXTS, "a condition of 2 numbers for each row, beside the texts; got a list"),
        ({"text": TEXTS}, "got the columns text"),
        ({"condition": CONDITION}, "got the columns condition"),
        (with_condition(IS_GOOD), r"the shape \(N, 2\), got the shape \(32,\)"),
        (with_condition(np.ones((32, 3))), r"got the shape \(32, 3\)"),
        (with_condition([[1, 2]] * 31 + [[1]]), r"got the shape \(1,\) of row 31"),
        (with_condition([[1, 2]] * 31 + [[1, np.nan]]), r"finite, got \[1.0, nan\] at row 31"),
        (with_condition([["a", "b"]] * 32), "must be numbers, got an array of"),
        (with_condition(CONDITION[1:]), "must have the same number of rows"),
    ],
    ids=["texts", "column", "alone", "flat", "wide", "ragged", "nan", "names", "fewer"],
)
def test_wrong_conditions_are_refused(x, message):
    with pytest.raises(ValueError, match=message):
        make_task().predict(x, verbose=0)


def test_a_condition_that_nothing_reads_is_refused():
    plain = make_task(backbone=make_backbone(norm_condition=None))
    packed = plain.preprocess_samples(TEXTS)
    for x in (X, {**packed, "condition": CONDITION}):
        with pytest.raises(ValueError, match="column 'condition', and the norms .* on none"):
            plain.predict(x, verbose=0)
    with pytest.raises(ValueError, match="^Packed arrays for this backbone have 'condition'"):
        make_task().predict(packed, verbose=0)
    # A text may have this name.
    assert len(plain.predict({"condition": TEXTS[:2]}, verbose=0)) == 2


def test_what_cannot_read_a_condition_refuses_it():
    with pytest.raises(ValueError, match="^A QuestionAnswerer reads no condition"):
        kbs.QuestionAnswerer(make_backbone())
    sizes = {**ONE_LAYER, "vocabulary_size": None, "frame_dim": 3}
    with pytest.raises(ValueError, match="takes no condition beside frames"):
        kbs.TextClassifier(
            kbs.BertBackbone(**sizes, norm_condition=kbs.NormCondition(2)), num_classes=2
        )
    with pytest.raises(ValueError, match="a BertBackbone with condition reads these of each row"):
        make_task().fit(X, IS_GOOD, sequence_packing=True, verbose=0)


@pytest.mark.backend("tensorflow")
def test_datasets_of_tensorflow():
    import tensorflow as tf

    task = randomize(make_task())
    wanted = task.predict(X, verbose=0)
    columns = {"text": tf.constant(TEXTS), "condition": tf.constant(CONDITION)}
    dataset = tf.data.Dataset.from_tensor_slices(columns).batch(16)
    np.testing.assert_allclose(task.predict(dataset, verbose=0), wanted, rtol=0, atol=1e-5)
    tagger = randomize(make_task(kbs.TokenClassifier))
    tagger.predict(dataset, verbose=0)
