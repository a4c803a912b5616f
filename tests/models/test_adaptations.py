"""Adaptations of encoders: their rules, one step of training, and every encoder."""

import types

import keras
import numpy as np
import pytest
from peer_weights import to_numpy
from tables import everywhere_for, short_for

import keras_bert_suite as kbs
from keras_bert_suite.heads.base.split_models import TaskPart
from keras_bert_suite.layers import gelu_tanh
from keras_bert_suite.layers.adapters.adaptable_block import AdaptableBlock, name_bottleneck
from keras_bert_suite.layers.adapters.attention_prefix import AttentionPrefix, PrefixVectors
from keras_bert_suite.layers.adapters.bottleneck import Bottleneck
from keras_bert_suite.layers.adapters.low_rank import LowRank
from keras_bert_suite.layers.adapters.prompt_vectors import PromptVectors
from keras_bert_suite.layers.attention.self_attention import PREFIX
from keras_bert_suite.layers.embeddings.factorized_embedding import FactorizedEmbedding
from keras_bert_suite.models.adaptations.merging import merge_encoder
from keras_bert_suite.runs.packed_layout import choose_layout

SIZES = {
    "vocabulary_size": 30,
    "num_layers": 1,
    "num_heads": 2,
    "hidden_dim": 8,
    "intermediate_dim": 16,
    "max_sequence_length": 16,
}
ENCODERS = {
    "bert": (kbs.BertBackbone, {}),
    "roberta": (kbs.RobertaBackbone, {}),
    "albert": (kbs.AlbertBackbone, {"embedding_dim": 4, "num_layers": 2}),
    "electra": (kbs.ElectraBackbone, {"embedding_dim": 4}),
    "distilbert": (kbs.DistilBertBackbone, {}),
    "modern": (kbs.ModernBertBackbone, {"local_attention": 4, "num_layers": 2}),
    "xlnet": (kbs.XLNetBackbone, {"max_sequence_length": None}),
    "bart": (kbs.BartBackbone, {}),
    "mbart": (kbs.BartBackbone, {"pre_norm": True}),
    "nezha": (kbs.NezhaBackbone, {}),
    "roformer": (kbs.RoFormerBackbone, {}),
    "longformer": (kbs.LongformerBackbone, {"attention_window": 4}),
    "hashing": (kbs.BertBackbone, {"hashing": kbs.layers.TokenHashing(chunk_length=4)}),
}
ADAPTATIONS = {
    "LoRA": kbs.LoRA(2, alpha=3.0, targets=".*"),
    "Houlsby": kbs.HoulsbyAdapters(3),
    "Pfeiffer": kbs.PfeifferAdapters(4),
    "BitFit": kbs.BitFit(),
    "prefix": kbs.PrefixTuning(3, bottleneck_dim=5),
    "prompt": kbs.PromptTuning(3),
}


def make_encoder(kind):
    cls, arguments = ENCODERS[kind]
    keras.utils.set_random_seed(0)
    return cls(**{**SIZES, **arguments})


def make_rows(encoder):
    rng = np.random.default_rng(0)
    mask = (np.arange(8) < [[8], [5]]).astype("int32")
    ids = rng.integers(5, 30, (2, 8)).astype("int32")
    return {
        name: mask if name.endswith("mask") else ids * mask if "token" in name else 0 * ids
        for name in encoder.input
    }


def randomize_adapter(encoder, name="default"):
    rng = np.random.default_rng(1)
    for weight in encoder.weights_of_adapter(name).values():
        weight.assign(to_numpy(weight) + rng.normal(0, 0.3, weight.shape))


def encode(encoder, rows):
    return to_numpy(encoder(rows, training=False)["sequence_output"])


#: Where the others have their effect: in each class of block.
PLACES = {
    "Houlsby": ("bert", "modern", "mbart", "xlnet"),
    "Pfeiffer": ("bert", "albert", "modern", "bart"),
    "BitFit": ("bert", "xlnet"),
    "prefix": ("bert", "albert"),
    "prompt": ("bert", "albert"),
}


ADAPTED = [
    *((kind, "LoRA") for kind in ENCODERS),
    *((kind, name) for name, kinds in PLACES.items() for kind in kinds),
]
#: The encoders whose blocks are those of another kind.
SAME_BLOCKS = ("roberta", "electra", "distilbert", "mbart")


@pytest.mark.parametrize(
    ("kind", "adaptation"),
    short_for(
        ADAPTED,
        *((kind, "LoRA") for kind in ENCODERS if kind not in SAME_BLOCKS),
        *(("bert", "Houlsby"), ("mbart", "Houlsby"), ("albert", "Pfeiffer"), ("bart", "Pfeiffer")),
        *(("modern", "Houlsby"), ("xlnet", "BitFit"), ("albert", "prefix"), ("albert", "prompt")),
        part="combinations",
    ),
)
def test_every_encoder(kind, adaptation):
    """An adapter acts in each encoder, and LoRA in each dense layer of it."""
    encoder, chosen = make_encoder(kind), ADAPTATIONS[adaptation]
    rows = make_rows(encoder)
    before = encode(encoder, rows)
    encoder.add_adapter(chosen)
    if adaptation in ("LoRA", "BitFit"):
        np.testing.assert_allclose(encode(encoder, rows), before, atol=1e-6)
    randomize_adapter(encoder)
    after = encode(encoder, rows)
    assert np.abs(after - before).max() > 1e-3
    copy = type(encoder).from_config(encoder.get_config())
    copy.set_weights(encoder.get_weights())
    np.testing.assert_allclose(encode(copy, rows), after, atol=1e-6)
    paths = {weight.path for weight in encoder.trainable_weights}
    assert paths == {weight.path for weight in copy.trainable_weights}
    assert paths == {weight.path for weight in encoder.weights_of_adapter("default").values()}
    if adaptation in ("LoRA", "BitFit"):
        merged = merge_encoder(encoder, "default")
        np.testing.assert_allclose(encode(merged, rows), after, atol=2e-5)
        assert len(merged.weights) == len(make_encoder(kind).weights)


def test_one_of_several_adapters_is_merged():
    encoder = make_encoder("bert")
    rows, found = make_rows(encoder), {}
    for name, adaptation in (("first", kbs.LoRA(2)), ("second", kbs.LoRA(3, targets=".*"))):
        encoder.add_adapter(adaptation, name)
        randomize_adapter(encoder, name)
        found[name] = encode(encoder, rows)  # The one that was added last acts.
    assert np.abs(found["second"] - found["first"]).max() > 1e-3
    for name, wanted in found.items():
        merged = merge_encoder(encoder, name)
        np.testing.assert_allclose(encode(merged, rows), wanted, atol=2e-5)


@pytest.mark.parametrize("policy", ["float32", "bfloat16", "mixed_float16"])
@pytest.mark.parametrize("adaptation", ["LoRA", "Houlsby", "Pfeiffer", "prompt"])
def test_an_adapter_computes_as_its_encoder(adaptation, policy):
    """Its weights are float32, as LoRA's in Keras. The policy of the process says nothing."""
    encoder = kbs.BertBackbone(**SIZES, dtype=policy)
    before = {weight.path for weight in encoder.weights}
    usual = keras.config.dtype_policy()
    keras.config.set_dtype_policy("float64")
    try:
        encoder.add_adapter(ADAPTATIONS[adaptation])
    finally:
        keras.config.set_dtype_policy(usual)
    owners = [x for x in encoder._flatten_layers() if {w.path for w in x.weights} - before]
    new = [weight for weight in encoder.weights if weight.path not in before]
    assert new and {weight.dtype for weight in new} == {"float32"}
    assert {layer.compute_dtype for layer in owners} == {encoder.compute_dtype}


class Sublayer(AdaptableBlock, keras.layers.Layer):
    """The end of a sublayer whose output is its input times 0.5."""

    def __init__(self):
        super().__init__(name="sublayer")
        self.norm = keras.layers.LayerNormalization(epsilon=1e-5)

    def build(self, shape):
        self.norm.build(shape)

    def call(self, x, training=None):
        return self.close("feedforward", x, 0.5 * x, self.norm, training)


@pytest.mark.parametrize("reads_norm", everywhere_for([False, True], True))
def test_one_step_of_a_bottleneck(reads_norm):
    """Houlsby's and Pfeiffer's rule, forwards and by the gradients of PyTorch."""
    import torch

    layer = Sublayer()
    layer.build((None, None, 6))
    activation = "relu" if reads_norm else gelu_tanh
    bottleneck = Bottleneck(3, activation, reads_norm, 0.5)
    bottleneck.build((None, None, 6))
    layer.add_adapter(name_bottleneck("feedforward"), "default", bottleneck)
    inputs = keras.Input((None, 6))
    model = keras.Model(inputs, layer(inputs))
    x = np.random.default_rng(0).normal(size=(2, 4, 6)).astype("float32")
    wanted = 0.3 * x[::-1]
    parts = (bottleneck.down.kernel, bottleneck.down.bias, bottleneck.up.kernel, bottleneck.up.bias)
    weights = (*parts, layer.norm.gamma, layer.norm.beta)
    w1, b1, w2, b2, gamma, beta = (
        torch.tensor(to_numpy(w).astype("float64"), requires_grad=True) for w in weights
    )

    def norm(h):
        return torch.nn.functional.layer_norm(h, (6,), gamma, beta, 1e-5)

    h = torch.tensor(x.astype("float64"))
    read = norm(h + 0.5 * h) if reads_norm else 0.5 * h
    inner = read @ w1 + b1
    inner = inner.relu() if reads_norm else torch.nn.functional.gelu(inner, approximate="tanh")
    output = norm(h + 0.5 * h + inner @ w2 + b2)
    np.testing.assert_allclose(to_numpy(model(x)), output.detach(), atol=1e-6)
    ((output - torch.tensor(wanted.astype("float64"))) ** 2).mean().backward()
    model.compile(keras.optimizers.SGD(0.1), "mse", jit_compile=False)
    model.fit(x, wanted, batch_size=2, shuffle=False, verbose=0)
    for weight, tensor in zip(weights, (w1, b1, w2, b2, gamma, beta), strict=True):
        stepped = (tensor - 0.1 * tensor.grad).detach()
        np.testing.assert_allclose(to_numpy(weight), stepped, atol=1e-6, err_msg=weight.path)


@pytest.mark.parametrize("bottleneck_dim", everywhere_for([None, 3], 3))
def test_one_step_of_a_prefix(bottleneck_dim):
    """Keys and values that each query sees beside those that the mask shows it."""
    import torch

    attention = kbs.SelfAttention(2, dropout=0.0, initializer_range=0.5)
    hidden, mask = keras.Input((None, 4)), keras.Input((None,), dtype="int32")
    outputs = attention(hidden, mask)
    vectors = PrefixVectors(3, 2, 4, bottleneck_dim, initializer_range=0.5)
    vectors.build()
    attention.add_adapter(PREFIX, "default", AttentionPrefix(vectors, 1))
    model = keras.Model((hidden, mask), outputs)
    x = np.random.default_rng(0).normal(size=(2, 5, 4)).astype("float32")
    seen = (np.arange(5) < [[5], [3]]).astype("int32")
    weights = {w.name: torch.tensor(to_numpy(w).astype("float64")) for w in vectors.weights}
    for weight in weights.values():
        weight.requires_grad_()
    if bottleneck_dim is None:
        both = weights["vectors"][:, 1]
    else:
        inner = torch.tanh(weights["table"] @ weights["down_kernel"] + weights["down_bias"])
        both = torch.einsum("pw,wkh->pkh", inner, weights["up_kernel"][:, 1])
        both = both + weights["up_bias"][1]

    def project(layer):
        return torch.tensor(x @ to_numpy(layer.kernel) + to_numpy(layer.bias)).double()

    def split(y):
        return y.unflatten(-1, (2, 2)).transpose(-3, -2)

    query, key, value = map(project, (attention.query, attention.key, attention.value))
    key, value = (
        torch.cat([both[:, i].expand(2, -1, -1), y], 1) for i, y in enumerate((key, value))
    )
    scores = split(query) @ split(key).transpose(-1, -2) / 2**0.5
    shown = torch.tensor(np.concatenate([np.ones((2, 3)), seen], 1)).bool()
    scores = scores.masked_fill(~shown[:, None, None], -torch.inf)
    context = (scores.softmax(-1) @ split(value)).transpose(1, 2).flatten(2)
    last = attention.output_projection
    output = context @ torch.tensor(to_numpy(last.kernel)).double() + torch.tensor(
        to_numpy(last.bias)
    )
    np.testing.assert_allclose(to_numpy(model((x, seen))), output.detach(), atol=1e-6)
    (output**2).mean().backward()
    model.compile(keras.optimizers.SGD(0.1), "mse", jit_compile=False)
    model.fit((x, seen), np.zeros_like(x), batch_size=2, shuffle=False, verbose=0)
    for weight in vectors.weights:
        tensor = weights[weight.name]
        stepped = (tensor - 0.1 * tensor.grad).detach()
        np.testing.assert_allclose(to_numpy(weight), stepped, atol=1e-6, err_msg=weight.path)


@pytest.mark.parametrize("adaptation", everywhere_for(["BitFit", "Houlsby"], "BitFit"))
def test_one_step_of_weights_of_the_encoder(adaptation):
    """They move as in full training, and the others stay."""
    encoder = kbs.BertBackbone(**{**SIZES, "num_layers": 1, "dropout": 0.0})
    task = kbs.TextClassifier(encoder, num_classes=2, dropout=0.0)
    chosen = ADAPTATIONS[adaptation]
    if adaptation == "Houlsby":  # Which adds nothing.
        chosen = kbs.HoulsbyAdapters(3, initializer_range=1e-20)
    copy = kbs.TextClassifier.from_config(task.get_config())
    copy.set_weights(task.get_weights())
    rows, before = make_rows(encoder), {w.path: to_numpy(w) for w in task.weights}
    task.adapt(chosen, verbose=False)
    for model in (task, copy):
        model.compile(keras.optimizers.SGD(0.5))
        model.fit(rows, np.array([0, 1]), batch_size=2, shuffle=False, verbose=0)
    ends = ("bias", "beta") if adaptation == "BitFit" else ("gamma", "beta")
    full = {weight.path: to_numpy(weight) for weight in copy.weights}
    moved = 0
    for weight in task.weights:
        path = weight.path
        if path in before:
            trains = path.endswith(ends) or path.startswith("classifier")
            wanted = (full if trains else before)[path]
            np.testing.assert_allclose(to_numpy(weight), wanted, atol=1e-6, err_msg=path)
            moved += trains and bool((wanted != before[path]).any())
    assert moved > 5


def test_rows_packed_together_see_the_prefix_and_not_each_other():
    encoder = make_encoder("bert")
    encoder.add_adapter(ADAPTATIONS["prefix"])
    randomize_adapter(encoder)
    rows = make_rows(encoder)
    inputs, _ = choose_layout(encoder)((rows, np.zeros(2)))
    assert "sequence_layout" in inputs
    packed = encode(encoder, inputs)
    shown = rows["padding_mask"][..., None]
    np.testing.assert_allclose(packed * shown, encode(encoder, rows) * shown, atol=1e-5)


#: How the head may ask the encoder.
QUESTIONS = {
    "states": lambda encoder, places: encoder.encode_tokens(),
    "summary": lambda encoder, places: encoder.encode_summary(encoder.input),
    "own summary": lambda encoder, places: encoder.output["pooled_output"],
    "states at": lambda encoder, places: encoder.encode_tokens_at(encoder.input, places),
    "summary beside states": lambda encoder, places: (
        encoder.encode_rows(encoder.input, places).summary
    ),
    "states beside summary": lambda encoder, places: (
        encoder.encode_rows(encoder.input, places).states
    ),
}


def ask(encoder, question, rows, places):
    """What a head gets, (B, H) or (B, L, H). The adapter acts as in a task."""
    task = types.SimpleNamespace(adapter=encoder.adapter, backbone=encoder)
    at = keras.Input((None,), dtype="int32", name="places")
    outputs = QUESTIONS[question](encoder, at)
    part = TaskPart.of(task, {**encoder.input, "places": at}, outputs, "part")
    return to_numpy(part({**rows, "places": places}, training=False))


@pytest.mark.parametrize(
    "kind", everywhere_for(["bert", "roberta", "albert", "electra", "roformer"], "bert")
)
def test_prompts_are_frames_before_those_of_the_tokens(kind):
    """Against the encoder of frames, which takes the table's rows in the place of token ids."""
    encoder = make_encoder(kind)
    frames, places = encoder.for_frames(), np.array([[0, 3], [4, 1]], "int32")
    encoder.add_adapter(kbs.PromptTuning(3))
    randomize_adapter(encoder)
    (vectors,) = map(to_numpy, encoder.weights_of_adapter("default").values())
    rows = make_rows(encoder)
    tokens = to_numpy(encoder.token_embedding(rows["token_ids"]))
    before = {name: np.pad(x, ((0, 0), (3, 0))) for name, x in rows.items() if name != "token_ids"}
    before["frames"] = np.concatenate([np.broadcast_to(vectors, (2, *vectors.shape)), tokens], 1)
    before["padding_mask"][:, :3] = 1
    outputs = {name: to_numpy(x) for name, x in frames(before, training=False).items()}
    states, summary = outputs["sequence_output"][:, 3:], outputs["pooled_output"]
    at = np.take_along_axis(states, places[..., None], 1)
    wanted = {"states": states, "states at": at, "states beside summary": at}
    packed, _ = choose_layout(encoder, 3)((rows, np.zeros(2)))
    shown = rows["padding_mask"][..., None]
    for question in QUESTIONS:
        answer = wanted.get(question, summary)
        mask = shown if question == "states" else 1
        for name, given in (("rows", rows), ("packed rows", packed)):
            got = ask(encoder, question, given, places)
            message = f"{question} of {name}"
            np.testing.assert_allclose(got * mask, answer * mask, atol=1e-5, err_msg=message)


def test_prompts_begin_as_tokens():
    encoder = make_encoder("bert")
    table = to_numpy(encoder.token_embedding.embeddings)
    encoder.add_adapter(kbs.PromptTuning(5), "drawn")
    (drawn,) = map(to_numpy, encoder.weights_of_adapter("drawn").values())
    assert all((row == table).all(axis=1).any() for row in drawn) and len(np.unique(drawn, axis=0))
    tokenizer = kbs.WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "film"])
    encoder.add_adapter(kbs.PromptTuning(5, "A film"), "read", tokenizer=tokenizer)
    (read,) = map(to_numpy, encoder.weights_of_adapter("read").values())
    np.testing.assert_array_equal(read, table[[5, 6, 5, 6, 5]])
    with pytest.raises(ValueError, match="initial_text='A film' is read by the tokenizer of a tas"):
        encoder.add_adapter(kbs.PromptTuning(5, "A film"), "third")
    frames = make_encoder("bert").for_frames(4)
    frames.add_adapter(kbs.PromptTuning(5))
    assert frames.weights_of_adapter("default")


def test_rows_with_prompts_fit_the_positions():
    encoder = make_encoder("bert")
    with pytest.raises(ValueError, match="has 16 positions, of which 16 prompts leave none"):
        encoder.add_adapter(kbs.PromptTuning(16))
    encoder.add_adapter(kbs.PromptTuning(9))
    with pytest.raises(ValueError, match="length 8 with 9 prompts before .* to at most 7"):
        encode(encoder, make_rows(encoder))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: kbs.LoRA(0), "rank must be an integer of at least 1, got 0"),
        (lambda: kbs.LoRA(True), "rank must be an integer of at least 1, got True"),
        (lambda: kbs.LoRA(use_rslora="x"), "use_rslora must be True or False, got 'x'"),
        (lambda: kbs.LoRA(2, alpha=-1.0), "alpha must be a number above 0, got -1.0"),
        (lambda: kbs.LoRA(2, dropout=1.0), "dropout must be a number of at least 0 and below 1"),
        (lambda: kbs.HoulsbyAdapters(0), "bottleneck_dim must be"),
        (lambda: kbs.PfeifferAdapters(0), "reduction must be"),
        (lambda: kbs.PrefixTuning(0), "length must be"),
        (lambda: kbs.PromptTuning(0), "length must be"),
        (lambda: kbs.PromptTuning(3, " "), "initial_text must be a text or None, got ' '"),
    ],
)
def test_wrong_arguments(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("kind", "name", "message"),
    [
        ("modern", "BitFit", "BitFit cannot adapt a ModernBertBackbone. It has no biases"),
        ("modern", "prefix", "PrefixTuning cannot adapt .* a ModernBertAttention, .*Take LoRA"),
        ("xlnet", "prefix", "PrefixTuning cannot adapt an XLNetBackbone. It has an XLNetAttention"),
        ("nezha", "prefix", "PrefixTuning cannot adapt"),
        ("bart", "prefix", "An encoder-decoder keeps the keys"),
        *(
            (kind, "prompt", r"PromptTuning cannot adapt an? .*places of the text.*Take LoRA")
            for kind in ("modern", "xlnet", "bart", "mbart", "nezha", "longformer", "hashing")
        ),
    ],
)
def test_encoders_without_a_place(kind, name, message):
    with pytest.raises(ValueError, match=message):
        make_encoder(kind).add_adapter(ADAPTATIONS[name])


def test_an_encoder_without_attention():
    encoder = kbs.ElmoBackbone(20, num_layers=1, units=6, projection_dim=4)
    with pytest.raises(ValueError, match="an ElmoBackbone. It has no SelfAttention, .*Take LoRA"):
        encoder.add_adapter(kbs.PrefixTuning(2))


def test_wrong_adapters():
    encoder = make_encoder("bert")
    with pytest.raises(ValueError, match=r"No dense layer has a path .*'queri.*transformer_layer_"):
        encoder.add_adapter(kbs.LoRA(2, targets="queri"))
    with pytest.raises(ValueError, match="by an Adaptation, such as LoRA"):
        encoder.add_adapter(8)
    with pytest.raises(ValueError, match="matches the path of no weight"):
        encoder.add_adapter(kbs.LoRA(2), train_also=["poller/.*"])
    with pytest.raises(ValueError, match="letters, digits"):
        encoder.add_adapter(kbs.LoRA(2), "a/b")
    encoder.add_adapter(kbs.LoRA(2), "first")
    with pytest.raises(ValueError, match="has an adapter 'first'"):
        encoder.add_adapter(kbs.LoRA(2), "first")
    with pytest.raises(ValueError, match="'first' and 'second' would share weights"):
        encoder.add_adapter(kbs.BitFit(), "second")
    static = kbs.StaticBackbone(30, 8)
    for adaptation, lacks in (
        (
            kbs.LoRA(2),
            r"LoRA cannot adapt a StaticBackbone. It has no attention and no feed-forward",
        ),
        (
            kbs.PfeifferAdapters(2),
            "PfeifferAdapters cannot adapt a StaticBackbone. It has no transf",
        ),
    ):
        with pytest.raises(ValueError, match=lacks):
            static.add_adapter(adaptation)
    assert len({kbs.LoRA(2), kbs.LoRA(2), kbs.LoRA(3), kbs.BitFit()}) == 3
    with pytest.raises(ValueError, match="PfeifferAdapters adds layers that no kernel can take"):
        other = make_encoder("bert")
        other.add_adapter(kbs.PfeifferAdapters(2))
        merge_encoder(other, "default")
    other = make_encoder("bert")
    other.transformer_layers[0].self_attention.query.enable_lora(2)
    with pytest.raises(ValueError, match="has LoRA of Keras"):
        other.add_adapter(kbs.LoRA(2))


@pytest.mark.parametrize("targets", ["(", None, [3]], ids=str)
def test_targets_that_are_no_patterns(targets):
    with pytest.raises(ValueError, match=r"targets must be regular expressions.*got"):
        kbs.LoRA(targets=targets)


def test_maps_of_attention_leave_out_the_share_of_a_prefix():
    """In the first layer, a prefix takes the same share from all tokens of the text."""
    encoder = make_encoder("bert")
    rows = {name: np.ones((2, 5), "int32") for name in encoder.input}
    rows["token_ids"] = np.arange(10, dtype="int32").reshape(2, 5) + 5
    plain = kbs.encode_with_attention(encoder, rows)["attentions"][0]
    encoder.add_adapter(kbs.PrefixTuning(3, 4))
    for weight in encoder.weights_of_adapter("default").values():
        weight.assign(np.random.default_rng(0).normal(size=weight.shape))
    found = kbs.encode_with_attention(encoder, rows)["attentions"][0]
    shares = found.sum(axis=-1, keepdims=True)
    assert found.shape == plain.shape and (shares < 0.9).all()
    np.testing.assert_allclose(found / shares, plain, atol=1e-5)


@pytest.mark.parametrize(
    ("make", "shapes"),
    [
        (lambda: LowRank(6, 2, 1.0), [(2, 5, 4)]),
        (lambda: PromptVectors(3, 4), [(2, 5, 4)]),
        (lambda: FactorizedEmbedding(9, 6, 2), [(2, 5)]),
        (lambda: kbs.PartEmbeddings([[0], [1, 2], [0]], 3), [(2, 5), (2, 5, 4)]),
    ],
    ids=["low rank", "prompts", "factors", "parts"],
)
def test_inner_layers_name_the_shapes_of_their_outputs(make, shapes):
    layer = make()
    inputs = [np.ones(shape, "int32" if len(shape) == 2 else "float32") for shape in shapes]
    found = layer(*inputs)
    assert tuple(layer.compute_output_shape(*shapes)) == tuple(found.shape)
    if isinstance(layer, FactorizedEmbedding):
        scores = layer(found, reverse=True)
        named = layer.compute_output_shape(tuple(found.shape), reverse=True)
        assert tuple(named) == tuple(scores.shape) == (2, 5, 9)
