"""Datasets of every kind, batch by batch, without a model."""

import itertools
from types import SimpleNamespace

import grain
import input_kinds
import keras
import numpy as np
import pytest
from small_tasks import make_task

from keras_bert_suite.data.input_dataset import (
    choose_batches,
    is_dataset,
    list_sources,
    num_batches,
    preprocess_batches,
    replica_batches,
    unpack_batch,
)
from keras_bert_suite.data.rows import Rows
from keras_bert_suite.heads.base.input_checks import EncoderInputs
from keras_bert_suite.heads.base.labels import Classes, Labels
from keras_bert_suite.heads.base.text_data import TextData
from keras_bert_suite.runs.batches import batch_rows, training_batches

#: Seven rows: x is their number, y twice the number.
COLUMNS = ({"x": np.arange(7)}, 2 * np.arange(7))
KINDS = [kind for kind in input_kinds.DATASETS if not kind.startswith("tf.data")]


def make(kind):
    return input_kinds.DATASETS[kind](COLUMNS, 3)


def note(batch):
    """The numbers of the rows of a batch."""
    x, y, sample_weight = unpack_batch(batch)
    assert (np.asarray(y) == 2 * np.asarray(x["x"])).all() and sample_weight is None
    return np.asarray(x["x"])


def read(dataset, most=100):
    """Batches, as lists; that of a generator comes in a tuple."""
    return [np.ravel(batch).tolist() for batch, _ in zip(dataset, range(most), strict=False)]


@pytest.mark.parametrize("kind", KINDS)
def test_each_batch_is_preprocessed(kind):
    dataset = make(kind)
    assert is_dataset(dataset)
    assert num_batches(dataset) == (None if kind in input_kinds.WITHOUT_LENGTH else 3)
    batches = preprocess_batches(dataset, note)
    wanted = [[0, 1, 2], [3, 4, 5], [6]]
    if kind == "generator":
        assert read(batches, 6) == wanted * 2
    else:
        assert read(batches) == read(batches) == wanted


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "generator"])
def test_as_many_batches_as_fit_reads(kind):
    batches = preprocess_batches(make(kind), note, total=5)
    assert read(batches, 5) == [[0, 1, 2], [3, 4, 5], [6], [0, 1, 2], [3, 4, 5]]


def test_a_resume_leaves_out_batches():
    dataset = grain.MapDataset.range(4)
    assert list(choose_batches(dataset, total=10, first=6)) == [2, 3, 0, 1, 2, 3]
    assert list(choose_batches(dataset, first=1)) == [1, 2, 3]
    assert list(choose_batches(dataset, total=4)) == list(choose_batches(dataset)) == [0, 1, 2, 3]
    # Keras looks at batches even if it trains on none.
    assert list(choose_batches(dataset, total=4, first=4)) == [0, 1, 2, 3]
    endless = choose_batches(dataset.repeat(), total=10, first=6)
    assert list(itertools.islice(endless, 3)) == [2, 3, 0]


@pytest.mark.backend("tensorflow")
def test_a_resume_on_several_devices_leaves_out_batches():
    tf = pytest.importorskip("tensorflow")
    wanted = [[number] * 2 for number in range(4)]
    with tf.distribute.MirroredStrategy(["cpu:0"]).scope():
        batches = replica_batches(
            grain.MapDataset.range(4), lambda number: [np.full(2, number)], total=6, first=3
        )
        assert [batch.numpy().tolist() for batch in batches] == [[3, 3], *wanted]


@pytest.mark.parametrize("kind", ["tf.data", "Grain"])
def test_a_dataset_without_an_end_needs_steps(kind):
    classifier, (texts, classes) = make_task("texts", "SegmentPacker")
    classifier.compile()
    if kind == "tf.data":
        tf = pytest.importorskip("tensorflow")
        dataset = tf.data.Dataset.from_tensors((texts, classes)).repeat()
    else:
        dataset = grain.MapDataset.source([(texts, classes)]).repeat()
    with pytest.raises(ValueError, match="repeats without end. Set steps_per_epoch, or leave"):
        classifier.fit(dataset, verbose=0)
    with pytest.raises(ValueError, match="Set validation_steps"):
        classifier.fit(texts, classes, validation_data=dataset, verbose=0)
    for method in (classifier.evaluate, classifier.predict):
        with pytest.raises(ValueError, match="repeats without end. Set steps, or leave"):
            method(dataset, verbose=0)
        method(dataset, steps=1, verbose=0)


def test_sources_and_lengths():
    source = grain.MapDataset.range(5)
    mapped = source.map(str)
    assert list(list_sources(mapped)) == [mapped, source]
    assert list(list_sources(mapped.to_iter_dataset()))[-1] is source
    assert num_batches(source.repeat()) is None and num_batches(iter([1])) is None
    with pytest.raises(ValueError, match="no batches"):
        num_batches([])

    class Endless(keras.utils.PyDataset):
        num_batches = None

    assert num_batches(Endless()) is None
    # `tf.data.INFINITE_CARDINALITY`, `UNKNOWN_CARDINALITY`, and a number that is known.
    for cardinality, number in ((-1, None), (-2, None), (3, 3)):
        assert num_batches(SimpleNamespace(cardinality=lambda n=cardinality: n)) == number


class NumberedRows:
    """Data without texts, whose lengths are given. A batch is its epoch and its rows."""

    labels = Labels()
    takes_graphs = False

    def __init__(self, lengths=None):
        self._lengths = lengths

    def check_training(self, rows, batch_size):
        """All rows may be trained on."""

    def window(self, rows):
        return rows

    def order_rows(self, rows, batch_size, seed):
        return None

    def lengths(self, rows):
        return self._lengths


ROWS = Rows({"x": np.arange(7)})
LENGTHS = np.array([5, 1, 4, 2, 7, 3, 6])


def list_batches(dataset, number):
    """The epoch and the rows of each batch."""
    batches = [dataset[i] for i in range(number)]
    return [(batch.epoch, batch.sources.tolist()) for batch in batches]


def test_evaluations_visit_short_rows_first():
    for lengths, wanted in ((LENGTHS, [1, 3, 5, 2, 0, 6, 4]), (None, [*range(7)])):
        batches, order = batch_rows(ROWS, 3, lengths)
        batches = list_batches(batches, 4)
        assert order.tolist() == wanted
        # In each pass the rows are cut as in epoch 0.
        assert batches == [
            *((0, wanted[i : i + 3]) for i in (0, 3, 6)),
            (0, wanted[:3]),
        ]


def test_trainings_visit_rows_in_fresh_orders():
    batches = list_batches(training_batches(NumberedRows(), ROWS, 3, False, seed=1).dataset, 4)
    assert [batches[i] for i in (0, 2, 3)] == [(0, [0, 1, 2]), (0, [6]), (1, [0, 1, 2])]
    for lengths in (None, LENGTHS):
        made = training_batches(NumberedRows(lengths), ROWS, 3, True, seed=1)
        batches = list_batches(made.dataset, 6)
        epochs = [[batches[3 * e + i] for i in range(3)] for e in (0, 1)]
        for number, epoch in enumerate(epochs):
            assert {found for found, _ in epoch} == {number}
            assert sorted(row for _, rows in epoch for row in rows) == list(range(7))
        assert [rows for _, rows in epochs[0]] != [rows for _, rows in epochs[1]]
    # Of rows with lengths, the full batches have neighbours in length.
    full = [sorted(LENGTHS[rows].tolist()) for _, rows in epochs[0] if len(rows) == 3]
    assert max(full[0]) < min(full[1]) or max(full[1]) < min(full[0])


@pytest.mark.parametrize(
    ("batch", "wanted"),
    [
        (["a", "b"], (["a", "b"], None, None)),
        (("a", "b"), (["a", "b"], None, None)),
        ([["a"], [1]], (["a"], [1], None)),
        ((["a"], [1], [0.5]), (["a"], [1], [0.5])),
        ({"x": 1}, ({"x": 1}, None, None)),
    ],
)
def test_parts_of_a_batch(batch, wanted):
    assert unpack_batch(batch) == wanted


ROWS_BY_NAME = [
    {"text": "good", "label": 1},
    {"text": "bad", "label": 0},
    {"text": "a", "label": 1},
]


def test_rows_that_name_their_texts_and_labels_say_how_to_collate():
    import pandas
    import torch

    loader = torch.utils.data.DataLoader(ROWS_BY_NAME, batch_size=2)
    (batch, *_), remedy = list(loader), "kbs.read_rows.* collate_fn=lambda rows"
    with pytest.raises(ValueError, match=f"the texts text, and also label, .*{remedy}"):
        Rows.read_batch(batch)
    with pytest.raises(ValueError, match=f"A row is a dict, .*{remedy}"):
        Rows.read(ROWS_BY_NAME)
    for columns in (pandas.DataFrame(ROWS_BY_NAME), {"text": ["a"], "label": [1.5]}):
        with pytest.raises(ValueError, match=f"the texts text, and also label, .*{remedy}"):
            Rows.read(columns)
    # A Dataset of `datasets` yields rows.
    with pytest.raises(ValueError, match=f"has single texts, wanted batches.*{remedy}"):
        Rows.read_batch(ROWS_BY_NAME[0])

    def collate(rows):
        return [row["text"] for row in rows], [row["label"] for row in rows]

    loader = torch.utils.data.DataLoader(ROWS_BY_NAME, batch_size=2, collate_fn=collate)
    read = Rows.read_batch(*next(iter(loader)))
    assert (read.inputs, read.labels.tolist()) == ((["good", "bad"],), [1, 0])


def test_labels_that_are_words_say_how_to_collate_too():
    """Beside texts, names of labels look like a second text."""
    import torch

    named = [{"text": "good", "label": "yes"}, {"text": "bad", "label": "no"}]
    loader = torch.utils.data.DataLoader(named, batch_size=2)
    data = TextData(None, EncoderInputs(("token_ids",)), Classes(["yes", "no"]))
    with pytest.raises(ValueError, match="has the texts text, label, and no labels. .*collate_fn"):
        data.read_batch(*data.unpack(next(iter(loader))), labelled=True)
    assert data.input_names is None
    assert data.read_batch((["good"], ["bad"])).labels is None  # `predict` needs none.
