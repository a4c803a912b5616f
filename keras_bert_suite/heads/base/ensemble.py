"""Several tasks that answer together: over seeds, folds and models."""

import functools
import inspect
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

import numpy as np
from keras import ops

from keras_bert_suite.annotations import Config, Inputs, Labels, PathLike
from keras_bert_suite.argument_checks import check_choice, check_list
from keras_bert_suite.data.arrays import list_columns, take_rows
from keras_bert_suite.files.messages import list_names
from keras_bert_suite.heads.base import averages
from keras_bert_suite.heads.base.ensemble_checks import (
    TUNED,
    check_tasks,
    cut_alike,
    find_label_order,
)
from keras_bert_suite.heads.base.ensemble_files import read_ensemble, write_ensemble
from keras_bert_suite.heads.base.ensemble_outputs import (
    Recorder,
    average_layers,
    average_rows,
    copy_layers,
    find_form,
    make_parts,
    map_rows,
)
from keras_bert_suite.heads.base.ensemble_weights import (
    choose_metric,
    read_weights,
    select_greedily,
)
from keras_bert_suite.heads.base.input_checks import check_in_memory

#: The methods of tasks that answer and score. They call `predict_with` of the ensemble.
_ANSWERING = (
    *("predict", "predict_labels", "predict_probabilities", "predict_tags", "predict_n_best"),
    *("score", "score_with", "score_lists", "score_retrieval", "inspect", "rank", "search"),
    *("similarity", "similarity_pairwise", "tune_threshold", "tune_thresholds"),
)

#: The attributes of an ensemble that may be set. Its data and answers begin as the first task's.
_OWN = (
    *("tasks", "weights", "average", "cuts_alike", "label_orders", "joined_layers"),
    *("data", "answers"),
)

#: Rows whose outputs are kept together, if they are too large to be kept for all rows.
_ROWS_AT_ONCE = 64


class Ensemble:
    """Several tasks of one kind whose answers are averaged.

    The mean of models that were trained with other seeds, on other folds of the rows, or from other
    checkpoints is better than most of its parts, and its scores depend less on chance. It takes the
    time and the memory of all of them; distil it into one task where that is too much.

    ```python
    tasks = [train(seed) for seed in range(3)]
    ensemble = kbs.Ensemble(tasks)
    ensemble.fit_weights(dev_texts, dev_labels)
    ensemble.predict_labels(["a gripping, funny film"])
    ensemble.save_to_preset("sentiment_ensemble")
    kbs.export_saved_model(ensemble, "saved_models/sentiment")
    ```

    It has the methods of its tasks that answer and score: `predict`, `predict_labels`,
    `predict_probabilities`, `predict_tags`, `predict_n_best`, `score`, `inspect`, `rank`, `search`,
    `similarity`, `tune_thresholds` and `tune_threshold`, with the same arguments and results. Rows
    are in memory.

    | outputs | averaged, and by `average` |
    | --- | --- |
    | classes, sets of labels, attributes, relations, choices, tags, spans | probabilities; logits |
    | numbers | the numbers |
    | rankings | logits; probabilities |
    | questions | logits, the scores of tokens |
    | tags of a CRF | logits: the emissions, and the scores of its layer |
    | vectors | the vectors, each of the length 1, and so is their mean |

    Where answers are per text, tasks may have other tokenizers, lengths and encoders. Tags, spans
    and questions stand at tokens, so there all tasks must cut texts alike. Vectors have a mean only
    if the tasks began from one checkpoint: other models number their axes otherwise.

    Args:
        tasks: list of tasks of one class, with the same names of labels, in any order.
        weights: list of floats of at least 0, one for each task; the sum is brought to 1. None
            weighs all alike. `fit_weights` chooses them by held-out rows.
        average: "probabilities" or "logits", see the table; None for the first in its row.

    Attributes:
        tasks: list of the tasks, which are not copied.
        weights: list of floats whose sum is 1. It may be set.
        average: str, what is averaged.

    Raises:
        ValueError: if the tasks are of several kinds, or have other labels, thresholds or texts;
            if their answers stand at tokens and they cut texts otherwise; if their answers have no
            mean (`MaskedLM`, `Seq2Seq`, `CausalLM`, `TwoTowerRanker`, pretraining); or for such
            weights.

    Source: Dietterich, 2000, "Ensemble Methods in Machine Learning". The mean of probabilities is
    the linear opinion pool, the mean of logits the logarithmic one (Genest and Zidek, 1986).
    """

    def __init__(
        self,
        tasks: Sequence[Any],
        weights: Sequence[float] | None = None,
        *,
        average: str | None = None,
    ) -> None:
        check_list("tasks", tasks, "tasks")
        tasks = list(tasks)
        check_tasks(tasks)
        first = tasks[0]
        forms = first.answers.mean_forms
        if average is not None:
            check_choice("average", average, forms)
        self.tasks = tasks
        self.average = forms[0] if average is None else average
        self.cuts_alike = cut_alike(tasks)
        self.label_orders = [find_label_order(first, task) for task in tasks]
        self.weights = [1.0] * len(tasks) if weights is None else weights
        self.joined_layers = copy_layers(first)
        self.data, self.answers = make_parts(tasks, self.joined_layers)

    @property
    def weights(self) -> list[float]:
        """list of floats, one for each task. Their sum is 1."""
        return vars(self)["shares"]

    @weights.setter
    def weights(self, weights: Sequence[float]) -> None:
        vars(self)["shares"] = read_weights(weights, len(self.tasks))

    def __getattr__(self, name: str) -> Any:
        # What an ensemble lacks is answered as its first task would, with the means as outputs.
        tasks = vars(self).get("tasks")
        if tasks is None:
            raise AttributeError(name)
        if name in (layers := vars(self).get("joined_layers", {})):
            return layers[name]
        found = inspect.getattr_static(type(tasks[0]), name, None)
        if name in TUNED and found is not None:
            return found.__get__(self)
        if isinstance(found, types.FunctionType):
            if name not in _ANSWERING and not name.startswith("_"):
                raise AttributeError(
                    f"An Ensemble has no {name!r}. It answers, scores and is saved; train its "
                    "tasks one by one, or by `fit_folds`."
                )
            return types.MethodType(found, self)
        return getattr(tasks[0], name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in TUNED:
            getattr(type(self.tasks[0]), name).__set__(self, value)
        elif name in _OWN:
            super().__setattr__(name, value)
        else:
            raise AttributeError(
                f"An Ensemble has no {name!r} to set. Set it of its tasks, and make a new ensemble "
                "of them."
            )

    def __call__(self, packed: Mapping[str, Any], training: bool = False) -> Any:
        """The mean of the outputs for packed texts, in the form of the outputs of the first task.

        Args:
            packed: dict of the inputs of the encoders. If the tasks cut texts otherwise, a dict of
                "0", "1" and so on, the number of a task, -> its inputs.
            training: False.
        """
        parts = []
        for number, task in enumerate(self.tasks):
            own = packed if self.cuts_alike else packed[str(number)]
            own = {name: own[name] for name in task.input if name in own}
            outputs = task(own, training=False)
            form = find_form(task, self.label_orders[number], outputs, self.average, ops)
            parts.append(self.weights[number] * form)
        return averages.from_form(self.answers, sum(parts), self.average, ops)

    @property
    def name(self) -> str:
        """str, for messages."""
        return f"ensemble of {self.tasks[0].name}"

    @property
    def card(self) -> Config:
        """Facts for the model card, beside those of the first task; see `list_facts`."""
        kinds = list(dict.fromkeys(type(task.backbone).__name__ for task in self.tasks))
        weights = [float(f"{weight:.4g}") for weight in self.weights]
        return {
            "mean of": f"{self.average} of {len(self.tasks)} tasks",
            "weights": weights,
            **({"encoders": kinds} if len(kinds) > 1 else {}),
        }

    #: An ensemble is not trained itself.
    history = None

    @property
    def input(self) -> dict[str, Any]:
        """The symbolic inputs of the task whose encoder has most inputs."""
        return self.find_widest().input

    def find_widest(self) -> Any:
        """The task whose encoder has most inputs, so that its batches are for all."""
        return max(self.tasks, key=lambda task: len(task.data.encoder.names))

    def check_parts(self) -> None:
        """Raises a ValueError if a preprocessor does not fit its encoder."""
        for task in self.tasks:
            task.check_parts()

    def predict_with(
        self,
        decode: Callable[[Any, Any], Any],
        x: Inputs,
        batch_size: int | None = None,
        steps: int | None = None,
        condense: Callable[[Any, Any], Any] | None = None,
        **kwargs: Any,
    ) -> Any:
        """Predicts with other answers than `predict`; see `Task.predict_with`.

        Each task predicts the rows by itself, one after the other. `decode` gets the means.
        """
        check_in_memory(x)
        self.join_layers()
        read = None if condense is None or steps is not None else self.data.read(x)
        if condense is None or read is None or read.is_packed:
            return decode(*self._average(self.find_outputs(x, batch_size, steps, **kwargs)))
        found, number = [], len(list_columns(x)[0])
        for begin in range(0, number, _ROWS_AT_ONCE):
            rows = take_rows(x, range(begin, min(begin + _ROWS_AT_ONCE, number)))
            found += condense(*self._average(self.find_outputs(rows, batch_size, **kwargs)))
        return decode(found, self.data.window(read))

    def find_outputs(
        self, x: Inputs, batch_size: int | None = None, steps: int | None = None, **kwargs: Any
    ) -> tuple[list[Any], Any]:
        """The outputs of each task in the form that is averaged, and the `Rows` of the first."""
        outputs, rows = [], None
        for number, task in enumerate(self.tasks):
            found, its_rows = task.predict_with(_keep, x, batch_size, steps, **kwargs)
            if its_rows.is_packed and not self.cuts_alike:
                raise ValueError(
                    "The tasks of this ensemble make other arrays of texts, got packed arrays. "
                    "Pass the texts."
                )
            arguments = {"form": self.average, "xp": np}
            form = functools.partial(find_form, task, self.label_orders[number], **arguments)
            outputs.append(map_rows(form, found))
            rows = its_rows if rows is None else rows
        return outputs, rows

    def fit_weights(
        self,
        x: Inputs,
        y: Labels,
        batch_size: int | None = None,
        *,
        metric: str | None = None,
        rounds: int = 20,
    ) -> list[float]:
        """Chooses the weights by held-out rows: greedy selection with replacement.

        Each round adds the task with which the mean of all that were added scores best; a task may
        be added again. Of equal ones it is the one that was added least, then the first. The
        weights are how often each was added, at the last of the best rounds. They are the same in
        each run. On these rows the ensemble scores at least as high as its best task. With some
        hundred rows the choice follows chance: leave the weights equal then.

        Args:
            x, y: as for `score`. Rows that a task was trained on would favour it.
            batch_size: int, as for `score`.
            metric: str, the name of a number that `score` returns; None for "f1" if it is there,
                else for the first. Of names with "error" the lowest is best.
            rounds: int, at least 1.

        Returns:
            the list of weights, which the ensemble then has.

        Raises:
            ValueError: as `score`; or if it returns no such number.

        Source: Caruana et al., 2004, "Ensemble Selection from Libraries of Models", sections 2 and
        2.1.
        """
        trial = self.map_tasks(lambda task: task)
        rewind = trial.record_outputs()

        def measure(weights):
            rewind()
            trial.weights = weights
            return choose_metric(trial.score(x, y, batch_size), metric)

        self.weights = select_greedily(measure, len(self.tasks), rounds)
        return self.weights

    def record_outputs(self) -> Callable[[], None]:
        """Computes outputs once from now on; after the function that is returned, they repeat.

        Between two calls of this function the same rows must be asked for, in the same order.
        """
        recorder = Recorder(self.find_outputs)
        vars(self)["find_outputs"] = recorder
        return recorder.rewind

    def join_layers(self) -> None:
        """Gives the layers on the outputs, as a CRF, the mean of their weights in the tasks."""
        average_layers(self.joined_layers, self.tasks, self.weights, self.label_orders)

    def _average(self, found):
        """The means of the result of `find_outputs`, as outputs of the first task; and the rows."""
        outputs, rows = found
        return average_rows(self.answers, outputs, self.weights, self.average), rows

    def get_settings(self) -> Config:
        """What an ensemble is made of beside its tasks: values of JSON."""
        self.join_layers()
        tuned = {name: getattr(self, name) for name in TUNED if hasattr(self.tasks[0], name)}
        return {"weights": self.weights, "average": self.average, **tuned}

    @classmethod
    def of(cls, tasks: Sequence[Any], settings: Mapping[str, Any]) -> Self:
        """An ensemble of tasks with the settings of another one, see `get_settings`."""
        made = cls(tasks, settings["weights"], average=settings["average"])
        for name in TUNED:
            if settings.get(name) is not None:
                setattr(made, name, settings[name])
        return made

    def map_tasks(self, function: Callable[[Any], Any]) -> Self:
        """An ensemble of other tasks, `function` of each, with the settings of this one."""
        return self.of(list(map(function, self.tasks)), self.get_settings())

    def get_config(self) -> Config:
        """The arguments of the first task, and the thresholds of the ensemble, for descriptions."""
        return {**self.tasks[0].get_config(), **self.get_settings()}

    def save_to_preset(self, preset_dir: PathLike) -> None:
        """Saves the ensemble as one folder: a preset for each task, and `ensemble.json`.

        The folder is written aside and renamed, so it is whole or absent. The folders "0", "1" and
        so on in it open as tasks, too.

        Args:
            preset_dir: str or path of the folder, which must not exist.

        Raises:
            FileExistsError: if it exists.
            ValueError: if the tasks no longer fit each other, as after new thresholds of one.
        """
        write_ensemble(self, preset_dir)

    @classmethod
    def from_preset(cls, preset: PathLike, **kwargs: Any) -> Self:
        """Opens a folder of `save_to_preset`.

        Args:
            preset: str or path of the folder.
            **kwargs: arguments of `from_preset` of each task, such as `dtype`.

        Raises:
            FileNotFoundError: if it has no `ensemble.json`.
            ValueError: as `from_preset` of the tasks; or if the class of a task is not known.
        """
        return cls.of(*read_ensemble(preset, **kwargs))

    def __repr__(self) -> str:
        shares = list_names([f"{weight:.3g}" for weight in self.weights])
        return f"<Ensemble of {len(self.tasks)} {type(self.tasks[0]).__name__}s, weights {shares}>"


def members_of(task: Any) -> list[Any]:
    """The tasks of an ensemble; for a task a list of itself."""
    return task.tasks if isinstance(task, Ensemble) else [task]


def _keep(outputs, rows):
    return outputs, rows
