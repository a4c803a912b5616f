"""Trains the last layer of a classifier on vectors of its encoder that are computed once."""

import keras
import numpy as np

from keras_bert_suite.argument_checks import is_auto
from keras_bert_suite.data.input_dataset import evaluation_batches
from keras_bert_suite.data.rows import Rows
from keras_bert_suite.tasks.batch_sources import BatchSource, choose_size, read_data


def fit_on_features(task, x, y, batch_size, epochs, validation_data, optimizer, **kwargs):
    """See `TextClassifier.fit_on_features`."""
    for pooling in task.pooling_layers:
        if not pooling.trainable_weights:
            continue
        raise ValueError(
            f"fit_on_features trains the classification layer alone, and the {pooling.name} "
            f"({type(pooling).__name__}) before it has weights to train. Freeze the encoder with "
            "`classifier.backbone.trainable = False` and call `fit`; or choose a pooling without "
            "weights, such as MeanPooling()."
        )
    encoder = keras.Model(task.input, task.classifier_dropout.input, name="pooled_encoder")
    verbose = kwargs.get("verbose", "auto")
    features, labels = _encode_rows(task, encoder, x, y, batch_size, verbose)
    if validation_data is not None:
        validation_data = _encode_rows(task, encoder, *validation_data, batch_size, verbose)
    head = _make_head(task)
    head.compile(
        optimizer=keras.optimizers.Adam(1e-3) if is_auto(optimizer) else optimizer,
        loss=task.loss if task.compiled else task.problem.make_loss(task.returns_logits),
        metrics=task.problem.make_metrics(task.returns_logits),
    )
    return head.fit(
        features,
        labels,
        batch_size=batch_size,
        epochs=epochs,
        validation_data=validation_data,
        **kwargs,
    )


def _make_head(task):
    """The layers of a task after its encoder, as a model of their own with the same weights."""
    features = keras.Input(task.classifier_dropout.input.shape[1:], name="features")
    outputs = task.output_activation(task.classifier(task.classifier_dropout(features)))
    return keras.Model(features, outputs, name="head")


def _encode_rows(task, encoder, x, y, batch_size, verbose):
    """(float32 (N, P), encoded labels) of rows in memory."""
    rows = read_data(task, x, y, labelled=True)
    if not isinstance(rows, Rows):
        raise ValueError(
            "fit_on_features wants rows in memory, because it keeps their vectors, got a "
            f"{type(x).__name__}. Pass texts and their labels; for a dataset, freeze the encoder "
            "with `classifier.backbone.trainable = False` and call `fit`."
        )
    batches, visited = evaluation_batches(rows, choose_size(batch_size))
    source = BatchSource(batches, task.preprocess, fixed_labels=task.has_fixed_labels)
    features = encoder.predict(source.preprocessed(), steps=source.num_batches, verbose=verbose)
    return np.asarray(features, "float32")[np.argsort(visited)], rows.labels
