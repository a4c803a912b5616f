"""A bridge: a task whose data and answers are still methods of its own."""

import functools

import keras

from keras_bert_suite.data.input_dataset import unpack_batch
from keras_bert_suite.data.rows import Rows
from keras_bert_suite.tasks.data.input_checks import (
    EncoderInputs,
    check_packed,
    check_segments,
    default_names,
    order_columns,
)
from keras_bert_suite.tasks.data.texts import TextData


class HookedData:
    def __init__(self, task):
        self.task = task
        self.labels = self

    text_ranks = property(lambda self: self.task.text_ranks)
    are_needed = property(lambda self: self.task.needs_labels)
    have_fixed_shape = property(lambda self: self.task.has_fixed_labels)
    takes_graphs = property(lambda self: self.task.preprocesses_in_graphs)
    needs_segment_packer = property(lambda self: self.task.needs_segment_packer)
    packer = property(lambda self: self.task.preprocessor, lambda self, value: None)

    def class_weighting(self, class_weight, loss):
        return self.task.class_weighting(class_weight)

    def unpack(self, element):
        return self.task.unpack_batch(element)

    def read(self, x, y=None, sample_weight=None, labelled=False):
        rows = self.task.read_rows(x, y, sample_weight)
        if labelled and not len(rows):
            raise ValueError("A task needs at least one row, got none.")
        if labelled and y is None and self.task.needs_labels:
            raise ValueError(
                f"A task needs a label for each row, got {len(rows)} rows and no labels. Pass the "
                "labels as `y`."
            )
        return self._complete(rows, labelled)

    def read_batch(self, x, y=None, sample_weight=None, labelled=False):
        rows = self.task.read_batch(x, y, sample_weight)
        return self._complete(rows, rows.labels is not None)

    def _complete(self, rows, labelled):
        labels = None if rows.labels is None else self.task.encode_labels(rows.labels)
        if isinstance(rows.inputs, dict):
            check_packed(rows.inputs, EncoderInputs.of(self.task.backbone))
            inputs = rows.inputs
        else:
            inputs = self.task.arrange_columns(rows.inputs, rows.input_names, labelled)
        return Rows(inputs, labels, rows.weights)

    def window(self, rows):
        return self.task.cut_windows(rows)

    lengths = TextData.lengths
    check_can_pack = TextData.check_can_pack
    _pack_by_keras_hub = TextData._pack_by_keras_hub
    pack_texts = TextData.pack_texts
    input_names = property(lambda self: self.task.input_names)
    encoder = property(lambda self: EncoderInputs.of(self.task.backbone))

    def pack(self, rows, labelled=False):
        task = self.task
        pack = task.preprocess_training if labelled else task.preprocess
        batch = pack(rows.inputs, rows.labels, rows.weights)
        return keras.utils.unpack_x_y_sample_weight(batch)


class HookedAnswers:
    def __init__(self, task):
        self.task = task

    def decode(self, outputs, rows):
        return self.task.decode(outputs, rows)

    @property
    def serve(self):
        serve = getattr(self.task, "serving_outputs", None)
        return serve and (lambda ops, outputs, packed: serve(outputs, packed))


class Hooked:
    input_names = None
    needs_labels = True
    has_fixed_labels = False
    preprocesses_in_graphs = True
    text_ranks = None
    needs_segment_packer = False

    @functools.cached_property
    def data(self):
        return HookedData(self)

    @functools.cached_property
    def answers(self):
        return HookedAnswers(self)

    def read_rows(self, x, y=None, sample_weight=None):
        return Rows.read(x, y, sample_weight)

    def unpack_batch(self, batch):
        return unpack_batch(batch)

    def read_batch(self, x, y=None, sample_weight=None):
        return Rows.read_batch(x, y, sample_weight)

    def arrange_columns(self, inputs, names, labelled):
        check_segments(len(inputs), EncoderInputs.of(self.backbone), self.input_names)
        if labelled and self.input_names is None:
            self.input_names = names or default_names(len(inputs))
        return tuple(inputs[i] for i in order_columns(len(inputs), names, self.input_names))

    def encode_labels(self, labels):
        return labels

    def class_weighting(self, class_weight):
        raise ValueError(f"{type(self).__name__} has no classes, so class_weight must be None.")

    def cut_windows(self, rows):
        return rows

    def decode(self, outputs, rows):
        return outputs

    def preprocess_training(self, x, y=None, sample_weight=None):
        return self.preprocess(x, y, sample_weight)

    def preprocess(self, x, y=None, sample_weight=None):
        if isinstance(x, tuple):
            x = self.pack_texts(x)
        return keras.utils.pack_x_y_sample_weight(x, y, sample_weight)

    def pack_texts(self, texts):
        return self.data.pack_texts(texts)
