"""Trains the layers after the encoder of a task, on encoder outputs computed once."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import keras
import numpy as np

from keras_bert_suite.annotations import Inputs, Labels
from keras_bert_suite.argument_checks import is_auto, with_article
from keras_bert_suite.data.input_dataset import preprocess_batches
from keras_bert_suite.data.rows import Rows
from keras_bert_suite.heads.base.compile_arguments import read_metrics
from keras_bert_suite.heads.base.split_models import TaskPart
from keras_bert_suite.replicas import whole_batches
from keras_bert_suite.runs.batches import (
    Batches,
    batch_rows,
    check_one_weight,
    choose_size,
    hold_out,
    learn_rows,
    pack_rows,
    read,
)
from keras_bert_suite.training import set_schedule_length


@whole_batches()
def fit_on_features(
    task: Any,
    x: Inputs,
    y: Labels,
    batch_size: int = 32,
    epochs: int = 10,
    *,
    sample_weight: Labels = None,
    class_weight: Mapping[Any, float] | Literal["balanced"] | None = None,
    validation_data: Any = None,
    validation_split: float | None = None,
    optimizer: str | keras.optimizers.Optimizer = "auto",
    **kwargs: Any,
) -> keras.callbacks.History:
    """Trains the layers after the encoder on features computed once.

    They are the classification layer and a pooling with weights; in a task on tokens the head and
    its `head_layers`.

    The encoder is not trained. Its outputs are computed once, without dropout, and kept in
    memory. So the results differ from a `fit` with a frozen encoder, whose dropout gives a text
    another vector in each epoch. The dropout before the classification layer is active.
    `compile` sets the loss and the metrics.

    For a classifier without a pooling that has weights, the features are vectors, float32 (N, P),
    and the columns beside the texts.
    Otherwise they are the hidden states that the pooling or the head takes, float32 (B, L, H) for
    each batch of rows, or windows, of similar length. These stay together in all epochs. 10,000
    rows of 64 tokens with H = 768 take 2 GB; `ScalarMix` and `LastLayers` on twelve layers take 13
    times as much.
    A `DocumentClassifier` with a learned `window_pooling` keeps the vectors of its windows.

    Args:
        x, y: as for `fit`, in memory.
        batch_size: int.
        epochs: int.
        sample_weight, class_weight, validation_split: as for `fit`.
        validation_data: `(x, y)` or `(x, y, sample_weight)` in memory, or None.
        optimizer: "auto" is Adam at 1e-3. It is used for this training only. A later `fit` uses
            the optimizer of `compile`.
        **kwargs: as in `keras.Model.fit`, such as `callbacks` and `verbose`.

    Returns:
        `keras.callbacks.History`.

    Raises:
        ValueError: as `fit`; or if `x` is a dataset; or if the task was compiled with a technique;
            or if the `pooling` of a `DocumentClassifier` has weights to train.
    """
    if task.technique is not None:
        raise ValueError(
            f"fit_on_features takes no technique, got {type(task.technique).__name__}. Call `fit`, "
            "or compile without `technique`."
        )
    features = task.encoder_features
    # States (B, L, P) come with their mask (B, L).
    are_vectors = all(len(tensor.shape) == 2 for tensor in keras.tree.flatten(features))
    batch_size = choose_size(batch_size)
    rows = read(task, x, y, sample_weight, labelled=True)
    _check_rows(rows)
    rows, held_out = hold_out(task, rows, validation_data, validation_split)
    weigh = task._weigh_classes(class_weight, rows)
    if weigh is not None:
        check_one_weight(rows.weights)
    features = [*features] if isinstance(features, (list, tuple)) else features
    encoder = TaskPart.of(task, task.input, features, "encoder_of_features")
    # It shares the weights of the layers between the features and the outputs.
    head = keras.Model(features, task.output, name="head")
    _compile_head(head, task, optimizer)
    encode = _encode_rows if are_vectors else EncodedBatches
    verbose = kwargs.get("verbose", "auto")
    learn_rows(task, rows, verbose)
    given, rows = rows, task.data.window(rows)
    data = encode(task, encoder, rows, batch_size, verbose, weigh)
    if held_out is not None:
        _check_rows(held_out)
        held_out = encode(task, encoder, task.data.window(held_out), batch_size, verbose)
    task.drop_scores()
    steps = kwargs.get("steps_per_epoch") or math.ceil(len(rows) / batch_size)
    total = _set_schedule(head, steps, kwargs.get("initial_epoch", 0), epochs, verbose)
    if are_vectors:
        features, labels, weights = data
        history = head.fit(
            features,
            labels,
            batch_size,
            epochs,
            sample_weight=weights,
            validation_data=held_out,
            **kwargs,
        )
    else:
        history = _fit_batches(head, data, held_out, steps, total, epochs=epochs, **kwargs)
    task.note_data(given)
    return history


def find_pooled_features(
    poolings: Sequence[keras.layers.Layer], dropout: keras.layers.Layer
) -> Any:
    """The features of a classifier, symbolic: (B, P); or, if a pooling is trained, its inputs.

    The poolings stand between the outputs of the backbone and the dropout. Only the last may have
    weights to train.
    """
    learned = [layer for layer in poolings if layer.trainable_weights]
    if not learned:
        return dropout.input
    if learned[0] is not poolings[-1]:
        raise ValueError(
            f"fit_on_features trains the last pooling, and the {learned[0].name} before it has "
            "weights to train. Set `classifier.backbone.trainable = False` and call `fit`, or "
            "choose a pooling without weights."
        )
    return learned[0].input


def _compile_head(head, task, optimizer):
    """Compiles a head with the loss and the metrics of its task."""
    if task.compiled:
        loss, arguments = task.loss, read_metrics(task, **task.given_metrics)
    else:
        loss, arguments = task.read_loss(task.make_loss()), task.make_metrics()
    for metric in keras.tree.flatten(list(arguments.values())):
        # A metric of the user may hold the last training. Keras resets it after the first step.
        if isinstance(metric, keras.metrics.Metric):
            metric.reset_state()
    head.compile(
        optimizer=keras.optimizers.Adam(1e-3) if is_auto(optimizer) else optimizer,
        loss=loss,
        **arguments,
    )


def _set_schedule(head, steps, initial_epoch, epochs, verbose):
    """Lays a schedule of open length over the steps to come, and returns how many they are."""
    first_step = int(keras.ops.convert_to_numpy(head.optimizer.iterations))
    before, total = steps * initial_epoch, steps * (epochs - initial_epoch)
    note = set_schedule_length(head, first_step, total, before)
    if note and verbose:
        print(note)
    return total


def _fit_batches(head, data, held_out, steps, total, **kwargs):
    """Trains a head on `EncodedBatches`, `total` batches in all.

    Keras' own reading would fix the lengths of the first batches in TensorFlow's graph. It knows no
    length of these datasets, so they repeat and it is told the steps.
    """
    kwargs["steps_per_epoch"] = steps
    data = preprocess_batches(data, _keep, total, shuffle=kwargs.pop("shuffle", True))
    if held_out is not None:
        kwargs["validation_steps"] = kwargs.get("validation_steps") or len(held_out)
        held_out = preprocess_batches(held_out, _keep, kwargs["validation_steps"])
    kwargs["shuffle"] = False
    return head.fit(data, validation_data=held_out, **kwargs)


def _encode_rows(task, encoder, rows, batch_size, verbose, weigh=None):
    """(float32 (N, P) or a list, labels, weights or None) of `Rows`, for the `fit` of Keras."""
    batches, visited = _batch_rows(task, rows, batch_size)
    source = Batches(batches, pack_rows(task.data))
    features = encoder.predict(source.packed(), steps=source.num_batches, verbose=verbose)
    weights = rows.weights if weigh is None else weigh(rows.labels)
    order = np.argsort(visited)
    vectors = keras.tree.map_structure(lambda a: np.asarray(a, "float32")[order], features)
    return vectors, rows.labels, weights


class EncodedBatches(keras.utils.PyDataset):
    """The hidden states of rows, in batches. A batch has the same rows in every epoch.

    The rows of a batch have similar lengths. Keras shuffles the batches in each epoch.
    """

    def __init__(self, task, encoder, rows, batch_size, verbose, weigh=None):
        super().__init__()
        batches, _ = _batch_rows(task, rows, batch_size)
        pack = pack_rows(task.data, labelled=True, weigh=weigh)
        self._batches = []
        progress = keras.utils.Progbar(len(batches), verbose=1 if verbose == "auto" else verbose)
        for i in range(len(batches)):
            packed, *targets = pack(batches[i])
            features = keras.tree.flatten(encoder.predict_on_batch(packed))
            # The padding mask stays as it is.
            arrays = map(np.asarray, features)
            features = (a if a.dtype.kind in "iub" else a.astype("float32") for a in arrays)
            self._batches.append((tuple(features), *targets))
            progress.update(i + 1)

    def __len__(self):
        return len(self._batches)

    def __getitem__(self, index):
        return self._batches[index]


def _keep(batch):
    return batch


def _check_rows(rows):
    if not isinstance(rows, Rows):
        raise ValueError(
            f"fit_on_features wants rows in memory, got {with_article(rows)}. For a dataset, "
            "set `backbone.trainable = False` of the task and call `fit`."
        )


def _batch_rows(task, rows, batch_size):
    """(`RowBatches` of rows of similar length, the rows in the order of the batches)."""
    return batch_rows(rows, batch_size, task.data.lengths(rows))
