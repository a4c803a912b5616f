"""Answers in 8-bit integers: latency of the formats, and what the smaller numbers cost in accuracy.

    python benchmarks/int8.py                                # latency of BERT base, random weights
    python benchmarks/int8.py --accuracy --data data

Latency: a classifier of the base shape (12 layers, 768 wide) on rows of 128 tokens without padding,
1, 8 and 32 rows, in float32 as a SavedModel and in the formats of `export_onnx` and
`export_openvino`. All models are in one process and answer in turn, so each round has all sides.

Accuracy: MiniLM (six layers, 384 wide) fine-tuned here for one epoch on the review sentences of
examples/data, on STS-B and on the first 2,000 sentences of CoNLL-2003, exported, and compared on
the test sentences of examples/data and the dev files. OpenVINO's scales come from 300 texts of the
training data. `--data` is a folder with glue/STS-B and ner/conll2003_en; without it only the
reviews are measured.
"""

import argparse
import csv
import tempfile
import time
from pathlib import Path
from unittest import mock

import numpy as np
from harness.result_tables import describe_run, format_figures, format_ratios, format_table
from peer_recipes import find_minilm

EXAMPLES = Path(__file__).resolve().parents[1] / "examples" / "data"
LENGTH, BATCH_SIZES = 128, (1, 8, 32)

#: side -> (format, precision of the file, precision at run time).
SIDES = {
    "SavedModel": ("saved_model", "float32", None),
    "ONNX Runtime": ("onnx", "float32", None),
    "OpenVINO": ("openvino", "float32", "f32"),
    "OpenVINO, bfloat16": ("openvino", "float32", "bf16"),
    "ONNX Runtime, int8": ("onnx", "int8", None),
    "OpenVINO, int8": ("openvino", "int8", "f32"),
}


def export_sides(task, texts, folder):
    """Exports a task for all sides. Returns dict, side -> function(inputs) to the answers."""
    import keras_bert_suite as kbs

    exports = {"onnx": kbs.export_onnx, "openvino": kbs.export_openvino}
    runs = {}
    for side, (file_format, precision, hint) in SIDES.items():
        path = folder / f"{file_format} {precision}" / "1"
        if not path.exists():
            if file_format == "saved_model":
                kbs.export_saved_model(task, path)
            else:
                needs_texts = (file_format, precision) == ("openvino", "int8")
                calibration = {"calibration_texts": texts} if needs_texts else {}
                exports[file_format](task, path, precision, **calibration)
        runs[side] = {"saved_model": open_saved_model, "onnx": open_onnx}.get(
            file_format, open_openvino
        )(path, hint)
    return runs


def open_saved_model(path, hint):
    import tensorflow as tf

    from keras_bert_cli.ask_saved_model import load_text_ops

    load_text_ops(tf)
    model = tf.saved_model.load(str(path))

    def run(inputs):
        answers = model.signatures["serve_ids"](
            **{name: tf.constant(array) for name, array in inputs.items()}
        )
        return next(
            answers[name].numpy() for name in ("scores", "probabilities") if name in answers
        )

    return run


def open_onnx(path, hint):
    import onnxruntime

    session = onnxruntime.InferenceSession(path / "model.onnx")
    names = [output.name for output in session.get_outputs()]
    (name,) = set(names) & {"scores", "probabilities"}
    return lambda inputs: session.run([name], inputs)[0]


def open_openvino(path, hint):
    import openvino

    settings = {"INFERENCE_PRECISION_HINT": hint}
    model = openvino.compile_model(path / "model.xml", "CPU", settings)
    (name,) = {output.get_any_name() for output in model.outputs} & {"scores", "probabilities"}
    return lambda inputs: model(inputs)[name]


def measure_latency(rounds):
    """dict, size of the batch -> dict, side -> milliseconds of each round."""
    import keras

    import keras_bert_suite as kbs

    keras.utils.set_random_seed(0)
    packer = kbs.TextClassifier.from_preset(find_minilm(), num_classes=2).preprocessor
    vocabulary_size = packer.tokenizer.vocabulary_size()
    backbone = kbs.BertBackbone.from_size("base", vocabulary_size=vocabulary_size)
    task = kbs.TextClassifier(backbone, num_classes=2, preprocessor=packer)
    texts = read_reviews("train")[0][:50]
    generator = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        runs = export_sides(task, texts, Path(folder))
        milliseconds = {}
        for size in BATCH_SIZES:
            inputs = {
                "token_ids": generator.integers(1000, vocabulary_size, (size, LENGTH), "int32"),
                "segment_ids": np.zeros((size, LENGTH), "int32"),
                "padding_mask": np.ones((size, LENGTH), "int32"),
            }
            taken = {side: [] for side in runs}
            for round_number in range(rounds + 1):
                for side, run in runs.items():
                    begin = time.perf_counter()
                    run(inputs)
                    if round_number:  # The first is to warm up.
                        taken[side].append(1000 * (time.perf_counter() - begin))
            milliseconds[size] = taken
    return milliseconds


def read_reviews(part):
    with open(EXAMPLES / f"sentences_{part}.tsv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    return [row["sentence"] for row in rows], [row["label"] for row in rows]


def prepare_reviews(data):
    """(name, trained task, texts for calibration, function(run) to a score)."""
    import keras_bert_suite as kbs

    (texts, labels), (test_texts, test_labels) = map(read_reviews, ("train", "test"))
    task = kbs.TextClassifier.from_preset(find_minilm(), label_names=sorted(set(labels)))
    train(task, texts, labels)
    wanted = [task.label_names.index(label) for label in test_labels]

    def score(run):
        return np.mean(answer(task, run, (test_texts,)).argmax(-1) == wanted)

    return "reviews, accuracy", task, texts, score


def prepare_stsb(data):
    import keras_bert_suite as kbs

    rows, dev = (kbs.read_glue(data / "glue", "stsb", file) for file in ("train.tsv", "dev.tsv"))
    task = kbs.TextClassifier.from_preset(find_minilm(), num_classes=1, problem_type="regression")
    train(task, rows.x, rows.y)
    labels = np.array(dev.y, "float64")

    def score(run):
        return np.corrcoef(answer(task, run, dev.x)[:, 0], labels)[0, 1]

    return "STS-B, Pearson", task, rows.x, score


def prepare_entities(data):
    import keras

    import keras_bert_suite as kbs

    folder = data / "ner" / "conll2003_en"
    rows = kbs.read_conll(folder / "eng.train").take(2000)
    dev = kbs.read_conll(folder / "eng.testa").take(1000)
    task = kbs.TokenClassifier.from_preset(find_minilm(), label_names=rows.label_names)
    train(task, rows.x, rows.y, learning_rate=2e-4)

    def score(run):
        def predict_on_batch(_, inputs):
            return np.log(run(inputs))

        with mock.patch.object(keras.Model, "predict_on_batch", predict_on_batch):
            return task.score(dev.x, dev.y)["f1"]

    return "CoNLL-2003, entity F1", task, [" ".join(row) for row in rows.x], score


def answer(task, run, columns, batch_size=32):
    """The answers (N, C) of an export for columns of texts."""
    batches = range(0, len(columns[0]), batch_size)
    return np.concatenate(
        [
            run(task.preprocessor.pack(*(column[i : i + batch_size] for column in columns)))
            for i in batches
        ]
    )


def train(task, x, y, learning_rate=1e-4):
    import keras

    import keras_bert_suite as kbs

    keras.utils.set_random_seed(0)
    task.compile(kbs.AdamW(kbs.LinearWarmupDecay(learning_rate), bias_correction=True))
    task.fit(x, y, batch_size=16, epochs=1, verbose=0)


def measure_accuracy(data):
    """dict, name of a task and its metric -> dict, side -> score."""
    scores = {}
    for prepare in (prepare_reviews, *((prepare_stsb, prepare_entities) if data else ())):
        name, task, texts, score = prepare(data)
        with tempfile.TemporaryDirectory() as folder:
            runs = export_sides(task, texts, Path(folder))
            scores[name] = {side: score(run) for side, run in runs.items()}
    return scores


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--accuracy", action="store_true", help="measure the accuracy instead")
    parser.add_argument("--data", type=Path, help="folder with glue/STS-B and ner/conll2003_en")
    options = parser.parse_args()
    packages = ("tensorflow", "onnxruntime", "openvino")
    if options.accuracy:
        scores = measure_accuracy(options.data)
        rows = [[side, *(f"{column[side]:.4f}" for column in scores.values())] for side in SIDES]
        print(f"{describe_run({}, 1, packages)}\n\n{format_table(['side', *scores], rows)}")
        return
    milliseconds = measure_latency(options.rounds)
    rows = [
        [
            side,
            *(format_figures(taken[side], "{:.2f}") for taken in milliseconds.values()),
            *(format_ratios(taken["SavedModel"], taken[side]) for taken in milliseconds.values()),
        ]
        for side in SIDES
    ]
    headings = [f"ms, {size} x {LENGTH}" for size in milliseconds]
    headings += [f"times SavedModel, {size}" for size in milliseconds]
    print(f"{describe_run({}, options.rounds, packages)}\n")
    print(format_table(["side", *headings], rows))


if __name__ == "__main__":
    main()
