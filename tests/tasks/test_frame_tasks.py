"""Heads on frames: rows of vectors in the place of texts."""

import keras
import numpy as np
import pytest
from peer_weights import randomize
from tables import short_for

import keras_bert_suite as kbs
from keras_bert_suite.checkpoints import save_hugging_face

D = 3
SIZES = {"num_layers": 1, "num_heads": 2, "hidden_dim": 8, "intermediate_dim": 16}
rng = np.random.default_rng(0)
#: Rows of 1 to 9 frames. The second half is higher in its first number.
ROWS = [rng.standard_normal((n, D)).astype("float32") for n in (3, 9, 1, 5, 4, 8, 2, 6)]
for row in ROWS[4:]:
    row[:, 0] += 3
LABELS = ["low"] * 4 + ["high"] * 4
TAGS = [["up" if frame[1] > 0 else "down" for frame in row] for row in ROWS]


def make_backbone(cls=kbs.BertBackbone, **arguments):
    return cls(None, frame_dim=D, max_sequence_length=9, dropout=0.0, **SIZES, **arguments)


def make_packer():
    return kbs.FramePacker(D, sequence_length=9)


def classify(backbone=None, **arguments):
    arguments = {"label_names": ["low", "high"], "dropout": 0.0, **arguments}
    backbone = backbone or make_backbone()
    return kbs.TextClassifier(backbone, preprocessor=make_packer(), **arguments)


def tag(cls=kbs.TokenClassifier, **arguments):
    arguments = {"label_names": ["up", "down"], "dropout": 0.0, **arguments}
    return cls(make_backbone(), preprocessor=make_packer(), **arguments)


def chain():
    return tag(kbs.CrfTokenClassifier)


def embed(**arguments):
    return kbs.TextEmbedder(make_backbone(), preprocessor=make_packer(), **arguments)


def pack(rows):
    packed = make_packer()(rows)
    return {name: packed[name] for name in ("frames", "padding_mask")}


def test_a_classifier_learns_rows_of_frames():
    keras.utils.set_random_seed(0)
    classifier = classify(pooling="mean")
    classifier.compile(optimizer=keras.optimizers.Adam(1e-2))
    classifier.fit(ROWS, LABELS, batch_size=4, epochs=20, verbose=0)
    assert classifier.predict_labels(ROWS) == LABELS
    by_row = np.concatenate([classifier.predict([row], verbose=0) for row in ROWS])
    np.testing.assert_allclose(classifier.predict(ROWS, verbose=0), by_row, atol=1e-5)
    # Packed arrays, with the segments left out, have the same answers.
    np.testing.assert_allclose(classifier.predict(pack(ROWS), verbose=0), by_row, atol=1e-5)
    assert classifier.score(ROWS, LABELS)["accuracy"] == 1
    assert classifier.inspect(ROWS, LABELS) == []
    assert classifier.input_names == ("frames",)


@pytest.mark.parametrize(
    ("labels", "arguments"),
    [
        (
            [["low"], ["low", "high"], []] + [["high"]] * 5,
            {"problem_type": "multi_label_classification"},
        ),
        ([float(row[0, 0]) for row in ROWS], {"problem_type": "regression", "label_names": ["y"]}),
    ],
)
def test_sets_of_labels_and_numbers_of_rows(labels, arguments):
    classifier = classify(**arguments)
    before = classifier.predict(ROWS, verbose=0)
    history = classifier.fit(ROWS, labels, batch_size=4, epochs=2, verbose=0).history
    assert np.isfinite(history["loss"]).all()
    assert np.abs(classifier.predict(ROWS, verbose=0) - before).max() > 1e-6


@pytest.mark.parametrize(
    "cls",
    short_for(
        [kbs.TokenClassifier, kbs.CrfTokenClassifier], kbs.TokenClassifier, part="combinations"
    ),
)
def test_a_tagger_learns_frames(cls):
    keras.utils.set_random_seed(0)
    tagger = tag(cls)
    rates = {"crf/": 1.0} if cls is kbs.CrfTokenClassifier else {}
    tagger.compile(kbs.AdamW(3e-2, rate_multipliers=rates))
    tagger.fit(ROWS, TAGS, batch_size=4, epochs=40, verbose=0)
    found = tagger.predict_tags(ROWS)
    right = [
        a == b for one, two in zip(found, TAGS, strict=True) for a, b in zip(one, two, strict=True)
    ]
    assert np.mean(right) > 0.9
    logits = tagger.predict(ROWS, verbose=0)
    assert [x.shape for x in logits] == [(len(row), 2) for row in ROWS]
    shares = tagger.predict_probabilities(ROWS, verbose=0)
    for row, share in zip(found, shares, strict=True):
        np.testing.assert_allclose(share.sum(axis=1), 1, atol=1e-5)
        if cls is kbs.TokenClassifier:
            assert row == [["up", "down"][i] for i in share.argmax(axis=1)]
    assert 0 < tagger.score(ROWS, TAGS)["f1"] <= 1
    assert len(tagger.inspect(ROWS, TAGS)) == len(right) - sum(right)


def test_packed_tags_have_the_loss_of_rows_of_tags():
    tagger = tag()
    labels = np.full((len(ROWS), 9), -1)
    for row, tags in zip(labels, TAGS, strict=True):
        row[: len(tags)] = [["up", "down"].index(name) for name in tags]
    of_rows = tagger.evaluate(ROWS, TAGS, batch_size=8, verbose=0)
    np.testing.assert_allclose(
        tagger.evaluate(pack(ROWS), labels, batch_size=8, verbose=0), of_rows, rtol=1e-5
    )


@pytest.mark.parametrize("loss", ["single rows", "pairs", "packed"])
def test_an_embedder_learns_rows_of_frames(loss):
    keras.utils.set_random_seed(0)
    backbone = make_backbone(attention_dropout=0.1)
    embedder = kbs.TextEmbedder(backbone, preprocessor=make_packer())
    x = {"single rows": ROWS, "pairs": (ROWS[:4], ROWS[4:]), "packed": pack(ROWS)}[loss]
    before = embedder.predict(ROWS, verbose=0)
    embedder.fit(x, batch_size=4, epochs=2, verbose=0)
    after = embedder.predict(ROWS, verbose=0)
    assert after.shape == (8, 8)
    assert np.abs(after - before).max() > 1e-6
    np.testing.assert_allclose(np.linalg.norm(after, axis=1), 1, atol=1e-5)


@pytest.mark.parametrize("make", [classify, tag, embed], ids=["classify", "tag", "embed"])
def test_saved_and_opened_again(make, tmp_path):
    task = randomize(make())
    expected = task.predict(ROWS, verbose=0)
    task.save(tmp_path / "task.keras")
    task.save_to_preset(tmp_path / "preset")
    for again in (
        keras.saving.load_model(tmp_path / "task.keras"),
        type(task).from_preset(tmp_path / "preset"),
    ):
        assert again.preprocessor.get_config() == task.preprocessor.get_config()
        got = again.predict(ROWS, verbose=0)
        keras.tree.map_structure(
            lambda a, b: np.testing.assert_allclose(a, b, atol=1e-6), list(got), list(expected)
        )


def test_a_dataset_of_batches_and_a_bfloat16_encoder():
    classifier = classify(make_backbone(dtype="mixed_bfloat16"), pooling="mean")
    classifier.compile(optimizer=keras.optimizers.Adam(1e-3))
    batches = [(ROWS[:4], LABELS[:4]), (ROWS[4:], LABELS[4:])]
    history = classifier.fit((batch for batch in batches), verbose=0).history
    assert np.isfinite(history["loss"]).all()
    assert classifier.predict(ROWS, verbose=0).dtype == np.float32


@pytest.mark.parametrize(
    "make",
    [
        lambda b: kbs.QuestionAnswerer(b),
        lambda b: kbs.MaskedLM(b),
        lambda b: kbs.Pretrainer(b),
        lambda b: kbs.MultipleChoice(b),
        lambda b: kbs.TextRanker(b),
        lambda b: kbs.DocumentClassifier(b, 2),
        lambda b: kbs.EntitySpanClassifier(b, label_names=["A"]),
        lambda b: kbs.Seq2Seq(kbs.change_pattern(b, "seq2seq")),
    ],
)
def test_heads_that_need_texts_refuse_frames_by_name(make):
    with pytest.raises(ValueError, match="reads frames|needs texts"):
        make(make_backbone())


@pytest.mark.parametrize(
    ("x", "message"),
    [
        ([ROWS[0], ROWS[1][:, :2]], r"Row 1 must be an array \(n, 3\).*shape \(9, 2\)"),
        ([ROWS[0], ROWS[1][0]], r"Row 1 must be.*shape \(3,\)"),
        ([ROWS[0], ROWS[1][:0]], "Row 1 has 0 frames"),
        ([ROWS[0], np.zeros((10, D))], "Row 1 has 10 frames, wanted 1 to sequence_length=9"),
        ([ROWS[0], np.full((2, D), np.nan)], "Row 1 has the number nan in frame 0"),
        ([ROWS[0], np.ones((2, D)) * 1j], "real numbers, got complex128. Take np.abs"),
        ({**pack(ROWS), "frames": pack(ROWS)["frames"] * 1j}, "got complex64. Take np.abs"),
        ([ROWS[0], "a text"], "Row 1 must be an array.*'a text'"),
        (ROWS[0], "Put a single row in a list"),
        ({**pack(ROWS), "token_ids": np.zeros((8, 9), "int32")}, "not beside them"),
        ({"frames": pack(ROWS)["frames"]}, "got frames."),
        ({**pack(ROWS), "frames": pack(ROWS)["frames"][:, :, :2]}, r"got \(8, 9, 2\)"),
        ({**pack(ROWS), "frames": pack(ROWS)["frames"][:, :, 0]}, r"got \(8, 9\)"),
        ({**pack(ROWS), "padding_mask": np.ones((8, 1), "int32")}, "of the frames, got"),
        ({**pack(ROWS), "padding_mask": np.zeros((8, 9), "int32")}, "Row 0 has no frames"),
        ({**pack(ROWS), "frames": pack(ROWS)["frames"] + np.inf}, "row 0, frame 0"),
        ((ROWS, ROWS), "tuple of 2 columns"),
    ],
)
def test_wrong_rows_are_named(x, message):
    with pytest.raises(ValueError, match=message):
        classify().predict(x, verbose=0)


def test_frames_of_pytorch():
    import torch

    rows = [torch.tensor(row, requires_grad=True) for row in ROWS]
    wanted, found = make_packer()(ROWS), make_packer()(rows)
    for name, array in wanted.items():
        np.testing.assert_array_equal(found[name], array)


@pytest.mark.parametrize("make", [tag, chain])
def test_labels_of_frames_of_a_dataset_and_of_packed_arrays(make):
    tagger = make()
    randomize(tagger)
    wanted = tagger.predict(ROWS, verbose=0)
    packed = tagger.predict(pack(ROWS), verbose=0)
    of_dataset = tagger.predict(iter([(ROWS[:3],), (ROWS[3:],)]), verbose=0)
    for row, own, other in zip(packed, wanted, of_dataset, strict=True):
        np.testing.assert_allclose(row[: len(own)], own, atol=1e-5)
        np.testing.assert_allclose(other, own, atol=1e-5)


def test_other_wrong_uses_are_named():
    tokens = kbs.BertBackbone(20, **SIZES)
    for make, message in (
        (lambda: kbs.TextClassifier(tokens, 2, preprocessor=make_packer()), "reads token ids"),
        (lambda: kbs.TextClassifier(tokens, 2).predict(pack(ROWS)), "reads token ids, got frames"),
        (
            lambda: kbs.TextClassifier(make_backbone(), 2, preprocessor=kbs.FramePacker(4)),
            r"frames of width 4, and the BertBackbone reads frames of width 3",
        ),
        (
            lambda: kbs.TextClassifier(make_backbone(), 2, preprocessor=kbs.FramePacker(D)),
            "sequence_length=512",
        ),
        (lambda: kbs.TextClassifier(make_backbone(), 2).predict(ROWS), r"FramePacker\(3\)"),
        (lambda: classify(features={"age": "number"}), "features=\\['age'\\] are columns"),
        (lambda: tag(word_cutting="whitespace"), "word_cutting says .* reads frames. Leave it out"),
        (lambda: tag().fit(ROWS, [["up"]] * 8, verbose=0), "Row 0 has 3 frames and 1 labels"),
        (lambda: kbs.export_onnx(classify(), "model"), "FramePacker"),
        (lambda: save_hugging_face(make_backbone(), "model"), "no place for frame_dim"),
    ):
        with pytest.raises(ValueError, match=message):
            make()


@pytest.mark.backend("tensorflow")
@pytest.mark.parametrize(
    "make",
    [
        pytest.param(classify, id="classify", marks=pytest.mark.long("serving")),
        pytest.param(tag, id="tag", marks=pytest.mark.long("serving")),
        pytest.param(chain, id="chain"),
        pytest.param(embed, id="embed", marks=pytest.mark.long("serving")),
    ],
)
def test_a_saved_model_takes_frames(make, tmp_path):
    import tensorflow as tf

    task = randomize(make())
    kbs.export_saved_model(task, tmp_path / "model" / "1")
    serve = tf.saved_model.load(str(tmp_path / "model" / "1")).signatures["serving_default"]
    packed = {name: tf.constant(array) for name, array in pack(ROWS).items()}
    answers = {name: tensor.numpy() for name, tensor in serve(**packed).items()}
    if make is embed:
        expected = {"embedding": task.predict(ROWS, verbose=0)}
        got = answers
    else:
        expected = dict(enumerate(task.predict_probabilities(ROWS, verbose=0)))
        shares = answers["probabilities"]
        got = {
            i: s if make is classify else s[: len(e)]
            for (i, e), s in zip(expected.items(), shares, strict=True)
        }
    for name, array in expected.items():
        np.testing.assert_allclose(got[name], array, atol=1e-5)
    if make in (tag, chain):
        for names, row in zip(answers["labels"].astype(str), task.predict_tags(ROWS), strict=True):
            assert names[: len(row)].tolist() == row
    wrong = {**packed, "frames": packed["frames"] * np.nan}
    with pytest.raises(tf.errors.InvalidArgumentError, match="finite"):
        serve(**wrong)
