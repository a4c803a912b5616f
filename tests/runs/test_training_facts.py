"""A folder of checkpoints belongs to one training. Another one is refused, and never skipped."""

import re

import keras
import numpy as np
import pytest
from small_texts import ONE_LAYER, VOCABULARY, make_reviews

from keras_bert_suite import (
    FGM,
    AdamW,
    BertBackbone,
    SegmentPacker,
    TextClassifier,
    TrainingCheckpoint,
    WordPieceTokenizer,
)

TEXTS, LABELS = make_reviews(12)
FOLDS = [np.arange(12) % 3 != fold for fold in range(3)]


def select(values, fold):
    return [value for value, kept in zip(values, FOLDS[fold], strict=True) if kept]


def fit(directory, texts, labels, compiled=None, epochs=1, **arguments):
    keras.utils.set_random_seed(0)
    packer = SegmentPacker(WordPieceTokenizer(VOCABULARY), sequence_length=16)
    names = sorted(set(LABELS))
    task = TextClassifier(BertBackbone(**ONE_LAYER), label_names=names, preprocessor=packer)
    task.compile(**{"optimizer": AdamW(1e-3), **(compiled or {})})
    arguments = {"batch_size": 4, "verbose": 0, "epochs": epochs, **arguments}
    return task.fit(texts, labels, callbacks=[TrainingCheckpoint(directory)], **arguments)


@pytest.fixture
def first_fold(tmp_path):
    fit(tmp_path / "run", select(TEXTS, 0), select(LABELS, 0))
    return tmp_path / "run"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"texts": select(TEXTS, 1), "labels": select(LABELS, 1)}, "the data was 8 rows with "),
        ({"labels": select(LABELS, 0)[::-1]}, "the data was 8 rows with "),
        ({"texts": TEXTS, "labels": LABELS}, "the data was 8 rows .* and is 12 rows with"),
        ({"batch_size": 8}, "the batch size was 4 and is 8"),
        ({"shuffle": False}, "the shuffle was True and is False"),
        ({"sample_weight": np.full(8, 2.0)}, "the data was"),
        ({"compiled": {"optimizer": keras.optimizers.Adam()}}, "optimizer was AdamW and is Adam"),
        ({"compiled": {"technique": FGM(1.0)}}, "the technique was None and is FGM"),
    ],
)
def test_another_training_is_refused(first_fold, changes, message):
    given = {"texts": select(TEXTS, 0), "labels": select(LABELS, 0), **changes}
    with pytest.raises(ValueError, match=message) as caught:
        fit(first_fold, **given)
    assert re.search(f"^{first_fold} holds the checkpoints of another training", str(caught.value))


@pytest.mark.parametrize(
    "changes",
    [
        {"epochs": 2},
        {"epochs": 2, "compiled": {"optimizer": AdamW(5e-4)}},
        {"epochs": 2, "validation_data": (TEXTS, LABELS)},
    ],
)
def test_the_same_training_goes_on(first_fold, changes):
    history = fit(first_fold, select(TEXTS, 0), select(LABELS, 0), **changes)
    assert history.epoch == [1]


def test_a_finished_training_says_so(first_fold, capsys):
    history = fit(first_fold, select(TEXTS, 0), select(LABELS, 0), verbose=2)
    assert not history.history
    assert f"The training in {first_fold} is finished" in capsys.readouterr().out


def test_packed_arrays_are_compared_too(tmp_path):
    packer = SegmentPacker(WordPieceTokenizer(VOCABULARY), sequence_length=16)
    for fold in (0, 1):
        packed = packer(select(TEXTS, fold))
        if fold:
            with pytest.raises(ValueError, match="another training: the data was 8 rows"):
                fit(tmp_path / "run", packed, select(LABELS, fold))
        else:
            fit(tmp_path / "run", packed, select(LABELS, fold))
