"""Techniques: FGM held against transformers, and what every technique must leave as it was."""

import keras
import numpy as np
import pytest
import torch
from family import MEMBERS, TASKS, run_peer
from heads.cases import BATCH_SIZE
from heads.cases import TASKS as KINDS
from peer_weights import to_numpy
from small_pretraining import At, all_arrays, assert_same, interrupt
from small_tasks import compile_model, make_task
from tables import everywhere_for

from keras_bert_suite import FGM, Technique, TrainingCheckpoint

RATE, EPSILON = 0.1, 0.5
#: Where a member of the family has an oracle for a head.
STEPS = [
    *((kind, "ForSequenceClassification") for kind in MEMBERS if kind != "nezha"),
    ("bert", "ForMultipleChoice"),
]


def step_as_written(peer, inputs, labels):
    """The step of FGM by its rule, in PyTorch: the sum of two gradients, and SGD.

    Each row of labels moves by itself. The embeddings are what the table of words returns, before
    positions and norms.
    """
    words, shift, looked_up = peer.get_input_embeddings(), None, []

    def move(module, arguments, output):
        looked_up.append(output)
        return output if shift is None else output + shift

    hook = words.register_forward_hook(move)
    parameters = [parameter for parameter in peer.parameters() if parameter.requires_grad]
    totals = [torch.zeros_like(parameter) for parameter in parameters]
    for _ in range(2):
        logits = run_peer(peer, inputs).logits
        loss = torch.nn.functional.cross_entropy(logits, torch.from_numpy(labels).long())
        *gradients, by_words = torch.autograd.grad(
            loss, [*parameters, looked_up[-1]], allow_unused=True
        )
        for total, gradient in zip(totals, gradients, strict=True):
            if gradient is not None:
                total += gradient
        rows = by_words.reshape(len(labels), -1)
        shift = EPSILON * (rows / rows.norm(dim=1, keepdim=True)).reshape(by_words.shape)
    hook.remove()
    with torch.no_grad():
        for parameter, total in zip(parameters, totals, strict=True):
            parameter -= RATE * total


def save_peer(kind, head, path):
    """A peer without dropout, which is also saved."""
    member = MEMBERS[kind]
    rates = [name for name in member.config if name.endswith(("dropout", "dropout_prob"))]
    return member.save_peer(path, head, **dict.fromkeys(rates, 0.0))


@pytest.mark.parametrize(
    ("kind", "head"),
    everywhere_for(STEPS, ("bert", "ForSequenceClassification")),
)
def test_a_step_is_that_of_the_paper(kind, head, tmp_path):
    peer = save_peer(kind, head, tmp_path / "before")
    inputs = MEMBERS[kind].make_inputs()
    if head == "ForMultipleChoice":
        inputs = MEMBERS[kind].make_choices(inputs)
    labels = np.array([1, 0, 1], "int32")
    task = TASKS[head].from_preset(tmp_path / "before", dropout=0.0)
    task.compile(keras.optimizers.SGD(RATE), technique=FGM(EPSILON))
    before = weights_of(task)
    task.train_on_batch(inputs, labels)
    step_as_written(peer, inputs, labels)
    peer.save_pretrained(tmp_path / "after")
    MEMBERS[kind].write_tokenizer(tmp_path / "after")
    wanted = {v.path: to_numpy(v) for v in TASKS[head].from_preset(tmp_path / "after").variables}
    found = weights_of(task)
    for path, array in found.items():
        np.testing.assert_allclose(array, wanted[path], rtol=0, atol=1e-5, err_msg=path)
    assert max(np.abs(found[path] - array).max() for path, array in before.items()) > 1e-3


def fit(task, columns, technique=None, epochs=1, **arguments):
    """dict of the logs of the last epoch of a training."""
    x, y, *weights = columns
    compile_model(task, technique=technique)
    history = task.fit(
        x,
        y,
        BATCH_SIZE,
        epochs,
        sample_weight=weights[0] if weights else None,
        shuffle=False,
        verbose=0,
        **arguments,
    ).history
    return {name: values[-1] for name, values in history.items()}


def make(kind, **arguments):
    keras.utils.set_random_seed(0)
    return make_task(kind, "none" if kind == "pretraining" else "SegmentPacker", **arguments)


def weights_of(task):
    return {v.path: to_numpy(v) for v in task.trainable_variables}


@pytest.mark.parametrize("kind", KINDS)
def test_one_plain_pass_is_the_step_of_keras(kind):
    """Also with dropout, labels that are made within a step, and a loss for each output."""
    plain, columns = make(kind, dropout=0.1)
    wanted = fit(plain, columns)
    task, columns = make(kind, dropout=0.1)
    assert fit(task, columns, Technique()) == pytest.approx(wanted, abs=1e-6)
    for path, array in weights_of(plain).items():
        np.testing.assert_allclose(weights_of(task)[path], array, atol=1e-6, err_msg=path)


@pytest.mark.parametrize("kind", KINDS)
def test_every_task_moves_its_embeddings(kind):
    """The first logs are those of embeddings that are not moved."""
    plain, columns = make(kind)
    wanted = fit(plain, columns, steps_per_epoch=1)
    task, columns = make(kind)
    found = fit(task, columns, FGM(5.0), steps_per_epoch=1)
    assert found == pytest.approx(wanted, rel=1e-5)
    changes = [np.abs(weights_of(task)[p] - a).max() for p, a in weights_of(plain).items()]
    assert np.isfinite(changes).all() and max(changes) > 1e-5


def test_packed_rows_move_as_rows_of_the_batch():
    (padded, columns), (packed, _) = make("texts"), make("texts")
    wanted = fit(padded, columns, FGM(1.0))
    assert fit(packed, columns, FGM(1.0), sequence_packing=True) == pytest.approx(wanted, rel=1e-4)
    for path, array in weights_of(padded).items():
        np.testing.assert_allclose(weights_of(packed)[path], array, atol=2e-5, err_msg=path)


def step(technique, batches, dtype="float32", **arguments):
    """A classifier after steps of SGD."""
    task, _ = make("texts", dtype=dtype)
    task.compile(keras.optimizers.SGD(RATE, **arguments), technique=technique)
    for x, y in batches:
        task.train_on_batch(x, y)
    return task


def test_rows_move_independently():
    """The gradients of two halves of a batch add up to those of the whole batch."""
    _, (x, y) = make("texts")
    whole = step(FGM(1.0), [(x[:4], y[:4])])
    halves = [(x[:2], y[:2]), (x[2:4], y[2:4])]
    parts = step(FGM(1.0), halves, gradient_accumulation_steps=2)
    for path, array in weights_of(whole).items():
        np.testing.assert_allclose(weights_of(parts)[path], array, atol=1e-6, err_msg=path)


@pytest.mark.every_backend
def test_a_loss_scale_does_not_move_further():
    """In float16 gradients are scaled, and what overflows halves the scale and moves nothing."""
    _, (x, y) = make("texts")
    wanted = step(FGM(1.0), [(x[:4], y[:4])])
    found = step(FGM(1.0), [(x[:4], y[:4])], "mixed_float16")
    assert isinstance(found.optimizer, keras.optimizers.LossScaleOptimizer)
    for path, array in weights_of(wanted).items():
        np.testing.assert_allclose(weights_of(found)[path], array, atol=2e-3, err_msg=path)
    before = weights_of(found)
    found.train_on_batch(x[:4], y[:4], sample_weight=np.full(4, 1e30, "float32"))
    assert float(keras.ops.convert_to_numpy(found.optimizer.dynamic_scale)) == 2.0**14
    assert all(np.array_equal(weights_of(found)[path], array) for path, array in before.items())


@keras.saving.register_keras_serializable(package="tests")
class RDrop(Technique):
    """Two passes with other dropout must agree (Wu et al., 2021, equation 4), by another loss."""

    def __init__(self, alpha=1.0):
        self.alpha = alpha

    def loss(self, forward, batch):
        (loss, outputs), (other_loss, other_outputs) = forward(batch), forward(batch)
        p, q = (keras.ops.log_softmax(logits) for logits in (outputs, other_outputs))
        apart = keras.ops.sum((keras.ops.exp(p) - keras.ops.exp(q)) * (p - q), axis=-1)
        total = (loss + other_loss) / 2 + self.alpha / 2 * keras.ops.mean(apart)
        return total, outputs


@pytest.mark.every_backend
def test_a_loss_over_two_passes_is_a_plain_step_without_dropout():
    _, (x, y) = make("texts")
    plain, twice = step(None, [(x, y)]), step(RDrop(4.0), [(x, y)])
    for path, array in weights_of(plain).items():
        np.testing.assert_allclose(weights_of(twice)[path], array, atol=1e-6, err_msg=path)


def test_a_loss_over_two_passes_draws_dropout_twice():
    logged = {}
    for alpha in (0.0, 4.0):
        task, columns = make("texts", dropout=0.5)
        logged[alpha] = fit(task, columns, RDrop(alpha), steps_per_epoch=1)["loss"]
    assert logged[4.0] > logged[0.0] + 1e-6


@pytest.mark.parametrize("technique", [FGM(0.25), RDrop(2.0)])
def test_a_file_keeps_the_technique(technique, tmp_path):
    task, (x, y) = make("texts")
    task.compile(keras.optimizers.SGD(RATE), technique=technique)
    task.save(tmp_path / "task.keras")
    opened = keras.saving.load_model(tmp_path / "task.keras")
    assert type(opened.technique) is type(technique)
    assert opened.technique.get_config() == technique.get_config()
    for each in (task, opened):
        each.train_on_batch(x, y)
    for path, array in weights_of(task).items():
        np.testing.assert_array_equal(weights_of(opened)[path], array)
    task.compile()
    assert task.technique is None and "technique" not in task.get_compile_config()


def test_a_killed_training_goes_on(tmp_path):
    """With the random numbers of both passes."""
    wanted, columns = make("texts", dropout=0.1)
    history = fit(wanted, columns, FGM(1.0), epochs=2)
    stop = At(4, interrupt)
    arguments = {"epochs": 2, "technique": FGM(1.0)}
    with pytest.raises(KeyboardInterrupt):
        checkpoint = TrainingCheckpoint(tmp_path, every=2)
        fit(*make("texts", dropout=0.1), callbacks=[checkpoint, stop], **arguments)
    task, _ = make("texts", dropout=0.1)
    found = fit(task, columns, callbacks=[TrainingCheckpoint(tmp_path, every=2)], **arguments)
    assert found["loss"] == history["loss"]
    assert_same(task, all_arrays(wanted))


def test_what_cannot_be_is_refused_by_name():
    task, columns = make("texts")
    with pytest.raises(ValueError, match="must be a Technique, such as FGM.*got 'fgm'"):
        task.compile(technique="fgm")
    with pytest.raises(ValueError, match="epsilon must be above 0, got 0"):
        FGM(0)
    task.compile(technique=FGM())
    with pytest.raises(ValueError, match="fit_on_features takes no technique, got FGM"):
        task.fit_on_features(*columns)
    embedder, _ = make("vectors")
    with pytest.raises(ValueError, match="cache_batch_size=2 encodes only some rows"):
        embedder.compile(cache_batch_size=2, technique=FGM())


def test_embeddings_of_kerashub_cannot_be_moved():
    task, columns = make_task("texts", "KerasHub's BERT")
    with pytest.raises(ValueError, match="those of a BertBackbone cannot be moved"):
        task.compile(technique=FGM())
    fit(task, columns, RDrop(), steps_per_epoch=1)
