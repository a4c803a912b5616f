"""Served from strings: our SavedModel, transformers, ONNX Runtime, OpenVINO and KerasHub.

    python benchmarks/serving.py
    python benchmarks/serving.py --texts 64 --sides ours OpenVINO       # to see that it runs

Every side answers the first --texts of the 600 test sentences of examples/data, of mixed length,
with the same MiniLM (six layers, 384 wide) and the same classification layer: one by one, then 32
at a time. Ours is the SavedModel loaded with TensorFlow and its text ops alone, as a server does.
ONNX Runtime and OpenVINO run the model of transformers in float32 behind its tokenizer. The sides
"one thread" give an operation one thread; the others as many as the processor has.
`preprocessing` is the time of tokenizing and packing in the graph, of a function of its own, as a
share of the time of `serve_ids`, which is the model without it.
"""

import argparse
import csv
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from harness.result_tables import (
    describe_run,
    format_columns,
    format_comparison,
    format_figures,
    format_table,
)
from harness.side_flags import parse_flags
from harness.side_runs import report, run_in_turn
from peer_recipes import find_minilm

DATA = Path(__file__).resolve().parents[1] / "examples" / "data"
SEQUENCE_LENGTH = 128
BATCH_SIZES = (1, 32)

COLUMNS = {
    "sentences/s, 1": "{:.1f}",
    "median ms, 1": "{:.1f}",
    "95% ms, 1": "{:.1f}",
    "sentences/s, 32": "{:.1f}",
    "memory, GB": "{:.2f}",
}


def read_texts():
    with open(DATA / "sentences_test.tsv", encoding="utf-8", newline="") as file:
        return [r["sentence"] for r in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)]


def make_models(folder):
    """Writes the same classifier for every side."""
    import keras

    import keras_bert_suite as kbs
    from keras_bert_suite.checkpoints import save_hugging_face

    keras.utils.set_random_seed(0)
    classifier = kbs.TextClassifier.from_preset(
        find_minilm(), num_classes=2, sequence_length=SEQUENCE_LENGTH
    )
    classifier.save(folder / "task.keras")
    save_hugging_face(classifier, folder / "hugging_face", classifier.preprocessor.tokenizer)
    kbs.export_saved_model(classifier, folder / "saved_model" / "1")


def export_peer(folder):
    """Writes the classifier of transformers as ONNX."""
    import torch
    from transformers import AutoModelForSequenceClassification

    model = AutoModelForSequenceClassification.from_pretrained(folder / "hugging_face").eval()
    names = ["input_ids", "attention_mask", "token_type_ids"]
    axes = {name: {0: "batch", 1: "length"} for name in names}
    inputs = {name: torch.ones((2, 8), dtype=torch.long) for name in names}
    # The other exporter of PyTorch needs onnxscript.
    torch.onnx.export(
        *(model, (inputs,), folder / "model.onnx"),
        dynamic_axes=axes,
        input_names=names,
        dynamo=False,
    )


def time_calls(answer, batches):
    """Seconds of each call, after a pass that is not timed."""
    for batch in batches:
        answer(batch)
    seconds = []
    for batch in batches:
        begin = time.perf_counter()
        answer(batch)
        seconds.append(time.perf_counter() - begin)
    return seconds


def figures_of(answer, texts):
    """Latency at batch 1 (ms, median and 95th percentile), sentences/s at every batch size."""
    figures = {}
    for size in BATCH_SIZES:
        batches = [texts[start : start + size] for start in range(0, len(texts), size)]
        seconds = time_calls(answer, batches)
        figures[f"sentences/s, {size}"] = len(texts) / sum(seconds)
        if size == 1:
            seconds.sort()
            figures["median ms, 1"] = 1000 * seconds[len(seconds) // 2]
            figures["95% ms, 1"] = 1000 * seconds[len(seconds) * 95 // 100]
    return figures


def measure_ours(folder, texts, threads=0):
    import tensorflow as tf

    from keras_bert_cli.ask_saved_model import load_text_ops

    # As `--tensorflow_intra_op_parallelism` of a server; 0 for all cores.
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    load_text_ops(tf)
    model = tf.saved_model.load(str(folder / "saved_model" / "1"))
    serve = model.signatures["serving_default"]
    return figures_of(lambda batch: serve(text=tf.constant(batch))["probabilities"].numpy(), texts)


def measure_preprocessing(folder, texts):
    import keras
    import tensorflow as tf

    from keras_bert_suite.heads.base.served import serve

    task = keras.saving.load_model(folder / "task.keras", compile=False)
    pack = serve(task).pack
    preprocess = tf.function(
        lambda texts: pack((texts,)), input_signature=[tf.TensorSpec([None], tf.string)]
    )
    model = tf.saved_model.load(str(folder / "saved_model" / "1"))
    figures = {}
    for size in BATCH_SIZES:
        batches = [tf.constant(texts[i : i + size]) for i in range(0, len(texts), size)]
        packed = [preprocess(batch) for batch in batches]
        seconds = {
            "preprocessing": sum(time_calls(preprocess, batches)),
            "model": sum(time_calls(lambda x: model.signatures["serve_ids"](**x), packed)),
        }
        figures[f"preprocessing ms, {size}"] = 1000 * seconds["preprocessing"] / len(batches)
        figures[f"model ms, {size}"] = 1000 * seconds["model"] / len(batches)
    return figures


def measure_transformers(folder, texts):
    from transformers import pipeline

    classify = pipeline(
        "text-classification", str(folder / "hugging_face"), device="cpu", top_k=None
    )
    return figures_of(lambda b: classify(b, batch_size=len(b), truncation=True), texts)


def measure_onnx_runtime(folder, texts, threads=0):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(folder / "model.onnx", options)
    pack = open_packer(folder)
    return figures_of(lambda batch: session.run(None, pack(batch))[0], texts)


def measure_openvino(folder, texts):
    import openvino

    # Some processors would compute in bfloat16.
    settings = {"INFERENCE_PRECISION_HINT": "f32"}
    model = openvino.compile_model(folder / "model.onnx", "CPU", settings)
    pack = open_packer(folder)
    return figures_of(lambda batch: model(pack(batch))[0], texts)


def open_packer(folder):
    """Function from texts to the packed arrays of transformers."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder / "hugging_face")
    rules = {"truncation": True, "max_length": SEQUENCE_LENGTH, "padding": True}
    return lambda texts: dict(tokenizer(texts, return_tensors="np", **rules))


def measure_keras_hub(folder, texts):
    import keras_hub

    models = keras_hub.models
    preprocessor = models.BertTextClassifierPreprocessor.from_preset(
        find_minilm(), sequence_length=SEQUENCE_LENGTH
    )
    classifier = models.BertTextClassifier.from_preset(
        find_minilm(), num_classes=2, preprocessor=preprocessor
    )
    return figures_of(lambda b: classifier.predict(b, batch_size=len(b), verbose=0), texts)


SIDES = {
    "ours": (measure_ours, "tensorflow"),
    "ours, one thread": (partial(measure_ours, threads=1), "tensorflow"),
    "transformers pipeline": (measure_transformers, "torch"),
    "ONNX Runtime": (measure_onnx_runtime, "torch"),
    "ONNX Runtime, one thread": (partial(measure_onnx_runtime, threads=1), "torch"),
    "OpenVINO": (measure_openvino, "torch"),
    "keras_hub predict": (measure_keras_hub, "tensorflow"),
    "preprocessing": (measure_preprocessing, "tensorflow"),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sides", nargs="+", default=list(SIDES), choices=list(SIDES))
    parser.add_argument("--texts", type=int, default=600)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parse_flags(parser)
    if options.child == "models":
        make_models(options.folder)
        export_peer(options.folder)
        report({})
        return
    if options.child:
        report(SIDES[options.child][0](options.folder, read_texts()[: options.texts]))
        return

    with tempfile.TemporaryDirectory() as folder:
        command = [*sys.argv, "--folder", folder]
        run_in_turn(command, [("models", "tensorflow")], [[]])
        sides = [(side, SIDES[side][1]) for side in options.sides]
        measured = run_in_turn(command, sides, [[]] * options.rounds)
    packages = ("transformers", "onnxruntime", "openvino", "keras-hub")
    print(f"{describe_run(measured, options.rounds, packages)}\n")
    preprocessing = measured.pop(("preprocessing", "tensorflow"), None)
    peers = [side for side in SIDES if side != "ours"]
    print(f"{format_columns(measured, COLUMNS)}\n\n{format_comparison(measured, COLUMNS, peers)}")
    if preprocessing:
        print_shares(preprocessing)


def print_shares(figures):
    rows = []
    for size in BATCH_SIZES:
        parts = [figures[f"{part} ms, {size}"] for part in ("preprocessing", "model")]
        shares = [packing / model for packing, model in zip(*parts, strict=True)]
        cells = [format_figures(part, "{:.2f}") for part in parts]
        rows.append([str(size), *cells, format_figures(shares, "{:.1%}")])
    print(f"\n{format_table(['batch', 'preprocessing, ms', 'model, ms', 'share'], rows)}")


if __name__ == "__main__":
    main()
