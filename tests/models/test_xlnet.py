"""XLNet beside transformers' model: two streams, memory, reversed rows, any mask."""

import json

import keras
import numpy as np
import pytest
import torch
import transformers
from family import MEMBERS
from gradients import compute_gradients
from keras import ops
from peer_weights import randomize, to_numpy
from tables import everywhere_for

from keras_bert_suite import XLNetBackbone, change_pattern
from keras_bert_suite.checkpoints import open_checkpoint, save_hugging_face
from keras_bert_suite.heads.base.attention_maps import encode_with_attention
from keras_bert_suite.layers import XLNetBlock
from keras_bert_suite.preprocessing.sequence_packing import lay_out_sequences

pytestmark = pytest.mark.filterwarnings("ignore:.*has no weights for.*pooler")

MEMBER = MEMBERS["xlnet"]
SIZES = (MEMBER.vocabulary_size, 2, 2, 8, 16)
ROWS, LENGTH, PAST, TARGETS = 4, 10, 3, 4


def make_rows():
    """Arrays of rows in a random order of prediction: left padding, ranks, targets, memory."""
    rng = np.random.default_rng(0)
    shape = (ROWS, LENGTH)
    mask = np.ones(shape, "int32")
    mask[1, :3] = 0
    order = np.argsort(rng.random(shape), axis=1).astype("int32")
    targets = np.sort(np.argsort(rng.random(shape), axis=1)[:, :TARGETS], axis=1)
    is_target = np.zeros(shape, bool)
    np.put_along_axis(is_target, targets, True, axis=1)
    return {
        "token_ids": rng.integers(9, MEMBER.vocabulary_size, shape).astype("int32"),
        "segment_ids": rng.integers(0, 3, shape).astype("int32"),
        "padding_mask": mask,
        "query_ranks": order + ~is_target,
        "key_ranks": np.where(is_target, order, -1).astype("int32"),
        "mask_positions": targets.astype("int32"),
        "memory": rng.standard_normal((ROWS, 2, PAST, 8)).astype("float32"),
        "is_reversed": np.arange(ROWS, dtype="int32")[:, None] // 2,
    }


def run_peer(peer, rows, **arguments):
    """The outputs of transformers, by arrays of ours."""
    names = {"token_ids": "input_ids", "segment_ids": "token_type_ids"}
    names["padding_mask"] = "attention_mask"
    tensors = {new: torch.from_numpy(rows[old]).long() for old, new in names.items() if old in rows}
    tensors["attention_mask"] = tensors["attention_mask"].float()
    if peer.attn_type == "uni":
        del tensors["attention_mask"]  # transformers fails with both masks.
    if "query_ranks" in rows:
        sees = rows["query_ranks"][:, :, None] > rows["key_ranks"][:, None, :]
        mapping = np.eye(LENGTH, dtype="float32")[rows["mask_positions"]]
        tensors["perm_mask"] = torch.from_numpy((~sees).astype("float32"))
        tensors["target_mapping"] = torch.from_numpy(mapping)
    if "memory" in rows:
        memory = rows["memory"].transpose(1, 2, 0, 3)
        tensors["mems"] = [torch.from_numpy(layer) for layer in memory.copy()]
        arguments["use_mems"] = True
    return peer(**tensors, **arguments)


FORMS = {
    "two streams": {"attention_pattern": "permuted"},
    "memory": {"memory_length": 7, "reuse_length": 6},
    "reversed rows": {"reversed_rows": True},
    "left to right": {
        "attention_pattern": "left_to_right",
        "memory_length": PAST,
        "same_length": True,
    },
    "all": {"attention_pattern": "permuted", "memory_length": 7, "reversed_rows": True},
}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """(peer, directory of its checkpoint)."""
    path = tmp_path_factory.mktemp("xlnet") / "peer"
    return MEMBER.save_peer(path), path


def make_form(saved, form):
    """(our backbone, peer, arrays) of one of `FORMS`, with the same weights."""
    peer, path = saved
    arguments = FORMS[form]
    backbone = XLNetBackbone.from_preset(path, **arguments)
    peer.bi_data = backbone.reversed_rows
    peer.mem_len, peer.reuse_len = backbone.memory_length, backbone.reuse_length
    peer.same_length = backbone.same_length
    peer.attn_type = "uni" if backbone.attention_pattern == "left_to_right" else "bi"
    rows = {name: array for name, array in make_rows().items() if name in backbone.input}
    if "memory" in rows:
        rows["padding_mask"][:] = 1
    return backbone, peer, rows


@pytest.mark.parametrize("form", everywhere_for(FORMS, "all"))
def test_outputs_equal_transformers(form, saved):
    backbone, peer, rows = make_form(saved, form)
    outputs, theirs = backbone(rows), run_peer(peer, rows)
    name = "query_output" if "query_ranks" in rows else "sequence_output"
    seen = rows["padding_mask"] == 1 if name == "sequence_output" else slice(None)
    wanted = theirs.last_hidden_state.detach().numpy()
    np.testing.assert_allclose(to_numpy(outputs[name])[seen], wanted[seen], rtol=0, atol=1e-5)
    if "memory" in rows:
        wanted = np.stack([layer.numpy() for layer in theirs.mems]).transpose(2, 0, 1, 3)
        np.testing.assert_allclose(to_numpy(outputs["memory"]), wanted, rtol=0, atol=1e-5)


@pytest.mark.every_backend
@pytest.mark.parametrize("form", ["all"])
def test_gradients_equal_transformers(form, saved):
    """Of every weight, the start of the query stream among them."""
    backbone, peer, rows = make_form(saved, form)
    weighting = 0.1 * np.random.default_rng(1).standard_normal((ROWS, TARGETS, 8))
    weighting = weighting.astype("float32")
    got = compute_gradients(backbone, rows, {"query_output": weighting})
    peer.zero_grad()
    (run_peer(peer, rows).last_hidden_state * torch.from_numpy(weighting)).sum().backward()
    table = open_checkpoint(saved[1]).name_table
    expected = {table.spell(name): p.grad for name, p in peer.named_parameters()}
    compared = set()
    for path, gradient in got.items():
        if path.startswith("pooler/"):
            continue
        name, transform = table.their_name(path)
        compared.add(name)
        wanted = 0.0 if expected[name] is None else transform(expected[name].numpy())
        np.testing.assert_allclose(gradient, wanted, rtol=0, atol=1e-5, err_msg=path)
    assert {name for name, gradient in expected.items() if gradient is not None} <= compared


def test_any_mask(saved):
    """Blocks take any mask of pairs, as `perm_mask` of transformers may be."""
    peer, path = saved
    backbone, rows = XLNetBackbone.from_preset(path), make_rows()
    hidden = np.random.default_rng(2).random((ROWS, LENGTH, LENGTH)) < 0.5
    x = backbone.embeddings(rows["token_ids"])
    sinusoids = backbone.relative_sinusoids(x)
    differs = rows["segment_ids"][:, :, None] != rows["segment_ids"][:, None, :]
    mask = ~hidden | np.eye(LENGTH, dtype=bool)
    for block in backbone.transformer_layers:
        x = block(x, attention_mask=mask, sinusoids=sinusoids, differs=differs)
    peer.attn_type, peer.bi_data = "bi", False
    theirs = peer(
        input_ids=torch.from_numpy(rows["token_ids"]).long(),
        token_type_ids=torch.from_numpy(rows["segment_ids"]).long(),
        perm_mask=torch.from_numpy(hidden.astype("float32")),
    )
    wanted = theirs.last_hidden_state.detach().numpy()
    np.testing.assert_allclose(to_numpy(x), wanted, rtol=0, atol=1e-5)


def test_attention_equals_transformers(saved):
    peer, path = saved
    backbone, rows = XLNetBackbone.from_preset(path), make_rows()
    rows = {name: rows[name] for name in backbone.input}
    peer.attn_type, peer.bi_data = "bi", False
    theirs = run_peer(peer, rows, output_attentions=True).attentions
    seen = rows["padding_mask"] == 1
    found = encode_with_attention(backbone, rows)["attentions"]
    for got, wanted in zip(found, theirs, strict=True):
        wanted = wanted.detach().numpy().transpose(0, 2, 1, 3)[seen]
        np.testing.assert_allclose(got.transpose(0, 2, 1, 3)[seen], wanted, rtol=0, atol=1e-5)
    with pytest.raises(ValueError, match="without a memory, in one stream; got memory_length=3"):
        backbone = XLNetBackbone(*SIZES, memory_length=3)
        encode_with_attention(backbone, {**rows, "memory": make_rows()["memory"]})


@pytest.mark.every_backend
def test_segments_of_a_row_with_memory():
    """A row in two parts, the second with the memory of the first, has the outputs of the row."""
    arguments = {"attention_pattern": "left_to_right", "memory_length": LENGTH}
    backbone = randomize(XLNetBackbone(*SIZES, **arguments, num_segments=0, share_biases=True))
    rows = {name: make_rows()[name] for name in ("token_ids", "segment_ids")}
    rows["padding_mask"] = np.ones((ROWS, LENGTH), "int32")
    memory = np.zeros((ROWS, 2, 0, 8), "float32")
    whole = backbone({**rows, "memory": memory})["sequence_output"]
    parts = []
    for part in (slice(0, 4), slice(4, LENGTH)):
        outputs = backbone({**{n: a[:, part] for n, a in rows.items()}, "memory": memory})
        memory = to_numpy(outputs["memory"])
        parts.append(to_numpy(outputs["sequence_output"]))
    np.testing.assert_allclose(np.concatenate(parts, axis=1), to_numpy(whole), rtol=0, atol=1e-5)
    assert memory.shape == (ROWS, 2, LENGTH, 8)


def test_the_copy_for_tasks_has_the_same_weights(saved):
    rows = make_rows()
    trained = XLNetBackbone.from_preset(saved[1], attention_pattern="permuted")
    copy = change_pattern(trained, "bidirectional")
    assert list(copy.input) == ["token_ids", "segment_ids", "padding_mask"]
    for ours, theirs in zip(copy.weights, trained.weights, strict=True):
        np.testing.assert_array_equal(to_numpy(ours), to_numpy(theirs), err_msg=ours.path)
    sees_all = {
        "query_ranks": np.ones_like(rows["query_ranks"]),
        "key_ranks": 0 * rows["key_ranks"],
    }
    wanted = trained({**{name: rows[name] for name in trained.input}, **sees_all})
    got = copy({name: rows[name] for name in copy.input})
    for name in ("sequence_output", "pooled_output"):
        np.testing.assert_allclose(to_numpy(got[name]), to_numpy(wanted[name]), rtol=0, atol=1e-6)
    trained_paths = {v.path for v in trained.trainable_variables}
    copied_paths = {v.path for v in copy.trainable_variables}
    assert trained_paths - copied_paths == {"embeddings/mask_embedding"}


def test_shared_biases_are_written_for_each_layer(tmp_path):
    backbone = randomize(XLNetBackbone(*SIZES, share_biases=True, activation="gelu_erf"))
    own = [v.path for v in backbone.weights if "relative_biases" in v.path]
    assert len(own) == 3 and all(path.startswith("transformer_layer_0/") for path in own)
    save_hugging_face(backbone, tmp_path / "saved")
    again = XLNetBackbone.from_preset(tmp_path / "saved")
    rows = {name: make_rows()[name] for name in again.input}
    got, wanted = (to_numpy(model(rows)["sequence_output"]) for model in (again, backbone))
    np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-6)
    backbone.save(tmp_path / "model.keras")
    kept = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(to_numpy(kept(rows)["sequence_output"]), wanted, rtol=0, atol=1e-6)


def test_same_length_is_written_and_read(tmp_path):
    path = tmp_path / "saved"
    backbone = XLNetBackbone(*SIZES, activation="gelu_erf", **FORMS["left to right"])
    save_hugging_face(randomize(backbone), path)
    peer = transformers.XLNetModel.from_pretrained(path).eval()
    again = XLNetBackbone.from_preset(path, memory_length=PAST)
    assert again.same_length and peer.config.mem_len == PAST
    rows = {name: make_rows()[name] for name in backbone.input}
    rows["padding_mask"][:] = 1
    # Without a memory a token sees only itself, also in transformers.
    for memory in (rows["memory"], rows["memory"][:, :, :0]):
        rows["memory"] = memory
        wanted = run_peer(peer, rows).last_hidden_state.detach().numpy()
        for model in (backbone, again):
            got = to_numpy(model(rows)["sequence_output"])
            np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-5)
    with pytest.raises(ValueError, match="Pass `memory_length`, too, or .* same_length=False"):
        XLNetBackbone.from_preset(path)
    assert not XLNetBackbone.from_preset(path, same_length=False).same_length
    # A model of both directions has no use for it.
    config = json.loads((path / "config.json").read_text())
    (path / "config.json").write_text(json.dumps({**config, "attn_type": "bi"}))
    assert not XLNetBackbone.from_preset(path).same_length


def test_a_model_of_one_direction_is_one_of_transformers(tmp_path):
    arguments = {"attention_pattern": "left_to_right", "activation": "gelu_erf"}
    backbone = randomize(XLNetBackbone(*SIZES, **arguments))
    save_hugging_face(backbone, tmp_path / "saved")  # A warning would fail the test.
    peer = transformers.XLNetModel.from_pretrained(tmp_path / "saved")
    assert peer.config.attn_type == "uni"
    rows = {name: make_rows()[name] for name in backbone.input}
    rows["padding_mask"][:] = 1
    wanted = run_peer(peer, rows).last_hidden_state.detach().numpy()
    got = to_numpy(backbone(rows)["sequence_output"])
    np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-5)
    again = XLNetBackbone.from_preset(tmp_path / "saved")
    assert again.attention_pattern == "left_to_right"
    two_sided = XLNetBackbone.from_preset(tmp_path / "saved", attention_pattern="bidirectional")
    assert np.abs(to_numpy(two_sided(rows)["sequence_output"]) - wanted).max() > 0.01


def test_a_block_attends_to_an_encoder():
    block = XLNetBlock(2, 16, has_segments=False, has_cross_attention=True)
    hidden = np.random.default_rng(0).random((2, 3, 8)).astype("float32")
    sinusoids = np.ones((1, 6, 8), "float32")
    encoded = [
        to_numpy(block(hidden, sinusoids=sinusoids, encoder_sequence=states))
        for states in (hidden, hidden[:, :2], hidden[:, ::-1])
    ]
    assert np.abs(encoded[0] - encoded[1]).max() > 1e-6
    # The tokens of an encoder have no distance.
    np.testing.assert_allclose(encoded[2], encoded[0], rtol=0, atol=1e-6)


def test_what_a_file_of_xlnet_cannot_hold(tmp_path):
    message = "heads of the width hidden_dim / num_heads, here 4; got {}. Use `model.save`"
    for arguments, got in (
        ({"head_dim": 5}, "head_dim=5 and num_segments=3"),
        ({"num_segments": 0}, "head_dim=None and num_segments=0"),
    ):
        with pytest.raises(ValueError, match=message.format(got)):
            save_hugging_face(XLNetBackbone(*SIZES, **arguments), tmp_path / "refused")
    backbone = XLNetBackbone(*SIZES, dropout=0.1, attention_dropout=0.2)
    with pytest.warns(UserWarning, match="one dropout rate, 0.1, got attention_dropout=0.2 too"):
        save_hugging_face(backbone, tmp_path / "saved")
    path = tmp_path / "saved" / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "d_head": 5}))
    assert open_checkpoint(tmp_path / "saved").backbone_config["head_dim"] == 5


def test_wrong_arguments():
    with pytest.raises(ValueError, match="reuse_length=4 .* Pass `memory_length`"):
        XLNetBackbone(*SIZES, reuse_length=4)
    with pytest.raises(ValueError, match="must be 'left_to_right', got 'bidirectional'"):
        XLNetBackbone(*SIZES, memory_length=4, same_length=True)
    with pytest.raises(ValueError, match="clamp_length must be an integer of at least 1, got 0"):
        XLNetBackbone(*SIZES, clamp_length=0)
    with pytest.raises(ValueError, match="one of .*unilm.*, permuted, got 'foo'"):
        XLNetBackbone(*SIZES, attention_pattern="foo")
    for name in ("share_biases", "same_length", "reversed_rows"):
        with pytest.raises(ValueError, match=f"{name} must be True or False, got 'no'"):
            XLNetBackbone(*SIZES, **{name: "no"})
    with pytest.raises(ValueError, match="hidden_dim must be even, got 9"):
        XLNetBackbone(30, 1, 3, 9, 16)


@pytest.mark.parametrize(
    ("form", "match"),
    [
        ("memory", "Packed rows have no memory"),
        ("reversed rows", "no order of their own"),
        ("two streams", "`mask_positions` cannot be packed"),
    ],
)
def test_packed_rows_are_refused(form, match, saved):
    backbone, _, rows = make_form(saved, form)
    layout = lay_out_sequences(rows["padding_mask"])
    with pytest.raises(ValueError, match=match):
        backbone({**rows, "sequence_layout": layout})


def test_a_memory_of_another_batch_or_width():
    backbone = XLNetBackbone(*SIZES, memory_length=4)
    rows = {name: make_rows()[name] for name in backbone.input}
    with pytest.raises(ValueError, match="memory of 4 rows, got .*3, 2, 3, 8"):
        backbone({**rows, "memory": rows["memory"][:3]})
    with pytest.raises(ValueError, match="memory"):
        backbone({**rows, "memory": rows["memory"][..., :6]})


def test_bfloat16_keeps_the_memory_in_float32():
    backbone = XLNetBackbone(*SIZES, memory_length=4, dtype="mixed_bfloat16")
    outputs = backbone({name: make_rows()[name] for name in backbone.input})
    assert keras.backend.standardize_dtype(outputs["memory"].dtype) == "float32"
    assert keras.backend.standardize_dtype(outputs["sequence_output"].dtype) == "bfloat16"
    assert np.isfinite(to_numpy(ops.cast(outputs["sequence_output"], "float32"))).all()
