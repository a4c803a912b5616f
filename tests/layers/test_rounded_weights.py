"""Weights of a mixed policy, rounded all at once. The oracle is Keras, which rounds each."""

import contextlib

import keras
import numpy as np
import pytest

from keras_bert_suite import BertBackbone, TextClassifier
from keras_bert_suite.layers import dense, eager_pass, rounded_weights
from keras_bert_suite.layers.attention import sequence_layout

pytestmark = pytest.mark.backend("torch")

CASES = {
    "mixed_bfloat16": {"dtype": "mixed_bfloat16"},
    "mixed_float16": {"dtype": "mixed_float16"},
    "bfloat16": {"dtype": "bfloat16"},
    "float32": {"dtype": "float32"},
    "blocks computed twice": {"dtype": "mixed_bfloat16", "remat": True},
    "LoRA": {"dtype": "mixed_bfloat16"},
}
#: How many weights are rounded at once: those of six products in each of two blocks. The dense
#: layers of Keras round their own, and a norm has weights in float32 on a CPU. Kernels beside LoRA
#: are rounded with it.
ROUNDED = {"mixed_bfloat16": 24, "mixed_float16": 24, "LoRA": 22}


def make_classifier(**arguments):
    keras.utils.set_random_seed(0)
    backbone = BertBackbone(40, 2, 2, 16, 24, dropout=0.0, attention_dropout=0.0, **arguments)
    return TextClassifier(backbone, num_classes=2, dropout=0.0)


def make_batch():
    rng = np.random.default_rng(0)
    mask = np.array([[1] * 6, [1] * 4 + [0] * 2])
    ids = rng.integers(5, 40, (2, 6)) * mask
    return {"token_ids": ids, "segment_ids": np.zeros_like(ids), "padding_mask": mask}


def compute(classifier, seen):
    """The logits, and the gradient of each weight."""
    round_all, numbers = rounded_weights._round, []

    def count(variables, dtype):
        numbers.append(len(variables))
        return round_all(variables, dtype)

    rounded_weights._round = count
    try:
        for variable in classifier.trainable_variables:
            variable.value.grad = None
        logits = classifier(make_batch(), training=True)
        logits.float().sin().sum().backward()
    finally:
        rounded_weights._round = round_all
    seen.append(sum(numbers))
    gradients = {v.path: v.value.grad for v in classifier.trainable_variables}
    return logits.detach(), {path: g.clone() for path, g in gradients.items() if g is not None}


@pytest.mark.parametrize("case", CASES)
def test_outputs_and_gradients(case, monkeypatch):
    import torch

    classifier, seen = make_classifier(**CASES[case]), []
    if case == "LoRA":
        layer = classifier.backbone.transformer_layers[0].intermediate
        layer.enable_lora(2)
        layer.lora_kernel_b.assign(np.full(layer.lora_kernel_b.shape, 0.1))
    logits, gradients = compute(classifier, seen)
    monkeypatch.setattr(sequence_layout, "eager_pass", lambda *_: contextlib.nullcontext())
    wanted, wanted_gradients = compute(classifier, seen)
    assert torch.equal(logits, wanted)
    assert gradients.keys() == wanted_gradients.keys() and len(gradients) > 20
    for path, gradient in gradients.items():
        torch.testing.assert_close(gradient, wanted_gradients[path], msg=path)
    assert seen == [ROUNDED.get(case, 0), 0]


def test_a_weight_that_changes_is_rounded_anew():
    classifier = make_classifier(dtype="mixed_bfloat16")
    first = classifier(make_batch(), training=False)
    kernel = classifier.backbone.transformer_layers[0].intermediate.kernel
    kernel.assign(kernel.value * 2)
    assert not np.array_equal(first.detach(), classifier(make_batch(), training=False).detach())


def test_frozen_weights_ask_for_no_gradient(monkeypatch):
    """Otherwise the activations of frozen blocks would be kept for gradients that nobody wants."""
    classifier = make_classifier(dtype="mixed_bfloat16")
    classifier.backbone.embeddings.trainable = False
    classifier.backbone.transformer_layers[0].trainable = False
    linear, asked = dense.linear, []

    def note(x, kernel, *others, **more):
        asked.append(kernel.requires_grad)
        return linear(x, kernel, *others, **more)

    monkeypatch.setattr(dense, "linear", note)
    classifier(make_batch(), training=True)
    assert asked == [False] * 6 + [True] * 6


def test_a_call_that_fails_leaves_nothing_behind(monkeypatch):
    classifier = make_classifier(dtype="mixed_bfloat16")
    monkeypatch.setattr(dense, "linear", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        classifier(make_batch(), training=False)
    assert not vars(eager_pass._passes)


def test_gradients_of_gradients():
    import torch

    kernel = keras.Variable(np.arange(6.0, dtype="float32").reshape(2, 3))
    (rounded,) = rounded_weights._round([kernel], "bfloat16")
    (gradient,) = torch.autograd.grad((rounded.float() ** 3).sum(), kernel.value, create_graph=True)
    (second,) = torch.autograd.grad(gradient.sum(), kernel.value)
    np.testing.assert_allclose(second.numpy(), 6 * np.arange(6.0).reshape(2, 3))
