"""From raw text to masked batches: ours, and Google's create_pretraining_data.py.

    git clone https://github.com/google-research/bert
    python benchmarks/prepare.py --google=bert --corpus=enwiki.jsonl --vocabulary=vocab.txt

Both read the same file, which is made from the corpus first: a sentence in each line, and an empty
line between documents. Both make all batches of one pass, at 128 tokens with 20 predictions, on one
core. Ours runs `prepare_corpus` with one worker, and then reads all batches of an epoch. Google's
script runs in a process of its own under TensorFlow 2's compat.v1, with dupe_factor 1, and writes
TFRecords. `start` is the time of a script that only imports. Our shards serve every pass, Google's
TFRecords serve one.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from harness.result_tables import describe_run, format_columns, format_comparison
from harness.side_flags import parse_flags
from harness.side_runs import report, run_in_turn

LENGTH, PREDICTIONS, BATCH_SIZE = 128, 20, 256

COLUMNS = dict.fromkeys(("seconds", "of it prepare", "start", "MB/s", "MB on disk"), "{:.2f}")

RUN_UNDER_TENSORFLOW_2 = """
import runpy, sys
import tensorflow.compat.v1 as tensorflow
sys.modules["tensorflow"] = tensorflow
runpy.run_path("create_pretraining_data.py", run_name="__main__")
"""


def write_sentences(corpus, path):
    """Writes the documents of a jsonl file, with a sentence in each line."""
    from keras_bert_suite.corpus.sentence_splitter import split_sentences

    with open(corpus, encoding="utf-8") as file, open(path, "w", encoding="utf-8") as out:
        for line in file:
            sentences = split_sentences(json.loads(line)["text"])
            out.write("\n".join(sentences) + "\n\n")


def measure_ours(options, text):
    begin = time.perf_counter()
    import keras_bert_suite as kbs
    from keras_bert_suite.corpus import open_corpus, prepare_corpus
    from keras_bert_suite.pretraining import PretrainingBatches

    start = time.perf_counter() - begin
    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        tokenizer = kbs.WordPieceTokenizer(options.vocabulary)
        prepare_corpus([str(text)], tokenizer, folder, workers=1, format="sentences")
        prepared = time.perf_counter() - begin
        masker = kbs.TokenMasker(tokenizer, max_predictions=PREDICTIONS)
        batches = PretrainingBatches(open_corpus(folder), masker, LENGTH, BATCH_SIZE)
        for index in range(len(batches)):
            batches[index]
        seconds = time.perf_counter() - begin
        stored = sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file())
    return name_figures(text, seconds, prepared, start, stored)


def measure_google(options, text):
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "examples.tfrecord"
        flags = {
            "input_file": text,
            "output_file": output,
            "vocab_file": Path(options.vocabulary).absolute(),
            "max_seq_length": LENGTH,
            "max_predictions_per_seq": PREDICTIONS,
            "dupe_factor": 1,
        }
        arguments = [f"--{name}={value}" for name, value in flags.items()]
        begin = time.perf_counter()
        run_python("import tensorflow.compat.v1", [], options.google)
        start = time.perf_counter() - begin
        begin = time.perf_counter()
        run_python(RUN_UNDER_TENSORFLOW_2, arguments, options.google)
        seconds = time.perf_counter() - begin - start
        return name_figures(text, seconds, seconds, start, output.stat().st_size)


def name_figures(text, seconds, prepared, start, stored):
    """dict, with a value for each of `COLUMNS`."""
    rate = text.stat().st_size / 1e6 / seconds
    return dict(zip(COLUMNS, (seconds, prepared, start, rate, stored / 1e6), strict=True))


def run_python(code, arguments, folder):
    subprocess.run(
        [sys.executable, "-c", code, *arguments], cwd=folder, check=True, capture_output=True
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--google", required=True, help="clone of google-research/bert")
    parser.add_argument("--corpus", required=True, help="jsonl file with texts under 'text'")
    parser.add_argument("--vocabulary", required=True)
    parser.add_argument("--text", type=Path, help=argparse.SUPPRESS)
    options = parse_flags(parser)
    if options.child:
        # The threads of the libraries run on this core, too.
        if hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        measure = {"ours": measure_ours, "google": measure_google}[options.child]
        report(measure(options, options.text))
        return

    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder) / "corpus.txt"
        write_sentences(options.corpus, text)
        megabytes = text.stat().st_size / 1e6
        sides = [("ours", "jax"), ("google", "tensorflow")]
        measured = run_in_turn([*sys.argv, "--text", text], sides, [[]] * options.rounds)
    print(f"{describe_run(measured, options.rounds)}\n")
    print(f"One core, {megabytes:.1f} MB of text, one pass.\n")
    print(
        f"{format_columns(measured, COLUMNS)}\n\n{format_comparison(measured, COLUMNS, ['google'])}"
    )


if __name__ == "__main__":
    main()
