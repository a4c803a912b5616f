"""Theseus and LayerDrop, against transformers' model with the layers of a step."""

import re

import keras
import numpy as np
import pytest
import torch
from family import MEMBERS, run_peer
from peer_weights import randomize, to_numpy
from small_pretraining import At, all_arrays, assert_same, interrupt
from small_tasks import compile_model, make_task
from tables import everywhere_for, short_for
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


@pytest.mark.parametrize(
    "cls",
    everywhere_for([kbs.Theseus, kbs.LayerDrop], kbs.LayerDrop),
    ids=lambda cls: cls.__name__,
)
def test_a_step_is_that_of_the_mixed_model(cls, tmp_path):
    """One layer is the student's. In the place of the other are two of the teacher, or none."""
    student = save_peer(tmp_path / "student", 2)
    torch.manual_seed(1)
    teacher = save_peer(tmp_path / "teacher", 4)
    task = kbs.TextClassifier.from_preset(tmp_path / "student", dropout=0.0)
    given = (kbs.TextClassifier.from_preset(tmp_path / "teacher"),) if cls is kbs.Theseus else ()
    task.compile(keras.optimizers.SGD(RATE), technique=cls(*given, 0.5))
    seed, own = find_seed(0.5)
    if cls is kbs.LayerDrop:
        own = ~own
    task.technique_state.rng.state.assign([seed, 0])
    inputs = MEMBERS["bert"].make_inputs()
    task.train_on_batch(inputs, LABELS)
    layers = student.bert.encoder.layer
    replaced = [teacher.bert.encoder.layer[2 * i :][:2] if given else [] for i in range(2)]
    mixed = [[layers[i]] if own[i] else replaced[i] for i in range(2)]
    step(student, [layer for module in mixed for layer in module], inputs)
    student.save_pretrained(tmp_path / "after")
    MEMBERS["bert"].write_tokenizer(tmp_path / "after")
    after = kbs.TextClassifier.from_preset(tmp_path / "after")
    wanted = {v.path: to_numpy(v) for v in after.variables}
    for variable in task.trainable_variables:
        name = variable.path
        np.testing.assert_allclose(to_numpy(variable), wanted[name], atol=1e-6, err_msg=name)


def step(peer, layers, inputs):
    """A step of a model of transformers, in a pass of which it has other layers."""
    parameters, kept = list(peer.parameters()), peer.bert.encoder.layer
    peer.bert.encoder.layer = torch.nn.ModuleList(layers)
    labels = torch.tensor(LABELS).long()
    loss = torch.nn.functional.cross_entropy(run_peer(peer, inputs).logits, labels)
    gradients = torch.autograd.grad(loss, parameters, allow_unused=True)
    peer.bert.encoder.layer = kept
    with torch.no_grad():
        for parameter, gradient in zip(parameters, gradients, strict=True):
            if gradient is not None:
                parameter -= RATE * gradient


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


@pytest.mark.parametrize(
    "kind",
    short_for(["masks", "words", "spans", "questions"], "masks", "words", part="combinations"),
)
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


@pytest.mark.parametrize("kind", ["choices", "documents", "chains", "rankings", "pretraining"])
def test_each_layer_of_a_task_is_replaced(kind):
    """With no layer of its own, a student of one layer depends on no weight of the layer."""
    task, columns = make_task(kind, "none" if kind == "pretraining" else "SegmentPacker")
    compile_model(task, kbs.LayerDrop(1 - 1e-9))
    x, y, *w = columns
    before = {v.path: np.array(to_numpy(v)) for v in task.trainable_variables}
    weights = {"sample_weight": w[0]} if w else {}
    task.fit(x, y, 4, shuffle=False, verbose=0, steps_per_epoch=1, **weights)
    changes = {v.path: np.abs(to_numpy(v) - before[v.path]).max() for v in task.trainable_variables}
    biases = [p for p in changes if "transformer_layer_0" in p and p.endswith("bias")]
    assert biases and all(changes[path] == 0 for path in biases)  # Others decay.
    assert max(changes.values()) > 1e-7


@pytest.mark.parametrize("cls", [kbs.Theseus, kbs.LayerDrop], ids=lambda cls: cls.__name__)
def test_a_killed_training_goes_on(cls, tmp_path):
    """With the random numbers, and the step of the schedule."""
    teacher = randomize(make(num_layers=2)[0])
    technique = kbs.LayerDrop(0.5) if cls is kbs.LayerDrop else cls(teacher, 0.3, slope=0.1)

    def train(*callbacks):
        task, (x, y) = make(dropout=0.1)
        compile_model(task, technique)
        task.fit(x, y, 4, 2, shuffle=False, verbose=0, callbacks=list(callbacks))
        return task

    wanted = train()
    with pytest.raises(KeyboardInterrupt):
        train(kbs.TrainingCheckpoint(tmp_path, every=2), At(4, interrupt))
    found = train(kbs.TrainingCheckpoint(tmp_path, every=2))
    assert_same(found, all_arrays(wanted))
    if cls is kbs.Theseus:
        assert int(to_numpy(found.technique.step)) == 6


def test_a_file_keeps_them(tmp_path):
    make(num_layers=2)[0].save(tmp_path / "teacher.keras")
    for technique in (
        kbs.LayerDrop(0.5),
        kbs.Theseus(str(tmp_path / "teacher.keras"), 0.25, 0.1, 9),
    ):
        task, (x, y) = make()
        task.compile(keras.optimizers.SGD(RATE), technique=technique)
        task.train_on_batch(x, y)
        task.save(tmp_path / "task.keras")
        opened = keras.saving.load_model(tmp_path / "task.keras")
        assert opened.technique.get_config() == task.technique.get_config()
        for each in (task, opened):
            each.train_on_batch(x, y)
        assert_same(opened, all_arrays(task))
    # A file without its teacher still names it.
    path = tmp_path / "teacher.keras"
    path.rename(tmp_path / "moved.keras")
    opened = keras.saving.load_model(tmp_path / "task.keras")
    assert opened.technique.get_config() == task.technique.get_config()
    assert opened.technique.facts == task.technique.facts
    with pytest.raises(ValueError, match=re.escape(str(path))):
        opened.train_on_batch(x, y)


def test_packed_rows_lose_the_same_layers():
    found = []
    for packs in (False, True):
        task, (x, y) = make(num_layers=2)
        compile_model(task, kbs.LayerDrop(0.5))
        task.technique_state.rng.state.assign([7, 0])
        history = task.fit(x, y, 4, 2, shuffle=False, verbose=0, sequence_packing=packs).history
        found.append(history["loss"])
    assert found[1] == pytest.approx(found[0], rel=1e-4)


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
    with pytest.raises(ValueError, match="rate is 0, which leaves no layer out"):
        kbs.LayerDrop(0)
    albert = kbs.TextClassifier(kbs.AlbertBackbone(24, 2, 2, 8, 16), num_classes=2)
    with pytest.raises(ValueError, match="AlbertBackbone does not have a layer of its own for ea"):
        albert.compile(technique=kbs.LayerDrop())
    for kind, message in (
        ("replaced tokens", "An ElectraPretrainer has two encoders"),
        ("corrupted texts", "layers that cannot be found in it|layer of its own for each"),
    ):
        pretrainer, _ = make_task(kind, "none")
        with pytest.raises(ValueError, match=message):
            pretrainer.compile(technique=kbs.LayerDrop())
