"""The first layers of a model, and more positions than it has."""

import numpy as np
import pytest
import torch
import transformers
from family import LENGTH, MEMBERS
from peer_weights import to_numpy
from tables import short_for

import keras_bert_suite as kbs
from keras_bert_suite.layers.poolings.pooling import PromptlessPooling

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*has no weights for"),
    pytest.mark.filterwarnings("ignore:.*holds a backbone"),
]

ALPHA = 0.4


def extend(rows, number, alpha=ALPHA):
    """bert4keras' PositionEmbedding with hierarchical=True, row by row."""
    n, made = len(rows), []
    for place in range(number):
        u_i, u_j = ((rows[k] - alpha * rows[0]) / (1 - alpha) for k in divmod(place, n))
        made.append(alpha * u_i + (1 - alpha) * u_j)
    return np.array(made)


#: Of a recorded model there is no peer to build anew. A Longformer has a test of its own.
NAMES = [name for name in MEMBERS if name not in ("nezha", "longformer")]


@pytest.mark.parametrize(
    "name", short_for(NAMES, "bert", "albert", "roformer", "modernbert", part="combinations")
)
def test_first_layer_of_a_checkpoint(name, tmp_path):
    """As the encoder of transformers with `num_hidden_layers=1`."""
    member = MEMBERS[name]
    # The first layer of an ALBERT of several groups is refused.
    groups = {"num_hidden_groups": 1} if name == "albert" else {}
    peer = member.save_peer(tmp_path / "peer", **groups)
    types = {"layer_types": peer.config.layer_types[:1]} if name == "modernbert" else {}
    small = type(peer).from_pretrained(tmp_path / "peer", num_hidden_layers=1, **types).eval()
    inputs = member.make_inputs()
    names = {"token_ids": "input_ids", "padding_mask": "attention_mask"}
    names |= {"segment_ids": "token_type_ids"}
    given = {names[n]: torch.tensor(x).long() for n, x in inputs.items() if n in names}
    with torch.no_grad():
        wanted = small(**given).last_hidden_state.numpy()
    backbone = member.backbone.from_preset(tmp_path / "peer", num_layers=1)
    assert backbone.num_layers == 1
    got = to_numpy(backbone(inputs)["sequence_output"])
    seen = inputs["padding_mask"] == 1
    np.testing.assert_allclose(got[seen], wanted[seen], atol=1e-5)
    with pytest.raises(ValueError, match="num_layers must be at most"):
        member.backbone.from_preset(tmp_path / "peer", num_layers=9)


def save_bert(path, head="ForSequenceClassification"):
    return MEMBERS["bert"].save_peer(path, head)


@pytest.mark.parametrize("form", ["hugging_face", "preset"])
def test_tasks(form, tmp_path):
    """A classifier keeps its head, as that of transformers with `num_hidden_layers=1`."""
    path = tmp_path / "peer"
    peer = save_bert(path)
    if form == "preset":
        kbs.TextClassifier.from_preset(path).save_to_preset(tmp_path / "preset")
        path = tmp_path / "preset"
    task = kbs.TextClassifier.from_preset(path, num_layers=1)
    small = transformers.BertForSequenceClassification.from_pretrained(
        tmp_path / "peer", num_hidden_layers=1
    ).eval()
    inputs = MEMBERS["bert"].make_inputs()
    with torch.no_grad():
        wanted = small(
            input_ids=torch.tensor(inputs["token_ids"]),
            token_type_ids=torch.tensor(inputs["segment_ids"]),
            attention_mask=torch.tensor(inputs["padding_mask"]),
        ).logits.numpy()
    np.testing.assert_allclose(to_numpy(task(inputs)), wanted, atol=1e-5)
    assert task.compiled and len(task.label_names) == peer.config.num_labels
    new = kbs.TextEmbedder.from_preset(path, num_layers=1) if form == "preset" else None
    assert new is None or new.backbone.num_layers == 1
    task.save(tmp_path / "task.keras")


@pytest.mark.parametrize(
    "cls, arguments",
    [
        (kbs.TokenClassifier, {"num_classes": 3}),
        (kbs.MaskedLM, {}),
        (kbs.QuestionAnswerer, {}),
        (kbs.Seq2Seq, {}),
    ],
)
def test_other_tasks_open(cls, arguments, tmp_path):
    save_bert(tmp_path / "peer", "ForMaskedLM")
    whole = cls.from_preset(tmp_path / "peer", **arguments)
    task = cls.from_preset(tmp_path / "peer", num_layers=1, **arguments)
    assert (task.backbone.num_layers, whole.backbone.num_layers) == (1, 2)
    if cls is kbs.MaskedLM:
        old, new = ({w.path: to_numpy(w) for w in t.weights} for t in (whole, task))
        for name in (name for name in new if not name.startswith("pooler/")):  # It is random.
            np.testing.assert_array_equal(new[name], old[name], err_msg=name)
        assert len(new) < len(old)


@pytest.mark.parametrize("name", ["bert", "roberta"])
@pytest.mark.parametrize(
    "alpha, lengthen", [(True, lambda held: 3 * held + 1), (0.3, lambda held: held**2)]
)
def test_more_positions(name, alpha, lengthen, tmp_path):
    member = MEMBERS[name]
    member.save_peer(tmp_path / "peer")
    whole = member.backbone.from_preset(tmp_path / "peer")
    held, offset = whole.max_sequence_length, whole.position_offset
    wanted_length = lengthen(held)
    backbone = member.backbone.from_preset(
        tmp_path / "peer", max_sequence_length=wanted_length, hierarchical_positions=alpha
    )
    table, old = (to_numpy(b.embeddings.position_embedding.embeddings) for b in (backbone, whole))
    wanted = extend(old[offset:], wanted_length, ALPHA if alpha is True else alpha)
    np.testing.assert_allclose(table[offset:], wanted, atol=1e-6)
    np.testing.assert_allclose(table[: len(old)], old, atol=1e-6)  # The old ones stay.
    inputs = member.make_inputs()
    got, same = (to_numpy(b(inputs)["sequence_output"]) for b in (backbone, whole))
    np.testing.assert_allclose(got, same, atol=1e-5)


def test_positions_of_a_task(tmp_path):
    save_bert(tmp_path / "peer")
    longer = {"max_sequence_length": 40, "hierarchical_positions": True}
    task = kbs.TextClassifier.from_preset(tmp_path / "peer", **longer)
    assert task.preprocessor.sequence_length == 40
    texts = ["a b c " * 12, "d"]
    rows = task.preprocessor(texts)
    assert rows["padding_mask"].shape[1] > 16
    assert np.isfinite(task.predict(texts, verbose=0)).all()
    short = kbs.TextClassifier.from_preset(tmp_path / "peer", max_sequence_length=8)
    assert short.preprocessor.sequence_length == 8
    both = {"max_sequence_length": 8, "sequence_length": 6}
    task = kbs.TextClassifier.from_preset(tmp_path / "peer", load_weights=False, **both)
    assert task.preprocessor.sequence_length == 6
    whole = kbs.TextClassifier.from_preset(tmp_path / "peer", sequence_length=8)
    np.testing.assert_allclose(
        short.predict(texts, verbose=0), whole.predict(texts, verbose=0), atol=1e-6
    )


@pytest.mark.parametrize(
    "sizes, message",
    [
        (
            {"max_sequence_length": 17},
            "has 16 positions, got max_sequence_length=17 .* to True, or",
        ),
        (
            {"max_sequence_length": 257, "hierarchical_positions": True},
            "to make up to 256 positions",
        ),
        ({"max_sequence_length": 17, "hierarchical_positions": 1.5}, "between 0 and 1"),
        ({"max_sequence_length": 8, "hierarchical_positions": 7}, "between 0 and 1, got 7"),
        ({"max_sequence_length": 16, "hierarchical_positions": 7}, "between 0 and 1, got 7"),
        ({"num_layers": 0}, "num_layers must be an integer of at least 1, got 0"),
        ({"num_layers": 3}, "num_layers must be at most 2"),
    ],
)
def test_what_is_refused(sizes, message, tmp_path):
    save_bert(tmp_path / "peer")
    for cls in (kbs.BertBackbone, kbs.TextClassifier):
        with pytest.raises(ValueError, match=message):
            cls.from_preset(tmp_path / "peer", **sizes)


def test_models_that_cannot_be_resized():
    albert = kbs.AlbertBackbone(24, 4, 2, 8, 16, num_groups=2)
    with pytest.raises(ValueError, match="share the weights of 2 groups"):
        albert.resize(num_layers=2)
    roformer = kbs.RoFormerBackbone(24, 2, 2, 8, 16)
    with pytest.raises(ValueError, match="for more positions in a table .* a RoFormerBackbone"):
        roformer.resize(max_sequence_length=2048, hierarchical_positions=True)
    assert roformer.resize(max_sequence_length=LENGTH).max_sequence_length == LENGTH
    bert = kbs.BertBackbone(24, 2, 2, 8, 16)
    with pytest.raises(ValueError, match="got max_sequence_length=None"):
        bert.resize(hierarchical_positions=True)
    bert.quantize("int8")
    with pytest.raises(ValueError, match="before `quantize` or `enable_lora`"):
        bert.resize(num_layers=1)
    bert = kbs.BertBackbone(24, 2, 2, 8, 16)
    bert.transformer_layers[0].self_attention.query.enable_lora(2)
    with pytest.raises(ValueError, match="Resize a BertBackbone before .* the layer transformer"):
        bert.resize(num_layers=1)


@pytest.mark.parametrize(
    "name, value, remedy",
    [
        ("num_layers", 1, r"old\.resize\(num_layers=1\)"),
        ("max_sequence_length", 8, r"old\.resize\(max_sequence_length=8\)"),
        ("vocabulary_size", 30, r"old\.resize_vocabulary\(30\)"),
    ],
)
def test_an_attribute_does_not_resize(name, value, remedy):
    """The error names a call that does."""
    old = kbs.BertBackbone(24, 2, 2, 8, 16, max_sequence_length=16)
    with pytest.raises(AttributeError, match=f"would change nothing. .*{remedy}") as error:
        setattr(old, name, value)
    new = eval(str(error.value).split("`")[1].removeprefix("new = "), {"old": old})
    assert getattr(new, name) == value


@pytest.mark.parametrize(
    "form",
    ["hugging_face", pytest.param("preset", marks=pytest.mark.long("combinations"))],
)
def test_poolings_of_all_layers(form, tmp_path):
    """A `ScalarMix` has a weight for each layer. Others are as if built on the small encoder."""
    save_bert(tmp_path / "peer", "Model")
    path, arguments = (
        tmp_path / "peer",
        {"num_classes": 2, "pooling": kbs.ScalarMix(kbs.BiLSTMPooling())},
    )
    if form == "preset":
        path, whole = tmp_path / "preset", kbs.TextClassifier.from_preset(path, **arguments)
        whole.save_to_preset(path)
        arguments = {}
    with pytest.raises(
        ValueError, match=r"scalar_mix.* for each layer, shape \(3,\), .* needs \(2,\)"
    ):
        kbs.TextClassifier.from_preset(path, num_layers=1, **arguments)
    backbone = kbs.BertBackbone.from_preset(tmp_path / "peer", num_layers=1)
    task = kbs.TextClassifier(backbone, num_classes=2, pooling=kbs.ScalarMix())
    assert task.pooling.layer_weights.shape == (2,)
    task.pooling.scale.assign(3.0)
    inputs = MEMBERS["bert"].make_inputs()
    more = task.resize_vocabulary(backbone.vocabulary_size + 2)
    np.testing.assert_array_equal(to_numpy(more(inputs)), to_numpy(task(inputs)))


@pytest.mark.parametrize(
    "pooling",
    ["first_last_average", kbs.BiLSTMPooling(), kbs.LastLayers(1, pooling=kbs.AttentionPooling())],
)
def test_poolings_that_fit_any_number_of_layers(pooling, tmp_path):
    save_bert(tmp_path / "peer", "Model")
    arguments = {"num_classes": 2, "pooling": pooling}
    kbs.TextClassifier.from_preset(tmp_path / "peer", **arguments).save_to_preset(tmp_path / "ours")
    whole = kbs.TextClassifier.from_preset(tmp_path / "ours")
    task = kbs.TextClassifier.from_preset(tmp_path / "ours", num_layers=1)
    backbone = kbs.BertBackbone.from_preset(tmp_path / "peer", num_layers=1)
    wanted = kbs.TextClassifier(
        backbone, num_classes=2, pooling=type(whole.pooling).from_config(whole.pooling.get_config())
    )
    for part in ("pooling", "classifier"):
        getattr(wanted, part).set_weights(getattr(whole, part).get_weights())
    inputs = MEMBERS["bert"].make_inputs()
    np.testing.assert_allclose(to_numpy(task(inputs)), to_numpy(wanted(inputs)), atol=1e-6)


def test_an_encoder_decoder_is_not_resized(tmp_path):
    save_bert(tmp_path / "peer", "ForMaskedLM")
    task = kbs.Seq2Seq.from_preset(
        tmp_path / "peer", decoder=tmp_path / "peer", max_target_length=8
    )
    task.save_to_preset(tmp_path / "ours")
    message = "A BertEncoderDecoder cannot be resized. Resize the BERTs, and join them"
    for sizes in ({"num_layers": 1}, {"max_sequence_length": 8}):
        with pytest.raises(ValueError, match=message):
            kbs.Seq2Seq.from_preset(tmp_path / "ours", **sizes)
        with pytest.raises(ValueError, match=message):
            kbs.BertEncoderDecoder.from_preset(tmp_path / "ours", **sizes)
    for model in (task, task.backbone):
        with pytest.raises(ValueError, match=message):
            model.resize_vocabulary(40)


def test_without_weights(tmp_path):
    """The arguments of `resize` are taken for a configuration, too."""
    save_bert(tmp_path / "peer")
    path, longer = tmp_path / "peer", {"max_sequence_length": 40, "hierarchical_positions": True}
    for cls in (kbs.BertBackbone, kbs.TextClassifier):
        model = cls.from_preset(path, load_weights=False, **longer)
        assert getattr(model, "backbone", model).max_sequence_length == 40
    none = kbs.BertBackbone.from_preset(path, load_weights=False, hierarchical_positions=False)
    assert none.max_sequence_length == 16
    assert kbs.BertBackbone.from_preset(path, load_weights=False, num_layers=4).num_layers == 4


def test_longformer(tmp_path):
    """Its windows are cut with its layers, and the rule for its global tokens stays."""
    member, path = MEMBERS["longformer"], tmp_path / "peer"
    member.save_peer(path)
    whole = member.backbone.from_preset(path, output_hidden_states=True)
    inputs = member.make_inputs()
    got = member.backbone.from_preset(path, num_layers=1)(inputs)["sequence_output"]
    np.testing.assert_array_equal(to_numpy(got), to_numpy(whole(inputs)["hidden_states"][1]))
    task = kbs.QuestionAnswerer.from_preset(path, num_layers=1)
    assert task.backbone.global_tokens == "first_text"
    assert list(task.backbone.attention_window) == [4]


def test_a_pooling_without_the_prompt(tmp_path):
    """Its pooling has a weight without an axis."""
    save_bert(tmp_path / "peer", "Model")
    pooling = PromptlessPooling("first_last_average")
    task = kbs.TextEmbedder.from_preset(tmp_path / "peer", pooling=pooling, num_layers=1)
    backbone = kbs.BertBackbone.from_preset(tmp_path / "peer", num_layers=1)
    wanted = kbs.TextEmbedder(backbone, pooling="first_last_average")
    inputs = MEMBERS["bert"].make_inputs()
    np.testing.assert_allclose(to_numpy(task(inputs)), to_numpy(wanted(inputs)), atol=1e-6)
