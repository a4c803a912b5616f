"""Quantizes the matrix products of exported models to 8-bit integers."""

import numpy as np

from keras_bert_suite.heads.base.feature_columns import FEATURES
from keras_bert_suite.models.frame_inputs import CONDITION

#: The most rows from which scales are taken.
MOST_CALIBRATION_ROWS = 300


def read_calibration(task, texts):
    """Packs texts one by one, so that the scales are computed without padding.

    The result is at most 300 dicts of int32 arrays (1, L), of rows at equal distances.
    """
    rows = task.data.window(task.data.read(texts))
    if not len(rows):
        raise ValueError("calibration_texts has no rows; int8 needs a few hundred texts.")
    number = min(len(rows), MOST_CALIBRATION_ROWS)
    batches = []
    for row in np.linspace(0, len(rows) - 1, number).astype(int):
        inputs, _, _ = task.data.pack(rows.take([row]))
        batches.append({name: np.asarray(array) for name, array in inputs.items()})
    return batches


def quantize_onnx(file):
    """Replaces an ONNX file by its int8 form, with the scales of each batch.

    Only products with weights become int8: products of attention have none, and embeddings are only
    looked up. Scales that are fixed beforehand would be slower and less exact: the feed-forward
    blocks have values of 80 times their standard deviation, see `benchmarks/results/int8.md`.
    """
    import onnx
    from onnxruntime import quantization

    written = file.with_name("int8.onnx")
    nodes = onnx.load(file, load_external_data=False).graph.node
    beside = {FEATURES, CONDITION}
    quantization.quantize_dynamic(
        file,
        written,
        op_types_to_quantize=["MatMul"],
        per_channel=True,
        # One scale for columns of a batch would round small numbers beside a large one to 0.
        nodes_to_exclude=[node.name for node in nodes if beside & {*node.input}],
        weight_type=quantization.QuantType.QInt8,
        extra_options={"MatMulConstBOnly": True},
    )
    written.replace(file)


def quantize_openvino(file, batches):
    """Replaces an OpenVINO model, an .xml file, by its int8 form, with scales of batches (1, L)."""
    import nncf
    import openvino

    quantized = nncf.quantize(
        openvino.Core().read_model(file),
        nncf.Dataset(batches),
        model_type=nncf.ModelType.TRANSFORMER,
        subset_size=len(batches),
    )
    written = file.with_name("int8.xml")
    openvino.save_model(quantized, written, compress_to_fp16=False)
    for suffix in (".xml", ".bin"):
        written.with_suffix(suffix).replace(file.with_suffix(suffix))
