"""Measure how fast this machine trains and predicts with a BERT, by backend.

A classifier is trained on random rows of `--length` tokens without padding, and then predicts them.
Each backend that is installed, or `--backend` alone, runs with each precision in a process of its
own, in turn, `--rounds` times. The figures are medians over the rounds, with the lowest and the
highest. They stand beside the speed of a product of two large matrices in the same process: a
model cannot be faster than its products. The result is a table in Markdown.

Example:
  keras-bert benchmark --size mini

  keras-bert benchmark --checkpoint path/to/checkpoint --backend torch \\
      --dtypes float32,mixed_bfloat16 --length 512 --batch_size 16 --output speeds.md
"""

import importlib.metadata
import importlib.util
import json
import os
import platform
import statistics
import subprocess
import sys
from pathlib import Path

from absl import flags

from .backend import BACKENDS
from .command_flags import DTYPES, SIZES, UsageError, define_path
from .model_paths import check_model
from .prepare import count_cores

REQUIRED = ()

#: The vector instructions that matter for products, as Linux names them.
INSTRUCTIONS = ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_bf16", "asimd", "bf16")

#: The columns of the table: a figure, its heading, its format.
COLUMNS = (
    ("fit", "`fit`, rows/s", "{:,.1f}"),
    ("fit_share", "of the peak", "{:.0%}"),
    ("predict", "`predict`, rows/s", "{:,.1f}"),
    ("predict_share", "of the peak", "{:.0%}"),
    ("first_step", "first step, s", "{:.1f}"),
    ("memory", "memory, GB", "{:.1f}"),
    ("peak", "peak, TFLOP/s", "{:.2f}"),
)


def define_flags(values):
    """Defines the flags of this command."""
    explanation = "Size of a BERT with random weights."
    flags.DEFINE_enum("size", "mini", SIZES, explanation, flag_values=values)
    explanation = "Folder of a checkpoint or preset, or hf://..., in place of --size."
    define_path(values, "checkpoint", None, explanation)
    explanation = f"Precisions, some of {', '.join(DTYPES)}."
    flags.DEFINE_list("dtypes", ["float32"], explanation, flag_values=values)
    flags.DEFINE_integer("batch_size", 32, "Rows in a step.", 1, flag_values=values)
    flags.DEFINE_integer("length", 128, "Tokens in a row.", 2, flag_values=values)
    explanation = "Steps that are timed, after as many that are not."
    flags.DEFINE_integer("steps", 10, explanation, 1, flag_values=values)
    flags.DEFINE_integer("rounds", 3, "Processes for each line.", 1, flag_values=values)
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
    sides = [(name, dtype) for name in _find_backends(values) for dtype in values.dtypes]
    runs = {side: [] for side in sides}
    for number in range(values.rounds):
        for side in sides:
            runs[side].append(_measure(values, *side))
            print(f"round {number + 1} of {values.rounds}: {', '.join(side)}", file=sys.stderr)
    report = format_report(values, runs)
    print(report)
    if values.output:
        Path(values.output).write_text(report + "\n", encoding="utf-8")


def format_report(values, runs):
    """The Markdown of a benchmark.

    Args:
        values: the flags.
        runs: dict, (backend, dtype) -> list of dicts from `speed_process.measure`.
    """
    model = values.checkpoint or f"BERT-{values.size}"
    lines = [
        f"{model}, {values.batch_size} rows of {values.length} tokens without padding; medians of "
        f"{values.rounds} rounds (lowest to highest).",
        "",
        f"{describe_machine(runs)}. {_describe_versions(runs)}.",
        "",
        "| backend | precision | " + " | ".join(heading for _, heading, _ in COLUMNS) + " |",
        "| --- " * (2 + len(COLUMNS)) + "|",
    ]
    for side, taken in runs.items():
        cells = [_describe(name, form, taken) for name, _, form in COLUMNS]
        lines.append(f"| {' | '.join((*side, *cells))} |")
    return "\n".join(lines)


def _describe(name, form, taken):
    figures = [figures[name] for figures in taken]
    if None in figures:
        return ""
    low, middle, high = min(figures), statistics.median(figures), max(figures)
    spread = f" ({form.format(low)} to {form.format(high)})" if len(figures) > 1 else ""
    return form.format(middle) + spread


def describe_machine(runs):
    """The accelerator, or the cores and the vector instructions of the processor."""
    devices = {figures["device"] for taken in runs.values() for figures in taken}
    accelerators = sorted(device for device in devices if device)
    name, known = platform.processor() or platform.machine(), []
    table = Path("/proc/cpuinfo")
    if table.exists():
        lines = table.read_text(encoding="utf-8", errors="replace").splitlines()
        fields = dict(reversed([line.partition(":")[::2] for line in lines if ":" in line]))
        fields = {key.strip(): value.strip() for key, value in fields.items()}
        name = fields.get("model name", name)
        words = (fields.get("flags") or fields.get("Features") or "").split()
        known = [word for word in INSTRUCTIONS if word in words]
    processor = f"{count_cores()} cores of {name}" + (f" ({', '.join(known)})" if known else "")
    return ", ".join([*accelerators, processor])


def _describe_versions(runs):
    names = ["keras", *dict.fromkeys(backend for backend, _ in runs)]
    return ", ".join(f"{name} {importlib.metadata.version(name)}" for name in names)


def _find_backends(values):
    wanted = [values.backend] if values.backend else BACKENDS
    found = [name for name in wanted if importlib.util.find_spec(name)]
    if not found:
        raise ImportError(f"{' and '.join(wanted)} cannot be imported. Install one: pip install.")
    return found


def _measure(values, backend, dtype):
    """The figures of one process."""
    names = ("size", "checkpoint", "batch_size", "length", "steps")
    settings = {"dtype": dtype, **{name: getattr(values, name) for name in names}}
    process = subprocess.run(
        [sys.executable, "-m", "keras_bert_cli.speed_process", json.dumps(settings)],
        # Without the folder of compiled steps, or the first step would be that of a second run.
        env={**os.environ, "KERAS_BACKEND": backend, "JAX_COMPILATION_CACHE_DIR": ""},
        capture_output=True,
        text=True,
    )
    lines = process.stdout.strip().splitlines()
    if process.returncode or not lines:
        problem = [line for line in process.stderr.strip().splitlines() if line.strip()]
        raise RuntimeError(f"{backend}, {dtype}: {problem[-1] if problem else 'it was killed'}")
    return json.loads(lines[-1])
