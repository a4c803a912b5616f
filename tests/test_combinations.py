"""Every task with its kinds of input, preprocessors, ways of saving and formats of export.

`TABLE` lists what each task takes. Each task and preprocessor is trained once, on rows in memory.
Every other cell must give what that model gives.
"""

import dataclasses

import keras
import numpy as np
import pytest
from heads.cases import BATCH_SIZE, CASES, NUM_ROWS, STEPS, TASKS
from input_kinds import ARRAYS_IN_MEMORY, DATASETS, TEXTS_IN_MEMORY, WITHOUT_LENGTH, list_rows
from kerashub_models import MODELS
from portable_runtimes import PORTABLE
from small_tasks import (
    BYTE_PAIRS,
    SENTENCE_PIECES,
    assert_close,
    compile_model,
    make_task,
    predict,
    predicted_columns,
)

from keras_bert_suite import export_saved_model

OURS, NONE = "SegmentPacker", "none"
BERT, DISTIL_BERT, ROBERTA = (f"KerasHub's {name}" for name in MODELS)

ANY_TEXTS = (*TEXTS_IN_MEMORY, *DATASETS)
ANY_ARRAYS = (*ARRAYS_IN_MEMORY, *DATASETS)
#: TensorFlow takes up to 90 seconds to trace KerasHub's byte pairs, and keeps the graph.
WITHOUT_GRAPHS = tuple(kind for kind in ANY_TEXTS if not kind.startswith("tf.data"))
#: The other datasets make a batch of a list of words by position.
ANY_WORDS = (*TEXTS_IN_MEMORY, "tf.data", "tf.data of named columns", "PyDataset", "generator")

#: What a loaded task gets: one kind for each way to the preprocessor.
LOADED_TEXTS = ("list", "dict", "tf.data")
LOADED_ARRAYS = ("arrays", "tf.data")
ANY_FORMAT = ("SavedModel", *PORTABLE)


@dataclasses.dataclass(frozen=True)
class Row:
    """What a task takes with a preprocessor.

    Attributes:
        task, preprocessor: str, see `make_task`.
        kinds: the kinds of input.
        loaded: the kinds of input that the task gets again from its `.keras` file and its preset.
        formats: the formats of its export.
        loaded_formats: those of the loaded task.
    """

    task: str
    preprocessor: str
    kinds: tuple
    loaded: tuple
    formats: tuple = ()
    loaded_formats: tuple = ()


#: tests/serving compares the answers of the exports that are not listed here.
TABLE = (
    Row("texts", OURS, ANY_TEXTS, LOADED_TEXTS, ANY_FORMAT),
    Row("texts", BERT, ANY_TEXTS, LOADED_TEXTS, ("SavedModel",)),
    Row("texts", DISTIL_BERT, ANY_TEXTS, LOADED_TEXTS, ("SavedModel",)),
    Row("texts", ROBERTA, WITHOUT_GRAPHS, ("list", "dict")),
    Row("texts", NONE, ANY_ARRAYS, LOADED_ARRAYS),
    Row("pairs", OURS, ANY_TEXTS, LOADED_TEXTS, ANY_FORMAT, ("SavedModel",)),
    Row("pairs", BYTE_PAIRS, ("list", "tf.data"), ("list", "tf.data"), ANY_FORMAT),
    Row("pairs", SENTENCE_PIECES, ("list", "tf.data"), ("list", "tf.data"), ("SavedModel",)),
    Row("pairs", BERT, ANY_TEXTS, LOADED_TEXTS, ("SavedModel",)),
    Row("pairs", DISTIL_BERT, ANY_TEXTS, LOADED_TEXTS, ("SavedModel",), ("SavedModel",)),
    Row("pairs", ROBERTA, (*WITHOUT_GRAPHS, "tf.data"), ("list", "dict"), ("SavedModel",)),
    Row("pairs", NONE, ANY_ARRAYS, LOADED_ARRAYS),
    # They differ from classes of texts in their labels and answers only.
    Row("label sets", OURS, ("list", "tf.data", "DataLoader"), ("list",), ("SavedModel", "ONNX")),
    Row("numbers", OURS, ("list", "tf.data", "DataLoader"), ("list",), ("SavedModel",)),
    Row("exits", OURS, ("list", "DataLoader"), ("list",), ("SavedModel",)),
    Row("attributes", OURS, ("list", "DataLoader"), ("list",), ("SavedModel",)),
    # Only our packer says which token belongs to which word.
    Row("words", OURS, ANY_WORDS, LOADED_TEXTS),
    Row("words", SENTENCE_PIECES, ("list",), ("list",)),
    Row("words", NONE, ANY_ARRAYS, LOADED_ARRAYS),
    Row("chains", OURS, ("list", "generator"), ("list",)),
    Row("spans", OURS, ("list", "generator"), ("list",)),
    Row("relations", OURS, ("list", "generator", "DataLoader"), ("list",), ("SavedModel",)),
    Row("questions", OURS, ("list", "tf.data", "grain.MapDataset", "DataLoader"), ("list",)),
    Row("questions", SENTENCE_PIECES, ("list",), ("list",)),
    Row("questions", NONE, ("arrays", "tf.data", "grain.MapDataset", "DataLoader"), ("arrays",)),
    # Most datasets of batches take a list of endings for columns.
    Row("choices", OURS, ("list", "tf.data"), ("list",)),
    Row("choices", NONE, ("arrays", "tf.data"), ("arrays",)),
    Row("rankings", OURS, ("list", "tf.data"), ("list",)),
    Row("towers", OURS, ("list",), ("list",)),
    Row("entailments", OURS, ("list", "tf.data", "DataLoader"), ("list",)),
    Row("documents", OURS, ("list", "tf.data", "DataLoader"), (), ("SavedModel",)),
    Row("vectors", OURS, ("list", "tf.data of named columns", "DataLoader"), ("list",), ANY_FORMAT),
    Row("vectors", NONE, ("arrays", "tf.data of named columns", "DataLoader"), ("arrays",)),
    # Texts of a dataset get other masks than texts in memory; tests/tasks/test_masked_lm.py.
    Row("masks", OURS, ("list", "array", "Series", "dict"), ("list", "dict"), ("SavedModel",)),
    Row("masks", SENTENCE_PIECES, ("list",), ("list",), ("SavedModel",)),
    Row("masks", NONE, ANY_ARRAYS, LOADED_ARRAYS),
    Row("patterns", OURS, ("list", "tf.data", "DataLoader"), ("list",)),
    # Masks are drawn before `fit`.
    Row("pretraining", NONE, ANY_ARRAYS, LOADED_ARRAYS),
    Row("targets", OURS, ANY_TEXTS, LOADED_TEXTS),
    Row("targets", NONE, ANY_ARRAYS, LOADED_ARRAYS),
    Row("continuations", OURS, ANY_TEXTS, LOADED_TEXTS),
    Row("continuations", NONE, ANY_ARRAYS, LOADED_ARRAYS),
)


@dataclasses.dataclass(frozen=True)
class Combination:
    """A cell of the table."""

    task: str
    preprocessor: str
    saved: str = "as trained"
    kind: str | None = None
    format: str | None = None

    def __str__(self):
        parts = (self.task, self.preprocessor, self.saved, self.kind, self.format)
        return " - ".join(part for part in parts if part)


#: Each task, as rows in memory, or as batches that were packed before.
ALONE = {
    task: Combination(task, NONE, kind="arrays")
    if task == "pretraining"
    else Combination(task, OURS, kind="list")
    for task in TASKS
}
#: The tasks that `make test` trains here with a compiler. Other tests train others there: `GRAPHS`
#: rankings, test_sequence_packing.py words, test_released_tasks.py texts, test_every_task.py spans
#: and replaced tokens, test_label_and_teacher_rows.py vectors, and test_training_checkpoint.py a
#: pretraining. `make test-long PART=backends` trains all of them.
EVERYWHERE = {"label sets", "questions", "choices", "targets"}
#: What `make test` runs beside: a kind of dataset for each form of labels, each preprocessor, each
#: way of saving, and each kind of input. The rest is `make test-long PART=combinations`.
SHORT = {
    Combination("texts", OURS, kind="Series"),
    Combination("texts", BERT, kind="list"),
    Combination("pairs", OURS, kind="array"),
    Combination("pairs", OURS, kind="dict"),
    Combination("pairs", OURS, kind="DataFrame"),
    Combination("pairs", OURS, kind="DataFrame, other order"),
    Combination("pairs", BYTE_PAIRS, kind="list"),
    Combination("pairs", SENTENCE_PIECES, kind="list"),
    Combination("pairs", DISTIL_BERT, ".keras", "list"),
    Combination("pairs", ROBERTA, kind="list"),
    Combination("label sets", OURS, kind="DataLoader"),
    Combination("numbers", OURS, kind="DataLoader"),
    Combination("attributes", OURS, kind="DataLoader"),
    Combination("words", OURS, kind="PyDataset"),
    Combination("spans", OURS, kind="generator"),
    Combination("questions", OURS, kind="grain.MapDataset"),
    Combination("choices", NONE, kind="arrays"),
    Combination("vectors", OURS, kind="DataLoader"),
    Combination("vectors", NONE, kind="tf.data of named columns"),
    Combination("masks", OURS, kind="dict"),
    Combination("pretraining", NONE, kind="grain.IterDataset"),
    Combination("pretraining", NONE, "preset", "arrays"),
    Combination("targets", OURS, kind="generator"),
    Combination("targets", NONE, kind="PyDataset"),
}
#: What `make test` runs under TensorFlow only. With PyTorch it takes up to half a minute to trace
#: the graph of a packer. Columns of texts with names are in test_condition.py, and in
#: test_text_embedder.py.
GRAPHS = {Combination("rankings", OURS, kind="tf.data")}

WAYS = {"as trained": "kinds", ".keras": "loaded", "preset": "loaded"}
FITTED = [
    Combination(row.task, row.preprocessor, saved, kind)
    for row in TABLE
    for saved, column in WAYS.items()
    for kind in getattr(row, column)
]
EXPORTED = [
    Combination(row.task, row.preprocessor, saved, format=name)
    for row in TABLE
    for saved in WAYS
    for name in (row.formats if saved == "as trained" else row.loaded_formats)
]


def as_parameters():
    for cell in FITTED:
        long = [pytest.mark.long("combinations")]
        if cell in ALONE.values():
            marks = pytest.mark.every_backend if cell.task in EVERYWHERE else ()
            yield pytest.param(cell, id=str(cell), marks=marks)
        elif cell in GRAPHS:
            # Under PyTorch the cell is long, as most are.
            yield pytest.param(cell, id=str(cell), marks=pytest.mark.backend("tensorflow"))
            yield pytest.param(cell, id=f"{cell} - traced", marks=long)
        else:
            yield pytest.param(cell, id=str(cell), marks=() if cell in SHORT else long)


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """function(task, preprocessor, saved) to a `Trained`; each is made once."""
    made = {}

    def find(task, preprocessor, saved="as trained"):
        key = (task, preprocessor, saved)
        if key not in made:
            if saved == "as trained":
                made[key] = Trained.train(task, preprocessor)
            else:
                folder = tmp_path_factory.mktemp("saved")
                made[key] = find(task, preprocessor).reload(saved, folder)
        return made[key]

    return find


@dataclasses.dataclass
class Trained:
    """A task after one pass over its rows, and what it then says of them."""

    model: keras.Model
    columns: tuple
    history: dict
    has_moved: bool
    scores: dict
    outputs: object

    @classmethod
    def train(cls, task, preprocessor):
        keras.utils.set_random_seed(0)
        model, columns = make_task(task, preprocessor)
        compile_model(model)
        x, y, *weights = columns
        weights = weights[0] if weights else None
        before = model.get_weights()
        history = model.fit(
            *(x, y, BATCH_SIZE),
            sample_weight=weights,
            validation_data=(x, y, weights),
            shuffle=False,
            verbose=0,
        ).history
        has_moved = not all(map(np.array_equal, before, model.get_weights()))
        scores = model.evaluate(
            x, y, BATCH_SIZE, sample_weight=weights, verbose=0, return_dict=True
        )
        outputs = predict(model, x=predicted_columns(model, x), batch_size=BATCH_SIZE)
        return cls(model, columns, history, has_moved, scores, outputs)

    def reload(self, saved, folder):
        if saved == ".keras":
            self.model.save(folder / "task.keras")
            model = keras.saving.load_model(folder / "task.keras")
        else:
            self.model.save_to_preset(str(folder / "preset"))
            # A task without a preprocessor has no tokenizer to save.
            given = {} if self.model.preprocessor is not None else {"preprocessor": None}
            model = type(self.model).from_preset(folder / "preset", **given)
            compile_model(model)
        return dataclasses.replace(self, model=model)

    def read(self, kind, labelled):
        """The arguments of `evaluate` or `predict` that hold the rows."""
        x, y, *weights = self.columns
        x = x if labelled else predicted_columns(self.model, x)
        in_memory = {**TEXTS_IN_MEMORY, **ARRAYS_IN_MEMORY}
        if kind in in_memory:
            arguments = {"x": in_memory[kind](x), "batch_size": BATCH_SIZE}
            if labelled:
                arguments.update(y=y, sample_weight=weights[0] if weights else None)
            return arguments
        columns = tuple(c for c in self.columns if c is not None) if labelled else (x,)
        arguments = {"x": DATASETS[kind](columns, BATCH_SIZE)}
        if kind in WITHOUT_LENGTH:
            arguments["steps"] = STEPS
        return arguments


@pytest.mark.parametrize("cell", list(as_parameters()))
def test_every_input(models, cell):
    trained = models(cell.task, cell.preprocessor, cell.saved)
    model = trained.model
    if cell.preprocessor != NONE:
        names = model.column_names if cell.task == "vectors" else model.input_names
        assert tuple(names) == CASES[cell.task].names
    if cell.saved == "as trained" and cell.kind in ("list", "arrays"):
        # What the other cells are compared with.
        assert trained.has_moved
        assert len(trained.history["loss"]) == len(trained.history["val_loss"]) == 1
        assert np.isfinite([trained.history["loss"], trained.history["val_loss"]]).all()
        wanted = trained.scores["loss"]
        assert trained.history["val_loss"][0] == pytest.approx(wanted, abs=1e-4)
        return
    scores = model.evaluate(**trained.read(cell.kind, True), verbose=0, return_dict=True)
    assert scores == pytest.approx(trained.scores, abs=1e-4)
    outputs = predict(model, **trained.read(cell.kind, False))
    assert_close(outputs, trained.outputs)

    if cell.saved != "as trained" and cell.kind not in ("list", "arrays"):
        return  # What is loaded has the inputs of what was saved; that it trains is seen once.
    before = model.get_weights()
    arguments = trained.read(cell.kind, True)
    if "steps" in arguments:
        arguments["steps_per_epoch"] = arguments.pop("steps")
    validation = trained.read(cell.kind, True)
    held_out = validation["x"]
    if cell.kind not in DATASETS:
        held_out = (held_out, validation["y"], validation["sample_weight"])
    history = model.fit(
        **arguments,
        epochs=2,
        validation_data=held_out,
        validation_steps=validation.get("steps"),
        verbose=0,
    ).history
    after = model.get_weights()
    model.set_weights(before)
    assert len(history["loss"]) == len(history["val_loss"]) == 2
    assert np.isfinite([*history["loss"], *history["val_loss"]]).all()
    assert not all(map(np.array_equal, before, after))


@pytest.mark.parametrize("task", [task for task in TASKS if task not in ("masks", "pretraining")])
def test_weights_of_rows(models, task):
    trained = models(task, OURS)
    (x, y), weights = trained.columns, np.full(NUM_ROWS, 2.0)
    arguments = {"batch_size": BATCH_SIZE, "verbose": 0, "return_dict": True}
    scores = trained.model.evaluate(x, y, sample_weight=weights, **arguments)
    # The loss of tokens is their weighted mean, as rows have different numbers of them.
    means = ("words", "chains", "rankings", "towers", "targets", "continuations")
    factor = 1 if task in means else 2
    assert scores["loss"] == pytest.approx(factor * trained.scores["loss"], rel=1e-3)


@pytest.mark.parametrize("kind", ["grain.IterDataset", "DataLoader of a stream"])
def test_each_epoch_of_unknown_length_is_a_whole_pass(models, kind):
    trained = models("texts", OURS)
    model, before = trained.model, trained.model.get_weights()
    first = int(model.optimizer.iterations)

    def read():
        if kind == "grain.IterDataset":
            return DATASETS[kind](trained.columns, BATCH_SIZE)
        return stream_rows(trained.columns)

    history = model.fit(read(), epochs=3, validation_data=read(), verbose=0).history
    assert int(model.optimizer.iterations) - first == 3 * STEPS
    assert len(history["val_loss"]) == 3
    assert model.evaluate(read(), verbose=0)[0] == pytest.approx(history["val_loss"][-1], abs=1e-4)
    model.set_weights(before)


def stream_rows(columns):
    """A DataLoader that does not know its length."""
    import torch

    class Stream(torch.utils.data.IterableDataset):
        def __iter__(self):
            return iter(list_rows(columns))

    return torch.utils.data.DataLoader(Stream(), BATCH_SIZE)


def test_a_loader_without_batches(models):
    import torch

    trained = models("texts", OURS)
    rows = list_rows(trained.columns)
    loader = torch.utils.data.DataLoader(rows, batch_size=len(rows) + 1, drop_last=True)
    with pytest.raises(ValueError, match="no batches"):
        trained.model.fit(loader, verbose=0)


@pytest.mark.backend("tensorflow")
@pytest.mark.long("combinations")
@pytest.mark.parametrize("cell", EXPORTED, ids=str)
def test_every_export(models, cell, tmp_path):
    trained = models(cell.task, cell.preprocessor, cell.saved)
    folder = tmp_path / "exported" / "1"
    texts = predicted_columns(trained.model, trained.columns[0])
    segments = texts if isinstance(texts, tuple) else (texts,)
    if cell.format == "SavedModel":
        assert export_saved_model(trained.model, folder).is_dir()
        got = run_saved_model(folder, trained.model, segments)
    else:
        export, run = PORTABLE[cell.format]
        export(trained.model, folder)
        got = run(folder, trained.model.preprocessor.pack(*segments))
    for name, wanted in compute_answers(cell.task, trained.outputs).items():
        np.testing.assert_allclose(got[name], wanted, atol=1e-5)
    if cell.task == "label sets" and cell.format == "SavedModel":
        labels = [[name for name in row if name] for row in got["labels"].astype(str)]
        assert labels == trained.model.predict_labels(texts, verbose=0)
        assert got["num_labels"].tolist() == list(map(len, labels))


def compute_answers(task, outputs):
    """The answers of an export, from the logits or numbers of the model."""
    if task == "numbers":
        return {"scores": outputs}
    if task == "vectors":
        return {"embedding": outputs}
    if task == "masks":
        return {"probabilities": outputs}
    if task == "attributes":
        shares = {name: compute_answers("texts", part) for name, part in outputs.items()}
        return {f"{name}_probabilities": part["probabilities"] for name, part in shares.items()}
    if task == "label sets":
        return {"probabilities": 1 / (1 + np.exp(-outputs)), "is_label": outputs > 0}
    exponentials = np.exp(outputs - outputs.max(axis=-1, keepdims=True))
    return {"probabilities": exponentials / exponentials.sum(axis=-1, keepdims=True)}


def run_saved_model(folder, model, segments):
    import tensorflow as tf
    import tensorflow_text  # noqa: F401

    loaded = tf.saved_model.load(str(folder))
    inputs = dict(zip(model.input_names or ["text"], map(tf.constant, segments), strict=True))
    answers = loaded.signatures["serving_default"](**inputs)
    return {name: answer.numpy() for name, answer in answers.items()}


def test_the_table_is_whole():
    """`make test` has each task, preprocessor, kind of input and way of saving."""
    short = {*ALONE.values()} | SHORT | GRAPHS
    assert short <= set(FITTED)
    assert len(set(FITTED)) == len(FITTED)
    for name in ("task", "preprocessor", "saved", "kind"):
        column = {getattr(cell, name) for cell in FITTED}
        assert {getattr(cell, name) for cell in short} == column, name
    assert {cell.task for cell in FITTED} == set(TASKS)
    assert {cell.kind for cell in FITTED} == {*TEXTS_IN_MEMORY, *ARRAYS_IN_MEMORY, *DATASETS}
    assert {cell.format for cell in EXPORTED} == set(ANY_FORMAT)
