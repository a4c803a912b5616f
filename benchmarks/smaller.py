"""A served classifier made smaller in steps: milliseconds and megabytes beside the accuracy.

    python benchmarks/smaller.py --data DATA
    python benchmarks/smaller.py --data DATA --rows 64 --dev_rows 32    # to see that it runs

MiniLM (six layers, 384 wide) is fine-tuned on SST-2, and then loses in turn:

- `3 layers`: every other layer (`keep_layers`);
- `heads, units`: a share of the attention heads and of the feed-forward units, those that the loss
  needs least (`prune_heads`, `prune_feed_forward`);
- `tokens`: the tokens that the training texts do not have (`trim_vocabulary`, `keep_tokens`);
- `rank`: the table of tokens becomes a product of two narrow matrices (`factorize_embeddings`);
- `int8`: the matrices become 8-bit integers (`quantize`);
- `int8, ONNX`: the matrices of `rank` and their products in 8-bit integers, by ONNX Runtime
  (`export_onnx`).

After each step but `tokens` and `int8` the model is fine-tuned again as before. Each model but the
last is exported as a SavedModel. The exports answer the same dev texts in turn, one by one and 32
at a time, as strings; a first round is not counted. The accuracy is that of the export, of all dev
rows. MB are millions of bytes of its folder.
"""

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import keras
from harness.machine_figures import describe_processor
from harness.result_tables import format_table
from peer_recipes import find_minilm
from text_classification import read_task

import keras_bert_suite as kbs

BATCH_SIZES = (1, 32)


def train(classifier, rows, options):
    classifier.compile(kbs.AdamW(kbs.LinearWarmupDecay(options.learning_rate)))
    classifier.fit(rows.x, rows.y, batch_size=32, epochs=options.epochs, verbose=0)


def list_steps(options, rows):
    """Pairs of the name of a step, and a function from a classifier to a smaller one."""
    importance = rows.take(options.importance_rows)

    def prune(classifier):
        classifier = classifier.prune_heads(importance.x, importance.y, share=options.heads)
        classifier.compile()
        return classifier.prune_feed_forward(importance.x, importance.y, share=options.units)

    def trim(classifier):
        tokenizer = classifier.preprocessor.tokenizer
        texts = rows.x if isinstance(rows.x, list) else next(iter(rows.x.values()))
        tokens = kbs.trim_vocabulary(tokenizer, list(texts), keep_characters=True)
        return classifier.keep_tokens(tokens)

    def quantize(classifier):
        classifier = classifier.keep_layers(range(classifier.backbone.num_layers))
        classifier.quantize("int8")
        return classifier

    return [
        ("3 layers", lambda classifier: classifier.keep_layers([0, 2, 4])),
        ("heads, units", prune),
        ("tokens", trim),
        ("rank", lambda classifier: classifier.factorize_embeddings(options.rank)),
        ("int8", quantize),
    ]


def make_sides(task, options):
    """Yields the name of each model, the model, and a function that exports and opens it."""
    keras.utils.set_random_seed(options.seed)
    rows = task.train.take(options.rows)
    classifier = kbs.TextClassifier.from_preset(
        options.checkpoint or find_minilm(),
        sequence_length=options.sequence_length,
        label_names=task.label_names,
    )
    train(classifier, rows, options)
    yield "6 layers", classifier, open_saved_model
    for name, shrink in list_steps(options, rows):
        classifier = shrink(classifier)
        if name not in ("tokens", "int8"):
            train(classifier, rows, options)
        yield name, classifier, open_saved_model
        if name == "rank":
            whole = classifier
    yield "int8, ONNX", whole, open_onnx


def open_onnx(classifier, path):
    kbs.export_onnx(classifier, path, "int8")
    return kbs.open_runtime(path).predict_labels


def open_saved_model(classifier, path):
    import tensorflow as tf

    from keras_bert_cli.ask_saved_model import load_text_ops

    kbs.export_saved_model(classifier, path, verbose=0)
    load_text_ops(tf)
    model = tf.saved_model.load(str(path))
    answer = model.signatures["serving_default"]
    (name,) = answer.structured_input_signature[1]
    # The function goes with the model that owns its variables.
    return lambda texts, owner=model: [
        label.decode() for label in answer(**{name: tf.constant(texts)})["labels"].numpy()
    ]


def measure(sides, texts, rounds):
    """dict of (name of a side, batch size) -> median milliseconds of a batch."""
    times = {}
    for size in BATCH_SIZES:
        batches = [texts[i : i + size] for i in range(0, len(texts), size)]
        seconds = {name: [] for name in sides}
        for number in range(rounds + 1):
            for name, run in sides.items():
                begin = time.perf_counter()
                for batch in batches:
                    run(batch)
                if number:
                    seconds[name].append((time.perf_counter() - begin) / len(batches))
        for name, found in seconds.items():
            times[name, size] = 1000 * statistics.median(found)
    return times


def draw(figures, path):
    """Draws the milliseconds of one text, the megabytes and the accuracy of each model as bars."""
    from keras_bert_suite.pictures import Picture

    figure = Picture(figsize=(9, 3), layout="constrained")
    accuracies, *costs = zip(*figures.values(), strict=True)
    columns = {
        "ms, one text": costs[0],
        "MB of the export": costs[2],
        "accuracy, %": [100 * accuracy for accuracy in accuracies],
    }
    every_axes = figure.subplots(1, len(columns), sharey=True)
    for axes, (label, values) in zip(every_axes, columns.items(), strict=True):
        bars = axes.barh(list(figures), values, color="#0072b2")
        axes.bar_label(bars, fmt="%.1f", padding=3)
        axes.set(xlabel=label, xlim=(0, 1.25 * max(values)))
        axes.spines[["top", "right"]].set_visible(False)
    every_axes[0].invert_yaxis()
    figure.write(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("data"))
    parser.add_argument("--checkpoint", default="", help="Default: MiniLM.")
    parser.add_argument("--rows", type=int, default=3000, help="Training rows.")
    parser.add_argument("--dev_rows", type=int, default=872)
    parser.add_argument("--timed_rows", type=int, default=96, help="Dev rows that are timed.")
    parser.add_argument("--importance_rows", type=int, default=256)
    parser.add_argument("--heads", type=float, default=0.3, help="Share of the heads that go.")
    parser.add_argument("--units", type=float, default=0.5, help="Share of the units that go.")
    parser.add_argument("--rank", type=int, default=128)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--sequence_length", type=int, default=64)
    parser.add_argument("--learning_rate", type=float, default=5e-5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--figure", help="PNG of costs over accuracy, to be written")
    options = parser.parse_args()
    task = read_task("sst2", options.data)
    dev = task.dev.take(options.dev_rows)
    texts = list(dev.x if isinstance(dev.x, list) else next(iter(dev.x.values())))
    sides, megabytes, parameters = {}, {}, {}
    with tempfile.TemporaryDirectory() as folder:
        for name, classifier, export in make_sides(task, options):
            path = Path(folder) / name / "1"
            sides[name] = export(classifier, path)
            files = [file for file in path.rglob("*") if file.is_file()]
            megabytes[name] = sum(file.stat().st_size for file in files) / 1e6
            parameters[name] = classifier.count_params()
            print(f"{name} is exported.", flush=True)
        times = measure(sides, texts[: options.timed_rows], options.rounds)
        figures = {}
        for name, run in sides.items():
            answers = [label for i in range(0, len(texts), 32) for label in run(texts[i : i + 32])]
            accuracy = sum(a == b for a, b in zip(answers, dev.y, strict=True)) / len(answers)
            costs = [*(times[name, size] for size in BATCH_SIZES), megabytes[name]]
            figures[name] = (accuracy, *costs)
    print(f"\n{describe_processor()}, trained with {keras.config.backend()}.\n")
    lines = [
        [name, f"{parameters[name]:,}", *(f"{cost:.2f}" for cost in costs), f"{accuracy:.4f}"]
        for name, (accuracy, *costs) in figures.items()
    ]
    headings = ["model", "parameters", "ms, 1 text", "ms, 32 texts", "MB", "accuracy"]
    print(format_table(headings, lines))
    if options.figure:
        draw(figures, options.figure)


if __name__ == "__main__":
    main()
