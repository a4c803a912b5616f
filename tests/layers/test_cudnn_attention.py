"""cuDNN's attention under JAX, as far as a CPU can show it.

A program for CUDA is lowered on a CPU, so it can be read. What the kernel computes is replaced: by
XLA's implementation of the same public function, and by the documented meaning of offsets.
"""

import json
import re

import keras
import numpy as np
import pytest
from keras import ops
from peer_weights import to_numpy

from keras_bert_suite import BertBackbone, ModernBertBackbone
from keras_bert_suite.layers import SequenceLayout
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
    """Lets JAX take this machine for one with a GPU."""
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


def attend(dropout=0.0, offsets=None):
    def function(query, key, value, mask=None):
        kernel = fused_attention(query, dropout, offsets)
        return (kernel or plain_attention)(query, key, value, mask, *[dropout] * bool(kernel))

    return function


def has_square(program, *sizes):
    """Whether a program has an array of these sizes."""
    return f"tensor<{'x'.join(map(str, sizes))}x" in program


def test_lengths_replace_the_mask(hopper):
    offsets = jnp.asarray([32, 5, 0], "int32")
    mask = jnp.arange(L)[None, None, None] < offsets[:, None, None, None]
    calls, program = read_calls(attend(offsets=offsets), *make_qkv(), mask)
    (config,) = calls.values()
    assert list(calls) == ["__cudnn$fmhaSoftmax"]
    assert (config["mask_type"], config["dropout_rate"]) == ("PADDING", 0.0)
    assert config["fmha_scale"] == pytest.approx(D**-0.5)
    assert not re.search(rf"tensor<[\dx]*{L}x{L}x(?!.*custom_call)", program)


def test_offsets_replace_the_mask(hopper):
    rows = jnp.asarray([[0] * 20 + [1] * 12, [2] * 30 + [-1] * 2], "int32")
    offsets = cudnn_attention.locate_sequences(rows, 3)
    mask = (rows[:, :, None] == rows[:, None, :])[:, None]
    qkv = make_qkv(shape=(2, HEADS, L, D))
    calls, program = read_calls(lambda q, k, v: attend(offsets=offsets)(q, k, v, mask), *qkv)
    assert list(calls) == ["__cudnn$fmhaSoftmax"]
    assert calls["__cudnn$fmhaSoftmax"]["max_seg_per_batch"] == 4
    assert calls["__cudnn$fmhaSoftmax"]["mask_type"] == "NO_MASK"
    assert not has_square(program, 2, HEADS, L, L)


def test_the_gradient_is_a_kernel_too(hopper):
    lengths = jnp.asarray([32, 5, 0], "int32")
    loss = lambda *qkv: attend(offsets=lengths)(*qkv).astype("float32").sum()  # noqa: E731
    calls, program = read_calls(jax.grad(loss, argnums=(0, 1, 2)), *make_qkv())
    assert set(calls) == {"__cudnn$fmhaSoftmax", "__cudnn$fmhaSoftmaxBackward"}
    assert {config["mask_type"] for config in calls.values()} == {"PADDING"}
    assert not has_square(program, B, HEADS, L, L)


@pytest.mark.parametrize("heads", [1, HEADS])
def test_a_mask_is_a_bias(hopper, heads):
    """Without heads of its own it is not repeated for each head."""
    mask = jnp.ones((B, heads, 1, L), "bool")
    calls, program = read_calls(attend(), *make_qkv(), mask)
    assert list(calls) == ["__cudnn$fmhaScaleBiasSoftmax"]
    assert has_square(program, B, heads, L, L)
    assert has_square(program, B, HEADS, L, L) == (heads == HEADS)


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
    lengths = jnp.asarray([32, 5, 0], "int32")
    calls, _ = read_calls(attend(dropout, lengths), *make_qkv(dtype, shape))
    assert not calls


@pytest.mark.parametrize(
    ("machine", "takes"),
    [
        (dict(capability=(9, 0), version=90600), ["mask", "lengths", "offsets"]),
        (dict(capability=(9, 0), version=90500), ["mask", "lengths"]),
        (dict(capability=(8, 0)), ["mask", "lengths"]),
        (dict(capability=(7, 5)), []),
    ],
    ids=str,
)
def test_gpus(monkeypatch, machine, takes):
    pretend(monkeypatch, **machine)
    rows = jnp.asarray([[0] * 20 + [1] * 12] * B, "int32")
    cases = {
        "mask": None,
        "lengths": jnp.full(B, 5, "int32"),
        "offsets": cudnn_attention.locate_sequences(rows, 2),
    }
    # Where a kernel does not take offsets, it may still take the mask, of which there is none here.
    marks = {"mask": ("NO_MASK", 1), "lengths": ("PADDING", 1), "offsets": ("NO_MASK", 3)}
    taken = []
    for name, offsets in cases.items():
        calls, _ = read_calls(attend(offsets=offsets), *make_qkv())
        for config in calls.values():
            if (config["mask_type"], config["max_seg_per_batch"]) == marks[name]:
                taken.append(name)
    assert taken == takes


def test_without_cudnn_the_formula_stands(monkeypatch):
    def fail():
        raise RuntimeError("cuDNN is not detected.")

    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    monkeypatch.setattr(cudnn, "check_cudnn_version", fail)
    assert not cudnn_attention.takes_heads(D, "bfloat16")
    pretend(monkeypatch)
    assert cudnn_attention.takes_heads(D, "bfloat16")
    monkeypatch.setattr(cudnn_attention, "_import_cudnn", lambda: None)
    assert not cudnn_attention.takes_heads(D, "bfloat16")
    assert not read_calls(attend(), *make_qkv())[0]


def test_odd_lengths_have_no_bias(hopper):
    """For the gradient of a bias, cuDNN wants even lengths."""
    qkv = make_qkv(shape=(B, HEADS, 7, D))
    assert not read_calls(attend(), *qkv, jnp.ones((B, 1, 1, 7), "bool"))[0]
    assert read_calls(attend(), *qkv)[0]


#: Two packed rows with tokens of rows 4, 1 and 0 of the batch, and of row 2.
ROWS = jnp.asarray([[4, 4, 1, 0, 0, -1], [2, 2, 2, 2, 2, 2]], "int32")
OFFSETS = [[0, 2, 3, 5, -1, -1, -1], [0, -1, -1, -1, -1, -1, -1]]
LENGTHS = [[2, 1, 2, 1, -1, -1], [6, -1, -1, -1, -1, -1]]


def test_where_sequences_begin():
    offsets = cudnn_attention.locate_sequences(ROWS, 5)
    np.testing.assert_array_equal(offsets, OFFSETS)
    np.testing.assert_array_equal(cudnn_attention.measure_sequences(offsets, 6), LENGTHS)
    # More rows of the batch than places: each place could begin a sequence.
    np.testing.assert_array_equal(cudnn_attention.locate_sequences(ROWS, 50), OFFSETS)
    every = cudnn_attention.locate_sequences(jnp.asarray([[0, 1, 2]], "int32"), 3)
    np.testing.assert_array_equal(every, [[0, 1, 2, -1]])


def test_what_jax_hands_to_cudnn():
    """Each sequence of all rows once, with its length, and the end of the last one."""
    offsets = cudnn_attention.locate_sequences(ROWS, 5)
    lengths = cudnn_attention.measure_sequences(offsets, 6)
    array = jnp.zeros((2, 6, 3, 8))  # 3 heads of 8 features: 24 numbers a place.
    got_lengths, _, got_offsets, _ = cudnn._fix_seqlen_offsets(
        lengths, lengths, offsets, offsets, array, array
    )
    np.testing.assert_array_equal(got_lengths.ravel()[:6], [2, 1, 2, 1, 6, 0])
    np.testing.assert_array_equal(got_offsets.ravel()[:6] // 24, [0, 2, 3, 5, 6, 12])


@pytest.fixture
def emulated(monkeypatch):
    """Computes on a CPU, in any dtype, what the kernels are documented to compute."""
    public = jax.nn.dot_product_attention

    def attend_in_xla(*arguments, implementation, **kwargs):
        return public(*arguments, **kwargs, implementation="xla")

    def attend_by_offsets(q, k, v, q_seqlen, kv_seqlen, q_offsets, kv_offsets, scale, mask_type):
        assert mask_type == cudnn.MaskType.NO_MASK
        assert q_seqlen is kv_seqlen and q_offsets is kv_offsets
        place = jnp.arange(q.shape[1])
        begins, lengths = q_offsets[:, :-1, None], q_seqlen[:, :, None]
        within = (place >= begins) & (place < begins + lengths) & (lengths > 0)  # (R, M, W)
        mask = jnp.einsum("rmi,rmj->rij", within, within)[:, None]
        return public(q, k, v, mask=mask, scale=scale, implementation="xla")

    monkeypatch.setattr(jax.nn, "dot_product_attention", attend_in_xla)
    monkeypatch.setattr(cudnn, "dot_product_attention", attend_by_offsets)
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    monkeypatch.setattr(cudnn_attention, "_takes", lambda *_, **__: True)


def check_gradients(kernel, mask, qkv, wanted_rows=slice(None)):
    """A kernel and the formula have the same values and gradients."""

    def run(function):
        loss = lambda *qkv: (jnp.sin(function(*qkv))[wanted_rows] ** 2).sum()  # noqa: E731
        return [function(*qkv)[wanted_rows], *jax.grad(loss, argnums=(0, 1, 2))(*qkv)]

    wanted = run(lambda *qkv: plain_attention(*qkv, mask))
    for a, b in zip(run(kernel), wanted, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)


def test_lengths_mean_the_mask(emulated):
    lengths = jnp.asarray([32, 5, 0], "int32")
    mask = (jnp.arange(L) < lengths[:, None])[:, None, None]
    kernel = attend(offsets=lengths)
    # The last row has no key to look at. It is finite, and nothing more.
    assert np.isfinite(kernel(*make_qkv("float32"))).all()
    check_gradients(kernel, mask, make_qkv("float32"), slice(2))


def test_offsets_mean_the_mask(emulated):
    offsets = cudnn_attention.locate_sequences(ROWS, 5)
    mask = (ROWS[:, :, None] == ROWS[:, None, :])[:, None]
    check_gradients(attend(offsets=offsets), mask, make_qkv("float32", (2, HEADS, 6, D)))


PADDING = np.array([[0, 0, 1, 1, 0, 1], [1, 1, 1, 1, 1, 1], [1, 1, 0, 0, 0, 0]], "int32")


def test_aligned_rows():
    layout = SequenceLayout.align(jnp.asarray(PADDING))
    np.testing.assert_array_equal(layout.lengths, [3, 6, 2])
    np.testing.assert_array_equal(
        layout.positions, [[2, 3, 5, 0, 0, 0], [0, 1, 2, 3, 4, 5], [0, 1, 0, 0, 0, 0]]
    )
    np.testing.assert_array_equal(layout.pack(jnp.asarray(PADDING)), layout.visible)


def make_backbone(dtype="float32", kind=BertBackbone, **arguments):
    keras.utils.set_random_seed(0)
    return kind(
        vocabulary_size=30,
        num_layers=2,
        num_heads=2,
        hidden_dim=2 * D,
        intermediate_dim=8,
        dtype=dtype,
        **arguments,
    )


def make_inputs(mask):
    ids = np.random.default_rng(0).integers(1, 30, mask.shape).astype("int32")
    return {"token_ids": ids, "segment_ids": ids % 2, "padding_mask": mask}


def test_a_model_looks_at_its_tokens_wherever_the_padding_is(emulated, monkeypatch):
    backbone, inputs = make_backbone(dropout=0.0), make_inputs(PADDING)
    aligned = backbone(inputs)["sequence_output"]
    monkeypatch.setattr(BertBackbone, "takes_lengths", lambda _: False)
    masked = backbone(inputs)["sequence_output"]
    tokens = PADDING == 1
    np.testing.assert_allclose(to_numpy(aligned)[tokens], to_numpy(masked)[tokens], atol=1e-5)
    assert not to_numpy(aligned)[~tokens].any()
    assert to_numpy(masked)[~tokens].any()


#: A ModernBERT whose layers are all global.
GLOBAL_LAYERS = {"kind": ModernBertBackbone, "layer_types": ["full_attention"] * 2}


@pytest.mark.parametrize(("packed", "arguments"), [(False, {}), (True, {}), (True, GLOBAL_LAYERS)])
def test_a_model_has_no_mask_of_pairs(hopper, packed, arguments):
    backbone = make_backbone("mixed_bfloat16", **arguments)
    inputs = make_inputs(np.tile(PADDING, (1, 4)))  # 3 rows of 24 places
    if packed:
        layout = np.full((2, 40), -1, "int32")
        layout[0, :12], layout[1, :32] = np.arange(12), np.arange(24, 56)
        inputs["sequence_layout"] = layout
    state = [variable.value for variable in backbone.variables]

    def run(state, inputs):
        scope = keras.StatelessScope(list(zip(backbone.variables, state, strict=True)))
        with scope:
            return backbone(inputs)["sequence_output"]

    calls, program = read_calls(
        run, state, {k: ops.convert_to_tensor(v) for k, v in inputs.items()}
    )
    assert program.count("@__cudnn$fmhaSoftmax(") == 2
    (config,) = calls.values()
    assert config["mask_type"] == ("NO_MASK" if packed else "PADDING")
    assert config["max_seg_per_batch"] == (4 if packed else 1)
    assert not re.search(r"custom_call @__cudnn\$fmhaScaleBias", program)
