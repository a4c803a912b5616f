"""The outputs of the tasks of an ensemble, their means, and the parts that answer for them."""

import numpy as np

from keras_bert_suite.heads.base import averages
from keras_bert_suite.heads.base.input_checks import EncoderInputs


def find_form(task, order, outputs, form, xp):
    """Outputs of a task in the form that is averaged, with labels in the order of the first task.

    `order`, int (C,) or None, is from `find_label_order`; `xp` is `numpy` or `keras.ops`.
    """
    outputs = averages.to_form(task.answers, outputs, form, xp)
    return outputs if order is None else xp.take(outputs, order, axis=task.answers.label_axis)


def map_rows(function, outputs):
    """`function` of an array of all rows, or of the array of each row in a list."""
    if isinstance(outputs, list):
        return [function(np.asarray(row)) for row in outputs]
    return function(outputs)


def average_rows(answers, outputs, weights, form):
    """The outputs that `answers` read, of the outputs of each task in the form that is averaged.

    Args:
        answers: the answers of the ensemble.
        outputs: list with the outputs of each task, arrays or lists of an array for each row.
        weights: list of floats.
        form: one of `answers.mean_forms`.
    """
    weights = np.asarray(weights, "float32")

    def join(*parts):
        sizes = np.min([part.shape for part in parts], axis=0)  # Batches may pad choices otherwise.
        parts = [part[tuple(map(slice, sizes))] for part in parts]
        mean = sum(weight * part for weight, part in zip(weights, parts, strict=True))
        return averages.from_form(answers, mean, form, np)

    if isinstance(outputs[0], list):
        return [join(*rows) for rows in zip(*outputs, strict=True)]
    return join(*outputs)


class Recorder:
    """A function that computes each of its results once, and then repeats them in order.

    `score` asks for the same outputs in the same order each time.
    """

    def __init__(self, function):
        self.function, self.results, self.place = function, [], 0

    def rewind(self):
        self.place = 0

    def __call__(self, *args, **kwargs):
        if self.place == len(self.results):
            self.results.append(self.function(*args, **kwargs))
        self.place += 1
        return self.results[self.place - 1]


def make_parts(tasks, joined_layers):
    """(data, answers) of an ensemble, as the `HEAD` of its first task makes them."""
    first = tasks[0]
    said = {name: getattr(first, name) for name in first.HEAD.settings}
    said.update(first.find_part_settings(), labels=getattr(first, "label_names", None))
    said.update(returns_logits=first.returns_logits, input_names=first.input_names)
    if joined_layers:
        (said["layer"],) = joined_layers.values()
    return first.HEAD.make_parts(said, first.preprocessor, _join_inputs(tasks))


def _join_inputs(tasks):
    """`EncoderInputs` for all encoders: the inputs of all, and the ids that each of them knows."""
    inputs = [task.data.encoder for task in tasks]
    widest = max(inputs, key=lambda encoder: len(encoder.names))
    sizes = [encoder.vocabulary_size for encoder in inputs if encoder.vocabulary_size]
    return EncoderInputs(**{**vars(widest), "vocabulary_size": min(sizes, default=None)})


def copy_layers(task):
    """dict of the name of each of the `label_layers` of a task -> a layer of its size."""
    made = {}
    for name in task.label_layers:
        layer = getattr(task, name)
        made[name] = type(layer).from_config(layer.get_config())
        made[name].build((None, None, layer.num_classes))
    return made


def average_layers(layers, tasks, weights, orders):
    """Gives layers, dict of `copy_layers`, the means of the weights that they have in the tasks."""
    for name, layer in layers.items():
        means = [0.0] * len(layer.weights)
        for task, weight, order in zip(tasks, weights, orders, strict=True):
            arrays = getattr(task, name).get_weights()
            if order is not None:  # Each axis has a place for each label.
                arrays = [array[np.ix_(*[order] * array.ndim)] for array in arrays]
            means = [mean + weight * array for mean, array in zip(means, arrays, strict=True)]
        layer.set_weights(means)
