"""cuDNN's attention under JAX, as far as a CPU can show it.

A program for CUDA is lowered on a CPU, so it can be read. What the kernel computes is replaced: by
XLA's implementation of the same public function.
"""

import json
import re

import keras
import numpy as np
import pytest
from keras import ops

from keras_bert_suite import BertBackbone, ModernBertBackbone
from keras_bert_suite.layers.attention import cudnn_attention
from keras_bert_suite.layers.attention.attention_kernels import fused_attention, plain_attention

if keras.config.backend() != "jax":
    pytest.skip("cuDNN is called under JAX only.", allow_module_level=True)

import jax
import jax.numpy as jnp
from jax._src.cudnn import fused_attention_stablehlo as cudnn

pytestmark = pytest.mark.backend("jax")

B, HEADS, L, D = 3, 2, 32, 16


def pretend(monkeypatch, version=90800, capability=(9, 0)):
    """Lets JAX take this machine for one with a GPU, and rows for long."""
    monkeypatch.setattr(cudnn_attention, "FEWEST_KEYS", 1)
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    monkeypatch.setattr(cudnn, "check_cudnn_version", lambda: version)
    monkeypatch.setattr(
        cudnn,
        "check_compute_capability",
        lambda wanted: capability >= tuple(map(int, wanted.split("."))),
    )


@pytest.fixture
def hopper(monkeypatch):
    pretend(monkeypatch)


def read_calls(function, *arguments):
    """(configurations of cuDNN's kernels by their names, program) of a function for CUDA."""
    program = jax.jit(function).trace(*arguments).lower(lowering_platforms=("cuda",)).as_text()
    calls = re.findall(r"@(__cudnn\$\w+)\(.*backend_config = \"((?:[^\"\\]|\\.)*)\"", program)
    texts = {name: text.replace("\\22", '"') for name, text in calls}
    return {n: json.loads(t)["cudnn_fmha_backend_config"] for n, t in texts.items()}, program


def make_qkv(dtype="bfloat16", shape=(B, HEADS, L, D)):
    rng = np.random.default_rng(0)
    return [jnp.asarray(2 * rng.standard_normal(shape), dtype=dtype) for _ in range(3)]


def attend(dropout=0.0):
    def function(query, key, value, mask=None):
        kernel = fused_attention(query, dropout)
        return (kernel or plain_attention)(query, key, value, mask, *[dropout] * bool(kernel))

    return function


def has_square(program, *sizes):
    """Whether a program has an array of these sizes."""
    return f"tensor<{'x'.join(map(str, sizes))}x" in program


#: The padding stands anywhere. The last row has no key to look at.
PADDING = np.ones((B, L), bool)
PADDING[0, [0, 3, 4, 20]], PADDING[1, 5:], PADDING[2] = False, False, False


def test_lengths_replace_the_mask(hopper):
    calls, program = read_calls(attend(), *make_qkv(), jnp.asarray(PADDING)[:, None, None])
    (config,) = calls.values()
    assert list(calls) == ["__cudnn$fmhaSoftmax"]
    assert (config["mask_type"], config["dropout_rate"]) == ("PADDING", 0.0)
    assert config["fmha_scale"] == pytest.approx(D**-0.5)
    assert not re.search(rf"tensor<[\dx]*{L}x{L}x(?!.*custom_call)", program)


def test_the_gradient_is_a_kernel_too(hopper):
    mask = jnp.asarray(PADDING)[:, None, None]
    loss = lambda *qkv: attend()(*qkv, mask).astype("float32").sum()  # noqa: E731
    calls, program = read_calls(jax.grad(loss, argnums=(0, 1, 2)), *make_qkv())
    assert set(calls) == {"__cudnn$fmhaSoftmax", "__cudnn$fmhaSoftmaxBackward"}
    assert {config["mask_type"] for config in calls.values()} == {"PADDING"}
    assert not has_square(program, B, HEADS, L, L)


@pytest.mark.parametrize(
    ("case", "shape", "dtype", "dropout"),
    [
        ("dropout", (B, HEADS, L, D), "bfloat16", 0.1),
        ("float32", (B, HEADS, L, D), "float32", 0.0),
        ("heads of 12", (B, HEADS, L, 12), "bfloat16", 0.0),
        ("heads of 264", (B, HEADS, L, 264), "bfloat16", 0.0),
    ],
)
def test_what_cudnn_does_not_take(hopper, case, shape, dtype, dropout):
    mask = jnp.asarray(PADDING)[:, None, None]
    calls, _ = read_calls(attend(dropout), *make_qkv(dtype, shape), mask)
    assert not calls


@pytest.mark.parametrize(("capability", "takes"), [((9, 0), True), ((8, 0), True), ((7, 5), False)])
def test_gpus(monkeypatch, capability, takes):
    pretend(monkeypatch, capability=capability)
    for mask in (None, jnp.asarray(PADDING)[:, None, None]):
        assert bool(read_calls(attend(), *make_qkv(), mask)[0]) == takes


def test_without_cudnn_the_formula_stands(monkeypatch):
    def fail():
        raise RuntimeError("cuDNN is not detected.")

    pretend(monkeypatch)
    monkeypatch.setattr(cudnn, "check_cudnn_version", fail)
    assert not read_calls(attend(), *make_qkv())[0]


def test_a_mask_of_pairs_is_left_to_the_formula(hopper):
    assert not read_calls(attend(), *make_qkv(), jnp.ones((B, 1, L, L), "bool"))[0]


@pytest.mark.parametrize(("length", "takes"), [(255, False), (256, True)])
def test_short_rows_are_left_to_the_formula(hopper, monkeypatch, length, takes):
    monkeypatch.setattr(cudnn_attention, "FEWEST_KEYS", 256)
    mask = jnp.ones((B, 1, 1, length), "bool")
    qkv = make_qkv(shape=(B, HEADS, length, D))
    assert bool(read_calls(attend(), *qkv, mask)[0]) == takes


@pytest.fixture
def emulated(monkeypatch):
    """Computes on a CPU, in any dtype, what the kernels are documented to compute."""
    public = jax.nn.dot_product_attention

    def attend_in_xla(*arguments, implementation, **kwargs):
        return public(*arguments, **kwargs, implementation="xla")

    monkeypatch.setattr(jax.nn, "dot_product_attention", attend_in_xla)
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    monkeypatch.setattr(cudnn_attention, "FEWEST_KEYS", 1)
    monkeypatch.setattr(cudnn_attention, "_takes", lambda *_: True)


def check_gradients(kernel, mask, qkv, wanted_rows=slice(None)):
    """A kernel and the formula have the same values and gradients."""

    def run(function):
        loss = lambda *qkv: (jnp.sin(function(*qkv))[wanted_rows] ** 2).sum()  # noqa: E731
        return [function(*qkv)[wanted_rows], *jax.grad(loss, argnums=(0, 1, 2))(*qkv)]

    wanted = jax.jit(lambda: run(lambda *qkv: plain_attention(*qkv, mask)))()
    for a, b in zip(jax.jit(lambda: run(kernel))(), wanted, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)


def test_lengths_mean_the_mask(emulated):
    mask = jnp.asarray(PADDING)[:, None, None]
    # The output of a row without a key is finite, and nothing more.
    assert np.isfinite(attend()(*make_qkv("float32"), mask)).all()
    check_gradients(lambda *qkv: attend()(*qkv, mask), mask, make_qkv("float32"), slice(2))


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [(BertBackbone, {}), (ModernBertBackbone, {"layer_types": ["full_attention"] * 2})],
)
def test_a_model_has_no_mask_of_pairs(hopper, kind, arguments):
    backbone = kind(30, 2, 2, 2 * D, 8, dtype="mixed_bfloat16", **arguments)
    ids = np.random.default_rng(0).integers(1, 30, PADDING.shape).astype("int32")
    inputs = {"token_ids": ids, "segment_ids": ids % 2, "padding_mask": PADDING.astype("int32")}
    state = [variable.value for variable in backbone.variables]

    def run(state, inputs):
        with keras.StatelessScope(list(zip(backbone.variables, state, strict=True))):
            return backbone(inputs)["sequence_output"]

    calls, program = read_calls(
        run, state, {k: ops.convert_to_tensor(v) for k, v in inputs.items()}
    )
    assert program.count("@__cudnn$fmhaSoftmax(") == 2
    assert {config["mask_type"] for config in calls.values()} == {"PADDING"}
    assert not re.search(r"custom_call @__cudnn\$fmhaScaleBias", program)
