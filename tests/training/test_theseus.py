"""Training in the place of a teacher's layers, against transformers' model with these layers."""

import copy

import keras
import numpy as np
import pytest
import torch
from family import MEMBERS, run_peer
from peer_weights import randomize, to_numpy
from small_pretraining import At, all_arrays, assert_same, interrupt
from small_tasks import compile_model, make_task
from technique_rules import make_seed

import keras_bert_suite as kbs

RATE = 0.1
LABELS = np.array([1, 0, 1], "int32")
HEAD = "ForSequenceClassification"


def save_peer(path, num_layers, **config):
    rates = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    return MEMBERS["bert"].save_peer(path, HEAD, **rates, num_hidden_layers=num_layers, **config)


def find_seed(rate):
    """A random state by which the first of two modules is replaced, and the second is not."""
    for number in range(100):
        drawn = to_numpy(keras.random.uniform((2,), seed=make_seed(number)))
        if drawn[0] < rate <= drawn[1] or (drawn[1] < rate <= drawn[0]):
            return number, drawn < rate
    raise AssertionError("no such seed")


@pytest.mark.every_backend
def test_a_step_is_that_of_the_mixed_model(tmp_path):
    student = save_peer(tmp_path / "student", 2)
    torch.manual_seed(1)
    teacher = save_peer(tmp_path / "teacher", 4)
    task = kbs.TextClassifier.from_preset(tmp_path / "student", dropout=0.0)
    given = kbs.TextClassifier.from_preset(tmp_path / "teacher")
    task.compile(keras.optimizers.SGD(RATE), technique=kbs.Theseus(given, 0.5))
    seed, own = find_seed(0.5)
    task.technique_state.rng.state.assign([seed, 0])
    inputs = MEMBERS["bert"].make_inputs()
    task.train_on_batch(inputs, LABELS)
    mixed, layers = copy.copy(student), []
    for i, is_own in enumerate(own):
        layers += (
            [student.bert.encoder.layer[i]] if is_own else teacher.bert.encoder.layer[2 * i :][:2]
        )
    kept = student.bert.encoder.layer
    parameters = list(student.parameters())
    mixed.bert.encoder.layer = torch.nn.ModuleList(layers)
    loss = torch.nn.functional.cross_entropy(
        run_peer(mixed, inputs).logits, torch.tensor(LABELS).long()
    )
    gradients = torch.autograd.grad(loss, parameters, allow_unused=True)
    student.bert.encoder.layer = kept
    with torch.no_grad():
        for parameter, gradient in zip(parameters, gradients, strict=True):
            if gradient is not None:
                parameter -= RATE * gradient
    student.save_pretrained(tmp_path / "after")
    MEMBERS["bert"].write_tokenizer(tmp_path / "after")
    after = kbs.TextClassifier.from_preset(tmp_path / "after")
    wanted = {v.path: to_numpy(v) for v in after.variables}
    for variable in task.trainable_variables:
        name = variable.path
        np.testing.assert_allclose(to_numpy(variable), wanted[name], atol=1e-6, err_msg=name)


def make(seed=0, **arguments):
    keras.utils.set_random_seed(seed)
    return make_task("texts", **arguments)


def test_the_schedules():
    teacher = make()[0]
    linear = kbs.Theseus(teacher, 0.3, slope=0.1)
    constant = kbs.Theseus(teacher, 0.5, constant_steps=3)
    found = [[float(to_numpy(t.find_rate(step))) for step in range(9)] for t in (linear, constant)]
    assert found[0] == pytest.approx([min(1, 0.3 + 0.1 * t) for t in range(9)])
    assert found[1] == [0.5] * 3 + [1.0] * 6


@pytest.mark.parametrize("kind", ["masks", "words", "spans", "questions"])
def test_at_rate_one_it_is_a_plain_step(kind):
    """Whether the last layer computes all tokens or some of them."""
    teacher, columns = make_task(kind, num_layers=2)
    found = []
    for technique in (None, kbs.Theseus(teacher, 1.0), kbs.Theseus(teacher, 1e-9)):
        keras.utils.set_random_seed(0)
        task, _ = make_task(kind)
        compile_model(task, technique)
        x, y, *w = columns
        weights = {"sample_weight": w[0]} if w else {}
        task.fit(x, y, 4, shuffle=False, verbose=0, steps_per_epoch=1, **weights)
        found.append([np.array(to_numpy(v)) for v in task.trainable_variables])
    plain, same, other = found
    for array, wanted in zip(same, plain, strict=True):
        np.testing.assert_allclose(array, wanted, atol=1e-6)
    assert any(np.abs(a - b).max() > 1e-4 for a, b in zip(other, plain, strict=True))


def test_a_killed_training_goes_on(tmp_path):
    """With the random numbers and the step of the schedule."""
    teacher = randomize(make(num_layers=2)[0])

    def train(*callbacks):
        task, (x, y) = make(dropout=0.1)
        compile_model(task, kbs.Theseus(teacher, 0.3, slope=0.1))
        task.fit(x, y, 4, 2, shuffle=False, verbose=0, callbacks=list(callbacks))
        return task

    wanted = train()
    with pytest.raises(KeyboardInterrupt):
        train(kbs.TrainingCheckpoint(tmp_path, every=2), At(4, interrupt))
    found = train(kbs.TrainingCheckpoint(tmp_path, every=2))
    assert int(to_numpy(found.technique.step)) == 6
    assert_same(found, all_arrays(wanted))


def test_what_cannot_be_is_refused():
    task, _ = make(num_layers=2)
    for sizes, message in (
        ({"num_layers": 3}, "student has 2 layers, and the teacher 3, which is no multiple"),
        ({"num_layers": 4, "hidden_dim": 12}, "of width 16, cannot replace .* of width 12"),
    ):
        with pytest.raises(ValueError, match=message):
            task.compile(technique=kbs.Theseus(make(**sizes)[0]))
    with pytest.raises(ValueError, match="layers of one teacher, got 2"):
        kbs.Theseus([task, task])
    with pytest.raises(ValueError, match="rate and slope are 0"):
        kbs.Theseus(task, 0.0)
    with pytest.raises(ValueError, match="rate must be from 0 to 1, got 2"):
        kbs.Theseus(task, 2)
