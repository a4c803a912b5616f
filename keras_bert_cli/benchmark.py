"""Measure how fast this machine trains and predicts with a BERT, by backend.

A classifier is trained on random rows of `--length` tokens without padding, and then predicts them.
Each installed backend (or only `--backend`) runs with each precision, in a process of its own, in
turn, `--rounds` times. The result is a table in Markdown with medians over the rounds, and the
lowest and the highest figures.

The table also has the speed of a product of two large matrices in the same process. A model cannot
be faster than its matrix products, so this is its peak.

Example:
  keras-bert benchmark --size mini

  keras-bert benchmark --checkpoint path/to/checkpoint --backend torch \\
      --dtypes float32,mixed_bfloat16 --length 512 --batch_size 16 --output speeds.md
"""

import importlib.util
import json
from pathlib import Path

from absl import flags

from .backend import BACKENDS
from .command_flags import DTYPES, SIZES, UsageError, define_path
from .model_paths import check_model
from .result_tables import describe_run, format_columns
from .side_runs import run_in_turn

REQUIRED = ()

#: The columns of the table: a figure, its format.
COLUMNS = {
    "fit, rows/s": "{:,.1f}",
    "fit, of the peak": "{:.0%}",
    "predict, rows/s": "{:,.1f}",
    "predict, of the peak": "{:.0%}",
    "first step, s": "{:.1f}",
    "memory, GB": "{:.1f}",
    "peak, TFLOP/s": "{:.2f}",
}


def define_flags(values):
    """Defines the flags of this command."""
    explanation = "Size of a BERT with random weights."
    flags.DEFINE_enum("size", "mini", SIZES, explanation, flag_values=values)
    explanation = "Folder of a checkpoint or preset, or hf://..., in place of --size."
    define_path(values, "checkpoint", None, explanation)
    explanation = f"Precisions, some of {', '.join(DTYPES)}."
    flags.DEFINE_list("dtypes", ["float32"], explanation, flag_values=values)
    flags.DEFINE_integer("batch_size", 32, "Batch size, in rows.", 1, flag_values=values)
    flags.DEFINE_integer("length", 128, "Tokens in a row.", 2, flag_values=values)
    explanation = "Steps that are timed, after as many that are not."
    flags.DEFINE_integer("steps", 10, explanation, 1, flag_values=values)
    flags.DEFINE_integer(
        "rounds", 3, "Rounds. Each round runs a process for each line.", 1, flag_values=values
    )
    define_path(values, "output", None, "Markdown file to write the table to, too.")


def run(values):
    """Measures, prints, writes."""
    unknown = [dtype for dtype in values.dtypes if dtype not in DTYPES]
    if unknown or not values.dtypes:
        raise UsageError(f"--dtypes takes some of {', '.join(DTYPES)}, got {values.dtypes}")
    if values.checkpoint:
        check_model(values.checkpoint)
    if values.output and not Path(values.output).absolute().parent.is_dir():
        raise UsageError(f"--output {values.output}: there is no such folder")
    sides = [(dtype, name) for name in _find_backends(values) for dtype in values.dtypes]
    names = ("size", "checkpoint", "batch_size", "length", "steps")
    settings = json.dumps({name: getattr(values, name) for name in names})
    command = ["-m", "keras_bert_cli.speed_process", settings]
    report = format_report(values, run_in_turn(command, sides, [[]] * values.rounds))
    print(report)
    if values.output:
        Path(values.output).write_text(report + "\n", encoding="utf-8")


def format_report(values, measured):
    """The Markdown of a benchmark.

    Args:
        values: the flags.
        measured: dict, (precision, backend) -> figures of `speed_process.measure`, as
            `run_in_turn` returns it.
    """
    model = values.checkpoint or f"BERT-{values.size}"
    rows = f"{model}, {values.batch_size} rows of {values.length} tokens without padding."
    table = format_columns(measured, COLUMNS, ("precision", "backend"))
    return "\n\n".join([rows, describe_run(measured, values.rounds), table])


def _find_backends(values):
    wanted = [values.backend] if values.backend else BACKENDS
    found = [name for name in wanted if importlib.util.find_spec(name)]
    if not found:
        raise ImportError(f"{' and '.join(wanted)} cannot be imported. Install one: pip install.")
    return found
