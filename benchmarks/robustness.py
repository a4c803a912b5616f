"""Robustness of the demo's model over noise, before and after a training with noise.

    nice -n 5 python benchmarks/robustness.py --output benchmarks/results/robustness.json

MiniLM learns the 2,400 review sentences of examples/data by the recipe of examples/demo.py, once
plainly, and once with typing errors in half of the rows of each epoch: `AugmentedRows` with
`TextNoise(["keyboard", "swap", "delete", "insert"])`. Then the 600 test sentences get each kind of
noise, those that the second training has not seen among them, and a sample of the sentences is
attacked. Writes the reports as JSON, and the picture of the README. Prints the tables of
results/robustness.md.
"""

import argparse
import dataclasses
import json
import time
from pathlib import Path

import keras
from harness.machine_figures import describe_processor
from harness.result_tables import format_table
from peer_recipes import find_minilm

import keras_bert_suite as kbs

REPOSITORY = Path(__file__).resolve().parents[1]
DATA = REPOSITORY / "examples" / "data"
TYPING = ["keyboard", "swap", "delete", "insert"]
#: Insertions are most of the misspellings of a word, and take most of the time.
FEW = ["swap", "delete", "keyboard"]


def train(train, options, with_noise):
    """(classifier, processor seconds of its training)."""
    keras.utils.set_random_seed(options.seed)
    classifier = kbs.TextClassifier.from_preset(
        find_minilm(), label_names=train.label_names, sequence_length=128
    )
    rate = kbs.LinearWarmupDecay(1e-4)
    classifier.compile(optimizer=kbs.AdamW(rate, bias_correction=True))
    share = options.share if with_noise else 0.0
    noise = kbs.TextNoise(TYPING, rate=options.rate)
    rows = kbs.AugmentedRows(train.x, train.y, noise, 32, share=share, seed=options.seed)
    begin = time.process_time()
    classifier.fit(rows, epochs=options.epochs, verbose=2)
    return classifier, time.process_time() - begin


def open_or_train(name, rows, options, with_noise):
    """As `train`; a model that is in `--models` is not trained again."""
    path = options.models and options.models / f"{name.replace(' ', '_')}.keras"
    if path and path.exists():
        return keras.saving.load_model(path), 0.0
    classifier, seconds = train(rows, options, with_noise)
    if path:
        path.parent.mkdir(parents=True, exist_ok=True)
        classifier.save(path)
    return classifier, seconds


def list_edits(name, report):
    """The cells of a row: the accuracy on the attacked rows with no, one and two misspellings."""
    (attempts,) = (a.attempts for a in report.attacks if a.name.startswith("misspellings: 2"))
    shares = (
        sum(not a.is_flipped or (a.queries > 1 and a.changed_words > edits) for a in attempts)
        for edits in range(3)
    )
    return [name, *(f"{share / len(attempts):.3f}" for share in shares)]


def measure(classifier, test, options):
    """(`RobustnessReport`, processor seconds)."""
    begin = time.process_time()
    attacks = (
        (kbs.DeepWordBug(), options.attacked_rows),
        (kbs.MisspellingAttack(2, kinds=FEW), options.misspelt_rows),
        (kbs.MisspellingAttack(1), options.misspelt_rows),
    )
    report = kbs.robustness(
        classifier, test.x, test.y, rates=options.rates, seeds=options.seeds, batch_size=64
    )
    clean = {report.metric: report.clean}
    for attack, rows in attacks:
        found = kbs.robustness(
            classifier,
            test.x,
            test.y,
            kinds=[],
            attacks=[attack],
            attacked_rows=rows,
            seeds=options.seeds,
            batch_size=64,
            score=lambda x: clean,  # It is known by now.
        )
        report = dataclasses.replace(report, attacks=(*report.attacks, *found.attacks))
    return report, time.process_time() - begin


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--rate", type=float, default=0.1, help="of the noise in the training")
    parser.add_argument("--share", type=float, default=0.5, help="of the rows with noise")
    parser.add_argument("--rates", type=float, nargs="+", default=[0.1])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--attacked_rows", type=int, default=40)
    parser.add_argument("--misspelt_rows", type=int, default=20, help="hundreds of queries each")
    parser.add_argument("--seed", type=int, default=0, help="of the trainings")
    parser.add_argument("--models", type=Path, help="folder that keeps the trained models")
    parser.add_argument("--output", type=Path, help="file for the reports, as JSON")
    parser.add_argument("--png", type=Path, help="file for the picture")
    options = parser.parse_args()
    rows, test = (
        kbs.read_table(DATA / f"sentences_{part}.tsv", "sentence", "label")
        for part in ("train", "test")
    )
    reports, seconds = {}, []
    for name, with_noise in (("plain", False), ("trained with noise", True)):
        classifier, training = open_or_train(name, rows, options, with_noise)
        reports[name], measuring = measure(classifier, test, options)
        seconds.append([name, f"{training:.0f}", f"{measuring:.0f}"])
        print(f"\n{name}\n\n{reports[name]}", flush=True)
    if options.output:
        content = {name: report.to_dict() for name, report in reports.items()}
        options.output.write_text(json.dumps(content, indent=1) + "\n", "utf-8")
    if options.png:
        kbs.plot_robustness(reports, options.png)
    titles = ["side", "no misspelling", "the worst one", "the worst two"]
    print(f"\n{format_table(titles, [list_edits(*item) for item in reports.items()])}")
    print(f"\n{describe_processor()}\n")
    print(
        format_table(["side", "processor seconds of the training", "of the measurement"], seconds)
    )


if __name__ == "__main__":
    main()
