"""An embedder trains on texts with labels, and on candidates with a teacher's scores."""

import keras
import numpy as np
import pytest
from peer_weights import to_numpy
from small_embedder import make_embedder, make_pairs
from small_texts import make_reviews

from keras_bert_suite import (
    AdamW,
    BatchAllTriplet,
    BatchHardTriplet,
    DistilledScores,
    InBatchNegatives,
    LinearWarmupDecay,
    MarginMSE,
    Matryoshka,
    VectorRegression,
)

(FIRST, SECOND), _ = make_pairs(12)
THIRD = make_reviews(12, seed=7)[0]
LABELS = make_reviews(12)[1]
TEACHER = np.random.default_rng(0).normal(size=(12, 2)).astype("float32")


@pytest.fixture(scope="module")
def embedder():
    return make_embedder()


@pytest.mark.parametrize(
    "loss",
    [
        pytest.param(BatchAllTriplet(), id="all"),
        pytest.param(BatchHardTriplet("soft"), id="hard"),
    ],
)
def test_texts_with_labels(embedder, loss):
    embedder.compile(AdamW(1e-3), loss)
    ids = np.array([int(label == "yes") for label in LABELS], "int32")
    vectors = embedder.predict(FIRST, verbose=0)[:, None]
    wanted = float(to_numpy(loss(ids, vectors)))
    assert embedder.evaluate(FIRST, LABELS, batch_size=12, verbose=0) == pytest.approx(wanted, 1e-4)
    assert embedder.evaluate(FIRST, ids + 5, batch_size=12, verbose=0) == pytest.approx(
        wanted, 1e-4
    )
    history = embedder.fit(
        FIRST, LABELS, batch_size=4, verbose=0, validation_data=(SECOND, LABELS), sample_weight=ids
    )
    assert np.isfinite(history.history["val_loss"]).all()


@pytest.mark.parametrize(
    "loss",
    [MarginMSE(), DistilledScores(0.5), Matryoshka(MarginMSE(), [16, 4])],
    ids=lambda x: x.name,
)
def test_candidates_with_scores(embedder, loss):
    embedder.compile(AdamW(1e-3), loss)
    columns = (FIRST, SECOND, THIRD)
    vectors = np.stack([embedder.predict(texts, verbose=0) for texts in columns], axis=1)
    wanted = float(to_numpy(loss(TEACHER, vectors)))
    assert embedder.evaluate(columns, TEACHER, batch_size=12, verbose=0) == pytest.approx(
        wanted, 1e-4
    )
    embedder.fit(columns, TEACHER, batch_size=4, verbose=0)
    listed = (FIRST, SECOND, [[text] for text in THIRD])
    embedder.evaluate(listed, TEACHER.tolist(), batch_size=12, verbose=0)


@pytest.mark.every_backend
def test_vectors_of_a_teacher():
    """A student with other weights comes near to them, with one text in a row or several."""
    teacher, student = make_embedder(), make_embedder()
    wanted = teacher.predict(FIRST, verbose=0)
    student.compile(AdamW(1e-2), VectorRegression())
    apart = np.square(student.predict(FIRST, verbose=0) - wanted).mean()
    assert student.evaluate(FIRST, wanted, batch_size=5, verbose=0) == pytest.approx(apart, 1e-4)
    both = np.square(student.predict(SECOND, verbose=0) - wanted).mean()
    measured = student.evaluate((FIRST, SECOND), wanted, batch_size=5, verbose=0)
    assert measured == pytest.approx((apart + both) / 2, 1e-4)
    student.fit(FIRST, wanted, batch_size=4, epochs=8, verbose=0)
    assert student.evaluate(FIRST, wanted, verbose=0) < 0.2 * apart


def test_vectors_on_disk_are_read_by_batch(tmp_path):
    embedder = make_embedder()
    embedder.compile("sgd", VectorRegression())
    np.save(tmp_path / "vectors.npy", np.ones((12, 16), "float32"))
    on_disk = np.load(tmp_path / "vectors.npy", mmap_mode="r")
    assert np.shares_memory(embedder.data.read(FIRST, on_disk).labels, on_disk)


def test_a_vector_of_a_dataset_that_is_a_number_is_refused(embedder):
    tf = pytest.importorskip("tensorflow")
    embedder.compile("sgd", VectorRegression())
    for y in (np.ones(12), np.array(["1"] * 12)):
        dataset = tf.data.Dataset.from_tensor_slices((np.array(FIRST), y)).batch(4)
        with pytest.raises(ValueError, match=r"\(N, H\), got a tensor of shape|are scores, got"):
            embedder.fit(dataset, verbose=0)


def test_labels_come_in_turn():
    """The order of `fit`, and not that of lengths: each batch has both labels."""
    embedder = make_embedder()
    embedder.compile("sgd", BatchHardTriplet())
    seen = []
    pack = embedder.data.pack

    def note(rows, labelled=False):
        seen.append(rows.labels)
        return pack(rows, labelled)

    embedder.data.pack = note
    labels = ["a"] * 6 + ["b"] * 6
    embedder.fit(FIRST, labels, batch_size=4, epochs=2, verbose=0)
    # Batches of the next epoch may be ready already.
    assert len(seen) >= 6 and all(np.bincount(batch).tolist() == [2, 2] for batch in seen)


def test_labels_of_a_tf_dataset(embedder):
    tf = pytest.importorskip("tensorflow")
    for loss, x, y in (
        (BatchHardTriplet(), FIRST, LABELS),
        (MarginMSE(), (FIRST, SECOND, THIRD), TEACHER),
    ):
        embedder.compile("sgd", loss)
        dataset = tf.data.Dataset.from_tensor_slices((x, y)).batch(12)
        wanted = embedder.evaluate(x, y, batch_size=12, verbose=0)
        assert embedder.evaluate(dataset, verbose=0) == pytest.approx(wanted, 1e-4)


def test_it_learns_labels():
    """Texts of a label are nearer to each other afterwards, by the mean over new texts."""
    embedder = make_embedder()
    texts, labels = make_reviews(64, seed=3)
    embedder.compile(AdamW(LinearWarmupDecay(1e-2)), BatchAllTriplet())
    embedder.fit(texts, labels, batch_size=16, epochs=8, verbose=0)
    new, wanted = make_reviews(32, seed=9)
    cosines = embedder.similarity(new, new)
    same = np.equal.outer(np.array(wanted), np.array(wanted))
    assert cosines[same].mean() > cosines[~same].mean() + 0.3


def test_compiled_losses_are_saved(tmp_path):
    embedder = make_embedder()
    embedder.compile("sgd", Matryoshka(BatchHardTriplet("soft", "euclidean", 3), [8, 16], [1, 2]))
    wanted = embedder.evaluate(FIRST, LABELS, batch_size=12, verbose=0)
    embedder.save(tmp_path / "embedder.keras")

    again = keras.models.load_model(tmp_path / "embedder.keras")
    assert again.evaluate(FIRST, LABELS, batch_size=12, verbose=0) == pytest.approx(wanted, 1e-5)
    assert again.data.labels.loss.rows_per_label == 3 and again.data.labels.are_needed
    with pytest.raises(ValueError, match="a multiple of 3 of at least 6"):
        again.fit(FIRST, LABELS, batch_size=4, verbose=0)


@pytest.mark.parametrize(
    "loss, x, y, message",
    [
        (BatchHardTriplet(), FIRST, None, "needs a label for each row"),
        (BatchHardTriplet(), FIRST, ["a"] * 12, "12 rows with 1 labels"),
        (BatchHardTriplet(), FIRST, list("abcdefghijkl"), "with 12 labels, at most 1 rows"),
        (BatchHardTriplet(), FIRST, ["a", None] * 6, "got None at row 1. Leave rows without"),
        (BatchAllTriplet(), (FIRST, SECOND), LABELS, "takes rows of 1 texts, got rows of 2"),
        (MarginMSE(), (FIRST, SECOND), TEACHER, "takes rows of at least 3 texts, got rows of 2"),
        (MarginMSE(), (FIRST, SECOND, THIRD), TEACHER[:, 0], r"\(N, S - 1\), got .* \(12,\)"),
        (
            MarginMSE(),
            (FIRST, SECOND, THIRD),
            np.repeat(TEACHER, 2, axis=1),
            r"each of the 2 texts after the first of a row, got scores of shape \(12, 4\)",
        ),
        (DistilledScores(), (FIRST, SECOND, THIRD), [[0, float("nan")]] * 12, "nan.* at row 0"),
        (VectorRegression(), FIRST, None, "got 12 rows and no labels"),
        (VectorRegression(), FIRST, TEACHER[:, 0], r"one vector for each row, \(N, H\), got .*12,"),
        (VectorRegression(), FIRST, TEACHER, "learn have 2 numbers, and those of this embedder 16"),
        (
            MarginMSE(),
            (FIRST, SECOND, [["a"], []] * 6),
            TEACHER,
            "MarginMSE takes rows of the same number of texts",
        ),
    ],
    ids=range(13),
)
def test_wrong_rows(embedder, loss, x, y, message):
    embedder.compile("sgd", loss)
    with pytest.raises(ValueError, match=message):
        embedder.fit(x, y, batch_size=4, verbose=0)


def test_too_many_dimensions(embedder):
    with pytest.raises(ValueError, match="first 32 numbers of a vector, and the .* have 16"):
        embedder.compile("sgd", Matryoshka(InBatchNegatives(), [16, 32]))
