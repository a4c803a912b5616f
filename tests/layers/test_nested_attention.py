"""Attention within packed rows by nested tensors, on a CPU, where PyTorch computes the formula."""

import keras
import numpy as np
import pytest
from peer_weights import to_numpy

from keras_bert_suite.layers import SequenceLayout, SequenceOffsets
from keras_bert_suite.layers.attention import nested_attention
from keras_bert_suite.layers.attention.attention_kernels import fused_attention, plain_attention

if keras.config.backend() != "torch":
    pytest.skip("Nested tensors are PyTorch's.", allow_module_level=True)

import torch

R, HEADS, W, D = 2, 3, 6, 4
ROWS = torch.tensor([[4, 4, 1, 0, 0, -1], [2, 2, 2, 2, 2, 2]])


def make_qkv(dtype=torch.float32):
    generator = torch.Generator().manual_seed(0)
    return [
        # In the way of `SelfAttention`: the heads are split from the last axis.
        torch.randn(R, W, HEADS, D, generator=generator).to(dtype).transpose(1, 2).requires_grad_()
        for _ in range(3)
    ]


def test_where_sequences_begin():
    assert nested_attention.locate_sequences(ROWS).tolist() == [0, 2, 3, 5, 6, 12]


def test_it_is_the_formula_with_a_mask():
    mask = (ROWS[:, :, None] == ROWS[:, None, :])[:, None]
    offsets = nested_attention.locate_sequences(ROWS)
    results = []
    for attend in (
        lambda *qkv: fused_attention(qkv[0], 0.0, offsets)(*qkv, mask, 0.0),
        lambda *qkv: plain_attention(*qkv, mask),
    ):
        qkv = make_qkv()
        context = attend(*qkv)
        assert context.shape == (R, HEADS, W, D)
        gradients = torch.autograd.grad((context.sin() ** 2).sum(), qkv)
        results.append([to_numpy(x) for x in (context.detach(), *gradients)])
    for got, wanted in zip(*results, strict=True):
        np.testing.assert_allclose(got, wanted, atol=1e-5)


def test_dropout_drops_its_rate():
    """All scores 0 and all values 1: an output is the sum of the probabilities that are left."""
    zeros, ones = torch.zeros(1, 4, 64, 8), torch.ones(1, 4, 64, 8)
    offsets = torch.tensor([0, 64])
    attend = nested_attention.attend_within_sequences
    kept = attend(zeros, zeros, ones, offsets, 0.25)[..., 0] * 64 * 0.75
    torch.testing.assert_close(kept, kept.round(), atol=1e-3, rtol=0)
    assert abs(kept.mean() / 64 - 0.75) < 0.02


def test_a_cpu_keeps_the_mask():
    mask = torch.ones((2, 3), dtype=torch.int32)
    layout = SequenceLayout.read(torch.tensor([[0, 1, 2, 3, 4, 5]]), mask)
    assert SequenceOffsets()(mask, sequence_layout=layout).shape == (0,)
