"""Exports in half precision: their answers beside those in float32.

    KERAS_BACKEND=tensorflow python benchmarks/half_precision.py

MiniLM (six layers, 384 wide) is fine-tuned for one epoch on training sentences of examples/data,
exported, and asked about test sentences. A difference is that of a probability from the SavedModel
in float32. The seconds are those of the processor for all answers; a CPU without units for a
precision emulates it.
"""

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
from harness.result_tables import describe_run, format_table
from int8 import answer, open_onnx, open_saved_model, read_reviews, train
from peer_recipes import find_minilm

import keras_bert_suite as kbs

#: (format, precision of the file).
SIDES = (
    ("SavedModel", "float32"),
    ("SavedModel", "float16"),
    ("ONNX Runtime", "float32"),
    ("ONNX Runtime", "float16"),
    ("SavedModel", "bfloat16"),
)


def export(task, file_format, precision, path):
    """Exports a task, and returns (function(inputs) to the answers, size in MB)."""
    if file_format == "SavedModel":
        kbs.export_saved_model(task, path, precision=precision)
    else:
        kbs.export_onnx(task, path, precision)
    size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    opened = open_saved_model if file_format == "SavedModel" else open_onnx
    return opened(path, None), size / 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--num_train", type=int, default=2400)
    parser.add_argument("--num_test", type=int, default=600)
    options = parser.parse_args()
    texts, labels = (column[: options.num_train] for column in read_reviews("train"))
    task = kbs.TextClassifier.from_preset(find_minilm(), label_names=sorted(set(labels)))
    train(task, texts, labels)
    texts = (read_reviews("test")[0][: options.num_test],)
    rows, wanted = [], None
    with tempfile.TemporaryDirectory() as folder:
        for number, (file_format, precision) in enumerate(SIDES):
            run, size = export(task, file_format, precision, Path(folder) / str(number) / "1")
            begin = time.process_time()
            found = answer(task, run, texts)
            seconds = time.process_time() - begin
            wanted = found if wanted is None else wanted
            apart = np.abs(found - wanted)
            others = np.sum(found.argmax(axis=-1) != wanted.argmax(axis=-1))
            figures = f"{np.mean(apart):.1e}", f"{np.max(apart):.1e}", str(others)
            rows.append([file_format, precision, f"{size:.0f}", *figures, f"{seconds:.1f}"])
            print(*rows[-1], flush=True)
    headings = ["format", "precision", "MB", "mean difference", "largest", "other classes"]
    print(f"\n{describe_run({}, 1, ('tensorflow', 'onnxruntime'))}\n")
    print(format_table([*headings, "processor seconds"], rows))


if __name__ == "__main__":
    main()
