import keras_hub
import numpy as np
import pytest
from peer_weights import (
    assign,
    assign_keras_hub,
    convert_transformers,
    run_transformers,
    transformers_peer,
)

from keras_bert_suite import BertBackbone, encode_with_attention

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

SIZES = {
    "vocabulary_size": 30,
    "num_layers": 2,
    "num_heads": 2,
    "hidden_dim": 16,
    "intermediate_dim": 24,
    "max_sequence_length": 12,
}


def test_attention_equals_transformers():
    config = transformers.BertConfig(
        vocab_size=30,
        num_hidden_layers=2,
        num_attention_heads=2,
        hidden_size=16,
        intermediate_size=24,
        max_position_embeddings=12,
        hidden_act="gelu",
    )
    peer = transformers_peer(transformers.BertModel, config)
    arrays = convert_transformers(peer.state_dict())
    rng = np.random.default_rng(0)
    inputs = {
        "token_ids": rng.integers(1, 30, (2, 8)).astype("int32"),
        "segment_ids": np.zeros((2, 8), "int32"),
        "padding_mask": np.array([[1] * 8, [1] * 5 + [0] * 3], "int32"),
    }
    with torch.no_grad():
        wanted = run_transformers(peer, inputs, output_attentions=True, output_hidden_states=True)
    ours = BertBackbone(**SIZES, activation="gelu_erf", layer_norm_epsilon=config.layer_norm_eps)
    assign(ours, arrays)
    got = encode_with_attention(ours, inputs)
    assert len(got["attentions"]) == 2 and len(got["hidden_states"]) == 3
    for name, expected in (
        ("attentions", wanted.attentions),
        ("hidden_states", wanted.hidden_states),
    ):
        for a, b in zip(got[name], expected, strict=True):
            assert a.dtype == "float32"
            np.testing.assert_allclose(a, b.numpy(), rtol=0, atol=1e-5)
    for array in got["attentions"]:
        assert not array[1, :, :, 5:].any()

    # KerasHub's GELU is an approximation.
    theirs = keras_hub.models.BertBackbone(**SIZES)
    assign_keras_hub(theirs, arrays)
    for a, b in zip(
        encode_with_attention(theirs, inputs)["attentions"], got["attentions"], strict=True
    ):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-3)


def test_tokens_are_hidden_as_the_pattern_says():
    """A token of the target, from position 2 on, looks at the source and back."""
    backbone = BertBackbone(**SIZES, attention_pattern="seq2seq")
    inputs = {
        "token_ids": np.ones((1, 5), "int32"),
        "segment_ids": np.array([[0, 0, 1, 1, 0]], "int32"),
        "padding_mask": np.array([[1, 1, 1, 1, 0]], "int32"),
    }
    visible = [[1, 1, 0, 0, 0], [1, 1, 0, 0, 0], [1, 1, 1, 0, 0], [1, 1, 1, 1, 0]]
    for array in encode_with_attention(backbone, inputs)["attentions"]:
        for head in array[0]:
            np.testing.assert_array_equal(head[:4] > 0, np.array(visible, bool))


def test_other_layers_are_refused():
    backbone = keras_hub.models.DebertaV3Backbone(**SIZES, bucket_size=4)
    with pytest.raises(ValueError, match="DisentangledAttentionEncoder of a DebertaV3Backbone"):
        encode_with_attention(backbone, {})


@pytest.mark.parametrize(
    ("inputs", "got"),
    [
        (["a text"], r"\['a text'\]"),
        ("a text", "'a text'"),
        ({"token_ids": [[1]]}, r"{'token_ids'"),
    ],
)
def test_inputs_that_are_not_packed(inputs, got):
    with pytest.raises(ValueError, match=f"dict of the packed arrays .*, got {got}"):
        encode_with_attention(BertBackbone(**SIZES), inputs)
