"""`BertBackbone` against transformers, KerasHub and the published parameter counts."""

import itertools

import keras
import keras_hub
import numpy as np
import pytest
from checkers import BFLOAT16_TOLERANCE, check_backbone, evaluate, relative_error
from gradients import compute_gradients
from peer_weights import (
    assign,
    convert_keras_hub,
    convert_transformers,
    randomize,
    run_transformers,
    to_numpy,
    transformers_peer,
)
from tables import everywhere_for

import keras_bert_suite.layers.attention.self_attention as self_attention
from keras_bert_suite.layers import gelu_erf, gelu_tanh
from keras_bert_suite.models import (
    BERT_SIZES,
    AlbertBackbone,
    BertBackbone,
    ErnieBackbone,
    LongformerBackbone,
    ModernBertBackbone,
    NezhaBackbone,
    RobertaBackbone,
    RoFormerBackbone,
    XLNetBackbone,
)

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

BACKEND = keras.config.backend()
V = 60
SIZES = {
    "tiny": dict(num_layers=2, num_heads=2, hidden_dim=128, intermediate_dim=512),
    "deep": dict(num_layers=6, num_heads=8, hidden_dim=32, intermediate_dim=64),
    "odd": dict(num_layers=3, num_heads=3, hidden_dim=48, intermediate_dim=100),
}
SMALL = dict(vocabulary_size=V, num_layers=2, num_heads=2, hidden_dim=16, intermediate_dim=24)
RATES = ("dropout", "attention_dropout")
MODERN_RATES = ("embedding_dropout", "attention_dropout", "mlp_dropout")
HIDDEN_ACT = {"gelu_erf": "gelu", "gelu_tanh": "gelu_new"}


@pytest.fixture
def undrawn(monkeypatch):
    """Initial weights are 0 where a test replaces them: drawing them takes seconds."""
    zeros = keras.initializers.Zeros()
    monkeypatch.setattr(keras.initializers, "TruncatedNormal", lambda stddev: zeros)


def random_inputs(length=12, num_segments=2, seed=0):
    """One row each: no padding, padding after, before, and in holes.

    No token is 0: transformers never trains the embedding of its padding token.
    """
    rng = np.random.default_rng(seed)
    mask = np.ones((4, length), "int32")
    mask[1, length // 2 :] = length == 1
    mask[2, : length // 3] = 0
    mask[3, 1::3] = 0
    return {
        "token_ids": rng.integers(1, V, (4, length)).astype("int32"),
        "segment_ids": rng.integers(0, num_segments, (4, length)).astype("int32"),
        "padding_mask": mask,
    }


def transformers_config(
    num_layers,
    num_heads,
    hidden_dim,
    intermediate_dim,
    activation="gelu_tanh",
    vocabulary_size=V,
    max_sequence_length=512,
    num_segments=2,
    layer_norm_epsilon=1e-12,
    config_cls=transformers.BertConfig,
    **kwargs,
):
    """Our dials -> theirs."""
    return config_cls(
        vocab_size=vocabulary_size,
        num_hidden_layers=num_layers,
        num_attention_heads=num_heads,
        hidden_size=hidden_dim,
        intermediate_size=intermediate_dim,
        hidden_act=HIDDEN_ACT.get(activation, activation),
        max_position_embeddings=max_sequence_length,
        type_vocab_size=num_segments,
        layer_norm_eps=layer_norm_epsilon,
        **kwargs,
    )


def build_pair(dtype=None, output_hidden_states=False, **dials):
    """Ours, and `transformers.BertModel` with the same dials and weights."""
    dials = {"vocabulary_size": V, "max_sequence_length": 20, **dials}
    peer = transformers_peer(transformers.BertModel, transformers_config(**dials))
    ours = BertBackbone(**dials, dtype=dtype, output_hidden_states=output_hidden_states)
    assign(ours, convert_transformers(peer.state_dict()))
    return ours, peer


def assert_same_outputs(ours, theirs, atol=1e-5):
    """`theirs`: a transformers output."""
    for name, tensor in (
        ("sequence_output", theirs.last_hidden_state),
        ("pooled_output", theirs.pooler_output),
    ):
        np.testing.assert_allclose(
            to_numpy(ours[name]), tensor.detach().numpy(), rtol=0, atol=atol, err_msg=name
        )


# === What every backbone does ===


def test_basics(undrawn):
    check_backbone(
        BertBackbone,
        dict(
            **{**SMALL, "num_layers": 1},
            activation="gelu_erf",
            dropout=0.2,
            attention_dropout=0.1,
            max_sequence_length=40,
            num_segments=3,
            embedding_dim=8,
            layer_norm_epsilon=1e-5,
            initializer_range=0.05,
        ),
        random_inputs(num_segments=3),
        {"sequence_output": (4, 12, 16), "pooled_output": (4, 16)},
        may_stay=["key/bias"],
    )


def test_token_embedding_is_the_one_in_use(undrawn):
    backbone = BertBackbone(**SMALL)
    assert backbone.token_embedding is backbone.embeddings.token_embedding
    assert tuple(backbone.token_embedding.embeddings.shape) == (V, 16)


# === The same numbers as transformers ===


@pytest.mark.parametrize(
    ("size", "activation"),
    everywhere_for(
        itertools.product(SIZES, ["gelu_erf", "gelu_tanh"]),
        *(("tiny", "gelu_erf"), ("odd", "gelu_tanh")),
    ),
)
def test_equals_transformers(size, activation, undrawn):
    ours, peer = build_pair(**SIZES[size], activation=activation)
    for length in (12, 1) if size == "odd" else (12,):
        inputs = random_inputs(length)
        with torch.no_grad():
            assert_same_outputs(evaluate(ours, inputs), run_transformers(peer, inputs))


def test_the_comparison_would_see_the_wrong_gelu(undrawn):
    exact, peer = build_pair(**SIZES["odd"], activation="gelu_erf")
    approximate = BertBackbone(**SIZES["odd"], vocabulary_size=V, max_sequence_length=20)
    assign(approximate, convert_transformers(peer.state_dict()))
    a, b = (
        to_numpy(evaluate(model, random_inputs())["sequence_output"])
        for model in (exact, approximate)
    )
    assert np.abs(a - b).max() > 1e-4


@pytest.mark.parametrize(
    "dials",
    [
        dict(layer_norm_epsilon=0.1),
        dict(num_segments=5, max_sequence_length=12),
        dict(activation="relu"),
        dict(activation="silu"),
    ],
    ids=str,
)
def test_each_dial_equals_transformers(dials, undrawn):
    ours, peer = build_pair(**SIZES["odd"], **dials)
    inputs = random_inputs(num_segments=dials.get("num_segments", 2))
    with torch.no_grad():
        assert_same_outputs(evaluate(ours, inputs), run_transformers(peer, inputs))


def test_hidden_states_equal_transformers(undrawn):
    ours, peer = build_pair(**SIZES["odd"], output_hidden_states=True)
    inputs = random_inputs()
    with torch.no_grad():
        theirs = run_transformers(peer, inputs, output_hidden_states=True)
    outputs = evaluate(ours, inputs)
    assert_same_outputs(outputs, theirs)
    assert len(outputs["hidden_states"]) == SIZES["odd"]["num_layers"] + 1
    for got, expected in zip(outputs["hidden_states"], theirs.hidden_states, strict=True):
        np.testing.assert_allclose(to_numpy(got), expected.numpy(), rtol=0, atol=1e-5)
    assert ours.get_config()["output_hidden_states"] is True
    assert "hidden_states" not in BertBackbone(**SMALL).output


@pytest.mark.parametrize(
    "cls, name, value",
    [
        (BertBackbone, "output_hidden_states", True),
        (BertBackbone, "attention_pattern", "seq2seq"),
        (RobertaBackbone, "dropout", 0.5),
        (ModernBertBackbone, "pooling", "mean"),
        (RoFormerBackbone, "rotary_value", True),
    ],
)
def test_an_argument_of_a_built_model_cannot_be_set(cls, name, value):
    backbone = cls(**SMALL)
    old = getattr(backbone, name)
    setattr(backbone, name, old)
    with pytest.raises(AttributeError, match=f"{name}={old!r} has built this"):
        setattr(backbone, name, value)
    new = type(backbone).from_config({**backbone.get_config(), name: value})
    new.set_weights(backbone.get_weights())
    assert getattr(new, name) == value and getattr(backbone, name) == old


def test_what_a_subclass_keeps_after_it_was_built_is_its_own():
    class Named(BertBackbone):
        def __init__(self, *sizes, notes="none", **arguments):
            super().__init__(*sizes, **arguments)
            self.notes = notes

    backbone = Named(*SMALL.values(), notes="a")
    backbone.remat = True
    assert backbone.notes == "a" and backbone.remat


def test_narrow_embeddings_equal_electra(undrawn):
    """ELECTRA is a BERT whose embeddings may be narrower; transformers' BERT has no such dial."""
    dials = {"vocabulary_size": V, "max_sequence_length": 20, **SIZES["odd"]}
    config = transformers_config(
        **dials, activation="gelu_erf", config_cls=transformers.ElectraConfig, embedding_size=16
    )
    peer = transformers_peer(transformers.ElectraModel, config)
    ours = BertBackbone(**dials, activation="gelu_erf", embedding_dim=16)
    arrays = convert_transformers(peer.state_dict())
    arrays |= {v.path: to_numpy(v) for v in ours.pooler.weights}  # ELECTRA has no pooler
    assign(ours, arrays)
    inputs = random_inputs()
    with torch.no_grad():
        expected = run_transformers(peer, inputs).last_hidden_state.numpy()
    got = to_numpy(evaluate(ours, inputs)["sequence_output"])
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    ("policy", "activation"), [("bfloat16", "gelu_erf"), ("mixed_bfloat16", "gelu_tanh")]
)
def test_bfloat16_is_near_transformers_float32(policy, activation, undrawn):
    ours, peer = build_pair(**SIZES["tiny"], activation=activation, dtype=policy)
    inputs = random_inputs()
    with torch.no_grad():
        theirs = run_transformers(peer, inputs)
    outputs = evaluate(ours, inputs)
    for name, expected in (
        ("sequence_output", theirs.last_hidden_state),
        ("pooled_output", theirs.pooler_output),
    ):
        assert keras.backend.standardize_dtype(outputs[name].dtype) == "bfloat16"
        assert relative_error(to_numpy(outputs[name]), expected.numpy()) < BFLOAT16_TOLERANCE


# === The same numbers as KerasHub ===


@pytest.mark.parametrize("size", SIZES)
def test_equals_keras_hub(size, undrawn):
    dials = {"vocabulary_size": V, "max_sequence_length": 20, "num_segments": 3, **SIZES[size]}
    peer = randomize(keras_hub.models.BertBackbone(**dials))
    ours = BertBackbone(**dials, activation="gelu_tanh")  # KerasHub has no other
    assign(ours, convert_keras_hub(peer))
    inputs = random_inputs(num_segments=3)
    outputs, expected = evaluate(ours, inputs), evaluate(peer, inputs)
    assert outputs.keys() == expected.keys()
    for name in expected:
        np.testing.assert_allclose(
            to_numpy(outputs[name]), to_numpy(expected[name]), rtol=0, atol=1e-5, err_msg=name
        )


def test_inputs_are_keras_hubs(undrawn):
    peer = keras_hub.models.BertBackbone(**SMALL)
    ours = BertBackbone(**SMALL)
    assert {k: (x.shape, x.dtype) for k, x in ours.input.items()} == {
        k: (x.shape, x.dtype) for k, x in peer.input.items()
    }


# === Gradients ===


def random_weighting(size, length=12):
    """Weights of a sum over both outputs, of the size of a loss's gradient."""
    rng = np.random.default_rng(2)
    hidden_dim = SIZES[size]["hidden_dim"]
    return {
        "sequence_output": 0.1 * rng.standard_normal((4, length, hidden_dim)).astype("float32"),
        "pooled_output": 0.1 * rng.standard_normal((4, hidden_dim)).astype("float32"),
    }


@pytest.mark.parametrize(
    ("size", "activation"),
    everywhere_for([("tiny", "gelu_erf"), ("odd", "gelu_tanh")], ("odd", "gelu_tanh")),
)
def test_gradients_equal_transformers(size, activation, undrawn):
    ours, peer = build_pair(**SIZES[size], activation=activation)
    inputs, weighting = random_inputs(), random_weighting(size)
    theirs = run_transformers(peer, inputs)
    total = (theirs.last_hidden_state * torch.from_numpy(weighting["sequence_output"])).sum()
    (total + (theirs.pooler_output * torch.from_numpy(weighting["pooled_output"])).sum()).backward()
    expected = convert_transformers({name: p.grad for name, p in peer.named_parameters()})
    got = compute_gradients(ours, inputs, weighting)
    assert got.keys() == expected.keys()
    for path, gradient in expected.items():
        # The key's bias has no gradient but rounding's.
        scale = max(np.abs(gradient).max(), 0.1)
        np.testing.assert_allclose(got[path], gradient, rtol=0, atol=1e-5 * scale, err_msg=path)


# === Padding ===


@pytest.mark.every_backend
def test_a_fully_padded_row_stays_finite(undrawn):
    backbone = randomize(BertBackbone(**SMALL))
    inputs = random_inputs()
    expected = to_numpy(evaluate(backbone, inputs)["sequence_output"])
    inputs["padding_mask"][1] = 0
    outputs = evaluate(backbone, inputs)
    assert np.isfinite(to_numpy(outputs["sequence_output"])).all()
    assert np.isfinite(to_numpy(outputs["pooled_output"])).all()
    others = [0, 2, 3]
    got = to_numpy(outputs["sequence_output"])
    np.testing.assert_allclose(got[others], expected[others], rtol=0, atol=1e-6)
    weighting = {"pooled_output": np.ones((4, 16), "float32")}
    for path, gradient in compute_gradients(backbone, inputs, weighting).items():
        assert np.isfinite(gradient).all(), path


@pytest.mark.parametrize("policy", ["bfloat16", "float16"])
def test_a_fully_padded_row_stays_finite_in_half_precision(policy):
    backbone = BertBackbone(**SMALL, dtype=policy)
    inputs = random_inputs()
    inputs["padding_mask"][1] = 0
    for output in evaluate(backbone, inputs).values():
        assert np.isfinite(to_numpy(output)).all()


@pytest.mark.every_backend
def test_padding_is_never_seen(undrawn):
    backbone = randomize(BertBackbone(**SMALL))
    inputs = random_inputs()
    seen = inputs["padding_mask"] == 1
    others = {**inputs, "token_ids": np.where(seen, inputs["token_ids"], V - 1).astype("int32")}
    assert (others["token_ids"] != inputs["token_ids"]).any()
    np.testing.assert_allclose(
        to_numpy(evaluate(backbone, inputs)["sequence_output"])[seen],
        to_numpy(evaluate(backbone, others)["sequence_output"])[seen],
        rtol=0,
        atol=1e-6,
    )


# === Dropout ===


@pytest.mark.skipif(BACKEND == "tensorflow", reason="TensorFlow has no fused kernel")
@pytest.mark.parametrize("dropout", [0.0, 0.1])
def test_inference_never_takes_the_plain_attention(dropout, monkeypatch):
    backbone = BertBackbone(**SMALL, dropout=dropout)
    inputs = random_inputs()
    fused = to_numpy(backbone(inputs)["sequence_output"])
    with monkeypatch.context() as patch:
        patch.setattr(self_attention, "plain_attention", None)
        backbone(inputs, training=False)
        backbone.predict(inputs, verbose=0)
    monkeypatch.setattr(self_attention, "fused_attention", lambda *_: None)
    plain = to_numpy(backbone(inputs)["sequence_output"])
    np.testing.assert_allclose(fused, plain, rtol=0, atol=1e-5)


# === Sizes ===


#: With the uncased vocabulary; the paper gives 110 and 340 million.
PUBLISHED_PARAMETERS = {"base": 109_482_240, "large": 335_141_888}


def count_parameters(num_layers, vocabulary_size, **dials):
    """By linearity, from one and two layers and a vocabulary of one: nothing large is built."""
    one, two = (
        BertBackbone(num_layers=n, vocabulary_size=1, **dials).count_params() for n in (1, 2)
    )
    return one + (num_layers - 1) * (two - one) + (vocabulary_size - 1) * dials["hidden_dim"]


@pytest.mark.parametrize("size", BERT_SIZES)
def test_named_sizes_have_the_published_parameters(size, undrawn):
    dials = {"vocabulary_size": 30522, **BertBackbone.sizes[size]}
    with torch.device("meta"):
        peer = transformers.BertModel(transformers_config(**dials))
    count = count_parameters(**dials)
    assert count == sum(p.numel() for p in peer.parameters())
    assert count == PUBLISHED_PARAMETERS.get(size, count)


def test_from_size_passes_every_dial_on(undrawn):
    backbone = BertBackbone.from_size("tiny", V, activation="gelu", num_segments=3, dropout=0.2)
    assert backbone.count_params() == count_parameters(
        num_layers=2,
        vocabulary_size=V,
        num_heads=2,
        hidden_dim=128,
        intermediate_dim=512,
        num_segments=3,
    )
    assert backbone.activation is gelu_erf
    assert backbone.dropout == 0.2


def test_initial_weights_are_googles():
    backbone = BertBackbone.from_size("tiny", 1000)
    kernels = []
    for variable in backbone.weights:
        array = to_numpy(variable)
        if variable.path.endswith("gamma"):
            assert (array == 1).all(), variable.path
        elif variable.path.endswith(("beta", "bias")):
            assert (array == 0).all(), variable.path
        else:
            # A normal distribution cut at two standard deviations keeps 0.88 of its own.
            # (Keras' draw under PyTorch lets about four in a million through.)
            assert (np.abs(array) > 0.0401).mean() < 1e-4, variable.path
            if array.size > 10_000:
                assert abs(array.std() / (0.88 * 0.02) - 1) < 0.03, variable.path
            kernels.append(array.ravel()[:256])
    assert len(np.unique(np.round(kernels, 7), axis=0)) == len(kernels), "two kernels are equal"


# === Errors ===


def test_a_sequence_too_long_is_an_error():
    backbone = BertBackbone(**SMALL, max_sequence_length=12)
    backbone(random_inputs(12))
    with pytest.raises(ValueError, match="length 13.*positions for 12"):
        backbone(random_inputs(13))
    with pytest.raises(ValueError, match="length 13.*positions for 12"):
        backbone.predict(random_inputs(13), verbose=0)


def test_heads_that_do_not_divide_are_an_error():
    with pytest.raises(ValueError, match="num_heads=3 and hidden_dim=16"):
        BertBackbone(**{**SMALL, "num_heads": 3})


@pytest.mark.parametrize(
    ("cls", "name", "value"),
    [
        *((BertBackbone, name, -1) for name in ("num_layers", "num_segments", "num_heads")),
        *((BertBackbone, name, 0) for name in ("num_layers", "vocabulary_size", "embedding_dim")),
        (BertBackbone, "num_segments", "2"),
        (BertBackbone, "hidden_dim", 8.0),
        (AlbertBackbone, "num_layers", 0),
        (ErnieBackbone, "num_task_types", -1),
        (LongformerBackbone, "num_layers", -1),
        (ModernBertBackbone, "num_layers", 0),
        (NezhaBackbone, "num_heads", 0),
        (NezhaBackbone, "max_relative_position", 0),
        (RoFormerBackbone, "num_heads", 0),
        (XLNetBackbone, "num_heads", 0),
        (XLNetBackbone, "head_dim", 0),
        (ModernBertBackbone, "local_attention", 4.5),
        (AlbertBackbone, "num_groups", 1.5),
        (AlbertBackbone, "num_inner_repetitions", 0),
        (ErnieBackbone, "num_task_types", -1),
    ],
)
def test_sizes_that_are_none_are_an_error(cls, name, value):
    with pytest.raises(ValueError, match=f"{name} must be an integer of at least .* got {value!r}"):
        cls(**{**SMALL, name: value})


@pytest.mark.parametrize(
    ("cls", "name"),
    [*((BertBackbone, n) for n in RATES), *((ModernBertBackbone, n) for n in MODERN_RATES)],
)
def test_rates_that_cannot_be_right_are_an_error(cls, name):
    for value in (1.5, -0.1, 1.0, "0.1", float("nan")):
        with pytest.raises(ValueError, match=f"^{name} must be a number of .* got {value!r}"):
            cls(**{**SMALL, name: value})


@pytest.mark.parametrize("cls", [BertBackbone, AlbertBackbone, ModernBertBackbone])
def test_a_width_of_the_initial_weights_is_no_negative_number(cls):
    for value in (-0.1, "0.1", float("nan")):
        with pytest.raises(ValueError, match=f"initializer_range must be .* got {value!r}"):
            cls(**{**SMALL, "initializer_range": value})


@pytest.mark.parametrize("activation", ["glue", 3])
def test_unknown_activation_is_an_error(activation):
    with pytest.raises(ValueError, match=f"gelu_tanh.*got {activation!r}"):
        BertBackbone(**SMALL, activation=activation)


def test_unknown_size_is_an_error():
    with pytest.raises(ValueError, match="tiny, mini.*got 'huge'"):
        BertBackbone.from_size("huge", V)


# === Activations by name ===


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("gelu", gelu_erf),
        ("gelu_erf", gelu_erf),
        ("gelu_new", gelu_tanh),
        ("gelu_tanh", gelu_tanh),
        ("gelu_pytorch_tanh", gelu_tanh),
        (gelu_erf, gelu_erf),
        (keras.activations.softplus, keras.activations.softplus),
    ],
)
def test_activation_survives_the_configuration(name, function):
    backbone = BertBackbone(**SMALL, activation=name)
    restored = BertBackbone.from_config(backbone.get_config())
    for model in (backbone, restored):
        assert model.activation is function
        assert all(block.activation is function for block in model.transformer_layers)


def test_the_default_is_googles_tanh():
    assert BertBackbone(**SMALL).activation is gelu_tanh
