"""Encoders of frames: vectors in the place of token ids, beside `inputs_embeds` of transformers."""

import numpy as np
import pytest
import torch
from checkers import check_backbone
from family import LENGTH, MEMBERS
from peer_weights import randomize, to_numpy

from keras_bert_suite import BertBackbone, ElmoBackbone, LongformerBackbone, ModernBertBackbone
from keras_bert_suite.argument_checks import list_arguments
from keras_bert_suite.checkpoints import save_hugging_face
from keras_bert_suite.layers import PartEmbeddings

#: `tests/models/test_saved_arguments.py` says which encoders read no frames. A BART writes, too.
ENCODERS = {
    name: member
    for name, member in MEMBERS.items()
    if name != "bart" and "frame_dim" in list_arguments(member.backbone)
}
LIVING = [name for name in ENCODERS if name != "nezha"]
SIZES = {"num_layers": 2, "num_heads": 2, "hidden_dim": 8, "intermediate_dim": 16}


def make_frames(width, seed=0):
    draw = np.random.default_rng(seed).standard_normal
    return draw((3, LENGTH, width)).astype("float32")


def put_frames(inputs, frames):
    return {"frames" if name == "token_ids" else name: x for name, x in inputs.items()} | {
        "frames": frames
    }


@pytest.mark.filterwarnings("ignore:.*has no weights for.*pooler")
@pytest.mark.parametrize("kind", LIVING)
def test_frames_equal_inputs_embeds(kind, tmp_path):
    """Positions and token types are added, and the padding says nothing."""
    member = ENCODERS[kind]
    peer = member.save_peer(tmp_path / "peer")
    encoder = member.backbone.from_preset(tmp_path / "peer").for_frames()
    inputs = member.make_inputs()
    if kind == "roberta" or kind == "longformer":  # They count all places of vectors.
        inputs["padding_mask"][:] = 1
        if "global_attention_mask" in inputs:
            inputs["global_attention_mask"][2] = 0
    frames = make_frames(encoder.frame_dim)
    names = {"segment_ids": "token_type_ids", "padding_mask": "attention_mask"}
    tensors = {names.get(n, n): torch.from_numpy(x).long() for n, x in inputs.items()}
    del tensors["token_ids"]
    with torch.no_grad():
        expected = peer(inputs_embeds=torch.from_numpy(frames), **tensors)[0].numpy()
    got = to_numpy(encoder(put_frames(inputs, frames))["sequence_output"])
    seen = inputs["padding_mask"] == 1
    np.testing.assert_allclose(got[seen], expected[seen], rtol=0, atol=1e-5)


def look_up(encoder, ids):
    return to_numpy(encoder.token_embedding.embeddings)[ids]


@pytest.mark.parametrize(
    "kind",
    [pytest.param(k, marks=pytest.mark.every_backend if k == "bert" else ()) for k in ENCODERS],
)
def test_rows_of_the_table_as_frames_have_the_outputs_of_their_tokens(kind):
    member = ENCODERS[kind]
    encoder = randomize(member.make())
    inputs = member.make_inputs()
    frames = look_up(encoder, inputs["token_ids"])
    expected = encoder(inputs)
    got = encoder.for_frames()(put_frames(inputs, frames))
    for name in ("sequence_output", "pooled_output"):
        np.testing.assert_allclose(to_numpy(got[name]), to_numpy(expected[name]), rtol=0, atol=1e-6)


def test_an_elmo_reads_frames():
    encoder = randomize(ElmoBackbone(20, units=6, projection_dim=4))
    ids = np.random.default_rng(0).integers(0, 20, (3, LENGTH)).astype("int32")
    mask = np.ones_like(ids)
    mask[1, 4:] = 0
    got = encoder.for_frames()({"frames": look_up(encoder, ids), "padding_mask": mask})
    expected = encoder({"token_ids": ids, "padding_mask": mask})
    for name, tensor in expected.items():
        np.testing.assert_allclose(to_numpy(got[name]), to_numpy(tensor), rtol=0, atol=1e-6)


def test_basics_of_an_encoder_of_frames():
    """Shapes, configuration, files, a step of training, and bfloat16, with a projection."""
    mask = np.ones((3, LENGTH), "int32")
    mask[0, 6:] = 0
    inputs = {"frames": make_frames(5), "segment_ids": mask - mask, "padding_mask": mask}
    arguments = {"vocabulary_size": None, "frame_dim": 5, "embedding_dim": 4, **SIZES}
    outputs = {"sequence_output": (3, LENGTH, 8), "pooled_output": (3, 8)}
    check_backbone(BertBackbone, arguments, inputs, outputs, may_stay=("key/bias",))


@pytest.mark.parametrize(
    ("cls", "arguments"),
    [
        (ModernBertBackbone, {**SIZES, "local_attention": 4}),
        (ElmoBackbone, {"units": 6, "projection_dim": 8}),
    ],
)
def test_frames_are_projected(cls, arguments):
    encoder = randomize(cls(None, frame_dim=3, **arguments))
    frames, mask = make_frames(3), np.ones((3, LENGTH), "int32")
    kernel, bias = (to_numpy(w) for w in encoder.weights if "frame_projection" in w.path)
    again = cls(None, frame_dim=8, **arguments)
    rest = {w.path: w for w in encoder.weights}
    for weight in again.weights:
        weight.assign(rest[weight.path])
    expected = again({"frames": frames @ kernel + bias, "padding_mask": mask})["sequence_output"]
    got = encoder({"frames": frames, "padding_mask": mask})["sequence_output"]
    np.testing.assert_allclose(to_numpy(got), to_numpy(expected), rtol=0, atol=1e-5)


def test_a_copy_for_frames_of_another_width_keeps_the_other_weights():
    parts = PartEmbeddings([[i % 2] for i in range(20)], 2)  # They are about tokens.
    encoder = randomize(BertBackbone(20, part_embeddings=parts, **SIZES))
    copy = encoder.for_frames(3)
    assert copy.part_embeddings is None
    ours = {w.path: to_numpy(w) for w in encoder.weights}
    new = {w.path for w in copy.weights} - ours.keys()
    assert new == {"embeddings/frame_projection/kernel", "embeddings/frame_projection/bias"}
    for weight in copy.weights:
        if weight.path in ours:
            np.testing.assert_array_equal(to_numpy(weight), ours[weight.path])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: BertBackbone(20, frame_dim=3, **SIZES), "vocabulary_size=20 and frame_dim=3"),
        (lambda: BertBackbone(None, **SIZES), "vocabulary_size=None and frame_dim=None"),
        (lambda: BertBackbone(None, frame_dim=0, **SIZES), "frame_dim must be an integer"),
        (lambda: ElmoBackbone(3, frame_dim=3), "characters=None and frame_dim=3"),
        (
            lambda: LongformerBackbone(
                None, frame_dim=3, global_tokens="first_text", attention_window=4, **SIZES
            ),
            "frames have none",
        ),
        (lambda: BertBackbone(None, frame_dim=3, **SIZES).for_frames(), "reads frames"),
        (
            lambda: BertBackbone(None, frame_dim=3, **SIZES).resize_vocabulary(9),
            "no table with a row for each token",
        ),
    ],
)
def test_what_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_checkpoint_of_tokens_is_copied_for_frames(tmp_path):
    save_hugging_face(BertBackbone(20, **SIZES), tmp_path / "bert")
    with pytest.raises(ValueError, match=r"from_preset\(...\).for_frames\(frame_dim=3\)"):
        BertBackbone.from_preset(tmp_path / "bert", frame_dim=3)
    copy = BertBackbone.from_preset(tmp_path / "bert").for_frames(frame_dim=3)
    assert copy.input["frames"].shape == (None, None, 3)


def test_rows_longer_than_the_positions_are_refused():
    encoder = BertBackbone(None, frame_dim=8, max_sequence_length=4, **SIZES)
    mask = np.ones((3, LENGTH), "int32")
    inputs = {"frames": make_frames(8), "segment_ids": mask - mask, "padding_mask": mask}
    with pytest.raises(ValueError, match="positions for 4 tokens"):
        encoder(inputs)


def test_packed_rows_of_frames_have_the_same_outputs():
    from keras_bert_suite.preprocessing.sequence_packing import lay_out_sequences

    encoder = randomize(BertBackbone(None, frame_dim=5, **SIZES))
    mask = np.ones((3, LENGTH), "int32")
    mask[0, 6:] = mask[2, 3:] = 0
    inputs = {"frames": make_frames(5), "segment_ids": mask - mask, "padding_mask": mask}
    packed = encoder({**inputs, "sequence_layout": lay_out_sequences(mask)})["sequence_output"]
    expected = to_numpy(encoder(inputs)["sequence_output"])[mask == 1]
    np.testing.assert_allclose(to_numpy(packed)[mask == 1], expected, rtol=0, atol=1e-5)
