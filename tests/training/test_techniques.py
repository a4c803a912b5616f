"""Techniques held against transformers, and what every technique must leave as it was."""

import keras
import numpy as np
import pytest
from guest_techniques import Average, AverageOfMoved, Distillation
from heads.cases import BATCH_SIZE
from heads.cases import TASKS as KINDS
from peer_weights import randomize, to_numpy
from small_pretraining import At, all_arrays, assert_same, interrupt
from small_tasks import compile_model, make_task
from tables import left_out, short_for

from keras_bert_suite import (
    FGM,
    SMART,
    VAT,
    CarriedMemory,
    CombinedTechniques,
    FreeLB,
    GradientPenalty,
    Mixup,
    RDrop,
    Technique,
    TextClassifier,
    TrainingCheckpoint,
)
from keras_bert_suite.runs.model_variables import copy_variables

RATE = 0.1


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
    *("texts", "chains", "rankings", "vectors", "masks", "pretraining", "targets"),
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
    task, (x, y) = make("texts")
    with pytest.warns(UserWarning, match="a TextClassifier without dropout .* drop `technique`"):
        task.compile(technique=RDrop(4.0))
    make("texts", dropout=0.1)[0].compile(technique=RDrop(4.0))
    plain, twice = step(None, [(x, y)]), step(RDrop(4.0), [(x, y)])
    for path, array in weights_of(plain).items():
        np.testing.assert_allclose(weights_of(twice)[path], array, atol=1e-6, err_msg=path)


def test_a_loss_over_two_passes_draws_dropout_twice():
    logged = {}
    for alpha in (1e-9, 4.0):
        task, columns = make("texts", dropout=0.5)
        logged[alpha] = fit(task, columns, RDrop(alpha), steps_per_epoch=1)["loss"]
    assert logged[4.0] > logged[1e-9] + 1e-6


def test_passes_with_the_same_dropout_are_one_plain_step():
    """Without a move, the mean over equal passes is the gradient of the first."""
    found = []
    for technique in (Technique(), FreeLB(first_norm=0.0, rate=1e-20)):
        task, (x, y) = make("texts", dropout=0.5)
        task.compile(keras.optimizers.SGD(RATE), technique=technique)
        for _ in range(2):
            task.train_on_batch(x, y)
        found.append(weights_of(task))
    plain, common = found
    for path, array in plain.items():
        np.testing.assert_allclose(common[path], array, atol=1e-6, err_msg=path)


@pytest.mark.backend("torch")
@pytest.mark.parametrize(
    ("technique", "passes"),
    [(FreeLB(steps=3), 3), (VAT(steps=2), 4), (SMART(steps=2), 4)],
    ids=["FreeLB", "VAT", "SMART"],
)
def test_moved_passes_repeat_the_dropout_of_the_first(technique, passes):
    """Otherwise their outputs would differ by the dropout, and not by the move alone."""
    task, (x, y) = make("texts", dropout=0.5)
    seen, layer = [], task.backbone.embeddings.embeddings_dropout
    call = layer.call

    def record(states, training=None):
        found = call(states, training=training)
        seen.append(to_numpy(found) == 0)
        return found

    task.compile(keras.optimizers.SGD(RATE), technique=technique)
    task.train_on_batch(x, y)
    layer.call = record
    task.train_on_batch(x, y)
    assert len(seen) >= passes and 0 < seen[0].mean() < 1
    for other in seen[1:passes]:
        np.testing.assert_array_equal(other, seen[0])


@pytest.mark.parametrize(
    "technique",
    [
        *(
            pytest.param(technique, marks=left_out("combinations"))
            for technique in (FGM(0.25), AverageOfMoved(0.5))
        ),
        SMART(2.0),  # It owns weights.
        CombinedTechniques([RDrop(2.0), Average(0.5), FGM(0.25)]),
    ],
    ids=lambda technique: type(technique).__name__,
)
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
    for epsilon in (0, float("inf"), float("nan"), "1", None):
        with pytest.raises(ValueError, match="epsilon must be a number above 0, got "):
            FGM(epsilon)
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


def test_rows_without_a_label_learn():
    """By VAT, SMART and R-Drop, with any label and a weight of 0."""
    _, (x, y) = make("texts")
    weights = np.zeros(len(y), "float32")
    for technique in (VAT(), SMART(noise=0.1, rate=10.0), RDrop()):
        found = []
        for labels in (y, [*y[1:], y[0]]):
            task, _ = make("texts", dropout=0.2)
            randomize(task)
            before = weights_of(task)
            task.compile(keras.optimizers.SGD(RATE), technique=technique)
            task.technique_state.rng.state.assign([1, 0])
            keras.utils.set_random_seed(1)
            task.train_on_batch(x, labels, sample_weight=weights)
            found.append(weights_of(task))
        assert max(np.abs(found[0][path] - before[path]).max() for path in before) > 1e-6
        for path, array in found[0].items():
            np.testing.assert_array_equal(found[1][path], array, err_msg=path)


def test_a_combination_is_each_alone():
    """Without dropout, R-Drop is the plain loss, and FGM with it is FGM."""
    _, (x, y) = make("texts")
    for technique in (FGM(0.5), SMART(2.0, noise=0.1)):
        alone = step(technique, [(x[:4], y[:4])])
        both = step(CombinedTechniques([RDrop(2.0), technique]), [(x[:4], y[:4])])
        for path, array in weights_of(alone).items():
            if isinstance(technique, FGM):  # The others draw numbers.
                np.testing.assert_allclose(weights_of(both)[path], array, atol=1e-6, err_msg=path)
            assert np.isfinite(weights_of(both)[path]).all()
    penalized = step(CombinedTechniques([GradientPenalty(5.0), FGM(0.5)]), [(x[:4], y[:4])])
    plain = step(FGM(0.5), [(x[:4], y[:4])])
    differences = [
        np.abs(weights_of(penalized)[path] - array).max()
        for path, array in weights_of(plain).items()
    ]
    assert max(differences) > 1e-4


class DrawnLoss(Technique):
    """Its loss is a number that it draws."""

    def loss(self, forward, batch, rng):
        loss, outputs = forward(batch)
        return keras.random.uniform((), seed=rng) + 0 * loss, outputs


class EachLoss(Technique):
    """Keeps the losses of three passes, and draws between them."""

    moves_embeddings = True

    def build(self, model):
        self.seen = keras.Variable(np.zeros(3, "float32"), trainable=False, name="seen")

    def gradients(self, differentiate, batch, rng):
        found = []
        for same_dropout in (False, False, True):
            keras.random.uniform((), seed=rng)
            found.append(differentiate(same_dropout=same_dropout))
        self.seen.assign(keras.ops.stack([each.loss for each in found]))
        return found[0]


@pytest.mark.every_backend
def test_each_pass_of_a_step_draws_the_same_numbers():
    """FGM moves the mixture of which it knows the gradient. Each step draws others."""
    task, (x, y) = make("texts")
    task.compile(
        keras.optimizers.SGD(RATE), technique=CombinedTechniques([DrawnLoss(), EachLoss()])
    )
    steps = []
    for _ in range(2):
        task.train_on_batch(x[:4], y[:4])
        steps.append(to_numpy(task.technique.techniques[1].seen))
    assert all(len(set(losses.tolist())) == 1 for losses in steps)
    assert steps[0][0] != steps[1][0]


def test_a_combination_of_rivals_is_refused():
    with pytest.raises(ValueError, match="FGM and VAT both say which passes a step takes"):
        CombinedTechniques([FGM(), RDrop(), VAT()])
    with pytest.raises(ValueError, match="RDrop and Mixup both change the loss"):
        CombinedTechniques([RDrop(), Mixup()])
    with pytest.raises(ValueError, match="VAT compares the outputs of rows, and Mixup has those"):
        CombinedTechniques([Mixup(), VAT()])
    with pytest.raises(ValueError, match="SMART compares the outputs of rows"):
        CombinedTechniques([SMART(), Average(), Mixup()])
    with pytest.raises(ValueError, match="CarriedMemory goes on .* FGM takes several passes"):
        CombinedTechniques([CarriedMemory(2), FGM()])
    with pytest.raises(ValueError, match="no part of others. Pass all techniques in one list"):
        CombinedTechniques([CombinedTechniques([RDrop(), Average()]), FGM()])
    with pytest.raises(ValueError, match="two or more techniques, got 1"):
        CombinedTechniques([RDrop()])
    with pytest.raises(ValueError, match="got 'fgm' in it"):
        CombinedTechniques([RDrop(), "fgm"])
    with pytest.raises(ValueError, match="techniques must be a list .* Put a single one into a"):
        CombinedTechniques(RDrop())


class Forgetful(Technique):
    """A technique of a user that returns other things than the protocol says."""

    def __init__(self, gradients=None, loss=None):
        if gradients:
            self.gradients = lambda differentiate, batch, rng: gradients(differentiate)
        if loss:
            self.loss = lambda forward, batch, rng: loss(*forward(batch))


@pytest.mark.parametrize(
    ("technique", "error"),
    [
        (Forgetful(gradients=lambda _: None), "Forgetful.gradients must .*, got a NoneType. Ret"),
        (Forgetful(gradients=lambda d: d(weights=False)), "with weights, got a Gradients"),
        (Forgetful(loss=lambda loss, _: loss), r"A loss of Forgetful must return \(the scalar to"),
        (Forgetful(loss=lambda *_: None), r"outputs for the metrics\), got a NoneType. Return"),
    ],
)
def test_what_a_technique_must_return(technique, error):
    task, columns = make("texts")
    with pytest.raises(ValueError, match=error):
        fit(task, columns, technique, steps_per_epoch=1)


def test_what_a_technique_cannot_train_is_refused_by_name():
    tagger, _ = make("chains")
    with pytest.raises(ValueError, match="Mixup mixes the vectors of rows, and a CrfTokenClass"):
        tagger.compile(technique=Mixup())
    with pytest.raises(ValueError, match="second derivative of the loss, and that of a CrfToken"):
        tagger.compile(technique=GradientPenalty())
    pretrainer, _ = make("pretraining")
    with pytest.raises(ValueError, match="RDrop compares the predictions.* Pretrainer has several"):
        pretrainer.compile(technique=RDrop())
    with pytest.raises(ValueError, match="last layer. Train it with FGM, or drop"):
        pretrainer.compile(technique=Mixup())
    elmo, _ = make_task("neighbors", "none")
    for technique in (RDrop(), Mixup()):
        with pytest.raises(ValueError, match=r"an ElmoPretrainer .*[^,] Drop `technique`"):
            elmo.compile(technique=technique)


@pytest.mark.parametrize(
    "technique",
    [VAT(), SMART(noise=0.1), FreeLB(), GradientPenalty(), RDrop(), Mixup()],
    ids=lambda technique: type(technique).__name__,
)
def test_techniques_go_with_bfloat16_accumulation_and_packing(technique):
    task, (x, y) = make("texts", dtype="mixed_bfloat16", dropout=0.1)
    before = weights_of(task)
    task.compile(keras.optimizers.SGD(RATE, gradient_accumulation_steps=2), technique=technique)
    history = task.fit(x[:8], y[:8], 4, sequence_packing=True, shuffle=False, verbose=0).history
    assert np.isfinite(history["loss"]).all()
    changes = [np.abs(weights_of(task)[path] - array).max() for path, array in before.items()]
    assert np.isfinite(changes).all() and max(changes) > 1e-4
