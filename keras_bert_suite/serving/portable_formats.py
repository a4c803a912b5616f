"""Writes a task as a model for other runtimes, with the tokenizer's files beside it."""

import json
import pathlib
from collections.abc import Sequence

import keras
import keras_hub

from keras_bert_suite.annotations import PathLike
from keras_bert_suite.argument_checks import check_choice, with_article
from keras_bert_suite.checkpoints import write_tokenizer
from keras_bert_suite.files.atomic_directory import atomic_directory
from keras_bert_suite.heads.base.ensemble import members_of
from keras_bert_suite.heads.base.feature_columns import FEATURES
from keras_bert_suite.heads.base.served import serve
from keras_bert_suite.models.frame_inputs import CONDITION
from keras_bert_suite.preprocessing import SegmentPacker
from keras_bert_suite.serving.float16_models import halve_onnx
from keras_bert_suite.serving.id_ranges import count_common_rows, replace_negative_ids
from keras_bert_suite.serving.int8_models import quantize_onnx, quantize_openvino, read_calibration
from keras_bert_suite.serving.onnx_names import describe_onnx
from keras_bert_suite.serving.onnx_ops import (
    frequent_garbage_collection,
    register_erfc,
    register_floors,
)
from keras_bert_suite.serving.task_description import PACKING_FILE, describe_task, write_description
from keras_bert_suite.serving.tensorflow_process import check_installed, write_under_tensorflow
from keras_bert_suite.serving.weight_precision import is_quantized
from keras_bert_suite.tokenizers import CharacterTokenizer


def export_onnx(
    task: keras_hub.models.Task,
    path: PathLike,
    precision: str = "float32",
    verbose: str | int = "auto",
) -> None:
    """Writes a folder with `model.onnx`, for ONNX Runtime and other runtimes of ONNX.

    ONNX has no ops for the tokenizer. So the model takes the int32 (B, L) arrays that
    `task.preprocessor` returns, `token_ids`, `segment_ids` (not for RoBERTa) and `padding_mask`, of
    any B and L. It returns `probabilities`, float32 (B, C), or (B, L, C) for a `TokenClassifier`.
    For sets of labels it also returns `is_label`, bool (B, C). A regression returns `scores`,
    float32 (B, C). A `MaskedLM` also takes `mask_positions` int32 (B, P), the positions of the mask
    tokens, and returns `probabilities` float32 (B, P, V). A `PatternClassifier` takes these
    positions of its masks and `verbalizer_ids` int32 (B, C, P), its words. A `DocumentClassifier`
    takes windows (B, W, L), and a `CrfTokenClassifier` returns `emissions` float32 (B, L, C). A
    task with columns beside the texts also takes `features`, float32 (B, D), encoded as in
    `task.data.features`; `task.json` has their means and categories. A backbone with a
    `norm_condition` takes `condition`, float32 (B, C). `open_runtime` packs texts and
    columns, runs the file, and makes the answers of the task.
    The folder also has:

    - the tokenizer's files, such as `vocab.txt`, and `tokenizer_config.json`, as Hugging Face
      writes them;
    - `packing.json`: the packer's `sequence_length`, `truncation`, `head_length` and `segment_ids`,
      `input_names`, the names of the texts of a row, or null if the task does not know them;
    - `label_names.txt`, if the task has labels: their names, one in each line, in the order of
      the probabilities;
    - `task.json`: the task, its labels, thresholds and other facts for a client; see
      `describe_task`. `model.onnx` has the same as its `metadata_props`.

    The axes of inputs and outputs are named: "batch", "length", "choices", "windows", "masks",
    "labels". The same model is the same bytes.

    Args:
        task: a task with a `SegmentPacker`, computing in float32, but no `Seq2Seq`.
        path: str or path of the folder, which must not exist.
        precision: "float32"; or "float16" for GPUs, with the matrices and the products with them
            in float16, and half of the file; or "int8" for products of matrices in 8-bit integers,
            which CPUs with VNNI compute two to three times as fast. In int8, weights have a scale
            for each column, and activations have one for each batch. So an answer depends a little
            on the other rows. Inputs and outputs keep their types.
        verbose: as for `export_saved_model`.

    Raises:
        FileExistsError: if `path` exists.
        ImportError: if TensorFlow or tf2onnx is not installed; for "int8" also onnxruntime.
        ValueError: if the task has no answers to serve, no `SegmentPacker`, or does not compute
            in float32; if it is a `Seq2Seq`; if there is no such precision; or if the task was
            quantized. (Only `export_onnx` takes a quantized task, in "float32".)
        RuntimeError: if the conversion, a separate process, fails.
    """
    _check_portable(task)
    check_choice("precision", precision, ("float32", "float16", "int8"))
    check_installed("ONNX", "tensorflow", "tf2onnx")
    if precision != "float32":
        _check_not_quantized(task, f"ONNX with precision={precision!r}")
    if precision == "int8":
        check_installed("int8 ONNX", "onnxruntime")
    with atomic_directory(path) as directory:
        write_under_tensorflow(write_onnx, task, directory, verbose)
        if precision == "float16":
            halve_onnx(directory / "model.onnx")
        if precision == "int8":
            quantize_onnx(directory / "model.onnx")
        describe_onnx(directory / "model.onnx", describe_task(task))


def export_openvino(
    task: keras_hub.models.Task,
    path: PathLike,
    precision: str = "float32",
    calibration_texts: Sequence | None = None,
    verbose: str | int = "auto",
) -> None:
    """Writes a folder with `model.xml` and `model.bin`, for OpenVINO, which is fast on CPUs.

    Inputs, outputs and files beside the model: see `export_onnx`. On a CPU with bfloat16, OpenVINO
    computes in it unless it is told otherwise: `openvino.compile_model(file, "CPU",
    {"INFERENCE_PRECISION_HINT": "f32"})`.

    Args:
        task, path: as for `export_onnx`.
        precision: "float32", or "int8" for products of matrices in 8-bit integers, by NNCF with
            smooth quantization.
        calibration_texts: a few hundred typical texts, as `task.predict` takes them. "int8" needs
            them, and computes its scales from them.
        verbose: as for `export_saved_model`.

    Raises: as for `export_onnx`, with openvino instead of tf2onnx, and nncf instead of
        onnxruntime. ValueError also if "int8" has no `calibration_texts`, or "float32" has some.

    Source: NNCF, https://github.com/openvinotoolkit/nncf; Xiao et al., "SmoothQuant", 2022
    (https://arxiv.org/abs/2211.10438).
    """
    _check_portable(task)
    _check_not_quantized(task, "OpenVINO")
    check_choice("precision", precision, ("float32", "int8"))
    if precision != "int8" and calibration_texts is not None:
        raise ValueError(
            f"calibration_texts are for precision='int8', got them with {precision!r}. Leave them "
            "out, or ask for int8."
        )
    if precision == "int8" and calibration_texts is None:
        raise ValueError(
            "precision='int8' needs calibration_texts for OpenVINO: some hundred texts of those "
            "that the model will see."
        )
    check_installed("OpenVINO", "tensorflow", "openvino")
    if precision == "int8":
        check_installed("int8 OpenVINO", "nncf")
        batches = read_calibration(task, calibration_texts)
    with atomic_directory(path) as directory:
        write_under_tensorflow(write_openvino, task, directory, verbose)
        if precision == "int8":
            quantize_openvino(directory / "model.xml", batches)


def export_litert(task: keras_hub.models.Task, path: PathLike, verbose: str | int = "auto") -> None:
    """Writes a folder with `model.tflite`, for LiteRT (TensorFlow Lite) on small devices.

    The folder is as from `export_onnx`, but L is the packer's `sequence_length`. With an open L the
    converter leaves ops in the graph that a LiteRT runtime without TensorFlow lacks. Pad all rows
    to this length: `SegmentPacker(..., padding_lengths=(sequence_length,))`. P of a `MaskedLM` is
    L, too: pad `mask_positions` with 0.

    LiteRT has no recurrent layers on batches of any size, such as `BiLSTMPooling`, and no
    `DocumentClassifier`.

    Args, Raises: as for `export_onnx`, without tf2onnx.
    """
    _check_portable(task)
    _check_not_quantized(task, "LiteRT")
    if "max_windows" in task.get_config():
        raise ValueError(
            f"{task.name} is {with_article(task)}, and LiteRT has no pooling of any number of "
            "windows. Export it to ONNX or OpenVINO, or a SavedModel."
        )
    check_installed("LiteRT", "tensorflow")
    with atomic_directory(path) as directory:
        write_under_tensorflow(write_litert, task, directory, verbose)


def write_onnx(task: keras_hub.models.Task, directory: pathlib.Path) -> None:
    """Writes the files of `export_onnx`, under the TensorFlow backend."""
    register_erfc()
    register_floors()
    file = str(directory / "model.onnx")
    with frequent_garbage_collection():
        _make_served_model(task).export(
            file, format="onnx", input_signature=_make_signature(task, None), verbose=False
        )
    write_companions(task, directory)


def write_openvino(task: keras_hub.models.Task, directory: pathlib.Path) -> None:
    """Writes the float32 files of `export_openvino`, under the TensorFlow backend."""
    import openvino

    converted = openvino.convert_model(trace_arrays(task))
    openvino.save_model(converted, directory / "model.xml", compress_to_fp16=False)
    write_companions(task, directory)


def write_litert(task: keras_hub.models.Task, directory: pathlib.Path) -> None:
    """Writes the files of `export_litert`, under the TensorFlow backend."""
    import tensorflow as tf

    _make_served_model(task).export(
        str(directory / "model.tflite"),
        format="litert",
        input_signature=_make_signature(task, task.preprocessor.sequence_length),
        verbose=False,
        # With other ops the conversion fails here, and not on the device.
        target_spec={"supported_ops": [tf.lite.OpsSet.TFLITE_BUILTINS]},
    )
    write_companions(task, directory)


def trace_arrays(task):
    """The concrete function of TensorFlow from the packed arrays of a task to its scores."""
    import tensorflow as tf

    model = _make_served_model(task)
    (signature,) = _make_signature(task, None)
    specs = {
        name: tf.TensorSpec(spec.shape, spec.dtype, name=name) for name, spec in signature.items()
    }
    graph = tf.function(lambda **inputs: model(inputs, training=False), autograph=False)
    return graph.get_concrete_function(**specs)


def _make_served_model(task):
    """The functional model from a task's inputs to its scores.

    Answers that are integers are places of a maximum. ONNX lacks the ops with which Keras finds it,
    and callers can find it themselves.
    """
    inputs = {
        name: keras.Input(tensor.shape[1:], dtype=tensor.dtype, name=name)
        for name, tensor in task.input.items()
    }
    packed = replace_negative_ids(inputs, count_common_rows(serve(task).encoders))
    outputs = task.answers.serve(keras.ops, task(packed), packed)
    scores = {k: v for k, v in outputs.items() if not v.dtype.startswith("int")}
    return keras.Model(inputs, scores)


def _make_signature(task, length):
    def specify(name, tensor):
        if name in (FEATURES, CONDITION):
            return keras.InputSpec(shape=tensor.shape, dtype=tensor.dtype, name=name)
        axes = (length, tensor.shape[-1]) if name == "character_ids" else (length,)
        shape = (*[None] * (len(tensor.shape) - len(axes)), *axes)
        return keras.InputSpec(shape=shape, dtype="int32", name=name)

    return [{name: specify(name, tensor) for name, tensor in task.input.items()}]


def write_companions(task, directory):
    packer = task.preprocessor
    packing = {
        "input_names": task.input_names,
        "sequence_length": packer.sequence_length,
        "truncation": packer.truncation,
        "head_length": packer.head_length,
        "segment_ids": packer.segment_ids and list(packer.segment_ids),
    }
    if isinstance(packer.tokenizer, CharacterTokenizer):  # It has no files.
        packing["characters"] = packer.tokenizer.settings
    else:
        write_tokenizer(packer.tokenizer, packer.sequence_length, directory)
    write_description(task, directory)
    (directory / PACKING_FILE).write_text(json.dumps(packing, indent=2) + "\n", "utf-8")
    if hasattr(task, "label_names"):
        (directory / "label_names.txt").write_text("\n".join(task.label_names), "utf-8")


def _check_not_quantized(task, owner):
    # OpenVINO computes Keras' products of integers wrongly, and LiteRT does not convert them.
    if any(is_quantized(part) for part in members_of(task)):
        raise ValueError(
            f"{task.name} was quantized, which {owner} cannot compute. Export the task as it was "
            "before `quantize`, or export a SavedModel."
        )


def _check_portable(task):
    served = serve(task)
    if not isinstance(task.preprocessor, SegmentPacker):
        raise ValueError(
            f"{task.name} has {with_article(task.preprocessor)}, and only the tokenizer of a "
            "SegmentPacker can be written beside the model. Export a SavedModel."
        )
    if served.needs_graph:
        raise ValueError(f"{task.name} is {with_article(task)}, and {served.needs_graph}")
    if not served.takes_ids:
        raise ValueError(
            f"{task.name} is {with_article(task)} whose tasks have other tokenizers or lengths, "
            "and this format takes the token ids of one. Export a SavedModel, which takes texts."
        )
    for part in members_of(task):
        if part.backbone.compute_dtype != "float32":
            raise ValueError(
                f"{part.name} computes in {part.backbone.compute_dtype}, and the converters know "
                "float32 only. Load it with dtype='float32', and export that."
            )
