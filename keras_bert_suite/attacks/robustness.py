"""Scores a task over noise in its texts, kind by kind, and under attacks."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from keras_bert_suite.annotations import Inputs, Labels
from keras_bert_suite.argument_checks import check_integer, check_list, check_share, with_article
from keras_bert_suite.attacks.attack import Answers, Attack, attack_rows
from keras_bert_suite.attacks.robustness_report import AttackScore, NoiseScore, RobustnessReport
from keras_bert_suite.data.arrays import is_tuple_of_columns, name_columns
from keras_bert_suite.data.augmentation import holds_rows
from keras_bert_suite.data.noise.kinds import KINDS, SPACE_KINDS
from keras_bert_suite.data.noise.text_noise import TextNoise, check_row
from keras_bert_suite.heads.base.input_checks import check_in_memory

#: The score that a report has, the first that a task has; otherwise its first number.
METRICS = ("accuracy", "f1", "micro_f1", "pearson")


def robustness(
    task: Any,
    x: Inputs,
    y: Labels,
    *,
    kinds: str | Sequence[str] | None = None,
    rates: float | Sequence[float] = (0.1,),
    seeds: Sequence[int] = (0, 1, 2),
    attacks: Sequence[Attack] = (),
    attacked_rows: int | None = None,
    columns: Sequence[Any] | None = None,
    metric: str | None = None,
    batch_size: int | None = None,
    score: Callable[[Any], Mapping[str, Any]] | None = None,
) -> RobustnessReport:
    """Measures how well a task stands noise in its texts.

    Use it before a model meets texts that people type or scanners read, and to see whether training
    with `TextNoise` has helped.

    ```python
    report = kbs.robustness(classifier, dev.x, dev.y, rates=[0.05, 0.1])
    print(report)
    report.save("robustness.json")
    report.plot("robustness.png")
    ```

    Args:
        task: a task with `score`. The labels of taggers move with their words, so their rows are
            lists of words. Tasks whose labels point at places of a text are refused.
        x, y: as for `task.score`, in memory.
        kinds: str or list of str, see `TextNoise`; () for attacks alone. None takes all that find a
            place in the texts.
        rates: float or list of float, the rates of each kind.
        seeds: list of int. A row has the same noise whatever other rows there are.
        attacks: list of attacks, such as `MisspellingAttack`, `DeepWordBug` and `MaskedLMAttack`,
            for classifiers of single texts.
        attacked_rows: int, how many rows are attacked, drawn by the first seed; None for all.
        columns: list of the names or places of the columns of texts that get noise; None for all.
        metric: str, a number among the scores. None takes the accuracy, the F1, the micro F1 or
            Pearson's correlation, the first that the task has.
        batch_size: int, 32 by default.
        score: function(x) -> dict of scores, in place of `task.score`.

    Returns:
        `RobustnessReport`.

    Raises:
        ValueError: if the task is none, or has no score or no texts that may change; if a text is
            missing; for another kind, rate, metric or column; if a kind finds no place in any text,
            or nothing does; if an attack meets another task than a classifier of single texts; or
            if two attacks have one name.
    """
    rates = [rates] if isinstance(rates, (int, float)) else rates
    check_list("rates", rates, "numbers over 0 and at most 1")
    rates = [*dict.fromkeys(rates)]
    for rate in rates:
        check_share("rates", rate, positive=True)
    check_list("seeds", seeds, "integers such as [0, 1, 2]")
    for seed in seeds:
        check_integer("seeds", seed)
    if not len(seeds):
        raise ValueError("seeds must have at least one integer, got none.")
    check_list("attacks", attacks, "attacks such as DeepWordBug()")
    if wrong := [attack for attack in attacks if not isinstance(attack, Attack)]:
        raise ValueError(
            f"attacks must be attacks such as DeepWordBug(), got {wrong[0]!r} in them."
        )
    names = [attack.name for attack in attacks]
    if twice := [name for name in names if names.count(name) > 1]:
        raise ValueError(
            f"Two attacks have the name {twice[0]!r}. Set the attribute `name` of one of them."
        )
    if not hasattr(task, "data"):
        raise ValueError(
            f"task must be a task of keras_bert_suite such as a TextClassifier, got {task!r:.80}."
        )
    texts = find_texts(task, x)
    changed = choose_columns(texts, columns)
    task.data.check_changed(changed, list(texts))
    kinds = choose_kinds(kinds, changed)
    if not attacks and not (kinds and rates):
        raise ValueError(
            f"There is nothing to measure, with kinds={kinds}, rates={rates} and no attacks, in "
            f"the columns {[*changed]}. Pass a kind and a rate, texts that are not empty, or an "
            "attack."
        )
    if score is None:
        score = find_score(task, y, batch_size)
    clean = score(x)
    metric = choose_metric(task, clean, metric)
    noises = [
        _measure(score, metric, x, changed, TextNoise(kind, rate), seeds)
        for kind in kinds
        for rate in rates
    ]
    results = _attack(task, x, y, attacks, attacked_rows, seeds[0], batch_size)
    rows = len(next(iter(texts.values())))
    return RobustnessReport(
        type(task).__name__, metric, rows, clean[metric], tuple(noises), results
    )


def find_score(task: Any, y: Labels, batch_size: int | None) -> Callable[[Any], Mapping[str, Any]]:
    """function(x) -> dict, the scores of a task for the labels `y`."""
    parameters = [*inspect.signature(task.score).parameters] if hasattr(task, "score") else []
    if len(parameters) < 2 or parameters[1] == "batch_size":
        raise ValueError(
            f"{with_article(task, 'A')} has no score of texts and labels, so there is nothing to "
            "compare over noise. Pass score=, a function from texts to a dict of numbers."
        )
    return lambda x: task.score(x, y, batch_size)


def find_texts(task: Any, x: Inputs) -> dict[Any, Any]:
    """dict of the name or place of each column but for features and conditions -> the column."""
    check_in_memory(x)
    x = name_columns(x)
    if isinstance(x, dict):
        return {name: column for name, column in x.items() if name not in task.data.columns}
    return dict(enumerate(x)) if is_tuple_of_columns(x) else {0: x}


def choose_columns(texts: Mapping[Any, Any], columns: Sequence[Any] | None) -> dict[Any, Any]:
    """The columns of texts that get noise."""
    if isinstance(columns, str):
        raise ValueError(f"columns must be a list of names or places, got the string {columns!r}.")
    for name in columns or ():
        if name not in texts:
            raise ValueError(
                f"columns must be some of {', '.join(map(repr, texts))}, got {name!r}."
            )
    chosen = {name: texts[name] for name in (texts if columns is None else columns)}
    for name, column in chosen.items():
        if not len(column) or not holds_rows(column):
            raise ValueError(
                "Noise is for texts and lists of words, at least one row, got other values in "
                f"column {name!r}. Pass the texts, and not packed arrays or frames; or name the "
                "columns of texts: `columns`."
            )
        for index, row in enumerate(column):
            check_row(row, index)
    return chosen


def choose_kinds(kinds: str | Sequence[str] | None, columns: Mapping[Any, Any]) -> list[str]:
    """list of the kinds of noise. Kinds that are asked for must find a place in a text."""
    if isinstance(kinds, str):
        kinds = [kinds]
    if kinds is not None:
        check_list("kinds", kinds, f"some of {', '.join(KINDS)}")
    has_words = any(not isinstance(row, str) for column in columns.values() for row in column)
    chosen = [*KINDS] if kinds is None else [*dict.fromkeys(kinds)]
    found = [
        kind
        for kind in chosen
        if (noise := TextNoise(kind))
        and any(noise.count_places(row) for column in columns.values() for row in column)
    ]
    if kinds is None:
        return [kind for kind in found if not has_words or kind not in SPACE_KINDS]
    if lost := [kind for kind in chosen if kind not in found]:
        raise ValueError(
            f"The kind {lost[0]} finds no place in any of the texts, so it would change nothing. "
            f"Leave it out; the texts have places for {', '.join(choose_kinds(None, columns))}."
        )
    return found


def choose_metric(task: Any, scores: Mapping[str, Any], metric: str | None) -> str:
    """The name of the number among scores that a report has."""
    numbers = [name for name, value in scores.items() if isinstance(value, float)]
    if metric is None:
        metric = next((name for name in (*METRICS, *numbers) if name in numbers), None)
    if metric not in numbers:
        raise ValueError(
            f"metric must be one of the numbers among the scores of {with_article(task)}, "
            f"{', '.join(numbers) or 'which has none'}, got {metric!r}."
        )
    return metric


def _measure(score, metric, x, columns, noise, seeds):
    """`NoiseScore` of one kind at one rate."""
    scores, shares = [], []
    for seed in seeds:
        noisy = {
            name: noise(column, [seed, place])
            for place, (name, column) in enumerate(columns.items())
        }
        is_changed = [
            [new != list(row) if isinstance(new, list) else new != row for new, row in pairs]
            for pairs in (zip(noisy[name], columns[name], strict=True) for name in columns)
        ]
        shares.append(float(np.mean(np.any(is_changed, axis=0))))
        scores.append(float(score(replace_columns(x, noisy))[metric]))
    return NoiseScore(noise.kinds[0], noise.rate, tuple(scores), float(np.mean(shares)))


def replace_columns(x: Inputs, columns: Mapping[Any, Any]) -> Any:
    """Rows with other columns of texts, by their names or places."""
    x = name_columns(x)
    if isinstance(x, dict):
        return {**x, **columns}
    if is_tuple_of_columns(x):
        return tuple(columns.get(place, column) for place, column in enumerate(x))
    return columns[0]


def _attack(task, x, y, attacks, attacked_rows, seed, batch_size):
    """tuple of `AttackScore`."""
    if not attacks:
        return ()
    x = name_columns(x)
    is_single = getattr(task, "problem_type", None) == "single_label_classification"
    if not is_single or isinstance(x, dict) or is_tuple_of_columns(x):
        raise ValueError(
            "Attacks are for a TextClassifier or DocumentClassifier of single texts with a class "
            f"each, got {with_article(task)} and {len(find_texts(task, x))} columns of texts. "
            "Leave out `attacks`; noise is for other tasks, too."
        )
    texts, labels = np.array(x, object), np.asarray(task.data.read(x, y, labelled=True).labels)
    labels = labels if labels.ndim == 1 else labels.argmax(axis=-1)
    if attacked_rows is not None:
        check_integer("attacked_rows", attacked_rows, at_least=1)
        rows = np.random.default_rng(seed).permutation(len(texts))[:attacked_rows]
        texts, labels = texts[np.sort(rows)], labels[np.sort(rows)]

    def ask(asked: list[str]) -> Answers:
        return task.predict_with(decode, asked, batch_size, verbose=0)

    def decode(outputs, rows):
        outputs = task.answers.decode(outputs, rows)
        return task.answers.choose(outputs), task.answers.find_probabilities(outputs)

    found = [
        (attack.name, attack_rows(attack, ask, texts.tolist(), labels, seed)) for attack in attacks
    ]
    return tuple(AttackScore(name, tuple(attempts)) for name, attempts in found)
