"""Warns where bfloat16 takes longer than float32: on most processors."""

import warnings

import keras

from keras_bert_suite.processor import read_processor


def warn_of_slow_bfloat16(model: keras.Model, training: bool) -> None:
    """Warns if a model computes in bfloat16, and float32 would be faster on this processor."""
    if model.compute_dtype != "bfloat16" or not _is_on_cpu(model):
        return
    backend = keras.config.backend()
    if _is_slow(backend, training, *read_processor()):
        warnings.warn(
            f"bfloat16 takes longer than float32 in {'fit' if training else 'predict'} under "
            f"{backend} on this processor. Leave `dtype` out, or use a GPU or TPU. "
            "docs/speed_and_memory.md has the processors.",
            stacklevel=4,
        )


def _is_slow(backend: str, training: bool, vendor: str, instructions: frozenset[str]) -> bool:
    """The measurements: benchmarks/results/finetune_peers.md, and docs/speed_and_memory.md."""
    if not instructions:  # Not Linux on x86: unknown.
        return False
    if backend == "jax" and training:
        return True
    if "amx_bf16" in instructions:
        return False
    # With AVX512-BF16, AMD's processors have a fast product, and Intel's do not.
    is_fast = vendor == "AuthenticAMD" and "avx512_bf16" in instructions
    return not is_fast or (backend == "tensorflow" and not training)


def _is_on_cpu(model: keras.Model) -> bool:
    value = model.variables[0].value
    if keras.config.backend() == "jax":
        return all(device.platform == "cpu" for device in value.devices())
    return "cpu" in str(value.device).lower()
