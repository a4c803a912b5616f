"""The memory of a server that gets one long text.

    python benchmarks/long_requests.py
    python benchmarks/long_requests.py --words 20 2000 --kinds entities

A server answers a text of a few words, and then longer texts, each alone in its request. The table
has the most memory that the process had so far, after each text. The model has the size of MiniLM
(six layers, 384 wide) and rows of 384 tokens, with random weights. Every kind of task that cuts
texts into windows is measured, each in a process of its own, which loads the SavedModel with
TensorFlow and its text ops alone.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

os.environ["KERAS_BACKEND"] = "tensorflow"

from harness.result_tables import describe_run, format_table

KINDS = ("entities", "chains", "entity spans", "questions")
WORDS = "the river flows from paris to berlin and ada lovelace wrote of it in london".split()
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *dict.fromkeys(WORDS)]


def make_task(kind):
    """A task with random weights."""
    import keras

    import keras_bert_suite as kbs

    keras.utils.set_random_seed(0)
    backbone = kbs.BertBackbone(
        vocabulary_size=len(VOCABULARY),
        num_layers=6,
        num_heads=12,
        hidden_dim=384,
        intermediate_dim=1536,
        max_sequence_length=384,
    )
    packer = kbs.SegmentPacker(kbs.WordPieceTokenizer(VOCABULARY), sequence_length=384)
    labels = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
    if kind == "entities":
        return kbs.TokenClassifier(backbone, label_names=labels, preprocessor=packer)
    if kind == "chains":
        return kbs.CrfTokenClassifier(backbone, label_names=labels, preprocessor=packer)
    if kind == "entity spans":
        return kbs.EntitySpanClassifier(backbone, label_names=["PER"], preprocessor=packer)
    return kbs.QuestionAnswerer(backbone, preprocessor=packer)


def answer(path, kind, words):
    """Yields (seconds, bytes): the time of each text, and the most memory so far."""
    import tensorflow as tf
    import tensorflow_text  # noqa: F401

    model = tf.saved_model.load(path)  # The signatures live as long as the model.
    serve = model.signatures["serving_default"]
    for number in words:
        text = tf.constant([" ".join(WORDS[n % len(WORDS)] for n in range(number))])
        texts = {"question": tf.constant(["who wrote"]), "context": text}
        start = time.perf_counter()
        serve(**(texts if kind == "questions" else {"text": text}))
        seconds = time.perf_counter() - start
        yield seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def measure(kind, words):
    """list of [seconds, bytes], from a process of its own."""
    import keras_bert_suite as kbs

    with tempfile.TemporaryDirectory() as folder:
        names = ["question", "context"] if kind == "questions" else ["text"]
        path = kbs.export_saved_model(make_task(kind), Path(folder) / "model", inputs=names)
        arguments = [__file__, "--answer", str(path), "--kinds", kind, "--words", *map(str, words)]
        printed = subprocess.check_output([sys.executable, *arguments])
    return json.loads(printed.splitlines()[-1])


def main():
    """Prints the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--words", nargs="+", type=int, default=[20, 300, 2000, 20_000, 60_000])
    parser.add_argument("--kinds", nargs="+", default=KINDS, choices=KINDS)
    parser.add_argument("--answer", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.answer:
        print(json.dumps(list(answer(options.answer, *options.kinds, options.words))))
        return
    table = []
    for kind in options.kinds:
        for number, (seconds, memory) in zip(
            options.words, measure(kind, options.words), strict=True
        ):
            table.append([kind, f"{number:,}", f"{seconds:.2f}", f"{memory / 1e9:.2f}"])
    print(f"{describe_run({}, 1, ['tensorflow'])}\n")
    print(format_table(["task", "words", "seconds", "most memory, GB"], table))


if __name__ == "__main__":
    main()
