"""Techniques that the package does not have, each as its paper has it: guests of the protocol."""

import keras
from keras import ops

from keras_bert_suite import FreeLB, Technique


class Average(Technique):
    """An exponential average of the weights, beside a plain training."""

    def __init__(self, momentum=0.9):
        self.momentum = momentum

    def build(self, model):
        self.weights = model.trainable_variables
        self.average = [
            keras.Variable(ops.copy(weight), trainable=False) for weight in self.weights
        ]

    def after_update(self):
        for average, weight in zip(self.average, self.weights, strict=True):
            average.assign(self.momentum * average + (1 - self.momentum) * weight)


class AverageOfMoved(Average, FreeLB):
    """The average, and the gradients of FreeLB."""

    def __init__(self, momentum=0.9, first_norm=0.2):
        Average.__init__(self, momentum)
        FreeLB.__init__(self, rate=0.3, first_norm=first_norm)


class Distillation(Technique):
    """A mean of the loss and of the cross-entropy with a teacher, by a share that is learned.

    Rows may bring the outputs of the teacher with them.
    """

    constants = ("teacher",)

    def __init__(self, path, share=0.5):
        self.path, self.share = path, share

    def build(self, model):
        self.teacher = keras.saving.load_model(self.path, compile=False)
        self.learned = {"share": keras.Variable(self.share)}

    def loss(self, forward, batch, rng):
        loss, outputs = forward(batch)
        known = batch.x.get("teacher_outputs")
        wanted = ops.softmax(self.teacher(batch.x) if known is None else known)
        soft = ops.mean(ops.categorical_crossentropy(wanted, outputs, from_logits=True))
        share = self.learned["share"]
        return (1 - share) * loss + share * soft, outputs


for technique in (Average, AverageOfMoved, Distillation):
    keras.saving.register_keras_serializable(package="tests")(technique)
