"""Reports the scores on GLUE: a table, JSON files and a picture of the learning curves."""

import json
import statistics

from rich.console import Console
from rich.table import Table

from .plots import plot_glue_curves
from .standalone import atomic_file


def read_results(pairs, output):
    """Reads the results of finished runs.

    Args:
        pairs: list of (`GlueTask`, seed).
        output: `pathlib.Path`.

    Returns:
        dict of the name of a task -> dict of seed -> the result of `glue_training.train_task`.
    """
    results = {}
    for task, seed in pairs:
        text = (output / task.name / f"seed_{seed}.json").read_text(encoding="utf-8")
        results.setdefault(task.name, {})[seed] = json.loads(text)
    return results


def report(output, tasks, results):
    """Prints the table, and writes `glue.json`, `curves.json` and `curves.png`.

    Args:
        output: `pathlib.Path`.
        tasks: list of `GlueTask`.
        results: from `read_results`.
    """
    summary = {name: summarize(list(runs.values())) for name, runs in results.items()}
    average = statistics.mean(
        statistics.mean(scores["mean"] for scores in task["scores"].values())
        for task in summary.values()
    )
    print_table(tasks, summary, average)
    curves = {
        name: {str(seed): run["epochs"] for seed, run in runs.items()}
        for name, runs in results.items()
    }
    atomic_file.write_json(output / "glue.json", {"average": average, "tasks": summary})
    atomic_file.write_json(output / "curves.json", curves)
    plot_glue_curves(curves, output / "curves.png")
    print(f"wrote {output / 'glue.json'}, {output / 'curves.json'} and {output / 'curves.png'}")
    submissions = sorted(output.glob("submission/*/*.tsv"))
    if submissions:
        print(f"wrote {len(submissions)} files for the GLUE server to {output / 'submission'}")
    else:
        print("no file for the GLUE server, because there is no test file")


def summarize(runs):
    """Summarizes the runs of a task.

    Args:
        runs: list of results of `glue_training.train_task`.

    Returns:
        dict of `train_rows`, `seconds`, the mean of the runs, and `scores`, a dict of metric ->
        dict of `mean`, `deviation`, the standard deviation of a sample or 0 for one run, and
        `seeds`, the score of each run.
    """
    scores = {}
    for name in runs[0]["scores"]:
        column = [run["scores"][name] for run in runs]
        scores[name] = {
            "mean": statistics.mean(column),
            "deviation": statistics.stdev(column) if len(column) > 1 else 0.0,
            "seeds": column,
        }
    return {
        "train_rows": runs[0]["train_rows"],
        "seconds": statistics.mean(run["seconds"] for run in runs),
        "scores": scores,
    }


def print_table(tasks, summary, average):
    """Prints a row for each task.

    Args:
        tasks: list of `GlueTask`.
        summary: dict of the name of a task -> dict from `summarize`.
        average: float, the mean over the tasks of the mean of their metrics.
    """
    table = Table("task", "training rows", "metric", "mean", "deviation", "seeds", "seconds")
    for column in (1, 3, 4, 5, 6):
        table.columns[column].justify = "right"
    for task in tasks:
        row = summary[task.name]
        first = (task.folder, str(row["train_rows"]))
        last = f"{row['seconds']:.0f}"
        for metric, scores in row["scores"].items():
            figures = (f"{100 * scores[name]:.2f}" for name in ("mean", "deviation"))
            table.add_row(*first, metric, *figures, str(len(scores["seeds"])), last)
            first, last = ("", ""), ""
    console = Console(highlight=False, markup=False)
    console.print(table)
    console.print(f"average of {len(tasks)} tasks: {100 * average:.2f}")
