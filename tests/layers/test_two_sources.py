"""Attention to another tensor than that of the queries, beside Keras and transformers."""

import keras
import numpy as np
import pytest
import transformers
from checkers import check_layer
from gradients import input_gradients
from keras import ops
from peer_weights import TRANSFORMERS_NAMES, random_array, randomize, to_numpy

from keras_bert_suite.layers import (
    RotaryAttention,
    RotaryBlock,
    SelfAttention,
    TransformerBlock,
    gelu_erf,
)

B, L, S, H, HEADS = 3, 4, 6, 12, 3
RNG = np.random.default_rng(0)
HIDDEN = RNG.standard_normal((B, L, H)).astype("float32")
SOURCE = RNG.standard_normal((B, S, H)).astype("float32")
SOURCE_MASK = (np.arange(S) < np.array([[6], [2], [4]])).astype("int32")
CAUSAL = np.tril(np.ones((1, L, L), "bool"))
BIAS = RNG.standard_normal((1, HEADS, L, S)).astype("float32")
SIZES = {"num_heads": HEADS, "intermediate_dim": 20}


def make_decoder_block(**kwargs):
    block = TransformerBlock(**SIZES, has_cross_attention=True, **kwargs)
    block(HIDDEN)
    return randomize(block)


def test_a_source_as_in_keras():
    layer, peer = SelfAttention(HEADS), keras.layers.MultiHeadAttention(HEADS, H // HEADS)
    layer(HIDDEN)
    peer(HIDDEN, SOURCE)
    for ours, theirs in zip(randomize(layer).weights, peer.weights, strict=True):
        theirs.assign(ops.reshape(ours, theirs.shape))
    mask = RNG.random((B, L, S)) < 0.6
    mask[..., 0] = True
    for given in (None, mask, np.tile(SOURCE_MASK[:, None] > 0, (1, L, 1))):
        expected = to_numpy(peer(HIDDEN, SOURCE, attention_mask=given))
        got = to_numpy(layer(HIDDEN, given, source=SOURCE))
        np.testing.assert_allclose(got, expected, atol=1e-5)
    got = to_numpy(layer(HIDDEN, SOURCE_MASK, source=SOURCE))
    np.testing.assert_allclose(got, expected, atol=1e-5)


@pytest.mark.every_backend
@pytest.mark.parametrize("mask", [None, SOURCE_MASK], ids=["all", "padding"])
def test_a_bias_is_added_to_the_scores(mask):
    """One query and one key at a time, by the formula; with and without the fused kernel."""
    layer = SelfAttention(HEADS, dropout=1e-7)
    layer(HIDDEN)
    query, key, value = map(to_numpy, randomize(layer).project(HIDDEN, SOURCE))
    scores = np.einsum("bhld,bhsd->bhls", query, key) / (H // HEADS) ** 0.5 + BIAS
    seen = np.ones((B, S)) if mask is None else mask
    weights = np.exp(scores) * seen[:, None, None]
    weights /= weights.sum(-1, keepdims=True)
    expected = to_numpy(layer.merge(ops.convert_to_tensor(weights @ value, "float32")))
    for training in (False, True):
        got = layer(HIDDEN, mask, source=SOURCE, score_bias=BIAS, training=training)
        np.testing.assert_allclose(to_numpy(got), expected, atol=1e-5)


@pytest.mark.every_backend
def test_a_block_as_in_transformers():
    import torch
    from transformers.models.bert.modeling_bert import BertLayer

    config = transformers.BertConfig(
        **dict(hidden_size=H, num_attention_heads=HEADS, intermediate_size=20),
        **dict(is_decoder=True, add_cross_attention=True, attn_implementation="eager"),
    )
    peer = BertLayer(config, layer_idx=0).eval()
    block = make_decoder_block(activation=gelu_erf)
    weights = {variable.path.split("/", 1)[1]: to_numpy(variable) for variable in block.weights}
    rng = np.random.default_rng(1)
    with torch.no_grad():
        for name, parameter in peer.named_parameters():
            array = random_array(rng, name, tuple(parameter.shape))
            parameter.copy_(torch.from_numpy(array))
            ours = TRANSFORMERS_NAMES[name.replace("crossattention", "attention")]
            if name.startswith("crossattention"):
                ours = ours.replace("self_attention", "cross_attention")
            weights[ours] = array.T if ours.endswith("kernel") else array
        seen = [torch.from_numpy(CAUSAL)[:, None], torch.from_numpy(SOURCE_MASK > 0)[:, None, None]]
        seen = [torch.where(mask, 0.0, torch.finfo(torch.float32).min) for mask in seen]
        expected = peer(
            *(torch.from_numpy(HIDDEN), seen[0]),
            encoder_hidden_states=torch.from_numpy(SOURCE),
            encoder_attention_mask=seen[1],
        ).numpy()
    for variable in block.weights:
        variable.assign(weights[variable.path.split("/", 1)[1]])
    got = block(HIDDEN, CAUSAL, encoder_sequence=SOURCE, encoder_padding_mask=SOURCE_MASK)
    np.testing.assert_allclose(to_numpy(got), expected, atol=1e-5)


def test_basics_of_a_decoder_block():
    check_layer(
        TransformerBlock,
        dict(**SIZES, dropout=0.2, attention_dropout=0.3, remat=True, has_cross_attention=True),
        {
            "hidden": HIDDEN,
            "attention_mask": np.tile(CAUSAL, (B, 1, 1)).astype("int32"),
            "encoder_sequence": SOURCE,
            "encoder_padding_mask": SOURCE_MASK,
        },
        (B, L, H),
        may_stay=["key/bias"],
    )


@pytest.mark.backend("tensorflow")
def test_a_recomputed_block_hands_the_gradient_on_to_the_encoder():
    blocks = [
        make_decoder_block(remat=remat, dropout=0.0, attention_dropout=0.0)
        for remat in (False, True)
    ]
    plain, recomputed = (
        input_gradients(
            lambda *x, b=b: b(x[0], encoder_sequence=x[1], training=True), [HIDDEN, SOURCE]
        )
        for b in blocks
    )
    for got, expected in zip(recomputed, plain, strict=True):
        assert np.abs(expected).max() > 1e-3
        np.testing.assert_allclose(got, expected, atol=1e-5)


def test_without_an_encoder_a_decoder_block_is_one_of_an_encoder():
    block, encoder = make_decoder_block(), TransformerBlock(**SIZES)
    encoder(HIDDEN)
    ours = {variable.path.split("/", 1)[1]: variable for variable in block.weights}
    for variable in encoder.weights:
        variable.assign(ours[variable.path.split("/", 1)[1]])
    np.testing.assert_array_equal(to_numpy(block(HIDDEN)), to_numpy(encoder(HIDDEN)))


def test_a_block_may_compute_the_tokens_that_a_head_reads_alone():
    block = TransformerBlock(**SIZES)
    block(SOURCE)
    places = np.array([[1, 5], [0, 1], [3, 2]])
    read = np.take_along_axis(SOURCE, places[..., None], axis=1)
    expected = to_numpy(randomize(block)(SOURCE, SOURCE_MASK))
    expected = np.take_along_axis(expected, places[..., None], axis=1)
    got = to_numpy(block(read, SOURCE_MASK, source=SOURCE))
    np.testing.assert_allclose(got, expected, atol=1e-5)


def test_queries_and_keys_have_positions_of_their_own():
    layer = RotaryAttention(HEADS, rotary_value=True)
    layer(SOURCE)
    expected = to_numpy(randomize(layer)(SOURCE))[:, 2:]
    queries = {"hidden": SOURCE[:, 2:], "positions": np.arange(2, S, dtype="int32")[None]}
    for positions in (None, np.arange(S, dtype="int32")[None]):
        got = layer(**queries, source=SOURCE, source_positions=positions)
        np.testing.assert_allclose(to_numpy(got), expected, atol=1e-5)


def test_a_block_hands_both_positions_on():
    """Only the distances count, so queries and keys may move together."""
    block = RotaryBlock(**SIZES)
    block(SOURCE)
    expected = to_numpy(randomize(block)(SOURCE))[:, 2:]
    places = np.arange(S, dtype="int32")[None] + 3
    got = block(SOURCE[:, 2:], positions=places[:, 2:], source=SOURCE, source_positions=places)
    np.testing.assert_allclose(to_numpy(got), expected, atol=1e-5)
