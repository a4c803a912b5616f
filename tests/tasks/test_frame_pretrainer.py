"""Hidden frames: losses beside NumPy, a training that is stopped and resumed, fine-tuning."""

import keras
import numpy as np
import pytest
from peer_weights import randomize, to_numpy
from small_pretraining import At, all_arrays, assert_same, interrupt
from tables import everywhere_for, short_for

import keras_bert_suite as kbs

D = 3
SIZES = {"num_layers": 1, "num_heads": 2, "hidden_dim": 8, "intermediate_dim": 16}
#: Tones: each number of a frame goes up and down in the time of the row.
ROWS = [
    np.sin(np.arange(n)[:, None] * (0.4 + 0.05 * n) + np.arange(D)).astype("float32")
    for n in (12, 9, 14, 10, 11, 13, 8, 15)
]
CODES = kbs.find_codes(ROWS, kbs.learn_codebook(ROWS, 5))


def make_packer():
    return kbs.FramePacker(D, sequence_length=16, padding_lengths=(16,))


def make_batches(codes=None, rows=ROWS, **arguments):
    masker = kbs.FrameMasker(rate=0.3, span_length=2)
    arguments = {"batch_size": 4, **arguments}
    return kbs.FrameBatches(rows, masker, make_packer(), codes=codes, **arguments)


def make_pretrainer(num_codes=None, dropout=0.1, **arguments):
    keras.utils.set_random_seed(1)
    backbone = kbs.BertBackbone(
        None, frame_dim=D, max_sequence_length=16, dropout=dropout, **SIZES, **arguments
    )
    pretrainer = kbs.FramePretrainer(backbone, num_codes, preprocessor=make_packer())
    pretrainer.compile(kbs.AdamW(kbs.LinearWarmupDecay(1e-2)))
    return pretrainer


@pytest.mark.parametrize("num_codes", everywhere_for([None, 5], 5))
def test_the_loss_is_that_of_the_hidden_frames(num_codes):
    pretrainer = randomize(make_pretrainer(num_codes))
    x, y, weights = make_batches(num_codes and CODES)[0]
    outputs = to_numpy(pretrainer(x)["mfm"]).astype("float64")
    if num_codes is None:
        losses = np.abs(outputs - y["mfm"]).mean(axis=2)
    else:
        shares = np.exp(outputs) / np.exp(outputs).sum(axis=2, keepdims=True)
        losses = -np.log(np.take_along_axis(shares, y["mfm"][:, :, None], axis=2)[:, :, 0])
    expected = (losses * weights["mfm"]).sum() / weights["mfm"].sum()
    logs = pretrainer.evaluate(
        [make_batches(num_codes and CODES)[0]].__iter__(), verbose=0, return_dict=True
    )
    assert logs["loss"] == pytest.approx(expected, rel=1e-4)
    assert ("accuracy" in str(logs)) == (num_codes is not None)


@pytest.mark.parametrize("power", [1, 2])
def test_losses_of_frames(power):
    true, found = np.random.default_rng(0).standard_normal((2, 2, 4, 3))
    weights = np.array([[1, 1, 0, 0], [1, 0.5, 0.5, 0]])
    loss = kbs.MaskedFrameLoss(power=power)
    errors = (np.abs(true - found) ** power).mean(axis=2)
    expected = (errors * weights).sum() / weights.sum()
    assert to_numpy(loss(true, found, weights)) == pytest.approx(expected, rel=1e-4)
    assert to_numpy(loss.measure(true, weights)) == pytest.approx(weights.sum())
    assert to_numpy(loss.measure(true)) == 8
    with pytest.raises(ValueError, match="power must be 1 or 2"):
        kbs.MaskedFrameLoss(power=3)


def test_predicted_frames_are_compared_as_numbers():
    """By techniques such as R-Drop. Frames are no scores of classes."""
    p, q = np.random.default_rng(0).standard_normal((2, 2, 4, D)).astype("float32")
    divergence = make_pretrainer().find_divergence()
    for compare in (divergence.one_way, divergence.symmetric):
        found = to_numpy(compare(None, p, q))
        np.testing.assert_allclose(found, np.square(p - q).mean(axis=2), rtol=1e-5)
    assert divergence.of_tokens and make_pretrainer(5).find_divergence().of_tokens


def test_losses_of_keras_compare_numbers():
    """They are means over the hidden frames, as those of this package are."""
    pretrainer, batch = randomize(make_pretrainer()), make_batches()[0]
    found = []
    for loss in ("mean_squared_error", keras.losses.MeanSquaredError(), kbs.MaskedFrameLoss(2)):
        pretrainer.compile(loss=loss, metrics=["mae"])
        found.append(pretrainer.evaluate(iter([batch]), verbose=0, return_dict=True))
    assert found[0]["loss"] == found[1]["loss"] == pytest.approx(found[2]["loss"], rel=1e-4)
    x, y, weights = batch
    errors = np.abs(to_numpy(pretrainer(x)["mfm"]) - y["mfm"]).mean(axis=2)
    assert found[0]["mae"] == pytest.approx(errors[weights["mfm"] > 0].mean(), rel=1e-4)
    with pytest.raises(ValueError, match="is not for a regression with 3 outputs"):
        pretrainer.compile(loss="sparse_categorical_crossentropy")


@pytest.mark.parametrize("num_codes", short_for([None, 5], 5, part="combinations"))
def test_a_stopped_training_ends_as_one_that_was_not(num_codes, tmp_path):
    batches = make_batches(num_codes and CODES)
    assert len(batches) == 2
    whole = make_pretrainer(num_codes)
    logs = whole.fit(batches, epochs=20, verbose=0).history["loss"]
    assert np.mean(logs[-5:]) < 0.8 * np.mean(logs[:5])
    stopped = make_pretrainer(num_codes)
    checkpoint = kbs.TrainingCheckpoint(tmp_path / "run", every=2)
    with pytest.raises(KeyboardInterrupt):
        stopped.fit(batches, epochs=20, callbacks=[At(7, interrupt), checkpoint], verbose=0)
    resumed = make_pretrainer(num_codes)
    checkpoint = kbs.TrainingCheckpoint(tmp_path / "run")
    resumed.fit(batches, epochs=20, callbacks=[checkpoint], verbose=0)
    assert_same(resumed, all_arrays(whole))


def test_a_preset_is_fine_tuned(tmp_path):
    pretrainer = make_pretrainer()
    pretrainer.save_to_preset(tmp_path / "preset")
    again = kbs.FramePretrainer.from_preset(tmp_path / "preset")
    for got, wanted in zip(again.get_weights(), pretrainer.get_weights(), strict=True):
        np.testing.assert_array_equal(got, wanted)
    classifier = kbs.TextClassifier.from_preset(tmp_path / "preset", num_classes=2, pooling="mean")
    assert isinstance(classifier.preprocessor, kbs.FramePacker)
    for weight in classifier.backbone.weights:
        wanted = next(w for w in pretrainer.backbone.weights if w.path == weight.path)
        np.testing.assert_array_equal(to_numpy(weight), to_numpy(wanted))
    classifier.fit(ROWS, [0, 1] * 4, batch_size=4, verbose=0)


def test_batches_are_pure_functions_of_their_index():
    batches, others = make_batches(), make_batches(seed=1)
    for index in (3, 0):
        x, y, _ = batches[index]
        again, _, _ = make_batches()[index]
        np.testing.assert_array_equal(x["frames"], again["frames"])
        assert y["mfm"].shape == (4, 4, D) and x["mask_positions"].shape == (4, 4)
    assert any((batches[i][0]["frames"] != others[i][0]["frames"]).any() for i in range(2))
    # An epoch has each row once, as it was before its frames were hidden.
    seen = []
    for i in (2, 3):
        x, y, weights = batches[i]
        for row in range(4):
            frames, used = x["frames"][row], weights["mfm"][row] == 1
            frames[x["mask_positions"][row, used]] = y["mfm"][row, used]
            seen.append(frames[: x["padding_mask"][row].sum()])
    for row in ROWS:
        assert sum(np.array_equal(row, other) for other in seen) == 1


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: make_batches(batch_size=9), "batch_size=9 is more than the 8 rows"),
        (lambda: make_batches(CODES[:7]), "codes of 8 rows, got those of 7"),
        (lambda: make_batches([c[1:] for c in CODES]), "Row 0 has 12 frames, wanted as many codes"),
        (lambda: make_batches([c - 9 for c in CODES]), "integers from 0"),
        (lambda: make_pretrainer(5).fit(make_batches(), verbose=0), "num_codes=5"),
        (lambda: make_pretrainer().fit(make_batches(CODES), verbose=0), "codes up to 4"),
        (lambda: make_pretrainer(4).fit(make_batches(CODES), verbose=0), "codes up to 4"),
        (lambda: make_pretrainer(1), "num_codes must be an integer of at least 2"),
        (lambda: make_pretrainer().predict(ROWS), "takes batches whose spans are hidden"),
        (lambda: kbs.FramePretrainer(kbs.BertBackbone(9, **SIZES)), "an encoder of frames"),
    ],
)
def test_what_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_slice_has_these_batches():
    batches = make_batches(batch_size=2)
    for found, wanted in zip(batches[1:3], (batches[1], batches[2]), strict=True):
        np.testing.assert_equal(found, wanted)
