"""The scores of a task over noise and under attacks: a table, a file, a picture."""

import dataclasses
import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from keras_bert_suite.annotations import PathLike
from keras_bert_suite.attacks.attack import Attempt
from keras_bert_suite.files.atomic_file import write_json


@dataclasses.dataclass(frozen=True)
class NoiseScore:
    """The scores over one kind of noise.

    Attributes:
        kind: str.
        rate: float.
        scores: tuple of float, the metric for each seed.
        changed: float, the mean share of the rows that were changed.
    """

    kind: str
    rate: float
    scores: tuple[float, ...]
    changed: float

    @property
    def name(self) -> str:
        """str, the kind and the rate in percent."""
        return f"{self.kind} {self.rate:.3g}"

    @property
    def score(self) -> float:
        """float, the mean over the seeds."""
        return statistics.fmean(self.scores)


@dataclasses.dataclass(frozen=True)
class AttackScore:
    """What an attack did.

    Attributes:
        name: str.
        attempts: tuple of `Attempt`, one for each attacked row.
    """

    name: str
    attempts: tuple[Attempt, ...]

    @property
    def clean(self) -> float:
        """float, the accuracy on the attacked rows before the attack."""
        return statistics.fmean(
            attempt.queries > 1 or not attempt.is_flipped for attempt in self.attempts
        )

    @property
    def score(self) -> float:
        """float, the accuracy under attack."""
        return statistics.fmean(not attempt.is_flipped for attempt in self.attempts)

    @property
    def queries(self) -> float:
        """float, the mean number of texts that the classifier was asked for a row."""
        return statistics.fmean(attempt.queries for attempt in self.attempts)

    @property
    def changed_words(self) -> float:
        """float, the mean number of changed words of the rows whose answer became wrong."""
        found = [a.changed_words for a in self.flipped]
        return statistics.fmean(found) if found else 0.0

    @property
    def flipped(self) -> list[Attempt]:
        """list of the `Attempt`s whose answer became wrong."""
        return [a for a in self.attempts if a.is_flipped and a.changed_words]


@dataclasses.dataclass(frozen=True)
class RobustnessReport:
    """The result of `kbs.robustness`. `print` shows it as a table.

    Attributes:
        task: str, the class of the task.
        metric: str, the name of the score.
        rows: int.
        clean: float, the score without noise.
        noises: tuple of `NoiseScore`.
        attacks: tuple of `AttackScore`.
    """

    task: str
    metric: str
    rows: int
    clean: float
    noises: tuple[NoiseScore, ...] = ()
    attacks: tuple[AttackScore, ...] = ()

    @property
    def scores(self) -> dict[str, float]:
        """dict of the name of each noise and attack -> its score."""
        noises = {noise.name: noise.score for noise in self.noises}
        return {**noises, **{attack.name: attack.score for attack in self.attacks}}

    def list_table(self) -> list[list[str]]:
        """The cells of the table, a list for each row, the titles first."""
        lines = [["noise", self.metric, "change", "lowest", "changed rows"]]
        lines.append(["none", f"{self.clean:.4f}", "", "", ""])
        for noise in self.noises:
            figures = (
                f"{noise.score:.4f}",
                f"{noise.score - self.clean:+.4f}",
                f"{min(noise.scores):.4f}",
            )
            lines.append([noise.name, *figures, f"{noise.changed:.0%}"])
        return lines

    def list_attacks(self) -> list[list[str]]:
        """The cells of the table of attacks, as `list_table`."""
        lines = [["attack", "rows", "accuracy", "under attack", "queries a row", "changed words"]]
        for attack in self.attacks:
            figures = (f"{attack.clean:.4f}", f"{attack.score:.4f}", f"{attack.queries:.1f}")
            rows = str(len(attack.attempts))
            lines.append([attack.name, rows, *figures, f"{attack.changed_words:.1f}"])
        return lines

    def __str__(self) -> str:
        """The tables of noise and of attacks, as tables of Markdown."""
        tables = [self.list_table()] if self.noises else []
        tables += [self.list_attacks()] if self.attacks else []
        return "\n\n".join(map(format_cells, tables))

    def to_dict(self) -> dict[str, Any]:
        """The report as values of JSON. The attempts that succeeded are in it with their texts."""
        return {
            **{"task": self.task, "metric": self.metric, "rows": self.rows, "clean": self.clean},
            "noises": [{**dataclasses.asdict(n), "score": n.score} for n in self.noises],
            "attacks": [
                {
                    **{"name": a.name, "rows": len(a.attempts), "clean": a.clean},
                    **{"score": a.score, "queries": sum(t.queries for t in a.attempts)},
                    "flipped": [dataclasses.asdict(attempt) for attempt in a.flipped],
                }
                for a in self.attacks
            ],
        }

    def save(self, path: PathLike) -> None:
        """Writes the report as JSON.

        Args:
            path: str or path of the file, which is replaced.
        """
        write_json(Path(path), self.to_dict())

    def plot(self, path: PathLike | None = None) -> Any:
        """Draws the report; see `plot_robustness`."""
        return plot_robustness({self.task: self}, path)


def plot_robustness(reports: Mapping[str, RobustnessReport], path: PathLike | None = None) -> Any:
    """Draws the scores over noise and under attacks, of one task or of several side by side.

    ```python
    reports = {"plain": kbs.robustness(plain, x, y), "with noise": kbs.robustness(noisy, x, y)}
    kbs.plot_robustness(reports, "robustness.png")
    ```

    Args:
        reports: dict of a name -> `RobustnessReport`, of the same noises, attacks and metric.
        path: str or path of a PNG file to write, or None.

    Returns:
        `matplotlib.figure.Figure`, which a notebook shows. A bar is a score over noise, and a
        dashed line the score without.

    Raises:
        ValueError: without a report, or if they differ in their noises, attacks or metrics.
        ImportError: without matplotlib.
    """
    if not reports:
        raise ValueError("reports must be a dict of a name and a RobustnessReport, got none.")
    (first_name, first), *others = reports.items()
    for name, other in others:
        if [*other.scores] != [*first.scores] or other.metric != first.metric:
            raise ValueError(
                "The reports must have the same noises, attacks and metric, got "
                f"{first.metric} over {', '.join(first.scores)} in {first_name!r}, and "
                f"{other.metric} over {', '.join(other.scores)} in {name!r}."
            )
    from keras_bert_suite.pictures import draw_robustness

    scores = {name: [*report.scores.values()] for name, report in reports.items()}
    clean = {name: report.clean for name, report in reports.items()}
    return draw_robustness([*first.scores], scores, clean, first.metric, path)


def format_cells(lines: list[list[str]]) -> str:
    """A table of Markdown, of the cells of its lines."""
    titles, *rows = lines
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    ruler = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    return "\n".join(
        "| " + " | ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])]) + " |"
        for line in (titles, ruler, *rows)
    )
