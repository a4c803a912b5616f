"""Training with `jit_compile=True` under PyTorch, beside the same training without it."""

import keras
import numpy as np
import pytest

import keras_bert_suite as kbs

pytestmark = [
    pytest.mark.long("faults"),
    pytest.mark.backend("torch"),
]

#: Large enough for the products of oneDNN, where they are the faster ones.
SHAPE = (32, 64)


def train(jit_compile, momentum_dtype):
    """(weights after three steps, logits)."""
    keras.utils.set_random_seed(0)
    backbone = kbs.BertBackbone(
        vocabulary_size=50,
        num_layers=1,
        num_heads=2,
        hidden_dim=64,
        intermediate_dim=256,
        dropout=0.0,
    )
    task = kbs.TextClassifier(backbone, num_classes=2)
    task.compile(kbs.AdamW(1e-3, momentum_dtype=momentum_dtype), jit_compile=jit_compile)
    x = {name: np.ones(SHAPE, "int32") for name in ("token_ids", "padding_mask")}
    x["token_ids"] = np.arange(np.prod(SHAPE)).reshape(SHAPE) % 50
    x["segment_ids"] = np.zeros(SHAPE, "int32")
    for _ in range(3):
        task.train_on_batch(x, np.arange(SHAPE[0]) % 2)
    return task.get_weights(), task.predict_on_batch(x)


# A momentum of bfloat16 that is rounded the other way changes an update by 1/256.
@pytest.mark.parametrize(("momentum_dtype", "atol"), [(None, 1e-5), ("bfloat16", 1e-4)])
def test_same_training(momentum_dtype, atol):
    (weights, logits), (wanted_weights, wanted_logits) = (
        train(jit_compile, momentum_dtype) for jit_compile in (True, False)
    )
    for got, wanted in zip(weights, wanted_weights, strict=True):
        np.testing.assert_allclose(got, wanted, atol=atol)
    np.testing.assert_allclose(logits, wanted_logits, atol=atol)
