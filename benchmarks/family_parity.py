"""How far every model of the family is from transformers, with the same random weights.

    python benchmarks/family_parity.py                    # all models, three backends
    python benchmarks/family_parity.py --backends torch --models xlnet bart

The models are small, and their weights are as large as those of trained models. Each backend runs
in a process of its own. NEZHA, which transformers no longer has, is compared in
`tests/models/test_nezha.py` with what an older version computed.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from harness.result_tables import describe_run, format_table
from harness.side_flags import BACKENDS
from harness.side_runs import report, run_in_turn

TESTS = Path(__file__).resolve().parents[1] / "tests"
COLUMNS = ["outputs", "gradients", "written back", "heads"]


def measure(models):
    """dict, "MODEL: FIGURE" -> float, of all models, or of some by their names."""
    sys.path.insert(0, str(TESTS))
    from family_differences import LIVING, compare_encoder, compare_head

    def with_folder(compare, *arguments):
        with tempfile.TemporaryDirectory() as folder:
            return compare(*arguments, Path(folder))

    figures = {}
    for name in models or LIVING:
        member = LIVING[name]
        outputs, gradients = with_folder(compare_encoder, member)
        figures[f"{name}: written back"] = outputs.pop("again")
        figures[f"{name}: outputs"] = max(outputs.values())
        figures[f"{name}: gradients"] = max(gradients.values())
        heads = [with_folder(compare_head, member, head) for head in member.heads]
        figures[f"{name}: heads"] = max(heads)
        figures[f"{name}: number of heads"] = len(heads)
    return figures


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--backends", nargs="+", default=BACKENDS, choices=BACKENDS)
    parser.add_argument("--models", nargs="+", default=[], help="by default all")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        report(measure(options.models))
        return
    measured = run_in_turn(sys.argv, [("ours", name) for name in options.backends], [[]])
    print("# The family beside transformers, with the same weights\n")
    print(describe_run(measured, 1, packages=["transformers"]))
    print(
        "\nLargest differences in float32. A gradient's is a share of its largest number. "
        "`written back`: the output of transformers' model that has read our checkpoint. `heads`: "
        "the outputs of every task that transformers has for the model; their number is in "
        "brackets. Every tensor of these checkpoints was read, and written back bit for bit.\n"
    )
    names = dict.fromkeys(
        name.partition(":")[0] for figures in measured.values() for name in figures if ":" in name
    )
    rows = []
    for name in names:
        for (_, backend), figures in measured.items():
            cells = [f"{figures[f'{name}: {column}'][0]:.0e}" for column in COLUMNS]
            cells[-1] += f" ({figures[f'{name}: number of heads'][0]})"
            rows.append([name, backend, *cells])
    print(format_table(["model", "backend", *COLUMNS], rows))


if __name__ == "__main__":
    main()
