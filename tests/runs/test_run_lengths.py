"""The lengths to which the batches of a training are padded where each length is compiled."""

import itertools
import math

import keras
import numpy as np
import pytest
from small_pretraining import At, all_arrays, assert_same, interrupt
from small_tasks import compile_model, make_task
from small_texts import ONE_LAYER, VOCABULARY

from keras_bert_suite import (
    BertBackbone,
    SegmentPacker,
    TextClassifier,
    TrainingCheckpoint,
    WordPieceTokenizer,
)
from keras_bert_suite.runs import run_lengths
from keras_bert_suite.runs.batches import read, training_batches
from keras_bert_suite.runs.progress import Progress
from keras_bert_suite.runs.run_checkpoints import find_checkpoint
from keras_bert_suite.runs.trainer import TrainingRun

#: Rows of 3 tokens, of 20 and of 40 with the special tokens, two of each in a batch.
TEXTS = ["film"] * 4 + ["good " * 18] * 4 + ["bad " * 38] * 2
LABELS = ["no", "yes"] * 5
LADDER = (16, 24, 32, 48, 64)


def cost_of(batches, lengths, cost):
    """As the rule is told: the tokens of all batches, and each shape compiled once."""
    padded = [(rows, min(n for n in lengths if n >= length)) for rows, length in batches]
    return sum(math.prod(rows) * n for rows, n in padded) + len(set(padded)) * cost


@pytest.mark.parametrize("cost", [0, 10, 60, 10**6])
def test_no_other_lengths_cost_less(cost):
    rng = np.random.default_rng(cost)
    candidates = (4, 6, 8, 12, 16, 24)
    for _ in range(50):
        batches = [
            ((2, 3) if rng.random() < 0.8 else (1, 3), int(rng.choice(candidates)))
            for _ in range(rng.integers(1, 12))
        ]
        longest = max(length for _, length in batches)
        subsets = itertools.chain.from_iterable(
            itertools.combinations(candidates, number) for number in range(1, 7)
        )
        costs = [cost_of(batches, some, cost) for some in subsets if some[-1] >= longest]
        chosen = run_lengths.choose_lengths(batches, cost)
        assert cost_of(batches, chosen, cost) == min(costs)


def start_run(task, x, y, batch_size, epochs=1, **progress):
    rows = read(task, x, y, labelled=True)
    training = training_batches(task.data, rows, batch_size, True, seed=1)
    return TrainingRun(training, None, Progress(0, 1, **progress), epochs, 0, None, None)


def pack_shapes(run):
    dataset = run.training.dataset
    return [run.training.pack(dataset[i])[0]["padding_mask"].shape for i in range(run.total)]


@pytest.mark.parametrize("name", ["texts", "rankings", "masks", "continuations"])
def test_rows_of_any_kind_are_counted_as_they_are_packed(monkeypatch, name):
    task, (x, *y) = make_task(name)
    compile_model(task)
    packer = task.preprocessor
    packer.sequence_length, packer.padding_lengths = 32, (4, 6, 8, 10, 12, 16, 20, 24)
    run = start_run(task, x, y[0] if y else None, batch_size=2, epochs=2)
    shapes = pack_shapes(run)
    assert len({shape[-1] for shape in shapes}) > 1
    for cost, number in ((0.0, len({*shapes})), (1e9, len({shape[:-1] for shape in shapes}))):
        monkeypatch.setattr(run_lengths, "_COMPILATION", cost)
        packer.run_lengths = run_lengths.find_run_lengths(task, run)
        assert len({*pack_shapes(run)}) == number
        assert packer.run_lengths[-1] == packer.sequence_length
        packer.run_lengths = None


def test_long_runs_and_used_optimizers_keep_all_lengths(monkeypatch):
    task, (x, y) = make_task("texts")
    task.preprocessor.padding_lengths = (8, 12)
    monkeypatch.setattr(run_lengths, "MOST_BATCHES", 5)
    assert run_lengths.find_run_lengths(task, start_run(task, x, y, 100, epochs=5))
    assert run_lengths.find_run_lengths(task, start_run(task, x, y, 100, epochs=6)) is None
    run = start_run(task, x, y, 100)
    run.progress = Progress(first_step=3, seed=1)
    assert run_lengths.find_run_lengths(task, run) is None


def make_classifier(padding_lengths="auto"):
    keras.utils.set_random_seed(1)
    packer = SegmentPacker(WordPieceTokenizer(VOCABULARY), 64, padding_lengths=padding_lengths)
    backbone = BertBackbone(**ONE_LAYER, dropout=0.1)
    task = TextClassifier(backbone, preprocessor=packer, label_names=["no", "yes"])
    compile_model(task)
    return task


class LengthLog(keras.callbacks.Callback):
    """Adds the lengths that the packer allows, after each batch, to a set."""

    def __init__(self, allowed):
        super().__init__()
        self._add = allowed.add

    def on_train_batch_end(self, batch, logs=None):
        self._add(self.model.preprocessor.allowed_lengths())


def test_lengths_are_chosen_where_that_was_measured():
    backend = keras.config.backend()
    for padding_lengths, wanted in (("auto", (48, 64) if backend == "jax" else None), (None, None)):
        task, allowed = make_classifier(padding_lengths), set()
        task.fit(TEXTS, LABELS, batch_size=2, verbose=0, callbacks=[LengthLog(allowed)])
        assert allowed == {wanted}
        is_ladder = backend == "jax" and padding_lengths == "auto"
        assert task.preprocessor.allowed_lengths() == (LADDER if is_ladder else None)


def train(folder, epochs, *callbacks):
    task = make_classifier()
    callbacks = [TrainingCheckpoint(folder, every=1), *callbacks]
    task.fit(TEXTS, LABELS, batch_size=2, epochs=epochs, verbose=0, callbacks=callbacks)
    return task


def kill(folder):
    with pytest.raises(KeyboardInterrupt):
        train(folder, 1, At(3, interrupt))


@pytest.mark.backend("jax")
def test_a_resumed_run_keeps_its_lengths(monkeypatch, tmp_path):
    """Also where they would be chosen otherwise."""
    kill(tmp_path)
    _, progress = find_checkpoint(tmp_path)
    assert progress.padding_lengths == [48, 64]
    monkeypatch.setattr(run_lengths, "_COMPILATION", 0.0)
    allowed = set()
    train(tmp_path, 1, LengthLog(allowed))
    assert allowed == {(48, 64)}


@pytest.mark.backend("jax")
@pytest.mark.long("faults")
def test_a_resumed_run_with_further_epochs_is_one_that_was_not_killed(monkeypatch, tmp_path):
    wanted = all_arrays(train(tmp_path / "alone", 2))
    kill(tmp_path / "killed")
    monkeypatch.setattr(run_lengths, "_COMPILATION", 0.0)
    assert_same(train(tmp_path / "killed", 2), wanted)

    # Lengths matter: dropout draws other masks.
    other = all_arrays(train(tmp_path / "other", 2))
    assert any((a != b).any() for a, b in zip(other, wanted, strict=True))
