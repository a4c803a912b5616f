"""Trains one task of GLUE with one seed."""

import dataclasses
import gc
import time
from pathlib import Path

import keras

import keras_bert_suite as kbs
from keras_bert_suite.data.glue import read_glue
from keras_bert_suite.data.glue_scores import format_predictions, score_glue

from .finetune import set_sequence_length
from .training_report import fit


@dataclasses.dataclass(frozen=True)
class GlueData:
    """The rows of a task.

    Attributes:
        train: `GlueRows`.
        dev: dict of the name of a split -> `GlueRows`.
        test: dict of the name of a file for the GLUE server -> `GlueRows` without labels.
    """

    train: object
    dev: dict
    test: dict


class DevScores(keras.callbacks.Callback):
    """Scores the dev splits after each epoch.

    Args:
        task: `GlueTask`.
        dev: dict of the name of a split -> `GlueRows`.

    Attributes:
        epochs: list of dicts with `epoch`, which counts from 1, `loss` of the training, and the
            metrics.
    """

    def __init__(self, task, dev):
        super().__init__()
        self._task, self._dev = task, dev
        self.epochs = []

    def on_epoch_end(self, epoch, logs=None):
        scores = {}
        for split, rows in self._dev.items():
            predictions = self.model.predict_labels(rows.x, verbose=0)
            for name, score in score_glue(self._task, rows.labels, predictions).items():
                scores[name if len(self._dev) == 1 else f"{name} {split}"] = score
        loss = float(keras.ops.convert_to_numpy(logs["loss"]))
        self.epochs.append({"epoch": epoch + 1, "loss": loss, **scores})


def read_task(task, folder):
    """Reads the files of a task, with the test files that are there.

    Returns:
        `GlueData`.
    """
    there = [(n, f) for n, f in task.test.items() if (Path(folder) / task.folder / f).is_file()]
    return GlueData(
        read_glue(task, folder),
        {split: read_glue(task, folder, file) for split, file in task.dev.items()},
        {name: read_glue(task, folder, file, labelled=False) for name, file in there},
    )


def train_task(task, data, checkpoint, recipe, seed):
    """Fine-tunes, scores and predicts.

    Args:
        task: `GlueTask`.
        data: `GlueData`.
        checkpoint: str.
        recipe: `Recipe`.
        seed: int.

    Returns:
        (result, predictions): dict of `epochs`, see `DevScores`, `scores` after the last epoch,
        `train_rows` and `seconds` of the training; and dict of the name of a file for the GLUE
        server -> its text.
    """
    keras.utils.clear_session()  # The models of the tasks before are in cycles.
    gc.collect()
    keras.utils.set_random_seed(seed)
    classifier = kbs.TextClassifier.from_preset(
        checkpoint,
        label_names=task.label_names,
        problem_type=task.problem_type,
        dtype=recipe.dtype,
    )
    set_sequence_length(classifier, recipe.sequence_length)
    schedule = kbs.LinearWarmupDecay(recipe.learning_rate, warmup_ratio=recipe.warmup_ratio)
    classifier.compile(
        kbs.AdamW(
            schedule,
            weight_decay=recipe.weight_decay,
            bias_correction=recipe.bias_correction,
        )
    )
    train, scores = data.train.take(recipe.train_rows), DevScores(task, data.dev)
    start = time.perf_counter()
    fit(
        classifier,
        train.x,
        train.labels,
        callbacks=[scores],
        batch_size=recipe.batch_size,
        epochs=recipe.epochs,
    )
    seconds = time.perf_counter() - start
    result = {
        "scores": {k: v for k, v in scores.epochs[-1].items() if k not in ("epoch", "loss")},
        "epochs": scores.epochs,
        "train_rows": len(train),
        "seconds": round(seconds, 1),
    }
    predictions = {
        name: format_predictions(task, classifier.predict_labels(rows.x, verbose=0))
        for name, rows in data.test.items()
    }
    return result, predictions
