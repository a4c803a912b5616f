"""Long documents: truncations of a text, and windows with poolings, in one table.

    python benchmarks/long_documents.py --data movie_reviews.zip --seeds 0 1 2       # hours
    python benchmarks/long_documents.py --data movie_reviews.zip --rows 64 --test_rows 32 \\
        --epochs 1                                                       # to see that it runs

All sides fine-tune the same MiniLM (six layers, 384 wide) on the same movie reviews of about 690
words, with AdamW with bias correction and gradients clipped to norm 1. A truncation keeps
`--sequence_length` tokens of a review; windows of this length cover the whole review. Of the six
values of `truncation`, "longest_first", "only_first", "only_second" and "head" keep the same tokens
of a single text, so "head" stands for all four. The peer is transformers, which has no windows, on
the head of a review. Each side runs in a process of its own. The data is `movie_reviews.zip` of
NLTK, with a text file for each review in the folders `pos` and `neg`.
"""

import argparse
import statistics
import sys
import time
import zipfile

from harness.result_tables import describe_run, describe_seeds, format_cells, format_table
from harness.side_flags import list_pairs, parse_training_flags
from harness.side_runs import report, run_in_turn
from peer_recipes import find_minilm, make_adamw, take_step

BATCH_SIZE = 8

#: The sides of ours that read one window of a review, and those that read them all.
TRUNCATIONS = ("head", "tail", "head_tail")
POOLINGS = ("mean", "max", "attention", "transformer", "mean, 2 windows in training")


def read_reviews(options):
    """((training texts, labels), (test texts, labels)): every fifth review is a test review."""
    with zipfile.ZipFile(options.data) as archive:
        names = sorted(name for name in archive.namelist() if name.endswith(".txt"))
        labels = [int("/pos/" in name) for name in names]
        texts = [archive.read(name).decode("utf-8", "replace") for name in names]
    test = [i for i in range(len(texts)) if i % 5 == 0]
    train = [i for i in range(len(texts)) if i % 5]
    parts = []
    for rows, wanted in ((train, options.rows), (test, options.test_rows)):
        rows = rows[:: max(1, len(rows) // wanted)][:wanted]
        parts.append(([texts[i] for i in rows], [labels[i] for i in rows]))
    return parts


def make_ours(side, options):
    import keras_bert_suite as kbs

    arguments = {"num_classes": 2, "sequence_length": options.sequence_length}
    if side in TRUNCATIONS:
        classifier = kbs.TextClassifier.from_preset(find_minilm(), **arguments)
        classifier.preprocessor.truncation = side
        return classifier
    window_pooling = {
        "attention": kbs.AttentionPooling,
        "transformer": lambda: kbs.WindowTransformer(num_heads=12),
        "max": lambda: "max",
    }.get(side, lambda: "mean")()
    return kbs.DocumentClassifier.from_preset(
        find_minilm(),
        **arguments,
        window_pooling=window_pooling,
        training_windows=2 if "2 windows" in side else None,
    )


def run_ours(side, options, train, test):
    """(seconds of the training, seconds of the test, predicted classes)."""
    import keras

    import keras_bert_suite as kbs

    keras.utils.set_random_seed(options.seed)
    classifier = make_ours(side, options)
    schedule = kbs.LinearWarmupDecay(options.learning_rate)
    classifier.compile(kbs.AdamW(schedule, bias_correction=True))
    begin = time.perf_counter()
    classifier.fit(*train, batch_size=BATCH_SIZE, epochs=options.epochs, verbose=0)
    end = time.perf_counter()
    classes = classifier.predict(test[0], batch_size=BATCH_SIZE, verbose=0).argmax(-1)
    return end - begin, time.perf_counter() - end, classes


def run_transformers(options, train, test):
    """As `run_ours`."""
    import numpy as np
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    torch.manual_seed(options.seed)
    rng = np.random.default_rng(options.seed)
    tokenizer = AutoTokenizer.from_pretrained(find_minilm())
    model = AutoModelForSequenceClassification.from_pretrained(find_minilm(), num_labels=2)
    num_steps = -(-len(train[0]) // BATCH_SIZE) * options.epochs
    adamw = make_adamw(model, options.learning_rate, num_steps)

    def pack(rows, texts):
        return tokenizer(
            [texts[row] for row in rows],
            truncation=True,
            max_length=options.sequence_length,
            padding=True,
            return_tensors="pt",
        )

    def split(rows):
        return np.array_split(rows, range(BATCH_SIZE, len(rows), BATCH_SIZE))

    begin = time.perf_counter()
    model.train()
    for _ in range(options.epochs):
        for rows in split(rng.permutation(len(train[0]))):
            labels = torch.tensor([train[1][row] for row in rows])
            take_step(model, model(**pack(rows, train[0]), labels=labels).loss, *adamw)
    end = time.perf_counter()
    model.eval()
    with torch.inference_mode():
        logits = [model(**pack(rows, test[0])).logits for rows in split(np.arange(len(test[0])))]
    return end - begin, time.perf_counter() - end, torch.cat(logits).argmax(-1).numpy()


def run_side(side, options):
    """Measures one side in this process and prints the figures as JSON."""
    train, test = read_reviews(options)
    if side == "transformers, head":
        fit_seconds, predict_seconds, classes = run_transformers(options, train, test)
    else:
        fit_seconds, predict_seconds, classes = run_ours(side, options, train, test)
    figures = {
        "accuracy": statistics.mean(int(c) == y for c, y in zip(classes, test[1], strict=True)),
        "fit": len(train[0]) * options.epochs / fit_seconds,
        "predict": len(test[0]) / predict_seconds,
    }
    report(figures)


def main():
    sides = ["transformers, head", *TRUNCATIONS, *POOLINGS]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True, help="path of movie_reviews.zip")
    parser.add_argument("--rows", type=int, default=1600)
    parser.add_argument("--test_rows", type=int, default=400)
    parser.add_argument("--sequence_length", type=int, default=128)
    options = parse_training_flags(parser, sides, ["torch"], 3, 5e-5)
    if options.child:
        run_side(options.child, options)
        return

    pairs = list_pairs(options.sides, options.backends, peers=["transformers, head"])
    measured = run_in_turn(sys.argv, pairs, [["--seed", seed] for seed in options.seeds])
    columns = {"fit": "{:.1f}", "predict": "{:.1f}", "memory, GB": "{:.2f}"}
    rows = [
        [*pair, *describe_seeds(figures["accuracy"]), *format_cells(figures, columns)]
        for pair, figures in measured.items()
    ]
    print(f"{describe_run(measured, len(options.seeds), ['transformers'])}\n")
    print("Accuracy on the test documents; documents/s.\n")
    headings = ["side", "backend", "accuracy of each seed", "mean", "spread"]
    print(format_table([*headings, *columns], rows))


if __name__ == "__main__":
    main()
