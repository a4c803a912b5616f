"""A step that computes its blocks a second time is the step that keeps their activations."""

import itertools

import keras
import numpy as np
import pytest
from peer_weights import to_numpy

import keras_bert_suite as kbs
from keras_bert_suite.layers import transformer_block

SHAPE = (4, 12)


def make_task(dtype="float32", dropout=0.1, backbone=kbs.BertBackbone, **kwargs):
    backbone = backbone(
        vocabulary_size=30,
        num_layers=2,
        num_heads=2,
        hidden_dim=8,
        intermediate_dim=16,
        dropout=dropout,
        dtype=dtype,
        **kwargs,
    )
    return kbs.TextClassifier(backbone, num_classes=2)


def make_rows():
    rng = np.random.default_rng(0)
    lengths = np.array([12, 3, 7, 5])
    mask = (np.arange(SHAPE[1]) < lengths[:, None]).astype("int32")
    ids = rng.integers(1, 30, SHAPE).astype("int32") * mask
    rows = {"token_ids": ids, "segment_ids": np.zeros(SHAPE, "int32"), "padding_mask": mask}
    return rows, np.arange(SHAPE[0]) % 2


def train(task, remat, values, **kwargs):
    """The weights and random states after two steps from given values of all variables."""
    task.backbone.remat = remat
    for variable, value in zip(task.variables, values, strict=True):
        variable.assign(value)
    keras.utils.set_random_seed(0)  # PyTorch draws dropout from a generator of its own.
    task.compile(keras.optimizers.SGD(0.5))
    task.fit(*make_rows(), batch_size=4, epochs=2, shuffle=False, verbose=0, **kwargs)
    return [to_numpy(variable).astype("float32") for variable in task.variables]


def check(task, monkeypatch, tolerance=1e-5, **kwargs):
    calls = []
    recompute = transformer_block.recompute
    monkeypatch.setattr(
        transformer_block, "recompute", lambda *args: calls.append(args) or recompute(*args)
    )
    values = [to_numpy(variable) for variable in task.variables]
    wanted = train(task, False, values, **kwargs)
    assert not calls
    got = train(task, True, values, **kwargs)
    assert calls
    moved = 0
    for variable, a, b, old in zip(task.variables, got, wanted, values, strict=True):
        np.testing.assert_allclose(a, b, atol=tolerance, err_msg=variable.path)
        moved += bool((a != old).any())
    assert moved


@pytest.mark.parametrize(
    ("dtype", "dropout"),
    [*itertools.product(["float32", "mixed_bfloat16"], [0.0, 0.1])],
)
def test_same_step(dtype, dropout, monkeypatch):
    check(make_task(dtype, dropout), monkeypatch, 1e-5 if dtype == "float32" else 2e-2)


@pytest.mark.parametrize(
    "backbone",
    [
        *(kbs.BertBackbone, kbs.AlbertBackbone, kbs.NezhaBackbone, kbs.RoFormerBackbone),
        kbs.XLNetBackbone,
    ],
)
def test_same_step_on_packed_rows(backbone, monkeypatch):
    """Also if a block is called twice, and if positions of packed rows go through the block."""
    check(make_task(backbone=backbone), monkeypatch, sequence_packing=True)


def test_same_step_with_hashed_tokens(monkeypatch):
    hashing = kbs.layers.TokenHashing(chunk_length=4)
    check(make_task(hashing=hashing, max_sequence_length=16), monkeypatch)


@pytest.mark.parametrize("kind", ["frozen", "lora", "adapters", "adapted with dropout"])
def test_same_step_of_some_weights(kind, monkeypatch):
    task = make_task()
    if kind == "lora":
        task.backbone.transformer_layers[0].intermediate.enable_lora(2)
    elif kind == "frozen":
        task.backbone.transformer_layers[0].trainable = False
    elif kind == "adapters":
        task.adapt(kbs.HoulsbyAdapters(2))
    else:  # Of two adapters, the one that acts does so the second time, too.
        task.backbone.add_adapter(kbs.LoRA(2, targets=".*", dropout=0.5), "first")
        task.adapt(kbs.LoRA(2, targets=".*", dropout=0.5), "second")
        task.backbone.add_adapter(kbs.LoRA(3), "third")
    check(task, monkeypatch)


@pytest.mark.backend("torch")
def test_less_is_kept():
    import torch

    rows, _ = make_rows()
    sizes = []
    for remat in (False, True):
        task, kept = make_task(dropout=0.0, remat=remat), []
        with torch.autograd.graph.saved_tensors_hooks(
            lambda x, kept=kept: kept.append(x.numel()) or x, lambda x: x
        ):
            task({name: torch.from_numpy(x) for name, x in rows.items()}, training=True)
        sizes.append(sum(kept))
    assert sizes[1] < sizes[0] / 2
