"""Opens classifiers of any format to label texts."""

import dataclasses
from collections.abc import Callable
from pathlib import Path

from .ask_saved_model import SavedModel
from .model_paths import is_saved_model
from .saved_tasks import open_task


@dataclasses.dataclass(frozen=True)
class Predictor:
    """A classifier that was saved.

    Attributes:
        label_names: list of C str, or None for a SavedModel without `label_names.txt`.
        answer: function, (dict of name -> N texts, batch size) to (N labels, probabilities,
            float32 (N, C)).
    """

    label_names: list | None
    answer: Callable


def open_saved_model(path, loaded=None):
    """The `SavedModel` at a path, or None if a model of another format is there.

    Args:
        path: str.
        loaded: the `SavedModel` at `path`, if it is loaded already.
    """
    if loaded is not None or not is_saved_model(path):
        return loaded
    return SavedModel(path)


#: `problem_type` of a classifier -> the value of --task.
TASK_FLAGS = {
    "single_label_classification": "classify",
    "multi_label_classification": "multilabel",
    "regression": "regress",
}


def open_classifier(path, problem_type):
    """Opens a `TextClassifier`.

    Args:
        path: str.
        problem_type: str, a key of `TASK_FLAGS`.

    Raises:
        ValueError: if the classifier there has another problem type, so that its outputs mean
            something else.
    """
    classifier = open_task(path, "TextClassifier")
    if classifier.problem_type != problem_type:
        raise ValueError(
            f"{path} was trained with problem_type={classifier.problem_type!r}, and --task "
            f"{TASK_FLAGS[problem_type]} is for {problem_type!r}. Pass --task "
            f"{TASK_FLAGS[classifier.problem_type]}."
        )
    return classifier


def open_predictor(path, saved_model=None):
    """Opens a `.keras` file, the folder of a preset or checkpoint, or a SavedModel.

    Args:
        path: str.
        saved_model: the `SavedModel` at `path`, if it is loaded already.
    """
    saved_model = open_saved_model(path, saved_model)
    if saved_model is not None:
        return Predictor(read_label_names(path), saved_model.classify)
    classifier = open_classifier(path, "single_label_classification")

    def answer(columns, batch_size):
        texts = order_texts(path, classifier.input_names, columns)
        probabilities = predict_probabilities(classifier, texts, batch_size)
        labels = [classifier.label_names[i] for i in probabilities.argmax(axis=-1)]
        return labels, probabilities

    return Predictor(classifier.label_names, answer)


def order_texts(path, input_names, columns):
    """The texts of columns as `predict` takes them.

    Args:
        path: str, the model.
        input_names: names of the texts of the model, or None.
        columns: dict, name of a column -> texts. Columns with the names of the model's texts may
            come in any order.

    Raises:
        ValueError: if there are more or fewer columns than names.
    """
    _check_columns(path, input_names, columns)
    in_order = input_names if set(input_names or ()) == set(columns) else columns
    texts = tuple(columns[name] for name in in_order)
    return texts if len(texts) > 1 else texts[0]


def predict_probabilities(classifier, x, batch_size=32):
    """Probabilities, float32 (N, C), as a server computes them from the outputs."""
    from keras import ops

    outputs = classifier.predict(x, batch_size=batch_size, verbose=0)
    answers = classifier.serving_outputs(ops.convert_to_tensor(outputs), None)
    return ops.convert_to_numpy(answers["probabilities"])


def _check_columns(path, input_names, columns):
    """Raises a `ValueError` if a row has more or fewer texts than the model was trained with."""
    if input_names is None or len(columns) == len(input_names):
        return
    remedy = (
        "Name two columns, with --text_column and --text_pair_column, of a table."
        if len(input_names) > 1
        else "Leave out --text_pair_column."
    )
    raise ValueError(
        f"{path} was trained with rows of {len(input_names)} texts, {', '.join(input_names)}, and "
        f"got rows of {len(columns)}, {', '.join(columns)}. {remedy}"
    )


def read_label_names(saved_model):
    """The class names that `export_saved_model` has written beside the graph, or None."""
    file = Path(saved_model) / "assets.extra" / "label_names.txt"
    # A name may hold any character but a line feed. `read_text` would change a carriage return.
    return file.read_bytes().decode("utf-8").split("\n") if file.is_file() else None
