"""Techniques that the package does not have, each as its paper has it: guests of the protocol."""

import keras
from keras import ops

from keras_bert_suite import Technique


def row_norms(x):
    """float (B, 1, 1), the norms of the rows of an array (B, L, E)."""
    return ops.sqrt(ops.sum(ops.square(x), axis=(1, 2), keepdims=True))


class FreeLB(Technique):
    """The mean gradient of K moves, which begin at random (Zhu et al., 2020, algorithm 1).

    Of `tests/guest_techniques`: padding never moves, and all passes drop the same elements.
    """

    moves_embeddings = True

    def __init__(self, steps=3, rate=0.3, first_norm=0.2, max_norm=0.4):
        self.steps, self.rate, self.first_norm, self.max_norm = steps, rate, first_norm, max_norm

    def gradients(self, differentiate, batch, rng):
        mask = ops.cast(batch.x["padding_mask"], "float32")[..., None]
        size = ops.sum(mask, axis=1, keepdims=True) * batch.shift.shape[-1]
        start = keras.random.uniform(ops.shape(batch.shift), -1.0, 1.0, seed=rng)
        shift, total = start * mask * self.first_norm / ops.sqrt(size), None
        for _ in range(self.steps):
            found = differentiate(shift, same_dropout=True)
            total = found if total is None else total + found
            shift += self.rate * ops.divide_no_nan(found.shift, row_norms(found.shift))
            shift *= ops.minimum(1.0, ops.divide_no_nan(self.max_norm, row_norms(shift)))
        return 1 / self.steps * total


class PGD(Technique):
    """The clean gradient and that of K moves (Madry et al., 2018); inner passes need no weights."""

    moves_embeddings = True

    def __init__(self, steps=3, rate=0.3, max_norm=1.0):
        self.steps, self.rate, self.max_norm = steps, rate, max_norm

    def gradients(self, differentiate, batch, rng):
        clean = found = differentiate()
        shift = batch.shift
        for step in range(1, self.steps + 1):
            shift += self.rate * ops.divide_no_nan(found.shift, row_norms(found.shift))
            shift *= ops.minimum(1.0, ops.divide_no_nan(self.max_norm, row_norms(shift)))
            found = differentiate(shift, weights=step == self.steps)
        return clean + found


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
        FreeLB.__init__(self, first_norm=first_norm)


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


class RDrop(Technique):
    """Two passes with other dropout must agree (Wu et al., 2021, equation 4), by another loss."""

    def __init__(self, alpha=1.0):
        self.alpha = alpha

    def loss(self, forward, batch, rng):
        (loss, outputs), (other_loss, other_outputs) = forward(batch), forward(batch)
        p, q = (ops.log_softmax(logits) for logits in (outputs, other_outputs))
        apart = ops.sum((ops.exp(p) - ops.exp(q)) * (p - q), axis=-1)
        return (loss + other_loss) / 2 + self.alpha / 2 * ops.mean(apart), outputs


for technique in (FreeLB, PGD, Average, AverageOfMoved, Distillation, RDrop):
    keras.saving.register_keras_serializable(package="tests")(technique)
