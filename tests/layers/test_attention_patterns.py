"""Attention patterns: literal masks, and the masks of transformers."""

import keras
import numpy as np
import pytest
import torch
from checkers import evaluate
from family import MEMBERS
from peer_weights import randomize, to_numpy

from keras_bert_suite import BertBackbone, RobertaBackbone, change_pattern
from keras_bert_suite.layers import VisibleTokens
from keras_bert_suite.layers.attention.attention_patterns import ATTENTION_PATTERNS, mask_by_ranks
from keras_bert_suite.layers.attention.bucketed_layout import BucketedLayout
from keras_bert_suite.preprocessing.sequence_packing import lay_out_buckets, lay_out_sequences

SEGMENTS = np.array([[0, 0, 1, 1]], "int32")
EXPECTED = {
    "left_to_right": ["1000", "1100", "1110", "1111"],
    "right_to_left": ["1111", "0111", "0011", "0001"],
    "seq2seq": ["1100", "1100", "1110", "1111"],
}


@pytest.mark.parametrize("pattern", EXPECTED)
def test_literal_masks(pattern):
    mask = to_numpy(mask_by_ranks(ATTENTION_PATTERNS[pattern](SEGMENTS)))
    rows = ["".join(str(int(seen)) for seen in row) for row in mask[0]]
    assert rows == EXPECTED[pattern]


@pytest.mark.every_backend
def test_literal_masks_of_a_mixture():
    """Rows of each kind in one batch, as figure 1 of UniLM draws them."""
    segments = np.array([[0, 0, 1, 1], [2, 2, 2, 2], [3, 3, 3, 3], [4, 4, 5, 5]], "int32")
    mask = to_numpy(mask_by_ranks(ATTENTION_PATTERNS["unilm"](segments)))
    rows = [["".join(str(int(seen)) for seen in row) for row in rows] for rows in mask]
    assert rows == [
        ["1111", "1111", "1111", "1111"],
        EXPECTED["left_to_right"],
        EXPECTED["right_to_left"],
        EXPECTED["seq2seq"],
    ]


@pytest.mark.parametrize("pattern", EXPECTED)
def test_outputs_equal_those_of_transformers_with_this_mask(pattern, tmp_path):
    """The oracle gets a mask for each query; ours makes it of segments and padding."""
    member = MEMBERS["bert"]
    peer = member.save_peer(tmp_path)
    backbone = BertBackbone.from_preset(tmp_path, attention_pattern=pattern)
    inputs = member.make_inputs()
    length = inputs["token_ids"].shape[1]
    places = np.arange(length)
    inputs["segment_ids"] = ((places >= 4) * inputs["padding_mask"]).astype("int32")
    allowed = {
        "left_to_right": places <= places[:, None],
        "right_to_left": places >= places[:, None],
        "seq2seq": (places < 4) | ((places <= places[:, None]) & (places[:, None] >= 4)),
    }[pattern]
    mask = allowed & (inputs["padding_mask"] == 1)[:, None, :]
    with torch.no_grad():
        expected = peer(
            input_ids=torch.from_numpy(inputs["token_ids"]).long(),
            token_type_ids=torch.from_numpy(inputs["segment_ids"]).long(),
            attention_mask=torch.from_numpy(np.where(mask, 0.0, -1e30)[:, None]).float(),
        ).last_hidden_state.numpy()
    seen = inputs["padding_mask"] == 1
    outputs = evaluate(backbone, inputs)["sequence_output"]
    np.testing.assert_allclose(to_numpy(outputs)[seen], expected[seen], rtol=0, atol=1e-5)


@pytest.mark.parametrize("pattern", [*EXPECTED, "unilm"])
def test_packed_rows_and_configuration(pattern):
    sizes = {"num_layers": 2, "num_heads": 2, "hidden_dim": 8, "intermediate_dim": 16}
    backbone = randomize(BertBackbone(30, **sizes, attention_pattern=pattern, num_segments=6))
    rng = np.random.default_rng(0)
    mask = (np.arange(10) < np.array([10, 6, 4])[:, None]).astype("int32")
    inputs = {
        "token_ids": rng.integers(1, 30, mask.shape).astype("int32"),
        "segment_ids": ((np.arange(10) >= 3) * mask).astype("int32"),
        "padding_mask": mask,
    }
    if pattern == "unilm":  # A row of each of the three kinds that are no plain BERT.
        inputs["segment_ids"] = (mask * [[2], [3], [4]] + inputs["segment_ids"]).astype("int32")
        inputs["segment_ids"][:2] = mask[:2] * [[2], [3]]
    expected = to_numpy(backbone(inputs)["sequence_output"])
    layout = lay_out_sequences(mask)
    packed = to_numpy(backbone({**inputs, "sequence_layout": layout})["sequence_output"])
    np.testing.assert_allclose(packed[mask == 1], expected[mask == 1], rtol=0, atol=1e-5)
    again = BertBackbone.from_config(backbone.get_config())
    again.set_weights(backbone.get_weights())
    got = to_numpy(again(inputs)["sequence_output"])
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-6)


def test_errors():
    sizes = {"num_layers": 1, "num_heads": 1, "hidden_dim": 4, "intermediate_dim": 4}
    with pytest.raises(ValueError, match="one of bidirectional, left_to_right.*got 'causal'"):
        BertBackbone(30, **sizes, attention_pattern="causal")
    with pytest.raises(ValueError, match="has no segment_ids"):
        RobertaBackbone(30, **sizes, attention_pattern="seq2seq")
    with pytest.raises(ValueError, match="'unilm' tells 6 segments apart, got num_segments=2"):
        BertBackbone(30, **sizes, attention_pattern="unilm")
    assert (
        keras.ops.shape(
            RobertaBackbone(30, **sizes, attention_pattern="left_to_right").output[
                "sequence_output"
            ]
        )[-1]
        == 4
    )
    buckets = BucketedLayout.read(
        lay_out_buckets(np.ones((1, 3), "int32")), np.ones((1, 3), "int32")
    )
    with pytest.raises(ValueError, match="'left_to_right' takes no buckets of packed rows"):
        VisibleTokens("left_to_right")(np.ones((1, 3), "int32"), sequence_layout=buckets)


def permute_xlnet(is_masked, is_functional, perm_size, rng):
    """`_local_perm` of zihangdai/xlnet, data_utils.py, in NumPy.

    Returns:
        (perm_mask bool (L, L), true where a query may not attend; rev_index int (L,); is_target).
    """
    index = np.arange(len(is_masked)).reshape(-1, perm_size).T
    index = rng.permutation(index).T.reshape(-1)
    non_mask = ~is_masked & ~is_functional
    rev_index = np.where(non_mask, -1, index)
    is_target = is_masked & ~is_functional
    self_rev_index = np.where(is_target, rev_index, rev_index + 1)
    hidden = (self_rev_index[:, None] <= rev_index[None, :]) & ~non_mask[None, :]
    return hidden, rev_index, is_target


def test_a_permutation_is_a_rank():
    """Both streams of XLNet, over the two halves of a pretraining row."""
    rng = np.random.default_rng(0)
    half, length = 8, 16
    hidden, ranks, targets = [], [], []
    for first in (0, half):
        is_functional = np.arange(first, first + half) >= length - 2  # <sep> and <cls>
        is_masked = rng.random(half) < 0.4
        of_half = permute_xlnet(is_masked, is_functional, half // 2, rng)
        hidden.append(of_half[0])
        # All of the second half ranks above the first.
        ranks.append(of_half[1] + (first and half + 1))
        targets.append(of_half[2])
    ones, zeros = np.ones((half, half), bool), np.zeros((half, half), bool)
    perm_mask = np.block([[hidden[0], ones], [zeros, hidden[1]]])
    ranks, is_target = np.concatenate(ranks)[None].astype("int32"), np.concatenate(targets)
    assert is_target.sum() > 3

    # In the content stream a token always sees itself (`non_tgt_mask`).
    content = to_numpy(mask_by_ranks(ranks))[0]
    np.testing.assert_array_equal(content, ~perm_mask | np.eye(length, dtype=bool))
    # The query stream has the targets alone, as with `target_mapping`.
    query = to_numpy(mask_by_ranks(ranks[:, is_target], ranks, strict=True))[0]
    np.testing.assert_array_equal(query, ~perm_mask[is_target])


@pytest.mark.every_backend
def test_ranks_that_come_with_a_batch():
    """The ranks of "left_to_right" give its outputs, also in packed rows."""
    sizes = {"num_layers": 2, "num_heads": 2, "hidden_dim": 8, "intermediate_dim": 16}
    backbone = BertBackbone(20, **sizes, attention_pattern="left_to_right")
    ranked = change_pattern(backbone, "ranked")
    assert set(ranked.input) == {*backbone.input, "ranks"}
    token_ids = np.random.default_rng(0).integers(1, 20, (3, 6)).astype("int32")
    padding_mask = (np.arange(6) < np.array([[6], [3], [4]])).astype("int32")
    inputs = {
        "token_ids": token_ids,
        "segment_ids": np.zeros_like(token_ids),
        "padding_mask": padding_mask,
    }
    wanted = to_numpy(evaluate(backbone, inputs)["sequence_output"]) * padding_mask[:, :, None]
    inputs["ranks"] = np.tile(np.arange(6, dtype="int32") * 3 - 7, (3, 1))
    layout = {"sequence_layout": lay_out_sequences(padding_mask)}
    for arrays in (inputs, {**inputs, **layout}):
        got = to_numpy(evaluate(ranked, arrays)["sequence_output"]) * padding_mask[:, :, None]
        np.testing.assert_allclose(got, wanted, atol=1e-5)
