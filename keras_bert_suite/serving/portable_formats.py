"""A task as one file for other runtimes, with what turns texts into its inputs beside it."""

import json

import keras

from keras_bert_suite.checkpoints import atomic_directory, write_tokenizer
from keras_bert_suite.preprocessing import SegmentPacker
from keras_bert_suite.serving.onnx_ops import check_ops, register_erfc
from keras_bert_suite.serving.tensorflow_process import check_installed, write_under_tensorflow


def export_onnx(task, path):
    """Writes a folder with `model.onnx`, for ONNX Runtime and its kin.

    ONNX has no ops for a WordPiece tokenizer, so the model takes the int32 (B, L) arrays
    that `task.preprocessor` makes, `token_ids`, `segment_ids` and `padding_mask`, of any B
    and L, and returns `probabilities` float32 (B, C). Beside it lie `vocab.txt` and
    `tokenizer_config.json`, as Hugging Face writes them, `packing.json`, the packer's
    configuration, and `label_names.txt`, the classes in the order of the probabilities.

    Args:
        task: `TextClassifier` with a `SegmentPacker`, computing in float32.
        path: str or path of the folder, which must not exist.

    Raises:
        FileExistsError: if `path` exists.
        ImportError: if TensorFlow or tf2onnx is not installed.
        ValueError: if the task has no `SegmentPacker` or does not compute in float32.
        RuntimeError: if the conversion fails in a process of its own.
    """
    _check_task(task)
    check_installed("ONNX", {"tensorflow": "tensorflow", "tf2onnx": "tf2onnx"})
    with atomic_directory(path) as directory:
        write_under_tensorflow(write_onnx, task, directory)


def export_litert(task, path):
    """Writes a folder with `model.tflite`, for LiteRT (TensorFlow Lite) on small devices.

    As `export_onnx`, but L is the packer's `sequence_length`: with an open L the converter
    leaves ops in the graph that a LiteRT runtime without TensorFlow lacks. Pad all rows to
    it: `SegmentPacker(..., padding_lengths=(sequence_length,))`.

    Args, Raises: as for `export_onnx`, without tf2onnx.
    """
    _check_task(task)
    check_installed("LiteRT", {"tensorflow": "tensorflow"})
    with atomic_directory(path) as directory:
        write_under_tensorflow(write_litert, task, directory)


def write_onnx(task, directory):
    """Writes the files, under the TensorFlow backend."""
    register_erfc()
    model, signature = _make_model(task, length=None)
    file = str(directory / "model.onnx")
    model.export(file, format="onnx", input_signature=signature, verbose=False)
    check_ops(file)
    _write_companions(task, directory)


def write_litert(task, directory):
    """Writes the files, under the TensorFlow backend."""
    import tensorflow as tf

    model, signature = _make_model(task, length=task.preprocessor.sequence_length)
    model.export(
        str(directory / "model.tflite"),
        format="litert",
        input_signature=signature,
        verbose=False,
        # Fail here rather than on the device.
        target_spec={"supported_ops": [tf.lite.OpsSet.TFLITE_BUILTINS]},
    )
    _write_companions(task, directory)


def _make_model(task, length):
    """(model from token ids to probabilities, its input signature)."""
    outputs = task.output
    if task.activation is not keras.activations.softmax:
        outputs = keras.layers.Softmax(dtype="float32")(outputs)
    model = keras.Model(task.input, {"probabilities": outputs})
    signature = {
        name: keras.InputSpec(shape=(None, length), dtype="int32", name=name) for name in task.input
    }
    return model, [signature]


def _write_companions(task, directory):
    packer = task.preprocessor
    write_tokenizer(packer.tokenizer, packer.sequence_length, directory)
    packing = {
        name: value
        for name, value in packer.get_config().items()
        if name in ("sequence_length", "truncation", "head_length")
    }
    (directory / "packing.json").write_text(json.dumps(packing, indent=2) + "\n", "utf-8")
    (directory / "label_names.txt").write_text("\n".join(task.label_names), "utf-8")


def _check_task(task):
    if not isinstance(task.preprocessor, SegmentPacker):
        raise ValueError(
            f"{task.name} needs a SegmentPacker as its preprocessor, whose tokenizer is kept "
            f"beside the model, got {task.preprocessor!r}."
        )
    if task.backbone.compute_dtype != "float32":
        raise ValueError(
            f"{task.name} computes in {task.backbone.compute_dtype}, and the converters know "
            "float32 only. Load it with dtype='float32' and export that; the weights are the same."
        )
