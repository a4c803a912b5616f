"""The headline ratios in a quarter of an hour, beside those of the last committed run.

    python benchmarks/regressions.py            # before and after a change
    python benchmarks/regressions.py --write    # also keeps them for this kind of processor

Each ratio is ours to a peer, measured in turn by the benchmark that has the full table, with few
rows. A ratio above 1 means that ours is faster. Let nothing else run on the machine. A ratio that
lost more than a tenth is marked: run it again, and then the benchmark itself with three rounds.
"""

import argparse
import json
import statistics
import tempfile
from pathlib import Path

from harness.machine_figures import describe_processor
from harness.result_tables import format_table
from harness.side_flags import parse_flags
from harness.side_runs import run_in_turn

HERE = Path(__file__).resolve().parent
COMMITTED = HERE / "results" / "regressions.json"

GROUPED = ("transformers grouped", "torch")
ONE_THREAD = ("ONNX Runtime, one thread", "torch")

#: A benchmark with its arguments -> its ratios, name -> (ours, the peer, the figure, whether it is
#: a rate). A side is its name and its backend.
BENCHMARKS = {
    ("finetune.py",): {
        f"{work}, {backend}, beside transformers": (("ours", backend), GROUPED, work, True)
        for backend in ("tensorflow", "jax", "torch")
        for work in ("fit", "predict")
    },
    ("pretrain.py", "--sizes", "mini", "--steps", "10"): {
        "pretraining, torch, beside KerasHub": (
            *(("ours", "torch"), ("keras_hub", "torch")),
            *("sequences/s", True),
        )
    },
    ("serving.py", "--texts", "200"): {
        "one text served, beside ONNX Runtime": (
            *(("ours, one thread", "tensorflow"), ONE_THREAD),
            *("median ms, 1", False),
        ),
        "32 texts served, beside ONNX Runtime": (
            *(("ours", "tensorflow"), ("ONNX Runtime", "torch")),
            *("sentences/s, 32", True),
        ),
        "one text served, beside a pipeline": (
            *(("ours, one thread", "tensorflow"), ("transformers pipeline", "torch")),
            *("median ms, 1", False),
        ),
    },
}


def measure(command, ratios, rounds):
    """dict, name of a ratio -> its median over the rounds."""
    sides = list(dict.fromkeys(side for ours, peer, *_ in ratios.values() for side in (ours, peer)))
    measured = run_in_turn(command, sides, [[]] * rounds)
    found = {}
    for name, (ours, peer, figure, is_rate) in ratios.items():
        pairs = zip(measured[ours][figure], measured[peer][figure], strict=True)
        found[name] = statistics.median(a / b if is_rate else b / a for a, b in pairs)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--write", action="store_true", help=f"writes {COMMITTED.name}")
    options = parse_flags(parser, rounds=1)
    found = {}
    for (script, *arguments), ratios in BENCHMARKS.items():
        command = [str(HERE / script), *arguments]
        with tempfile.TemporaryDirectory() as folder:
            if script == "serving.py":
                command += ["--folder", folder]
                run_in_turn(command, [("models", "tensorflow")], [[]])
            found |= measure(command, ratios, options.rounds)

    processor = describe_processor().partition(" of ")[2]
    known = json.loads(COMMITTED.read_text()) if COMMITTED.exists() else {}
    before = known.get(processor, {})
    rows = []
    for name, ratio in found.items():
        lost = name in before and ratio < 0.9 * before[name]
        committed = f"{before[name]:.2f}" if name in before else ""
        rows.append([name, f"{ratio:.2f}", committed, "slower" if lost else ""])
    print(f"{processor}, medians of {options.rounds} rounds.\n")
    print(format_table(["ours / peer", "now", "committed", ""], rows))
    if options.write:
        known[processor] = {name: round(ratio, 3) for name, ratio in found.items()}
        COMMITTED.write_text(json.dumps(known, indent=1) + "\n")


if __name__ == "__main__":
    main()
