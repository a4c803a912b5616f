"""Trains the layers after the encoder of a classifier, on encoder outputs computed once."""

import math

import keras
import numpy as np

from keras_bert_suite.argument_checks import is_auto
from keras_bert_suite.data.input_dataset import evaluation_batches
from keras_bert_suite.data.rows import Rows
from keras_bert_suite.layers.poolings.pooling import call_pooling
from keras_bert_suite.replicas import whole_batches
from keras_bert_suite.tasks.base.batch_sources import (
    BatchSource,
    choose_size,
    hold_out,
    read_data,
    weighted,
)
from keras_bert_suite.tasks.base.text_packing import measure_rows
from keras_bert_suite.training import lay_schedule


@whole_batches()
def fit_on_features(
    task,
    x,
    y,
    batch_size,
    epochs,
    *,
    sample_weight,
    class_weight,
    validation_data,
    validation_split,
    optimizer,
    **kwargs,
):
    """See `TextClassifier.fit_on_features`."""
    pooling = _find_learned_pooling(task)
    batch_size = choose_size(batch_size)
    rows = read_data(task, x, y, sample_weight, labelled=True)
    _check_rows(rows)
    rows, held_out = hold_out(task, rows, validation_data, validation_split, None)
    weigh = weighted(task, lambda *batch: batch, class_weight, given=rows.weights)
    rows = Rows(*weigh(*rows.as_batch()))
    features = task.classifier_dropout.input if pooling is None else pooling.input
    encoder = keras.Model(task.input, features, name="encoder_of_features")
    encode = _encode_rows if pooling is None else EncodedBatches
    verbose = kwargs.get("verbose", "auto")
    data = encode(task, encoder, rows, batch_size, verbose)
    if held_out is not None:
        _check_rows(held_out)
        held_out = encode(task, encoder, held_out, batch_size, verbose)
    head = _make_head(task, pooling)
    _compile_head(head, task, optimizer)
    steps = kwargs.get("steps_per_epoch") or math.ceil(len(rows) / batch_size)
    total = steps * (epochs - kwargs.get("initial_epoch", 0))
    first_step = int(keras.ops.convert_to_numpy(head.optimizer.iterations))
    lay_schedule(head, first_step, total, kwargs.get("callbacks"))
    if pooling is not None:
        return head.fit(data, epochs=epochs, validation_data=held_out, **kwargs)
    features, labels, weights = data
    return head.fit(
        features,
        labels,
        batch_size,
        epochs,
        sample_weight=weights,
        validation_data=held_out,
        **kwargs,
    )


def _find_learned_pooling(task):
    """The pooling that is trained with the classification layer, or None."""
    learned = [layer for layer in task.pooling_layers if layer.trainable_weights]
    if not learned:
        return None
    if learned[0] is not task.pooling_layers[-1]:
        raise ValueError(
            f"fit_on_features trains the last pooling, and the {learned[0].name} "
            f"({type(learned[0]).__name__}) before the {task.pooling_layers[-1].name} has weights "
            "to train. Freeze the encoder with `classifier.backbone.trainable = False` and call "
            "`fit`; or choose a pooling without weights, such as MeanPooling()."
        )
    return learned[0]


def _make_head(task, pooling):
    """A model of the layers after the encoder of a task. It shares their weights."""
    if pooling is None:
        features = pooled = keras.Input(task.classifier_dropout.input.shape[1:], name="features")
    else:
        *states, mask = pooling.input
        # Layers cast their inputs to their own dtype.
        states = [keras.Input(tensor.shape[1:]) for tensor in states]
        mask = keras.Input(mask.shape[1:], dtype=mask.dtype)
        features = [*states, mask]
        takes_all = getattr(pooling, "takes_hidden_states", False)
        pooled = call_pooling(pooling, states if takes_all else states[0], mask)
    outputs = task.output_activation(task.classifier(task.classifier_dropout(pooled)))
    return keras.Model(features, outputs, name="head")


def _compile_head(head, task, optimizer):
    """Compiles a head with the loss and the metrics of its task."""
    if task.compiled:
        metrics = task._compile_metrics
        loss = task.loss
        arguments = {
            "metrics": metrics and metrics._user_metrics,
            "weighted_metrics": metrics and metrics._user_weighted_metrics,
        }
    else:
        loss, arguments = task.make_loss(), task.make_metrics()
    head.compile(
        optimizer=keras.optimizers.Adam(1e-3) if is_auto(optimizer) else optimizer,
        loss=loss,
        **arguments,
    )


def _encode_rows(task, encoder, rows, batch_size, verbose):
    """(float32 (N, P), labels, weights or None) of `Rows`, for the `fit` of Keras."""
    batches, visited = _batch_rows(task, rows, batch_size)
    source = BatchSource(batches, task.preprocess, fixed_labels=task.has_fixed_labels)
    features = encoder.predict(source.preprocessed(), steps=source.num_batches, verbose=verbose)
    return np.asarray(features, "float32")[np.argsort(visited)], rows.labels, rows.weights


class EncodedBatches(keras.utils.PyDataset):
    """The hidden states of rows, in batches. A batch has the same rows in every epoch.

    The rows of a batch have similar lengths. Keras shuffles the batches in each epoch.
    """

    def __init__(self, task, encoder, rows, batch_size, verbose):
        super().__init__()
        batches, _ = _batch_rows(task, rows, batch_size)
        self._batches = []
        progress = keras.utils.Progbar(len(batches), verbose=1 if verbose == "auto" else verbose)
        for i in range(len(batches)):
            packed, *targets = task.preprocess(*batches[i])
            *states, mask = encoder.predict_on_batch(packed)
            states = tuple(np.asarray(array, "float32") for array in states)
            self._batches.append(((*states, np.asarray(mask)), *targets))
            progress.update(i + 1)

    def __len__(self):
        return len(self._batches)

    def __getitem__(self, index):
        return self._batches[index]


def _check_rows(rows):
    if not isinstance(rows, Rows):
        raise ValueError(
            "fit_on_features wants rows in memory, because it keeps their vectors, got a "
            f"{type(rows).__name__}. Pass texts and their labels; for a dataset, freeze the "
            "encoder with `classifier.backbone.trainable = False` and call `fit`."
        )


def _batch_rows(task, rows, batch_size):
    """(`RowBatches` of rows of similar length, the rows in the order of the batches)."""
    lengths = measure_rows(task.preprocessor, rows)
    return evaluation_batches(rows, choose_size(batch_size), lengths)
