"""The losses of `keras-bert pretrain` by objectives, and runs that were stopped and resumed.

    keras-bert vocab --input 'enwiki_small/*.jsonl' --output vocab.txt --size 2000
    keras-bert prepare --input 'enwiki_small/*.jsonl' --vocab vocab.txt --output shards
    python benchmarks/pretraining_curves.py --corpus shards --xlnet_corpus pieces --output runs \\
        --minutes 5 --figure curves.png
    python benchmarks/pretraining_curves.py --corpus shards --xlnet_corpus pieces --stop \\
        --output stopped

"permutation" reads a second corpus, of the same texts in the pieces of an XLNet. SentencePiece
learns them with `control_symbols="<cls>,<sep>,<pad>,<mask>,<eod>"`, `user_defined_symbols="<eop>"`
and `unk_id=0, bos_id=1, eos_id=2`, and `keras-bert prepare` reads its model.

A tiny model learns by each objective from batches of 32 rows of 64 tokens, without dropout and with
larger initial weights, as in `objectives.py`. A run has as many steps as fit into --minutes, at the
speed of a first run of 40 steps. The losses are of documents that are held out, in nats for a
token. Each objective has other tokens to guess, so a curve is compared with itself alone.

With --stop, a run of 40 steps gets SIGTERM after step 20, and the same command resumes it. Beside
it is a run that nobody stops. The files of both last checkpoints, with the weights and the state of
the optimizer, are compared byte by byte, and so are the losses in both logs.
"""

import argparse
import csv
import filecmp
import signal
import subprocess
import sys
import time
from pathlib import Path

import keras
from harness.result_tables import describe_run, format_table

OBJECTIVES = ["permutation", "denoising", "mass", "left_to_right", "bidirectional_language_model"]
BATCH_SIZE, LENGTH = 32, 64
FLAGS = [
    *("--size", "tiny", "--dropout", "0", "--initializer_range", "0.05"),
    *("--batch_size", str(BATCH_SIZE), "--sequence_length", str(LENGTH)),
    *("--learning_rate", "0.001", "--evaluation_batches", "10"),
]
#: Lines in the log of a run.
LINES = 20
#: Paul Tol chose these colours so that the colour-blind tell them apart.
STYLES = [
    ("#4477aa", "-"),
    ("#cc3311", "--"),
    ("#ddaa33", "-."),
    ("#009988", ":"),
    ("#777777", (0, (5, 1))),
]


def run(objective, options, folder, steps, report_every, stop_at=None):
    """Runs `keras-bert pretrain`, and returns its seconds.

    Args:
        objective: str.
        options: of the command line.
        folder: path of the run.
        steps, report_every: int.
        stop_at: int, the step after which the run gets SIGTERM, or None.
    """
    corpus = options.xlnet_corpus if objective == "permutation" else options.corpus
    command = [sys.executable, "-m", "keras_bert_cli", "pretrain", "--corpus", corpus]
    command += ["--objective", objective, *FLAGS, "--output", str(folder)]
    command += ["--steps", str(steps), "--report_every", str(report_every)]
    command += ["--warmup_steps", str(steps // 10)]
    begin = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    lines = []
    for line in process.stdout:
        lines.append(line)
        if stop_at is not None and line.startswith(f"step {stop_at}/"):
            process.send_signal(signal.SIGTERM)
    status = process.wait()
    if status != (0 if stop_at is None else 128 + signal.SIGTERM):
        raise RuntimeError(f"{' '.join(command)} ended with {status}:\n{''.join(lines[-20:])}")
    return time.perf_counter() - begin


def read_log(folder):
    """list of dicts, the lines of the log of a run."""
    with open(folder / "log.csv", newline="") as file:
        return list(csv.DictReader(file))


def measure_curve(objective, options):
    """The cells of the run of an objective."""
    pilot = options.output / f"{objective}_pilot"
    run(objective, options, pilot, steps=40, report_every=20)
    speed = float(read_log(pilot)[-1]["tokens/s"]) / (BATCH_SIZE * LENGTH)
    steps = max(1, round(60 * options.minutes * speed / LINES)) * LINES
    seconds = run(objective, options, options.output / objective, steps, steps // LINES)
    losses = [float(row["val_loss"]) for row in read_log(options.output / objective)]
    places = (0, len(losses) // 2 - 1, -1)
    return [objective, str(steps), f"{seconds / 60:.1f}", *(f"{losses[p]:.3f}" for p in places)]


def compare_stopped(objective, options):
    """The cells that say whether a run that was stopped ends as one that was not."""
    whole, stopped = (options.output / f"{objective}_{name}" for name in ("whole", "stopped"))
    run(objective, options, whole, steps=40, report_every=10)
    run(objective, options, stopped, steps=40, report_every=10, stop_at=20)
    lines = len(read_log(stopped))
    run(objective, options, stopped, steps=40, report_every=10)
    logs = [
        [{name: value for name, value in row.items() if name != "tokens/s"} for row in read_log(f)]
        for f in (whole, stopped)
    ]
    last = [folder / "checkpoints" / "step-00000040" for folder in (whole, stopped)]
    names = sorted(path.name for path in last[0].iterdir())
    differ = [name for name in names if not filecmp.cmp(*(f / name for f in last), shallow=False)]
    size = sum(path.stat().st_size for path in last[0].iterdir())
    same = ("no", "yes")
    return [
        objective,
        str(lines),
        same[logs[0] == logs[1]],
        f"{size:,}",
        same[not differ] + (f": {', '.join(differ)}" if differ else ""),
    ]


def draw_curves(options):
    """Draws the losses of the runs in a folder over their steps."""
    from keras_bert_suite.pictures import Picture

    figure = Picture(figsize=(6, 3.6), layout="constrained")
    axes = figure.subplots()
    for objective, (color, style) in zip(options.objectives, STYLES, strict=False):
        rows = read_log(options.output / objective)
        steps, losses = ([float(row[name]) for row in rows] for name in ("step", "val_loss"))
        label = f"{objective.replace('_', ' ')}, {losses[-1]:.2f} at the end"
        axes.plot(steps, losses, linewidth=2.5, color=color, linestyle=style, label=label)
    axes.set(xlabel="step", title="Loss of held-out documents", xlim=0)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="#dddddd")
    axes.legend(frameon=False, fontsize="small")
    figure.write(options.figure)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--corpus", required=True, help="folder that keras-bert prepare wrote")
    parser.add_argument("--xlnet_corpus", help="the same, in the pieces of an XLNet")
    parser.add_argument("--output", type=Path, required=True, help="folder of the runs")
    parser.add_argument("--objectives", nargs="+", default=OBJECTIVES)
    parser.add_argument("--minutes", type=float, default=5.0, help="of each run")
    parser.add_argument("--figure", help="PNG of the losses, to be written")
    parser.add_argument("--stop", action="store_true", help="stop runs and resume them")
    options = parser.parse_args()
    if "permutation" in options.objectives and options.xlnet_corpus is None:
        parser.error("permutation needs --xlnet_corpus. Or name other --objectives.")
    options.output.mkdir(parents=True, exist_ok=True)
    headings = ["objective", "steps", "minutes", "first line of the log", "middle", "end"]
    measure = measure_curve
    if options.stop:
        headings = ["objective", "lines of the log when stopped", "same log"]
        headings += ["bytes of the checkpoint", "same checkpoint"]
        measure = compare_stopped
    rows = []
    for objective in options.objectives:
        rows.append(measure(objective, options))
        print(*rows[-1], sep="  ", file=sys.stderr)
    print(f"{describe_run({}, 1, [keras.config.backend()])}\n\n{format_table(headings, rows)}")
    if options.figure:
        draw_curves(options)


if __name__ == "__main__":
    main()
