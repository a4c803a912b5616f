"""Techniques held against transformers, and what every technique must leave as it was."""

import keras
import numpy as np
import pytest
import torch
from family import MEMBERS, TASKS, run_peer
from guest_techniques import PGD, Average, AverageOfMoved, Distillation, FreeLB, RDrop
from heads.cases import BATCH_SIZE
from heads.cases import TASKS as KINDS
from peer_weights import randomize, to_numpy
from small_pretraining import At, all_arrays, assert_same, interrupt
from small_tasks import compile_model, make_task
from tables import everywhere_for, short_for

from keras_bert_suite import FGM, Technique, TextClassifier, TrainingCheckpoint
from keras_bert_suite.runs.model_variables import copy_variables

RATE, EPSILON, SEED = 0.1, 0.5, 7


class Moves:
    """The gradients of a peer, in PyTorch, with embeddings that are moved row by row of labels.

    The embeddings are what the table of words returns, before positions and norms.
    """

    def __init__(self, peer, inputs, labels):
        self.peer, self.inputs, self.labels = peer, inputs, torch.from_numpy(labels).long()
        self.parameters = [p for p in peer.parameters() if p.requires_grad]

    def differentiate(self, shift=0.0):
        """(the gradients of the parameters, those of the embeddings)."""
        looked_up = []

        def move(module, arguments, output):
            looked_up.append(output)
            return output + shift

        hook = self.peer.get_input_embeddings().register_forward_hook(move)
        logits = run_peer(self.peer, self.inputs).logits
        hook.remove()
        loss = torch.nn.functional.cross_entropy(logits, self.labels)
        *gradients, by_words = torch.autograd.grad(
            loss, [*self.parameters, looked_up[-1]], allow_unused=True
        )
        pairs = zip(gradients, self.parameters, strict=True)
        return [torch.zeros_like(p) if g is None else g for g, p in pairs], by_words

    def scale(self, array, to):
        """An array whose rows get other norms: a number, or a function of the norms."""
        rows = array.reshape(len(self.labels), -1)
        norms = rows.norm(dim=1, keepdim=True)
        return (rows / norms * (to(norms) if callable(to) else to)).reshape(array.shape)


def fgm_as_written(moves):
    clean, by_words = moves.differentiate()
    moved, _ = moves.differentiate(moves.scale(by_words, EPSILON))
    return [a + b for a, b in zip(clean, moved, strict=True)]


def pgd_as_written(moves):
    clean, by_words = moves.differentiate()
    shift = torch.zeros_like(by_words)
    for _ in range(3):
        shift = shift + moves.scale(by_words, 0.3)
        shift = moves.scale(shift, lambda norms: norms.clamp(max=0.5))
        moved, by_words = moves.differentiate(shift)
    return [a + b for a, b in zip(clean, moved, strict=True)]


def free_lb_as_written(moves):
    """The random numbers of the start are those of the technique."""
    mask = torch.from_numpy(moves.inputs["padding_mask"])[..., None]
    width = moves.peer.get_input_embeddings().embedding_dim
    seed = keras.random.SeedGenerator(SEED)
    shape = (*mask.shape[:2], width)
    start = torch.from_numpy(to_numpy(keras.random.uniform(shape, -1.0, 1.0, seed=seed)))
    shift = start * mask * 0.2 / (mask.sum(1, keepdim=True) * width).sqrt()
    totals = [torch.zeros_like(parameter) for parameter in moves.parameters]
    for _ in range(3):
        gradients, by_words = moves.differentiate(shift)
        totals = [total + g / 3 for total, g in zip(totals, gradients, strict=True)]
        shift = shift + moves.scale(by_words, 0.3)
        shift = moves.scale(shift, lambda norms: norms.clamp(max=0.4))
    return totals


#: (technique, transcription, member of the family, head), where it has an oracle for a head.
CLASSES = "ForSequenceClassification"
STEPS = [
    *(
        (FGM(EPSILON), fgm_as_written, kind, CLASSES)
        for kind in MEMBERS
        if kind not in ("nezha", "bart")
    ),
    (FGM(EPSILON), fgm_as_written, "bert", "ForMultipleChoice"),
    (PGD(3, 0.3, 0.5), pgd_as_written, "bert", CLASSES),
    (FreeLB(3, 0.3, 0.2, 0.4), free_lb_as_written, "bert", CLASSES),
]


def save_peer(kind, head, path):
    """A peer without dropout, which is also saved."""
    member = MEMBERS[kind]
    rates = [name for name in member.config if name.endswith(("dropout", "dropout_prob"))]
    return member.save_peer(path, head, **dict.fromkeys(rates, 0.0))


@pytest.mark.parametrize(
    ("technique", "rule", "kind", "head"),
    [
        # The embeddings of most kinds are looked up as those of BERT are.
        *short_for(
            STEPS[:-1],
            *(step for step in STEPS[:-1] if step[2] in ("bert", "longformer", "modernbert")),
            part="combinations",
        ),
        *everywhere_for(STEPS[-1:], *STEPS[-1:]),
    ],
)
def test_a_step_is_that_of_the_paper(technique, rule, kind, head, tmp_path):
    peer = save_peer(kind, head, tmp_path / "before")
    inputs = MEMBERS[kind].make_inputs()
    if head == "ForMultipleChoice":
        inputs = MEMBERS[kind].make_choices(inputs)
    labels = np.array([1, 0, 1], "int32")
    task = TASKS[head].from_preset(tmp_path / "before", dropout=0.0)
    task.compile(keras.optimizers.SGD(RATE), technique=technique)
    task.technique_state.rng.state.assign([SEED, 0])
    before = weights_of(task)
    task.train_on_batch(inputs, labels)
    moves = Moves(peer, inputs, labels)
    gradients = rule(moves)
    with torch.no_grad():
        for parameter, gradient in zip(moves.parameters, gradients, strict=True):
            parameter -= RATE * gradient
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


#: Of the kinds with the same labels and outputs, `make test` has one.
SHORT_KINDS = short_for(
    KINDS,
    *("texts", "label sets", "chains", "spans", "questions", "rankings", "documents", "vectors"),
    *("masks", "pretraining", "targets"),
    part="combinations",
)


def make(kind, **arguments):
    keras.utils.set_random_seed(0)
    return make_task(kind, "none" if kind == "pretraining" else "SegmentPacker", **arguments)


def weights_of(task):
    return {v.path: to_numpy(v) for v in task.trainable_variables}


@pytest.mark.parametrize("kind", SHORT_KINDS)
def test_one_plain_pass_is_the_step_of_keras(kind):
    """Also with dropout, labels that are made within a step, and a loss for each output."""
    plain, columns = make(kind, dropout=0.1)
    wanted = fit(plain, columns)
    task, columns = make(kind, dropout=0.1)
    assert fit(task, columns, Technique()) == pytest.approx(wanted, abs=1e-6)
    for path, array in weights_of(plain).items():
        np.testing.assert_allclose(weights_of(task)[path], array, atol=1e-6, err_msg=path)


@pytest.mark.parametrize("kind", SHORT_KINDS)
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


def test_passes_with_the_same_dropout_are_one_plain_step():
    """Without a move, the mean over equal passes is the gradient of the first."""
    found = []
    for technique in (Technique(), FreeLB(first_norm=0.0, rate=0.0)):
        task, (x, y) = make("texts", dropout=0.5)
        task.compile(keras.optimizers.SGD(RATE), technique=technique)
        for _ in range(2):
            task.train_on_batch(x, y)
        found.append(weights_of(task))
    plain, common = found
    for path, array in plain.items():
        np.testing.assert_allclose(common[path], array, atol=1e-6, err_msg=path)


@pytest.mark.parametrize("technique", [FGM(0.25), AverageOfMoved(0.5)])
def test_a_file_keeps_the_technique(technique, tmp_path):
    """With what it owns. A preset, and weights of the head, are those of the task alone."""
    task, (x, y) = make("texts")
    task.compile(keras.optimizers.SGD(RATE), technique=technique)
    task.train_on_batch(x, y)
    task.save(tmp_path / "task.keras")
    opened = keras.saving.load_model(tmp_path / "task.keras")
    assert type(opened.technique) is type(technique)
    assert opened.technique.get_config() == technique.get_config()
    for each in (task, opened):
        each.train_on_batch(x, y)
    assert_same(opened, all_arrays(task))
    task.save_to_preset(tmp_path / "preset")
    TextClassifier.from_preset(tmp_path / "preset")
    weights = {id(variable) for variable in task.variables}
    task.compile()
    assert task.technique is None and "technique" not in task.get_compile_config()
    assert {*map(id, [*task.trainable_variables, *task.non_trainable_variables])} == weights


@pytest.mark.every_backend
def test_a_killed_training_goes_on(tmp_path):
    """With the random numbers of all passes, and all that the technique owns."""
    wanted, columns = make("texts", dropout=0.1)
    history = fit(wanted, columns, AverageOfMoved(), epochs=2)
    stop = At(4, interrupt)
    with pytest.raises(KeyboardInterrupt):
        callbacks = [TrainingCheckpoint(tmp_path, every=2), stop]
        fit(*make("texts", dropout=0.1), AverageOfMoved(), epochs=2, callbacks=callbacks)
    task, _ = make("texts", dropout=0.1)
    callbacks = [TrainingCheckpoint(tmp_path, every=2)]
    found = fit(task, columns, AverageOfMoved(), epochs=2, callbacks=callbacks)
    assert found["loss"] == history["loss"]
    assert_same(task, all_arrays(wanted))


def test_an_average_follows_every_update():
    task, (x, y) = make("texts")
    task.compile(keras.optimizers.SGD(RATE), technique=Average(0.75))
    wanted = list(map(np.array, weights_of(task).values()))
    for _ in range(3):
        task.train_on_batch(x, y)
        step = weights_of(task).values()
        wanted = [0.75 * a + 0.25 * b for a, b in zip(wanted, step, strict=True)]
    for found, average in zip(task.technique.average, wanted, strict=True):
        np.testing.assert_allclose(to_numpy(found), average, atol=1e-6)


def test_a_teacher_is_in_no_file_and_is_not_trained(tmp_path):
    task, (x, y) = make("texts")
    randomize(task)  # With the small weights of a new task both losses are alike.
    task.save(tmp_path / "teacher.keras")
    teacher = [np.array(to_numpy(weight)) for weight in task.weights]
    plain = len(task.trainable_variables)
    task.compile(
        keras.optimizers.SGD(RATE), technique=Distillation(str(tmp_path / "teacher.keras"))
    )
    packed = task.data.pack(task.data.read(x))[0]
    task.train_on_batch(packed, y)
    assert len(task.trainable_variables) == plain + 1
    owned = task.technique.teacher.weights
    assert all(map(np.array_equal, map(to_numpy, owned), teacher))
    assert {*copy_variables(task, "technique/")} == {"technique/rng", "technique/learned/0"}
    assert float(to_numpy(task.technique.learned["share"])) != 0.5
    task.save(tmp_path / "task.keras")
    sizes = [(tmp_path / name).stat().st_size for name in ("task.keras", "teacher.keras")]
    assert sizes[0] < 1.2 * sizes[1]
    opened = keras.saving.load_model(tmp_path / "task.keras")
    for each in (task, opened):
        each.train_on_batch(packed, y)
    assert_same(opened, all_arrays(task))


def test_a_student_that_equals_its_teacher_stays(tmp_path):
    """Until an array of the rows, which the model does not take, says otherwise."""
    task, (x, y) = make("texts")
    packed = task.data.pack(task.data.read(x))[0]
    task.save(tmp_path / "teacher.keras")
    before = {path: np.array(array) for path, array in weights_of(task).items()}
    technique = Distillation(str(tmp_path / "teacher.keras"), 1.0)
    task.compile(keras.optimizers.SGD(RATE), technique=technique)
    task.train_on_batch(packed, y)
    for path, array in before.items():
        np.testing.assert_allclose(weights_of(task)[path], array, atol=1e-7, err_msg=path)
    outputs = np.tile(np.float32([[1.0, -1.0]]), (len(y), 1))
    task.fit({**packed, "teacher_outputs": outputs}, y, BATCH_SIZE, verbose=0)
    assert (
        max(np.abs(weights_of(task)[path] - array).max() for path, array in before.items()) > 1e-4
    )


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
