"""Served from strings: our SavedModel, the transformers pipeline, KerasHub's `predict`.

    python benchmarks/serving.py

Every side answers the 600 test sentences of examples/data, of mixed length, with the same
MiniLM (six layers, 384 wide) and the same classification layer: one by one, then 32 at a
time. Ours is the SavedModel loaded with TensorFlow and its text ops alone, as a server
does. `preprocessing` is the time of tokenizing and packing in the graph, of a function of
its own, as a share of the time of `serve_ids`, which is the model without it.
"""

import argparse
import csv
import json
import tempfile
import time
from pathlib import Path

from side_processes import describe_run, find_minilm, measure_in_turn

DATA = Path(__file__).resolve().parents[1] / "examples" / "data"
SEQUENCE_LENGTH = 128
BATCH_SIZES = (1, 32)


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


def figures_of(answer):
    """Latency at batch 1 (ms, median and 95th percentile), sentences/s at every batch size."""
    texts = read_texts()
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


def measure_ours(folder):
    import tensorflow as tf

    from keras_bert_cli.ask_saved_model import load_text_ops

    load_text_ops(tf)
    model = tf.saved_model.load(str(folder / "saved_model" / "1"))
    serve = model.signatures["serving_default"]
    return figures_of(lambda texts: serve(text=tf.constant(texts))["probabilities"].numpy())


def measure_preprocessing(folder):
    import keras
    import tensorflow as tf

    from keras_bert_suite.serving.served_tasks import serve

    task = keras.saving.load_model(folder / "task.keras", compile=False)
    pack = serve(task).pack
    preprocess = tf.function(
        lambda texts: pack((texts,)), input_signature=[tf.TensorSpec([None], tf.string)]
    )
    model = tf.saved_model.load(str(folder / "saved_model" / "1"))
    texts = read_texts()
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
        figures[f"share, {size}"] = seconds["preprocessing"] / seconds["model"]
    return figures


def measure_transformers(folder):
    from transformers import pipeline

    classify = pipeline(
        "text-classification", str(folder / "hugging_face"), device="cpu", top_k=None
    )
    return figures_of(lambda texts: classify(texts, batch_size=len(texts), truncation=True))


def measure_keras_hub(folder):
    import keras_hub

    models = keras_hub.models
    preprocessor = models.BertTextClassifierPreprocessor.from_preset(
        find_minilm(), sequence_length=SEQUENCE_LENGTH
    )
    classifier = models.BertTextClassifier.from_preset(
        find_minilm(), num_classes=2, preprocessor=preprocessor
    )
    return figures_of(lambda texts: classifier.predict(texts, batch_size=len(texts), verbose=0))


SIDES = {
    "ours": (measure_ours, "tensorflow"),
    "transformers pipeline": (measure_transformers, "torch"),
    "keras_hub predict": (measure_keras_hub, "tensorflow"),
    "preprocessing": (measure_preprocessing, "tensorflow"),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child == "models":
        make_models(options.folder)
        print("{}")
        return
    if options.child:
        print(json.dumps(SIDES[options.child][0](options.folder)))
        return

    with tempfile.TemporaryDirectory() as folder:
        arguments = ["--folder", folder]
        measure_in_turn(__file__, [("models", "tensorflow")], 1, arguments)
        sides = [(side, backend) for side, (_, backend) in SIDES.items()]
        measured = measure_in_turn(__file__, sides, options.rounds, arguments)
    print_tables({side: figures for (side, _), figures in measured.items()}, options.rounds)


def print_tables(measured, rounds):
    print(f"{describe_run(rounds)}\n")
    names = list(measured["ours"])
    print(f"| side | {' | '.join(names)} |")
    print("| --- " * (len(names) + 1) + "|")
    servers = [side for side in measured if side != "preprocessing"]
    for side in servers:
        print(f"| {side} | " + " | ".join(f"{measured[side][name]:.1f}" for name in names) + " |")
    for peer in servers[1:]:
        ratios = []
        for name in names:
            ratio = measured["ours"][name] / measured[peer][name]
            ratios.append(f"{1 / ratio if ' ms' in name else ratio:.2f}x")
        print(f"| times as fast as {peer} | " + " | ".join(ratios) + " |")
    print("\n| batch | preprocessing, ms | model, ms | share |")
    print("| --- | --- | --- | --- |")
    shares = measured["preprocessing"]
    for size in BATCH_SIZES:
        cells = [f"{shares[f'{part} ms, {size}']:.2f}" for part in ("preprocessing", "model")]
        print(f"| {size} | {' | '.join(cells)} | {shares[f'share, {size}']:.1%} |")


if __name__ == "__main__":
    main()
