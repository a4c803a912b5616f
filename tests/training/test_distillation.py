"""Distillation of every task, and what files and runs keep of a teacher."""

import functools

import keras
import numpy as np
import pytest
from heads.cases import BATCH_SIZE, CASES
from peer_weights import randomize, to_numpy
from small_pretraining import At, all_arrays, assert_same, interrupt
from small_tasks import compile_model, make_task
from tables import left_out, short_for

import keras_bert_suite as kbs
from keras_bert_suite.heads.base.inner_states import inline_graph
from keras_bert_suite.runs.model_variables import copy_variables

RATE = 0.1
PACKED = ("pretraining", "replaced tokens", "neighbors", "corrupted texts")
TERMS = (kbs.HiddenStates, kbs.AttentionScores, kbs.AttentionRelations)

#: Why a task learns from no teacher, or only from its outputs.
NO_TEACHER = dict.fromkeys(("replaced tokens", "neighbors", "exits"), "several outputs")
OUTPUTS_ALONE = {
    **dict.fromkeys(("towers", "entailments"), "cuts its rows before its encoder reads them"),
    "choices": "cuts its rows before its encoder reads them",
    "documents": "cuts its rows before its encoder reads them",
    "corrupted texts": "is no encoder",
}


def make(kind, seed=0, **arguments):
    keras.utils.set_random_seed(seed)
    return make_task(kind, "none" if kind in PACKED else "SegmentPacker", **arguments)


def make_teacher(kind="texts", seed=1, **arguments):
    teacher = randomize(make(kind, seed, **arguments)[0])
    for weight in teacher.weights:
        if keras.backend.is_float_dtype(weight.dtype):
            weight.assign((1 + seed) * weight)
    return teacher


def fit(task, columns, technique, **arguments):
    x, y, *weights = columns
    compile_model(task, technique)
    arguments = {"shuffle": False, "verbose": 0, **arguments}
    if weights:
        arguments["sample_weight"] = weights[0]
    return task.fit(x, y, BATCH_SIZE, **arguments).history["loss"]


def weights_of(task):
    return {v.path: np.array(to_numpy(v)) for v in task.trainable_variables}


@pytest.mark.parametrize(
    "kind",
    short_for(
        CASES,
        *("label sets", "chains", "spans", "rankings", "vectors", "masks", "replaced tokens"),
        part="combinations",
    ),
)
def test_every_task_learns_from_its_kind(kind):
    """Of the outputs alone, so that a copy of the teacher has nothing to learn."""
    teacher = make_teacher(kind)
    task, columns = make(kind)
    learn = functools.partial(kbs.Distillation, teacher, alpha=1.0)
    if kind in NO_TEACHER:
        with pytest.raises(ValueError, match=NO_TEACHER[kind]):
            task.compile(technique=learn())
        return
    assert fit(task, columns, learn(), steps_per_epoch=1)[0] > 1e-4
    task.set_weights(teacher.get_weights())
    assert fit(task, columns, learn(), steps_per_epoch=1)[0] == pytest.approx(0, abs=1e-5)
    terms = [term() for term in TERMS]
    if kind in OUTPUTS_ALONE:
        with pytest.raises(ValueError, match=OUTPUTS_ALONE[kind]):
            task.compile(technique=learn(terms=terms))
        return
    task.set_weights(teacher.get_weights())
    assert fit(task, columns, learn(terms=terms), steps_per_epoch=1)[0] == pytest.approx(
        0, abs=1e-5
    )


def test_a_student_that_equals_its_teacher_stays():
    teacher, (x, y) = make("texts")
    task, _ = make("texts")
    before = weights_of(task)
    terms = [term() for term in TERMS]
    technique = kbs.Distillation(teacher, 2.0, 1.0, terms=terms)
    task.compile(keras.optimizers.SGD(RATE), technique=technique)
    task.train_on_batch(x, y)
    for path, array in before.items():
        np.testing.assert_allclose(weights_of(task)[path], array, atol=1e-6, err_msg=path)


def test_packed_rows_learn_as_rows_of_the_batch():
    teacher, terms = make_teacher(), [term() for term in TERMS]
    (wanted, columns), (found, _) = make("texts"), make("texts")
    technique = kbs.Distillation(teacher, terms=terms)
    padded = fit(wanted, columns, technique, epochs=2)
    assert fit(found, columns, technique, epochs=2, sequence_packing=True) == pytest.approx(
        padded, rel=1e-4
    )


def test_it_goes_with_bfloat16_accumulation_and_other_techniques():
    teacher = make_teacher(dtype="mixed_bfloat16")
    task, (x, y) = make("texts", dtype="mixed_bfloat16", dropout=0.1)
    before = weights_of(task)
    technique = kbs.CombinedTechniques(
        [kbs.Distillation(teacher, terms=[term() for term in TERMS]), kbs.FGM(0.5), kbs.EMA()]
    )
    task.compile(keras.optimizers.SGD(RATE, gradient_accumulation_steps=2), technique=technique)
    history = task.fit(x[:8], y[:8], 4, sequence_packing=True, shuffle=False, verbose=0).history
    assert np.isfinite(history["loss"]).all()
    assert (
        max(np.abs(weights_of(task)[path] - array).max() for path, array in before.items()) > 1e-4
    )


def step(technique):
    task, (x, y) = make("texts")
    task.compile(keras.optimizers.SGD(RATE), technique=technique)
    task.train_on_batch(x, y)
    return task


def test_a_file_names_the_teacher_and_does_not_hold_it(tmp_path):
    """With its path and all arguments, the task trains on. A projection is in the file."""
    teacher = make_teacher(hidden_dim=12)
    teacher.save(tmp_path / "teacher.keras")
    terms = [
        kbs.HiddenStates({1: 0}, "cosine", 2.0),
        kbs.AttentionScores({0: 0}, 3.0),
        kbs.AttentionRelations(["qk"], 4, {0: 0}, 0.5),
    ]
    task = step(kbs.Distillation(str(tmp_path / "teacher.keras"), 2.0, 0.3, 0.9, terms))
    assert {*copy_variables(task, "technique/")} == {
        *(f"technique/{name}" for name in ("rng", "projections/0", "projections/1"))
    }
    assert not any("teacher" in v.path for v in task.trainable_variables)
    task.save(tmp_path / "task.keras")
    opened = keras.saving.load_model(tmp_path / "task.keras")
    assert opened.technique.get_config() == task.technique.get_config()
    _, (x, y) = make("texts")
    for each in (task, opened):
        each.train_on_batch(x, y)
    assert_same(opened, all_arrays(task))
    for weight, array in zip(task.technique.teacher[0].weights, teacher.weights, strict=True):
        np.testing.assert_array_equal(to_numpy(weight), to_numpy(array))


@pytest.mark.parametrize(
    "fault", short_for(["in memory", "not there", "another"], "in memory", "another", part="faults")
)
def test_a_file_opens_without_its_teacher(fault, tmp_path):
    """It answers as before. Only a training is an error, which says why."""
    path = tmp_path / "teacher.keras"
    teacher = make_teacher(hidden_dim=12)
    teacher.save(path)
    given = teacher if fault == "in memory" else str(path)
    task = step(kbs.Distillation(given, terms=[kbs.HiddenStates()]))
    task.save(tmp_path / "task.keras")
    if fault == "not there":
        path.unlink()
    if fault == "another":
        make_teacher(seed=2, hidden_dim=12).save(path)
    opened = keras.saving.load_model(tmp_path / "task.keras")
    wanted, found = (
        {n: a for n, a in copy_variables(each).items() if not n.startswith("metrics/")}
        for each in (task, opened)
    )
    assert found.keys() == wanted.keys()
    assert all(np.array_equal(found[name], array) for name, array in wanted.items())
    _, (x, y) = make("texts")
    told = {"in memory": "was a task in memory", "not there": "not there", "another": "Restore it"}
    with pytest.raises(ValueError, match=told[fault]):
        opened.train_on_batch(x, y)
    opened.compile(technique=kbs.Distillation(teacher, terms=[kbs.HiddenStates()]))
    opened.train_on_batch(x, y)


def test_a_layer_is_called_once_for_the_same_arguments_only():
    """Also where they differ in what has a name."""

    class Scaled(keras.layers.Layer):
        def call(self, x, by=1.0, beside=0.0):
            return x * by + beside

    scaled, x, calls = Scaled(), keras.Input((2,)), {}
    twice, thrice = scaled(x, by=2.0), scaled(x, by=3.0)
    model = keras.Model(x, [twice, thrice, scaled(x, beside=twice), scaled(x, beside=thrice)])
    again = keras.Model(x, inline_graph(model, x, calls))
    number = len(calls)
    inline_graph(keras.Model(x, thrice), x, calls)
    assert number == len(calls) == 4
    rows = np.ones((1, 2), "float32")
    assert [to_numpy(y).tolist() for y in again(rows)] == [[[n, n]] for n in (2.0, 3.0, 3.0, 4.0)]


def test_a_killed_training_goes_on_with_the_same_teacher(tmp_path):
    teacher, terms = make_teacher(hidden_dim=12), [kbs.HiddenStates()]

    def train(teacher, *callbacks):
        task, columns = make("texts", dropout=0.1)
        technique = kbs.Distillation(teacher, terms=terms)
        return task, fit(task, columns, technique, epochs=2, callbacks=list(callbacks))

    wanted, losses = train(teacher)
    with pytest.raises(KeyboardInterrupt):
        train(teacher, kbs.TrainingCheckpoint(tmp_path, every=2), At(4, interrupt))
    with pytest.raises(ValueError, match=r"the teacher was \w+ and is \w+"):
        train(make_teacher(seed=3, hidden_dim=12), kbs.TrainingCheckpoint(tmp_path, every=2))
    found, again = train(teacher, kbs.TrainingCheckpoint(tmp_path, every=2))
    assert again[-1] == losses[-1]
    assert_same(found, all_arrays(wanted))


@pytest.mark.parametrize(
    "kind",
    short_for(
        ["texts", "label sets", "numbers", "attributes"], "texts", "numbers", part="combinations"
    ),
)
def test_outputs_from_disk_teach_as_the_teachers_do(kind, tmp_path):
    teachers = [make_teacher(kind), make_teacher(kind, seed=2)]
    (beside, (x, y)), (task, _) = make(kind), make(kind)
    temperature = 1.0 if kind == "numbers" else 2.0
    wanted = fit(beside, (x, y), kbs.Distillation(teachers, temperature, 0.7), epochs=2)
    kbs.write_teacher_outputs(teachers, x, tmp_path / "outputs", batch_size=5)
    technique = kbs.Distillation(str(tmp_path / "outputs"), temperature, 0.7)
    rows = kbs.add_teacher_outputs(tmp_path / "outputs", task, x)
    assert fit(task, (rows, y), technique, epochs=2) == pytest.approx(wanted, rel=1e-5)
    for path, array in weights_of(beside).items():
        np.testing.assert_allclose(weights_of(task)[path], array, atol=1e-5, err_msg=path)
    if kind != "texts":
        return
    with pytest.raises(ValueError, match="array teacher_outputs. Pass them .* add_teacher_outputs"):
        task.train_on_batch(x, y)
    with pytest.raises(ValueError, match="12 rows with the digest .* got 11 rows with"):
        kbs.add_teacher_outputs(tmp_path / "outputs", task, x[1:])
    with pytest.raises(ValueError, match="outputs of teachers alone, got 1 terms"):
        technique = kbs.Distillation(str(tmp_path / "outputs"), terms=[kbs.HiddenStates()])
        task.compile(technique=technique)
    with pytest.raises(ValueError, match="teacher with the label_names .* Build the student with"):
        make("label sets")[0].compile(technique=kbs.Distillation(str(tmp_path / "outputs")))
    parts = {"preprocessor": beside.preprocessor, "label_names": ["no", "yes"]}
    student = kbs.TextClassifier(beside.backbone, activation="softmax", **parts)
    with pytest.raises(ValueError, match="predictions classes as logits, .* as probabilities"):
        student.compile(technique=kbs.Distillation(str(tmp_path / "outputs")))
    student = kbs.Pretrainer(beside.backbone)
    with pytest.raises(ValueError, match="with the task TextClassifier, .* has Pretrainer"):
        student.compile(technique=kbs.Distillation(str(tmp_path / "outputs")))
    with pytest.raises(ValueError, match="do not say all of its predictions. Let the teacher run"):
        kbs.write_teacher_outputs(make_teacher("chains"), x, tmp_path / "others")
    for several in ("vectors", "rankings", "towers"):
        with pytest.raises(ValueError, match="compares texts.*Let the teacher run beside the stud"):
            kbs.write_teacher_outputs(make_teacher(several), x, tmp_path / "others")
    with pytest.raises(ValueError, match="got <Ensemble of 2 .* such as ensemble.tasks"):
        kbs.write_teacher_outputs(kbs.Ensemble(teachers), x, tmp_path / "others")
    with pytest.raises(ValueError, match="be a task, or a list of several, got 'teacher.keras'"):
        kbs.write_teacher_outputs("teacher.keras", x, tmp_path / "others")
    with pytest.raises(ValueError, match="cuts its rows by its labels"):
        tagger, (words, _) = make("words")
        kbs.write_teacher_outputs(tagger, words, tmp_path / "others")


def test_what_cannot_be_is_refused_with_both_sides():
    task, _ = make("texts")

    def refuse(message, *arguments, student=task, **keywords):
        with pytest.raises(ValueError, match=message):
            student.compile(technique=kbs.Distillation(*arguments, **keywords))

    teacher = make_teacher()
    refuse("student is its own teacher", task)
    refuse("teacher must be a task .* got 3", 3)
    refuse("teacher is an empty list", [])
    ensemble = kbs.Ensemble([teacher, make_teacher(seed=2)])
    task.compile(technique=kbs.Distillation(ensemble))
    assert task.technique.shares == [0.5, 0.5] and len(task.technique.teacher) == 2
    refuse(r"weights=\[1, 2\] are for a list of tasks", ensemble, teacher_weights=[1, 2])
    logits = kbs.Ensemble(ensemble.tasks, average="logits")
    refuse(r"<Ensemble of 2 .* averages logits, .* alone: ensemble.tasks", logits)
    two = ensemble.tasks
    refuse(r"number for each of the 2 teachers, .* got \[1\]", two, teacher_weights=[1])
    refuse("teacher_weights must be a number of at least 0", two, teacher_weights=[2, -1])
    refuse(r"not all of them 0, got \[0, 0\]", two, teacher_weights=[0, 0])
    refuse("temperature must be a number above 0, got 0", teacher, temperature=0)
    refuse("alpha must be a number of at least 0, got -1", teacher, alpha=-1)
    refuse("alpha=5. Pass label_weight", teacher, alpha=5)
    refuse("there is nothing to learn", teacher, alpha=0, label_weight=0)
    refuse("terms must be a list of HiddenStates, .* got 'mse' in it", teacher, terms=["mse"])
    refuse("terms must be a list of Hidden.*, got 3. Put a single one into", teacher, terms=3)
    refuse("terms must be a list of Hidden.*HiddenStates", teacher, terms=kbs.HiddenStates())
    refuse("is a task of keras_bert_suite, got a BertBackbone, which has no", teacher.backbone)
    other = make_teacher("label sets")
    refuse(r"student has the labels \['no', 'yes'\], and the teacher .* in this order", other)
    parts = {"label_names": ["no", "yes"], "activation": "softmax"}
    softmax = kbs.TextClassifier(teacher.backbone, preprocessor=teacher.preprocessor, **parts)
    refuse("predicts classes as logits, and the teacher .* as prob.* the same problem_", softmax)
    wide = make_teacher(hidden_dim=12)
    several = {"terms": [kbs.HiddenStates("last")]}
    refuse(r"the widths \[16, 16\] and \[12, 12\]. Leave out `terms`", [teacher, wide], **several)
    refuse("student is a TextClassifier, and the teacher a TextEmbedder", make_teacher("vectors"))
    numbers, _ = make("numbers")
    refuse("has no temperature: temperature=2.0", make_teacher("numbers"), 2.0, student=numbers)
    embedder, _ = make("vectors")
    wide = make_teacher("vectors", hidden_dim=12)
    refuse("widths 16 and 12. Give the student the width", wide, student=embedder)
    config = {**teacher.backbone.get_config(), "max_sequence_length": 8}
    names = {"label_names": ["no", "yes"]}
    shorter = kbs.TextClassifier(kbs.BertBackbone.from_config(config), **names)
    refuse("has 8 positions, and the rows .* up to 16 tokens", shorter)
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "good"]
    packer = kbs.SegmentPacker(kbs.WordPieceTokenizer(vocabulary), 16)
    trimmed = kbs.TextClassifier(kbs.BertBackbone(6, 1, 2, 8, 16), preprocessor=packer, **names)
    refuse("has a vocabulary of 6 tokens, and the student.*tokenizer of the teacher", trimmed)
    packer = task.preprocessor
    size = packer.tokenizer.vocabulary_size()
    distil = kbs.DistilBertBackbone(size, 1, 2, 8, 16)
    distil = kbs.TextClassifier(distil, preprocessor=packer, **names)
    refuse("reads segment_ids, which the student", teacher, student=distil)


@pytest.mark.parametrize(
    ("term", "sizes", "message"),
    [
        (kbs.HiddenStates(), {"num_layers": 3}, "student has 2 and the teacher 3, which is no mul"),
        (kbs.HiddenStates({2: 4}), {"num_layers": 3}, "layers 0 to 2, and the teacher 0 to 3"),
        (kbs.AttentionScores({2: 0}), {}, "layers 0 to 1, and the teacher 0 to 1"),
        (kbs.AttentionScores(), {"num_heads": 4}, "layer 0 of the student, 2, with .* teacher, 4"),
        (kbs.AttentionRelations(num_heads=3), {}, "num_heads=3 .* must divide .* student has 16"),
    ],
)
def test_layers_that_do_not_fit_are_refused(term, sizes, message):
    task, _ = make("texts", num_layers=2)
    teacher = make_teacher(**{"num_layers": 2, **sizes})
    with pytest.raises(ValueError, match=message):
        task.compile(technique=kbs.Distillation(teacher, terms=[term]))


def test_attention_without_queries_and_keys_is_refused():
    names = {"label_names": ["no", "yes"]}
    sizes = (24, 2, 2, 8, 16)
    student, teacher = (kbs.TextClassifier(kbs.XLNetBackbone(*sizes), **names) for _ in range(2))
    message = (
        "The XLNetBlock of an XLNetBackbone does not give its queries and keys. Learn from its"
    )
    for term in (kbs.AttentionScores(), kbs.AttentionRelations()):
        with pytest.raises(ValueError, match=message):
            student.compile(technique=kbs.Distillation(teacher, terms=[term]))


def test_wrong_terms_are_refused():
    with pytest.raises(ValueError, match="distance must be one of squares, cosine, got 'l1'"):
        kbs.HiddenStates(distance="l1")
    with pytest.raises(ValueError, match="layers must be one of uniform, last, got 'first'"):
        kbs.HiddenStates("first")
    with pytest.raises(ValueError, match="dict {layer of the student: layer of the teacher}"):
        kbs.HiddenStates([[1, 2, 3]])
    for layers, got in ((5, "5"), ([5], r"\[5\]")):
        with pytest.raises(ValueError, match=f"a dict {{layer of the student.*, got {got}"):
            kbs.HiddenStates(layers)
    with pytest.raises(ValueError, match="relations must be a list of pairs of letters .*'qk'"):
        kbs.AttentionRelations("qk")
    with pytest.raises(ValueError, match="layers has no pair"):
        kbs.AttentionScores({})
    with pytest.raises(ValueError, match="pairs of the letters q, k and v, .* got 'qx'"):
        kbs.AttentionRelations(["qx"])
    with pytest.raises(ValueError, match="must be a list such as"):
        kbs.AttentionRelations([])


@pytest.mark.parametrize(
    "terms",
    [
        pytest.param([], marks=left_out("combinations")),
        [kbs.HiddenStates(), kbs.AttentionScores()],
    ],
    ids=len,
)
def test_a_small_student_agrees_with_its_teacher(terms):
    """More than one that was trained on the labels alone. The labels are noise."""
    sizes = {"num_layers": 2}
    teacher, (x, _) = make_teacher(**sizes), make("texts")[1]
    wanted = teacher.predict_probabilities(x, verbose=0)
    labels = np.random.default_rng(0).integers(0, 2, len(x))

    def measure(technique):
        student = make("texts", seed=5)[0]
        student.compile(kbs.AdamW(1e-2), technique=technique)
        student.fit(x, labels, BATCH_SIZE, epochs=8, shuffle=False, verbose=0)
        return np.abs(student.predict_probabilities(x, verbose=0) - wanted).mean()

    plain = measure(None)
    assert measure(kbs.Distillation(teacher, alpha=1.0, terms=terms)) < 0.7 * plain


def test_outputs_of_no_rows(tmp_path):
    with pytest.raises(ValueError, match="at least one row, got none"):
        kbs.write_teacher_outputs(make_task("texts")[0], [], tmp_path / "outputs")
    assert not (tmp_path / "outputs").exists()
