"""Every kind of model beside transformers: outputs, gradients, checkpoints, heads, packed rows."""

import keras
import numpy as np
import pytest
import transformers
from checkers import check_backbone
from family import LENGTH, MEMBERS, open_task
from family_differences import LIVING, compare_encoder, compare_head
from peer_weights import randomize, to_numpy
from portable_runtimes import PORTABLE
from serving.traced import trace
from tables import short_for

from keras_bert_suite.models.encoder import Encoder
from keras_bert_suite.preprocessing.sequence_packing import lay_out_sequences

pytestmark = pytest.mark.filterwarnings("ignore:.*has no weights for.*pooler")


def of_every_kind(*everywhere, members=MEMBERS):
    """Parametrizes a test by `member`.

    Args:
        *everywhere: names of the kinds that are tested on every backend: one of each attention.
        members: dict of name -> `Member`.
    """
    return pytest.mark.parametrize(
        "member",
        [
            pytest.param(
                member,
                id=name,
                marks=pytest.mark.every_backend if name in everywhere else (),
            )
            for name, member in members.items()
        ],
    )


@pytest.mark.parametrize(
    "kind",
    # The layers of the others have the same checks, and their weights are saved and moved below.
    short_for(MEMBERS, "albert", "bart", "longformer", "xlnet", part="combinations"),
)
def test_basics(kind):
    """BERT does the same in tests/models/test_bert_backbone.py."""
    member = MEMBERS[kind]
    arguments = {"vocabulary_size": member.vocabulary_size, **member.sizes, **member.arguments}
    inputs = member.make_inputs()
    outputs = {"sequence_output": (3, LENGTH, 8), "pooled_output": (3, 8)}
    check_backbone(member.backbone, arguments, inputs, outputs, may_stay=member.may_stay)


@of_every_kind("modernbert", members=LIVING)
def test_encoder_equals_transformers(member, tmp_path):
    """Outputs, gradients of every weight, and the files that are written back."""
    outputs, gradients = compare_encoder(member, tmp_path)
    for name, difference in {**outputs, **gradients}.items():
        assert difference <= 1e-5, name
    saved, original = (
        transformers.AutoConfig.from_pretrained(tmp_path / p) for p in ("again", "peer")
    )
    for name in member.config:
        assert getattr(saved, name) == getattr(original, name), name


#: The kinds whose heads have layers or names of their own.
OWN_HEADS = ("roberta", "electra", "bart", "modernbert", "xlnet")
HEADS = [(kind, head) for kind, member in LIVING.items() for head in member.heads]


@pytest.mark.parametrize(
    ("kind", "head"),
    short_for(
        HEADS,
        *(
            (kind, head)
            for kind, head in HEADS
            if kind == "bert"
            or head == "ForMaskedLM"
            or (head == "ForSequenceClassification" and kind in OWN_HEADS)
        ),
        part="combinations",
    ),
)
def test_heads_equal_transformers(kind, head, tmp_path):
    assert compare_head(LIVING[kind], head, tmp_path) <= 1e-5


@of_every_kind("longformer")
def test_packed_rows_have_the_same_outputs(member):
    backbone = randomize(member.make())
    assert Encoder.of(backbone).packs_sequences == member.packs
    if not member.packs:  # `fit` refuses packed rows.
        return
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


@pytest.mark.parametrize(
    "kind",
    short_for(MEMBERS, "ernie", "modernbert", part="combinations"),
)
def test_saved_and_opened_again(kind, tmp_path):
    """A task keeps its kind of backbone and its tokenizer in `.keras` files and in presets."""
    member = MEMBERS[kind]
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


@pytest.mark.long("serving")
@pytest.mark.backend("tensorflow")
@of_every_kind()
def test_served_from_strings(member, tmp_path):
    tf = pytest.importorskip("tensorflow")
    member.save_peer(tmp_path / "peer", "ForSequenceClassification")
    task = open_task("ForSequenceClassification", tmp_path / "peer")
    texts = ["a b c", "d e"]
    got = trace(task)(text=tf.constant(texts))["probabilities"]
    expected = keras.ops.softmax(task.predict(texts, verbose=0))
    np.testing.assert_allclose(got.numpy(), to_numpy(expected), rtol=0, atol=1e-6)


@pytest.mark.long("combinations")
@pytest.mark.backend("tensorflow")
@pytest.mark.parametrize("file_format", PORTABLE)
@pytest.mark.parametrize(
    "kind", ["albert", "roformer", "nezha", "modernbert", "longformer", "xlnet"]
)
def test_portable_formats(kind, file_format, tmp_path):
    """Of token ids. Rows are longer than windows and distances, and no whole number of blocks."""
    member = MEMBERS[kind]
    member.save_peer(tmp_path / "peer", "ForSequenceClassification")
    task = open_task("ForSequenceClassification", tmp_path / "peer")
    # Files for LiteRT have rows of this length.
    task.preprocessor.sequence_length = LENGTH
    export, run = PORTABLE[file_format]
    export(task, tmp_path / "exported")
    inputs = {name: array for name, array in member.make_inputs().items() if name in task.input}
    got = run(tmp_path / "exported", inputs)["probabilities"]
    expected = keras.ops.softmax(task.predict(inputs, verbose=0))
    np.testing.assert_allclose(got, to_numpy(expected), rtol=0, atol=1e-5)


@of_every_kind()
def test_arrays_of_a_packer_that_the_model_does_not_take(member):
    backbone = randomize(member.make())
    inputs = member.make_inputs()
    segments = np.zeros_like(inputs["token_ids"])
    expected = backbone(inputs)["sequence_output"]
    got = backbone({"segment_ids": segments, **inputs})["sequence_output"]
    np.testing.assert_array_equal(to_numpy(got), to_numpy(expected))
