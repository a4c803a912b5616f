"""A BERT whose tokens attend to similar tokens, `hashing=`: trained, saved, served, refused."""

import dataclasses

import keras
import numpy as np
import pytest
from checkers import check_backbone
from peer_weights import randomize, to_numpy
from serving.traced import trace
from small_tasks import make_task
from small_texts import ONE_LAYER

import keras_bert_suite as kbs
from keras_bert_suite.checkpoints import save_google_tf1, save_hugging_face, save_keras_hub
from keras_bert_suite.layers import TokenHashing
from keras_bert_suite.preprocessing.sequence_packing import lay_out_buckets, lay_out_sequences

HASHING = TokenHashing(chunk_length=4, num_rounds=2)
SIZES = {**ONE_LAYER, "num_layers": 2, "max_sequence_length": 16, "hashing": HASHING}
B, L = 3, 13


def make_rows(length=L):
    ids = np.random.default_rng(0).integers(5, SIZES["vocabulary_size"], (B, length))
    mask = (np.arange(length) < np.array([[length], [5], [3]])).astype("int32")
    segments = np.zeros((B, length), "int32")
    return {
        "token_ids": (ids * mask).astype("int32"),
        "segment_ids": segments,
        "padding_mask": mask,
    }


def test_basics():
    hidden_dim = SIZES["hidden_dim"]
    shapes = {"sequence_output": (B, L, hidden_dim), "pooled_output": (B, hidden_dim)}
    check_backbone(kbs.BertBackbone, SIZES, make_rows(), shapes)


def test_the_settings_are_those_of_the_longest_row_and_stay_so():
    backbone = kbs.BertBackbone(**SIZES)
    assert backbone.hashing == dataclasses.replace(HASHING, num_buckets=8)
    seeds = [block.self_attention.hashing.seed for block in backbone.transformer_layers]
    assert seeds == [0, 1]
    assert backbone.resize(max_sequence_length=12).hashing == backbone.hashing


@pytest.mark.parametrize("pattern", ["bidirectional", "left_to_right"])
def test_padding_changes_no_token(pattern):
    backbone = randomize(kbs.BertBackbone(**SIZES, attention_pattern=pattern))
    rows = make_rows()
    wanted = to_numpy(backbone(rows)["sequence_output"])
    wider = {name: np.pad(array, [[0, 0], [0, 3]]) for name, array in rows.items()}
    got = to_numpy(backbone(wider)["sequence_output"])[:, :L]
    seen = rows["padding_mask"] == 1
    np.testing.assert_allclose(got[seen], wanted[seen], rtol=0, atol=1e-5)


@pytest.mark.parametrize("pattern", ["bidirectional", "left_to_right"])
def test_attention_is_shown(pattern):
    backbone = randomize(kbs.BertBackbone(**SIZES, attention_pattern=pattern))
    maps = kbs.encode_with_attention(backbone, make_rows())["attentions"]
    assert [x.shape for x in maps] == [(B, SIZES["num_heads"], L, L)] * 2
    # Of a token that sees only itself, three digits; see the tests of the layer.
    np.testing.assert_allclose(maps[0][0].sum(-1), 1, rtol=0, atol=4e-3)
    assert (np.triu(maps[0], 1).max() == 0) == (pattern == "left_to_right")


def test_a_task_trains_predicts_and_is_saved(tmp_path):
    task, (x, y) = make_task("texts", hashing=HASHING)
    task.compile(kbs.AdamW(1e-2))
    before = [to_numpy(w) for w in task.backbone.weights]
    task.fit(x, y, batch_size=4, epochs=2, verbose=0)
    for weight, old in zip(task.backbone.weights, before, strict=True):
        moved = np.abs(to_numpy(weight) - old).max() > 0
        assert moved != weight.path.endswith("rotations") or "embeddings/" in weight.path
    task.save(tmp_path / "task.keras")
    again = keras.saving.load_model(tmp_path / "task.keras")
    wanted = task.predict_probabilities(x)
    np.testing.assert_allclose(again.predict_probabilities(x), wanted, rtol=0, atol=1e-5)


@pytest.mark.backend("tensorflow")
def test_served_from_strings():
    """The length of rows is open there."""
    import tensorflow as tf

    task, (x, _) = make_task("texts", hashing=HASHING)
    randomize(task)
    got = trace(task)(text=tf.constant(list(x)))["probabilities"]
    np.testing.assert_allclose(got, task.predict_probabilities(x), rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    ("cls", "arguments", "says"),
    [
        (kbs.RoFormerBackbone, {}, "A RoFormerBackbone has attention layers of another kind"),
        (kbs.LongformerBackbone, {}, "A LongformerBackbone has attention layers of another kind"),
        (
            kbs.BertBackbone,
            {"attention_pattern": "seq2seq"},
            "takes the patterns bidirectional, left_to_right, got attention_pattern='seq2seq'",
        ),
        (kbs.BertBackbone, {"hashing": 64}, "must be a TokenHashing or None, got 64"),
        (
            kbs.BertBackbone,
            {"hashing": TokenHashing(16)},
            "chunk_length=16 .*no hashing",
        ),
        (
            kbs.BertBackbone,
            {"hashing": TokenHashing(4, num_buckets=(4, 6))},
            "are 24 buckets, more than the 16 tokens of a row",
        ),
    ],
)
def test_refused_arguments(cls, arguments, says):
    with pytest.raises(ValueError, match=says):
        cls(**{**SIZES, **arguments})


def test_what_it_cannot_do_is_refused(tmp_path):
    task, (x, y) = make_task("texts", hashing=HASHING)
    task.compile(kbs.AdamW(1e-2))
    with pytest.raises(ValueError, match="cannot hide the rows of a packed row"):
        task.fit(x, y, batch_size=4, verbose=0, sequence_packing=True)
    backbone = kbs.BertBackbone(**SIZES)
    rows = make_rows()
    for lay_out in (lay_out_sequences, lay_out_buckets):
        layout = lay_out(rows["padding_mask"])
        with pytest.raises(ValueError, match="packed rows.* cannot be hashed: drop sequence_pack"):
            backbone({**rows, "sequence_layout": layout})
    for save in (save_hugging_face, save_keras_hub, save_google_tf1):
        with pytest.raises(ValueError, match="no attention by hashing, got hashing=TokenHashing"):
            save(backbone, tmp_path / "written")
    causal = kbs.BertBackbone(**SIZES, attention_pattern="left_to_right")
    with pytest.raises(ValueError, match="that of a BertBackbone with hashing is another"):
        kbs.CausalLM(causal)
    for arguments in ([SIZES], [{**SIZES, "hashing": None}, SIZES]):
        with pytest.raises(ValueError, match="Leave it out, or pass it to an encoder"):
            kbs.BertEncoderDecoder(*arguments)
    with pytest.raises(ValueError, match="A Longformer continues a BertBackbone"):
        kbs.LongformerBackbone.from_encoder(backbone, separator_id=3)
