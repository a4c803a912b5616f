"""Every task with every preprocessor, kind of input, way of saving and format of export.

The table is the product of its columns less `EXCEPTIONS`. Each task and preprocessor is trained
once, on rows in memory; every other cell must give what that model gives.
"""

import dataclasses
import itertools

import keras
import numpy as np
import pytest
from input_kinds import ARRAYS_IN_MEMORY, DATASETS, TEXTS_IN_MEMORY, WITHOUT_LENGTH, list_rows
from kerashub_models import MODELS
from portable_runtimes import PORTABLE
from small_tasks import (
    BATCH_SIZE,
    BYTE_PAIRS,
    NUM_ROWS,
    PROBLEMS,
    SENTENCE_PIECES,
    STEPS,
    TASKS,
    assert_close,
    compile_model,
    make_task,
    predict,
    predicted_columns,
)
from tables import everywhere_for

from keras_bert_suite import export_saved_model

#: The tasks whose rows are lists of words.
OF_WORDS = ("words", "chains", "spans")
#: The tasks that see more of a tokenizer than its ids.
OF_SENTENCE_PIECES = ("pairs", "words", "questions", "masks")

PREPROCESSORS = (
    *("SegmentPacker", BYTE_PAIRS, SENTENCE_PIECES, "none"),
    *(f"KerasHub's {name}" for name in MODELS),
)
SAVED = ("as trained", ".keras", "preset")
KINDS = (*TEXTS_IN_MEMORY, *ARRAYS_IN_MEMORY, *DATASETS)
FORMATS = ("SavedModel", *PORTABLE)


def is_exported_twice(cell):
    """Whether a cell stands for the exports of tasks that were loaded."""
    preprocessors = ("SegmentPacker", "KerasHub's DistilBERT")
    return (cell.task, cell.format) == (
        "pairs",
        "SavedModel",
    ) and cell.preprocessor in preprocessors


def is_long(cell):
    """Whether `make test-long` runs a cell.

    `make test` gives KerasHub's BERT each kind of input, and each of KerasHub's other
    preprocessors a pair of lists.
    """
    if cell.format is not None and keras.config.backend() != "tensorflow":
        return True  # See `long_elsewhere`.
    if cell.format in PORTABLE:
        # The files hold no tokenizer, and what they hold of other heads is in tests/serving.
        return cell.preprocessor != "SegmentPacker" or cell.task not in ("pairs", "label sets")
    if cell.format is not None:
        # tests/serving has the SavedModels of the other tasks and of KerasHub's preprocessors.
        is_known = cell.task not in ("pairs", *PROBLEMS) or cell.saved == ".keras"
        return is_known or cell.preprocessor.startswith("KerasHub")
    if not cell.preprocessor.startswith("KerasHub"):
        return False
    if cell.preprocessor == "KerasHub's BERT":
        return cell.task != "texts"
    return (cell.task, cell.kind) != ("pairs", "list")


#: (task, kind) that `make test` runs on every backend, beside the lists of every task.
#: Loaders and streams are in `test_each_epoch_of_unknown_length_is_a_whole_pass`.
SEEN_EVERYWHERE = [
    ("texts", kind)
    for kind in ("tf.data", "tf.data of named columns", "grain.MapDataset", "generator")
]

#: Tasks whose losses weigh rows in ways of their own.
WEIGHTED = ("texts", "label sets", "words", "chains", "spans", "questions", "vectors")


def is_broad(cell):
    """Whether PyTorch alone runs a cell in `make test`.

    What is compiled is the same for most cells of a task: rows become packed arrays before. So
    TensorFlow and JAX get each task as lists, texts in some datasets of batches, pairs from each
    preprocessor, and each way of saving for some heads.
    """
    if cell.format is not None:
        return False
    if cell.saved != "as trained":
        kept = ("pairs", "chains") if cell.saved == ".keras" else ("questions", "masks")
        return cell.preprocessor != "SegmentPacker" or cell.kind != "list" or cell.task not in kept
    if cell.preprocessor == "SegmentPacker":
        return cell.kind != "list" and (cell.task, cell.kind) not in SEEN_EVERYWHERE
    if cell.task == "pretraining":
        return cell.kind not in ("arrays", "generator")
    # The texts are for KerasHub's BERT, which has no pairs here.
    return (cell.task, cell.kind) not in (("pairs", "list"), ("texts", "list"), ("words", "arrays"))


#: (task, saved, kind) of the cells in which a graph holds KerasHub's byte pairs.
TRACED = (("pairs", "as trained", "tf.data"), ("pairs", "as trained", None))

#: (what it is about, why it is no combination).
EXCEPTIONS = (
    (
        lambda c: c.task == "vectors" and c.preprocessor not in ("SegmentPacker", "none"),
        "A single text goes the way that the texts of a TextClassifier go.",
    ),
    (
        lambda c: (
            c.task == "vectors"
            and c.kind not in (None, "list", "arrays", "tf.data of named columns", "DataLoader")
        ),
        "A kind for each way to the preprocessor, and one of PyTorch.",
    ),
    (
        lambda c: c.task in OF_WORDS and c.preprocessor.startswith("KerasHub"),
        "Only our packer says which token belongs to which word.",
    ),
    (
        lambda c: (
            c.task == "words"
            and c.preprocessor == "SegmentPacker"
            and c.kind in DATASETS
            and c.kind not in ("PyDataset", "generator", "tf.data", "tf.data of named columns")
        ),
        "These make a batch of a list of words by position.",
    ),
    (
        lambda c: (
            c.task in PROBLEMS
            and (
                c.preprocessor != "SegmentPacker"
                or c.kind not in (None, "list", "tf.data", "DataLoader")
                or (c.saved != "as trained" and c.kind == "tf.data")
                or c.format in ("OpenVINO", "LiteRT")
                or (c.task, c.format) == ("numbers", "ONNX")
            )
        ),
        "These differ from classes of texts in their labels and answers only.",
    ),
    (
        lambda c: (
            c.task in ("chains", "spans")
            and (c.preprocessor != "SegmentPacker" or c.kind not in ("list", "generator"))
        ),
        "They read rows as words do. Packed arrays are in the tests of the two tasks.",
    ),
    (
        lambda c: c.task in OF_WORDS and c.format is not None,
        "tests/serving/test_entities.py compares the entities of the exports.",
    ),
    (
        lambda c: (
            c.task in ("questions", "choices", "targets") and c.preprocessor.startswith("KerasHub")
        ),
        "Only our packer says which token belongs to which part of a context; an ending is a text "
        "of a pair; a target needs our packer and our backbone.",
    ),
    (
        lambda c: (
            c.task == "questions"
            and c.kind is not None
            and c.kind not in ("list", "arrays", "tf.data", "grain.MapDataset", "DataLoader")
        ),
        "Questions are read as pairs are; tests/tasks/test_question_answerer.py has their names.",
    ),
    (
        lambda c: c.task == "choices" and c.kind not in (None, "list", "arrays", "tf.data"),
        "The endings of a row are a list, which most datasets of batches take for columns.",
    ),
    (
        lambda c: (
            c.task in ("questions", "choices")
            and c.saved != "as trained"
            and c.kind not in (None, "list", "arrays")
        ),
        "Loading changes nothing between the input and the preprocessor.",
    ),
    (
        lambda c: c.task == "targets" and c.format is not None,
        "tests/tasks/test_seq2seq.py compares what a server writes.",
    ),
    (
        lambda c: c.task in ("questions", "choices") and c.format is not None,
        "tests/serving/test_spans.py and test_choices.py compare the answers of the exports.",
    ),
    (
        lambda c: (
            c.task == "documents"
            and (
                c.preprocessor != "SegmentPacker"
                or c.kind not in (None, "list", "tf.data", "DataLoader")
                or c.saved != "as trained"
                or c.format not in (None, "SavedModel")
            )
        ),
        "Documents are read as texts are. tests/tasks/test_document_classifier.py has the rest.",
    ),
    (
        lambda c: c.task == "masks" and c.preprocessor.startswith("KerasHub"),
        "KerasHub's preprocessors have no place for masks.",
    ),
    (
        lambda c: (
            c.task == "masks"
            and (c.kind in DATASETS or (c.kind or "").startswith("DataFrame"))
            and c.preprocessor == "SegmentPacker"
        ),
        "Texts of a dataset get other masks than texts in memory, and a row has one text; "
        "tests/tasks/test_masked_lm.py has both.",
    ),
    (
        lambda c: c.task == "masks" and c.format in PORTABLE,
        "tests/serving/test_masks.py compares their probabilities of all tokens.",
    ),
    (
        lambda c: c.task == "pretraining" and c.preprocessor != "none",
        "Masks are drawn before `fit`, so a Pretrainer takes packed arrays.",
    ),
    (
        lambda c: (
            c.preprocessor == BYTE_PAIRS
            and (c.task != "pairs" or c.kind not in (None, "list", "tf.data"))
        ),
        "RoBERTa differs in its tokenizer, whose two engines these are, and in its embeddings.",
    ),
    (
        lambda c: (
            c.preprocessor == "KerasHub's RoBERTa"
            and (c.format is not None or (c.kind or "").startswith("tf.data"))
            and (c.task, c.saved, c.kind) not in TRACED
        ),
        "TensorFlow takes up to 90 seconds to trace KerasHub's byte pairs, and keeps the graph.",
    ),
    (
        lambda c: (
            c.preprocessor == SENTENCE_PIECES
            and (
                c.task not in OF_SENTENCE_PIECES
                or c.kind not in (None, "list", "tf.data")
                or (c.kind == "tf.data" and c.task != "pairs")
            )
        ),
        "XLM-RoBERTa is a RoBERTa with another tokenizer. Of it tasks see places in texts, words "
        "and masks.",
    ),
    (
        lambda c: c.preprocessor == SENTENCE_PIECES and c.format in PORTABLE,
        "Files without the graph hold no tokenizer, but its files, as for byte pairs.",
    ),
    (
        lambda c: c.preprocessor == "none" and c.kind in TEXTS_IN_MEMORY,
        "Texts need a preprocessor.",
    ),
    (
        lambda c: c.preprocessor != "none" and c.kind in ARRAYS_IN_MEMORY,
        "Packed arrays pass by the preprocessor, as without one.",
    ),
    (
        lambda c: (
            c.saved != "as trained" and c.kind not in (None, "list", "dict", "arrays", "tf.data")
        ),
        "Loading changes nothing between the input and the preprocessor. One kind for each way "
        "to the preprocessor is enough: rows, named columns, packed arrays, a graph.",
    ),
    (
        lambda c: c.format is not None and c.saved != "as trained" and not is_exported_twice(c),
        "What is loaded is what was saved, as the inputs show, and JAX and PyTorch save before "
        "each export. Pairs with our preprocessor and with one of KerasHub are exported again.",
    ),
    (
        lambda c: c.format is not None and c.preprocessor == "none",
        "An export carries what turns texts into its inputs.",
    ),
    (
        lambda c: c.format in PORTABLE and c.preprocessor not in ("SegmentPacker", BYTE_PAIRS),
        "The vocabulary beside the file is that of our tokenizer.",
    ),
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


def list_combinations(**columns):
    """The product of columns, without the exceptions."""
    cells = itertools.product(*columns.values())
    cells = [Combination(**dict(zip(columns, cell, strict=True))) for cell in cells]
    return [cell for cell in cells if not any(applies(cell) for applies, _ in EXCEPTIONS)]


def as_parameters(cells):
    return [pytest.param(cell, id=str(cell), marks=list_marks(cell)) for cell in cells]


def list_marks(cell):
    if cell.format is not None:
        marks = [pytest.mark.backend("tensorflow")]
    else:
        marks = [] if is_broad(cell) else [pytest.mark.every_backend]
    return [*marks, pytest.mark.long("combinations")] if is_long(cell) else marks


FITTED = list_combinations(task=TASKS, preprocessor=PREPROCESSORS, saved=SAVED, kind=KINDS)
EXPORTED = list_combinations(
    task=TASKS, preprocessor=PREPROCESSORS, saved=SAVED, kind=[None], format=FORMATS
)


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
    scores: dict
    outputs: object

    @classmethod
    def train(cls, task, preprocessor):
        keras.utils.set_random_seed(0)
        model, columns = make_task(task, preprocessor)
        compile_model(model)
        x, y, *weights = columns
        weights = weights[0] if weights else None
        model.fit(x, y, BATCH_SIZE, sample_weight=weights, shuffle=False, verbose=0)
        scores = model.evaluate(
            x, y, BATCH_SIZE, sample_weight=weights, verbose=0, return_dict=True
        )
        x = predicted_columns(model, x)
        return cls(model, columns, scores, predict(model, x=x, batch_size=BATCH_SIZE))

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


@pytest.mark.parametrize("cell", as_parameters(FITTED))
def test_every_input(models, cell):
    trained = models(cell.task, cell.preprocessor, cell.saved)
    model = trained.model
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
    model.set_weights(before)
    assert len(history["loss"]) == len(history["val_loss"]) == 2
    assert np.isfinite([*history["loss"], *history["val_loss"]]).all()
    wanted = 2 if cell.task in ("pairs", "questions", "choices", "vectors") else 1
    if cell.preprocessor != "none":
        names = model.column_names if cell.task == "vectors" else model.input_names
        assert len(names) == wanted


@pytest.mark.parametrize(
    "task",
    everywhere_for([task for task in TASKS if task not in ("masks", "pretraining")], *WEIGHTED),
)
def test_weights_of_rows(models, task):
    trained = models(task, "SegmentPacker")
    (x, y), weights = trained.columns, np.full(NUM_ROWS, 2.0)
    arguments = {"batch_size": BATCH_SIZE, "verbose": 0, "return_dict": True}
    scores = trained.model.evaluate(x, y, sample_weight=weights, **arguments)
    # The loss of tokens is their weighted mean, as rows have different numbers of them.
    factor = 1 if task in ("words", "chains", "targets") else 2
    assert scores["loss"] == pytest.approx(factor * trained.scores["loss"], rel=1e-3)


@pytest.mark.parametrize("kind", ["grain.IterDataset", "DataLoader of a stream"])
def test_each_epoch_of_unknown_length_is_a_whole_pass(models, kind):
    trained = models("texts", "SegmentPacker")
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

    trained = models("texts", "SegmentPacker")
    rows = list_rows(trained.columns)
    loader = torch.utils.data.DataLoader(rows, batch_size=len(rows) + 1, drop_last=True)
    with pytest.raises(ValueError, match="no batches"):
        trained.model.fit(loader, verbose=0)


@pytest.mark.parametrize("cell", as_parameters(EXPORTED))
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
    """Each value of each column stands in some cell, and each exception leaves something out."""
    for name, column in (("task", TASKS), ("preprocessor", PREPROCESSORS), ("saved", SAVED)):
        assert {getattr(cell, name) for cell in FITTED} == set(column)
    assert {cell.kind for cell in FITTED} == set(KINDS)
    assert {cell.format for cell in EXPORTED} == set(FORMATS)
    product = itertools.product(TASKS, PREPROCESSORS, SAVED, KINDS, [None, *FORMATS])
    cells = [Combination(*cell) for cell in product]
    for applies, why in EXCEPTIONS:
        assert any(map(applies, cells)), why
