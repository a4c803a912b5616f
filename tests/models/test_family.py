"""Every kind of model beside transformers: outputs, gradients, checkpoints, heads, packed rows."""

import warnings

import keras
import numpy as np
import pytest
import torch
import transformers
from checkers import check_backbone
from family import LENGTH, MEMBERS, TASKS, RecordedMember, open_task, run_peer
from gradients import compute_gradients
from peer_weights import randomize, to_numpy
from safetensors.numpy import load_file

from keras_bert_suite import export_saved_model
from keras_bert_suite.checkpoints import open_checkpoint, save_hugging_face
from keras_bert_suite.preprocessing.sequence_packing import lay_out_sequences

pytestmark = pytest.mark.filterwarnings("ignore:.*has no weights for.*pooler")


def of_every_kind(*everywhere, elsewhere="backend_free"):
    """Parametrizes a test by `member`, all of them or, on every backend, some of them.

    Args:
        *everywhere: names of the kinds that are tested on every backend; none for all of them.
        elsewhere: the mark of the other kinds, whose layers are those of these kinds.
    """
    marks = [getattr(pytest.mark, elsewhere)]
    return pytest.mark.parametrize(
        "member",
        [
            pytest.param(
                member, id=name, marks=marks if everywhere and name not in everywhere else []
            )
            for name, member in MEMBERS.items()
        ],
    )


@pytest.fixture(params=[n for n, m in MEMBERS.items() if not isinstance(m, RecordedMember)])
def living(request):
    """A member whose kind of model transformers has."""
    return MEMBERS[request.param]


def check_same_files(path, other, constants=()):
    """All tensors are written back, under the same names.

    The pooler is written also where the class of transformers has none.
    """
    ours, theirs = (load_file(folder / "model.safetensors") for folder in (path, other))
    rows = open_checkpoint(other).model_type.names.rows
    pooler = {theirs for path, theirs, _ in rows if path.startswith("pooler/")}
    assert ours.keys() ^ theirs.keys() <= {*pooler, *constants}, ours.keys()
    for name in theirs.keys() - set(constants):
        np.testing.assert_array_equal(ours[name], theirs[name], err_msg=name)


def check_close(got, expected, seen=None, message=""):
    """Compares arrays (B, ...), of (B, L, ...) only the tokens that are `seen`."""
    got, expected = to_numpy(got), expected.detach().numpy()
    if seen is not None:
        got, expected = got[seen], expected[seen]
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-5, err_msg=message)


@of_every_kind("bert", "albert", "nezha", "modernbert")
def test_basics(member):
    sizes = {"num_layers": 2, "num_heads": 2, "hidden_dim": 8, "intermediate_dim": 16}
    arguments = {"vocabulary_size": member.vocabulary_size, **sizes, **member.arguments}
    inputs = member.make_inputs()
    outputs = {"sequence_output": (3, LENGTH, 8), "pooled_output": (3, 8)}
    check_backbone(member.backbone, arguments, inputs, outputs, may_stay=member.may_stay)


def test_encoder_equals_transformers(living, tmp_path):
    """Outputs, gradients of every weight, and the files that are written back."""
    peer = living.save_peer(tmp_path / "peer")
    backbone = living.backbone.from_preset(tmp_path / "peer")
    inputs = living.make_inputs()
    seen = inputs["padding_mask"] == 1
    theirs = run_peer(peer, inputs)
    outputs = backbone(inputs)
    check_close(outputs["sequence_output"], theirs.last_hidden_state, seen)
    if living.has_pooler:
        check_close(outputs["pooled_output"], theirs.pooler_output)

    rng = np.random.default_rng(1)
    weights = 0.1 * rng.standard_normal(theirs.last_hidden_state.shape) * seen[..., None]
    weighting = {"sequence_output": weights.astype("float32")}
    total = (theirs.last_hidden_state * torch.from_numpy(weighting["sequence_output"])).sum()
    if living.has_pooler:
        weights = 0.1 * rng.standard_normal(theirs.pooler_output.shape)
        weighting["pooled_output"] = weights.astype("float32")
        total += (theirs.pooler_output * torch.from_numpy(weighting["pooled_output"])).sum()
    total.backward()
    table = open_checkpoint(tmp_path / "peer").name_table
    expected = {table.spell(name): parameter.grad for name, parameter in peer.named_parameters()}
    got = compute_gradients(backbone, inputs, weighting)
    compared = set()
    for path, gradient in got.items():
        name, transform = table.their_name(path)
        if not living.has_pooler and path.startswith("pooler/"):
            continue
        compared.add(name)
        wanted = transform(expected[name].numpy())
        # The key's bias has no gradient but that of rounding.
        scale = max(np.abs(wanted).max(), 0.1)
        np.testing.assert_allclose(gradient, wanted, rtol=0, atol=1e-5 * scale, err_msg=path)
    assert compared == {name for name, gradient in expected.items() if gradient is not None}

    save_hugging_face(backbone, tmp_path / "again")
    again = transformers.AutoModel.from_pretrained(tmp_path / "again")
    assert type(again) is type(peer)
    check_close(outputs["sequence_output"], run_peer(again, inputs).last_hidden_state, seen)
    saved, original = (
        transformers.AutoConfig.from_pretrained(tmp_path / p) for p in ("again", "peer")
    )
    for name in living.config:
        assert getattr(saved, name) == getattr(original, name), name


@pytest.mark.backend_free  # The names are those of every backend.
@pytest.mark.parametrize("head", TASKS)
def test_heads_equal_transformers(living, head, tmp_path):
    if head not in living.heads:
        pytest.skip("transformers has no such head for this kind of model")
    peer = living.save_peer(tmp_path / "peer", head)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*heads? of the pretrainer")
        task = open_task(head, tmp_path / "peer")
    assert type(task.backbone) is living.backbone
    inputs = living.make_inputs()
    seen = inputs["padding_mask"] == 1
    if head == "ForMultipleChoice":
        inputs = living.make_choices(inputs)
    theirs = run_peer(peer, inputs)
    if head == "ForQuestionAnswering":
        got = task(inputs)
        for i, expected in enumerate((theirs.start_logits, theirs.end_logits)):
            check_close(got[:, i], expected, seen)
    elif head in ("ForMaskedLM", "ForPreTraining"):
        positions = np.tile(np.arange(LENGTH, dtype="int32"), (3, 1))
        got = task({**inputs, "mask_positions": positions})
        expected = theirs.logits if head == "ForMaskedLM" else theirs.prediction_logits
        check_close(got["mlm"], expected, seen)
        if head == "ForPreTraining":
            check_close(got["nsp"], theirs.to_tuple()[1])
    else:
        got = task(inputs)
        check_close(got, theirs.logits, seen if head == "ForTokenClassification" else None)
    save_hugging_face(task, tmp_path / "again")
    again = getattr(transformers, type(peer).__name__).from_pretrained(tmp_path / "again")
    assert again.config.architectures == [type(peer).__name__]
    check_same_files(tmp_path / "again", tmp_path / "peer", living.constants)


@of_every_kind()
def test_packed_rows_have_the_same_outputs(member):
    sizes = {"num_layers": 2, "num_heads": 2, "hidden_dim": 8, "intermediate_dim": 16}
    backbone = member.backbone(member.vocabulary_size, **sizes, **member.arguments)
    randomize(backbone)
    inputs = member.make_inputs()
    seen = inputs["padding_mask"] == 1
    layout = lay_out_sequences(inputs["padding_mask"])
    assert layout.size < seen.size
    expected = backbone(inputs)
    packed = backbone({**inputs, "sequence_layout": layout})
    for name, keep in (("sequence_output", seen), ("pooled_output", slice(None))):
        got, wanted = to_numpy(packed[name])[keep], to_numpy(expected[name])[keep]
        np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-5, err_msg=name)
    # The layout is in use: other tokens at its places change the outputs.
    broken = np.where(layout == layout.max(), 0, layout)
    other = backbone({**inputs, "sequence_layout": broken})["sequence_output"]
    assert np.abs(to_numpy(other) - to_numpy(packed["sequence_output"])).max() > 1e-3


@of_every_kind("bert")
def test_saved_and_opened_again(member, tmp_path):
    """A task keeps its kind of backbone and its tokenizer in `.keras` files and in presets."""
    member.save_peer(tmp_path / "peer", "ForSequenceClassification")
    task = open_task("ForSequenceClassification", tmp_path / "peer")
    texts = ["a b c", "d e"]
    expected = task.predict(texts, verbose=0)
    task.save(tmp_path / "task.keras")
    task.save_to_preset(str(tmp_path / "preset"))
    for again in (
        keras.saving.load_model(tmp_path / "task.keras"),
        type(task).from_preset(tmp_path / "preset"),
    ):
        assert type(again.backbone) is member.backbone
        np.testing.assert_allclose(again.predict(texts, verbose=0), expected, rtol=0, atol=1e-6)


@pytest.mark.exporting
@of_every_kind("bert", "nezha", "modernbert", elsewhere="long")
def test_served_from_strings(member, tmp_path):
    member.save_peer(tmp_path / "peer", "ForSequenceClassification")
    task = open_task("ForSequenceClassification", tmp_path / "peer")
    texts = ["a b c", "d e"]
    export_saved_model(task, tmp_path / "served" / "1")
    tf = pytest.importorskip("tensorflow")
    served = tf.saved_model.load(str(tmp_path / "served" / "1"))
    got = served.signatures["serving_default"](text=tf.constant(texts))["probabilities"]
    expected = keras.ops.softmax(task.predict(texts, verbose=0))
    np.testing.assert_allclose(got.numpy(), to_numpy(expected), rtol=0, atol=1e-6)


@of_every_kind("bert", "distilbert")
def test_arrays_of_a_packer_that_the_model_does_not_take(member):
    sizes = {"num_layers": 2, "num_heads": 2, "hidden_dim": 8, "intermediate_dim": 16}
    backbone = randomize(member.backbone(member.vocabulary_size, **sizes, **member.arguments))
    inputs = member.make_inputs()
    segments = np.zeros_like(inputs["token_ids"])
    expected = backbone(inputs)["sequence_output"]
    got = backbone({"segment_ids": segments, **inputs})["sequence_output"]
    np.testing.assert_array_equal(to_numpy(got), to_numpy(expected))
