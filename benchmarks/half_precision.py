"""Exports in half precision: their answers beside those in float32.

    KERAS_BACKEND=tensorflow python benchmarks/half_precision.py

MiniLM (six layers, 384 wide) is fine-tuned for one epoch on the training sentences of
examples/data, exported, and asked about the 600 test sentences. A difference is that of a
probability from the SavedModel in float32. The seconds are those of the processor; a CPU without
units for a precision emulates it.
"""

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
from harness.result_tables import describe_run, format_table
from int8 import answer, open_onnx, open_saved_model, prepare_reviews, read_reviews

#: (format, precision of the file).
SIDES = (
    ("SavedModel", "float32"),
    ("SavedModel", "bfloat16"),
    ("SavedModel", "float16"),
    ("ONNX Runtime", "float32"),
    ("ONNX Runtime", "float16"),
)


def export(task, file_format, precision, path):
    """Exports a task, and returns (function(inputs) to the answers, size in MB)."""
    import keras_bert_suite as kbs

    if file_format == "SavedModel":
        kbs.export_saved_model(task, path, precision=precision)
    else:
        kbs.export_onnx(task, path, precision)
    size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    opened = open_saved_model if file_format == "SavedModel" else open_onnx
    return opened(path, None), size / 1e6


def main():
    argparse.ArgumentParser(description=__doc__.partition("\n")[0]).parse_args()
    _, task, _, score = prepare_reviews(None)
    texts = (read_reviews("test")[0],)
    rows, wanted = [], None
    with tempfile.TemporaryDirectory() as folder:
        for number, (file_format, precision) in enumerate(SIDES):
            run, size = export(task, file_format, precision, Path(folder) / str(number) / "1")
            begin = time.process_time()
            found = answer(task, run, texts)
            seconds = time.process_time() - begin
            wanted = found if wanted is None else wanted
            apart = np.abs(found - wanted)
            figures = f"{np.mean(apart):.1e}", f"{np.max(apart):.1e}", f"{score(run):.4f}"
            rows.append([file_format, precision, f"{size:.0f}", *figures, f"{seconds:.1f}"])
    packages = ("tensorflow", "onnxruntime")
    headings = ["format", "precision", "MB", "mean difference", "largest", "accuracy", "seconds"]
    print(f"{describe_run({}, 1, packages)}\n\n{format_table(headings, rows)}")


if __name__ == "__main__":
    main()
