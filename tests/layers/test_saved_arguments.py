"""Each argument of each layer is saved: the layer that is read back does what the saved layer does.

Each argument has another value here than its default or its value in `Case.arguments`. The value
changes what the layer does, so a lost value is seen. A new layer, or a new argument, needs a row.
"""

import dataclasses
import inspect
import json
import types
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest
from keras import ops
from peer_weights import name_initializers, randomize, to_numpy
from tables import short_for

import keras_bert_suite.layers as layers
from keras_bert_suite.argument_checks import list_arguments
from keras_bert_suite.layers import gelu_tanh, recompute
from keras_bert_suite.layers.adapters.adaptable import Acting, act
from keras_bert_suite.layers.adapters.attention_prefix import PrefixVectors
from keras_bert_suite.layers.adapters.bottleneck import Bottleneck
from keras_bert_suite.layers.adapters.low_rank import LowRank
from keras_bert_suite.layers.adapters.prompt_vectors import PromptVectors
from keras_bert_suite.layers.attention.read_tokens import ReadPackedTokens, ReadTokens
from keras_bert_suite.layers.attention.xlnet_attention import RelativeBiases
from keras_bert_suite.layers.heads.entity_states import EntityAverages, FindMarkers
from keras_bert_suite.layers.heads.pair_score import PairScore
from keras_bert_suite.layers.norms import RootMeanSquareNorm
from keras_bert_suite.layers.poolings.embedding_pooling import EmbeddingPooling
from keras_bert_suite.models.ernie_backbone import ErnieEmbeddings

B, L, H, V = 3, 7, 8, 20
RNG = np.random.default_rng(0)
HIDDEN = RNG.standard_normal((B, L, H)).astype("float32")
STATES = [RNG.standard_normal((B, L, H)).astype("float32") for _ in range(4)]
MASK = (np.arange(L) < np.array([[7], [4], [6]])).astype("int32")
IDS = (RNG.integers(3, V, (B, L)) * MASK).astype("int32")
MEMORY = RNG.standard_normal((B, 2, 4, H)).astype("float32")
SEGMENTS = ((np.arange(L) > 2) * MASK).astype("int32")
POSITIONS = np.tile(np.arange(L, dtype="int32"), (B, 1))
CONDITIONS = RNG.standard_normal((B, 2)).astype("float32")
PLACES = np.array([[1, 2, 4], [1, 2, 3], [2, 5, 0]], "int32")
#: Of rows that are not packed.
WHOLE_ROWS = types.SimpleNamespace(unpack=lambda hidden, _: hidden)
WINDOWS = np.array([[[1, 2]] * 5, [[3, 4]] * 5], "int32") * np.arange(1, 6)[:, None]


def embedding(size=V):
    table = keras.layers.ReversibleEmbedding(size, H, name="token_embedding")
    table.build()
    return table


def take_condition(layer):
    """What a layer whose norms depend on a condition reads."""
    reads = getattr(layer, "norm_condition", None) is not None and getattr(layer, "has_norm", True)
    return {"condition": CONDITIONS} if reads else {}


def call(*inputs):
    """How most layers are run: at inference, and in training."""

    def run(layer):
        takes_training = "training" in layer._call_signature.parameters
        modes = ({"training": False}, {"training": True}) if takes_training else ({},)
        return [layer(*inputs, **take_condition(layer), **mode) for mode in modes]

    return run


def embed(layer):
    tokens = IDS
    if getattr(layer, "frame_dim", None):
        tokens = HIDDEN[..., : layer.frame_dim]
    outputs = call(tokens, SEGMENTS)(layer)
    try:  # The longest row says how many positions there are.
        longest = np.ones((B, 31, *tokens.shape[2:]), tokens.dtype)
        layer(longest, **take_condition(layer))
    except ValueError:
        outputs.append(np.ones(1))
    return outputs


def attend_in_windows(layer):
    rows = layers.GlobalTokens(max_tokens=8)(IDS, MASK)
    given = {"attention_mask": rows, **take_condition(layer)}
    return [layer(HIDDEN, **given, training=mode) for mode in (False, True)]


def attend_in_pairs(layer):
    pairs = {"sinusoids": layers.RelativeSinusoids(0.0)(HIDDEN), **take_condition(layer)}
    if layer.has_segments:
        pairs["differs"] = SEGMENTS[:, :, None] != SEGMENTS[:, None]
    return [layer(HIDDEN, MASK, **pairs, training=mode) for mode in (False, True)]


def embed_queries(layer):
    outputs = [*embed(layer), layer(IDS, is_query=True)]
    return [*outputs, np.ones(len(layer.trainable_weights))]


def list_vectors(biases):
    if not biases.built:
        biases.build()
    return biases.weights


def mark_globals(layer):
    ids = np.array([[0, 8, 9, 2, 2, 7, 2], [0, 8, 3, 7, 3, 2, 1]], "int32")
    rows = layer(ids, (ids != 1).astype("int32"))
    return [rows.is_global, rows.places, rows.is_taken]


def run_chain(crf):
    emissions = HIDDEN[..., : crf.num_classes]
    labels = np.where(MASK, [[0, 1, 0, 1, 1, 0, 1]], -1)
    outputs = [crf(emissions), crf.decode(emissions, MASK.sum(1))]
    return [*outputs, crf.negative_log_likelihood(labels, emissions)]


def sample_windows(layer):
    x = {"token_ids": WINDOWS, "padding_mask": np.ones_like(WINDOWS)}
    return [layer(x, training=True)["token_ids"] for _ in range(3)]


def replace(layer):
    logits = np.tile(HIDDEN[:, :3, :1], (1, 1, V)) * 0
    return [layer(IDS, PLACES, logits, training=True) for _ in range(3)]


@dataclasses.dataclass
class Case:
    """How a layer is made and run.

    Args:
        arguments: dict of what the layer needs.
        changed: dict of argument -> another value, or a dict of it and of what it needs.
        run: function of a layer that returns a list of arrays.
    """

    arguments: dict[str, Any]
    changed: dict[str, Any]
    run: Callable[[Any], list[Any]]


HEADS = {"num_heads": 4, "dropout": 0.5, "initializer_range": 0.1, "head_dim": 6}
BLOCK = {
    "num_heads": 4,
    "intermediate_dim": 6,
    "activation": keras.activations.relu,
    "dropout": 0.5,
    "attention_dropout": 0.5,
    "layer_norm_epsilon": 0.5,
    "initializer_range": 0.1,
    "remat": True,
    "has_cross_attention": True,
    "head_dim": 6,
    "norm_condition": layers.NormCondition(2, 3, "tanh"),
}
#: Layers whose heads are always as wide together as the hidden states.
WHOLE_HEADS = {
    *(layers.LongformerAttention, layers.LongformerBlock),
    *(layers.LshAttention, layers.LshBlock, layers.ModernBertAttention),
}
WHOLE, WHOLE_BLOCK = (
    {name: value for name, value in arguments.items() if name != "head_dim"}
    for arguments in (HEADS, BLOCK)
)
MODERN = {
    "num_heads": 4,
    "reach": 1,
    "rotary_base": 10.0,
    "initializer_range": 0.1,
    "output_range": 0.1,
}
#: Tokens with two, one and no parts.
PARTS = [[token % 5, token % 3][: token % 3] for token in range(V)]
EMBEDDINGS = {
    "vocabulary_size": V + 1,
    "hidden_dim": 12,
    "max_sequence_length": 31,
    "num_segments": 3,
    "embedding_dim": 4,
    "dropout": 0.5,
    "layer_norm_epsilon": 0.5,
    "initializer_range": 0.1,
    "position_offset": 2,
    "frame_dim": 4,
    "part_embeddings": layers.PartEmbeddings(PARTS, 5, embedding_dim=4),
    "embedding_rank": 4,
    "norm_condition": layers.NormCondition(2, 3, "tanh"),
}
TABLE = {"vocabulary_size": V, "hidden_dim": H, "max_sequence_length": 30}
SIZES = {"num_heads": 2, "intermediate_dim": 12}
IN_ROWS = call(HIDDEN, MASK, None, None)
IN_CHUNKS = call(HIDDEN, MASK)
#: Some settings of a hash, and others.
HASHED = [
    {"hashing": layers.TokenHashing(chunk_length=3, num_buckets=4)},
    {"hashing": layers.TokenHashing(2, 3, [2, 4], seed=7), "is_causal": True},
]
NORMED = {"layer_norm_epsilon": 0.5, "initializer_range": 0.1}
SPANS = Case(
    {"num_classes": 3, "head_dim": 4},
    {"num_classes": 2, "head_dim": 6, "rotary": False},
    call(HIDDEN, MASK),
)
ALLOWED = [[True, False, True], [True, True, True], [True, False, True]]


def attend(layer):
    if isinstance(layer, layers.ModernBertAttention | layers.ModernBertBlock):
        return call(HIDDEN, MASK, POSITIONS)(layer)
    given = {"positions": POSITIONS, **take_condition(layer)}
    return [layer(HIDDEN, MASK, **given, training=mode) for mode in (False, True)]


def find_prefix(layer):
    if not layer.built:
        layer.build()
    return list(layer.find_pair(1))


def read_behind_a_prompt(*inputs):
    def run(layer):
        packed = {"sequence_layout": WHOLE_ROWS} if isinstance(layer, ReadPackedTokens) else {}
        with act(Acting("adapter", False, prompt_length=1)):
            return layer(*inputs, PLACES, **packed)

    return run


def close(layer):
    """The end of a sublayer with a bottleneck. A block has its tensors in the layer's precision."""
    hidden = ops.cast(HIDDEN, layer.compute_dtype)
    layer(hidden)
    return [layer.close(hidden, ops.flip(hidden, 0), ops.tanh)]


CHARACTERS = np.random.default_rng(3).integers(1, 262, (2, 7, 50)).astype("int32")


CASES = {
    layers.FactorizedEmbedding: Case(
        {"input_dim": V, "output_dim": H, "rank": 3},
        {"input_dim": V + 1, "output_dim": 12, "rank": 4, "initializer_range": 0.1},
        call(IDS),
    ),
    layers.CharacterEmbeddings: Case(
        {"output_dim": 4, "filters": [[1, 3], [2, 4]]},
        {
            "output_dim": 3,
            "filters": [[1, 2]],
            "embedding_dim": 3,
            "num_highways": 1,
            "activation": keras.activations.tanh,
            "num_characters": 300,
            "max_characters": 20,
        },
        lambda layer: [layer(CHARACTERS[..., : layer.max_characters])],
    ),
    layers.ProjectedLSTM: Case(
        {"units": 6, "projection_dim": 4},
        {
            "units": 5,
            "projection_dim": 3,
            "cell_clip": 0.1,
            "projection_clip": 0.01,
            "go_backwards": True,
        },
        lambda layer: list(layer(HIDDEN, MASK)),
    ),
    layers.SelfAttention: Case({"num_heads": 2}, HEADS, attend),
    layers.RotaryAttention: Case(
        {"num_heads": 2}, {**HEADS, "num_heads": 1, "rotary_value": True, "use_bias": False}, attend
    ),
    layers.RelativeAttention: Case({"num_heads": 2}, {**HEADS, "max_relative_position": 2}, attend),
    layers.LongformerAttention: Case({"num_heads": 2}, {**WHOLE, "reach": 1}, attend_in_windows),
    layers.LshAttention: Case({"num_heads": 2, **HASHED[0]}, {**WHOLE, **HASHED[1]}, IN_CHUNKS),
    layers.ModernBertAttention: Case(
        {"num_heads": 2}, {**MODERN, "dropout": 0.5, "use_bias": True}, attend
    ),
    layers.TransformerBlock: Case(SIZES, BLOCK, attend),
    layers.BartBlock: Case(SIZES, {**BLOCK, "activation_dropout": 0.5, "pre_norm": True}, attend),
    layers.RotaryBlock: Case(
        SIZES, {**BLOCK, "rotary_value": True, "use_bias": False, "norm_type": "rms_norm"}, attend
    ),
    layers.RelativeBlock: Case(SIZES, {**BLOCK, "max_relative_position": 2}, attend),
    layers.LongformerBlock: Case(SIZES, {**WHOLE_BLOCK, "reach": 1}, attend_in_windows),
    layers.LshBlock: Case({**SIZES, **HASHED[0]}, {**WHOLE_BLOCK, **HASHED[1]}, IN_CHUNKS),
    layers.ModernBertBlock: Case(
        SIZES,
        {
            **MODERN,
            **{name: BLOCK[name] for name in ("intermediate_dim", "activation", "remat")},
            **{"has_attention_norm": False, "attention_dropout": 0.5, "mlp_dropout": 0.5},
            **{"attention_bias": True, "mlp_bias": True, "norm_bias": True},
            "layer_norm_epsilon": 0.5,
        },
        attend,
    ),
    RelativeBiases: Case(
        {"num_heads": 2, "head_dim": 4},
        {"num_heads": 4, "head_dim": 3, "has_segments": False, "initializer_range": 0.1},
        list_vectors,
    ),
    layers.XLNetAttention: Case(
        {"num_heads": 2}, {**HEADS, "head_dim": 3, "has_segments": False}, attend_in_pairs
    ),
    layers.XLNetBlock: Case(
        SIZES, {**BLOCK, "head_dim": 3, "has_segments": False}, attend_in_pairs
    ),
    layers.RelativeSinusoids: Case({}, {"dropout": 0.5, "clamp_length": 2}, call(HIDDEN)),
    layers.VisibleMemory: Case(
        {}, {"same_length": True}, call(np.ones((B, L, L), "int32"), MEMORY)
    ),
    layers.NextMemory: Case(
        {"memory_length": 6}, {"memory_length": 5, "reuse_length": 1}, call(MEMORY, HIDDEN, HIDDEN)
    ),
    layers.XLNetEmbeddings: Case(TABLE, {**EMBEDDINGS, "trains_queries": True}, embed_queries),
    layers.BartEmbeddings: Case(
        {"token_embedding": embedding(), "max_sequence_length": 30},
        {
            **{name: EMBEDDINGS[name] for name in ("max_sequence_length", "dropout")},
            **NORMED,
            "token_embedding": embedding(V + 1),
            "scale_tokens": True,
            "position_offset": 3,
            "frame_dim": 4,
        },
        embed,
    ),
    layers.PartEmbeddings: Case(
        {"parts": PARTS, "num_parts": 5, "embedding_dim": 4},
        {
            "parts": [row[::-1] or [1] for row in PARTS],
            "num_parts": 6,
            "embedding_dim": 5,
            "filters": [[1, 3], [2, 2]],
            "merge": "concat",
            "initializer_range": 0.1,
        },
        call(IDS, HIDDEN),
    ),
    layers.BertEmbeddings: Case(TABLE, EMBEDDINGS, embed),
    layers.ProjectedEmbeddings: Case(TABLE, EMBEDDINGS, embed),
    # Without a table of positions, the offset counts for nothing.
    layers.UnplacedEmbeddings: Case(TABLE, {**EMBEDDINGS, "norm_type": "rms_norm"}, embed),
    layers.TokenEmbeddings: Case(
        TABLE,
        {
            **EMBEDDINGS,
            "norm_bias": True,
            "norm_condition": {"norm_bias": True, "norm_condition": layers.NormCondition(2)},
        },
        embed,
    ),
    ErnieEmbeddings: Case(
        TABLE,
        {**EMBEDDINGS, "num_task_types": 2, "task_id": {"task_id": 1, "num_task_types": 2}},
        embed,
    ),
    layers.VisibleTokens: Case({}, {"pattern": "seq2seq"}, call(MASK, SEGMENTS)),
    layers.GlobalTokens: Case(
        {"max_tokens": 16, "pattern": "first_text"},
        {"pattern": "later_texts", "separator_id": 3, "max_tokens": 2},
        mark_globals,
    ),
    LowRank: Case(
        {"units": 5, "rank": 2, "scale": 0.5},
        {"units": 6, "rank": 3, "scale": 0.25, "dropout": 0.5},
        call(HIDDEN),
    ),
    Bottleneck: Case(
        {"bottleneck_dim": 3, "activation": "relu"},
        {
            **{"bottleneck_dim": 4, "activation": "tanh"},
            **{"reads_norm": True, "initializer_range": 0.5},
        },
        close,
    ),
    PrefixVectors: Case(
        {"length": 3, "num_layers": 2, "hidden_dim": H},
        {
            **{"length": 2, "num_layers": 3, "hidden_dim": 12},
            **{"bottleneck_dim": 5, "initializer_range": 0.5},
        },
        find_prefix,
    ),
    PromptVectors: Case(
        {"length": 3, "embedding_dim": H},
        {"length": 2, "embedding_dim": 4, "initializer_range": 0.5},
        lambda layer: layer(HIDDEN[..., : layer.embedding_dim]),
    ),
    ReadTokens: Case({}, {"starts_with_row": True}, read_behind_a_prompt(HIDDEN)),
    ReadPackedTokens: Case({}, {"starts_with_row": True}, read_behind_a_prompt(HIDDEN, MASK)),
    RootMeanSquareNorm: Case({}, {"epsilon": 0.5}, call(HIDDEN)),
    layers.ConditionalRandomField: Case(
        {"num_classes": 2},
        {
            "num_classes": 3,
            "allowed": ALLOWED,
            "constrained_training": {"constrained_training": True, "allowed": ALLOWED},
        },
        run_chain,
    ),
    PairScore: Case(
        {},
        {"hidden_dim": 3, "activation": keras.activations.relu, "dropout": 0.5},
        call(HIDDEN[:, :1], HIDDEN),
    ),
    EmbeddingPooling: Case(
        {},
        {
            "pooling": "max",
            "dense_layers": [keras.layers.Dense(3, "tanh")],
            "normalize": False,
            "dimensions": 2,
        },
        call(HIDDEN, MASK),
    ),
    layers.GlobalPointer: SPANS,
    layers.EfficientGlobalPointer: SPANS,
    layers.MaskedLMHead: Case(
        {"token_embedding": embedding(), "activation": gelu_tanh},
        {
            **NORMED,
            "token_embedding": embedding(V + 1),
            "activation": keras.activations.relu,
            "transform": layers.PredictionHead(),
        },
        call(HIDDEN, PLACES),
    ),
    layers.SpanBoundaryHead: Case(
        {"token_embedding": embedding(), "activation": gelu_tanh},
        {
            **NORMED,
            "token_embedding": embedding(V + 1),
            "activation": keras.activations.relu,
            "max_span_length": 1,
            "place_dim": 6,
        },
        call(HIDDEN, PLACES),
    ),
    layers.ReplacedTokenHead: Case(
        {"hidden_dim": H, "activation": gelu_tanh},
        {"hidden_dim": 6, "activation": keras.activations.relu, "initializer_range": 0.1},
        call(HIDDEN),
    ),
    layers.ReplacementSampler: Case({}, {"seed": 7}, replace),
    layers.PredictionHead: Case(
        {}, {**NORMED, "activation": gelu_tanh, "use_bias": True, "norm_bias": True}, call(HIDDEN)
    ),
    FindMarkers: Case({"marker_ids": [3, 4]}, {"marker_ids": [4, 5, 6]}, call(IDS)),
    EntityAverages: Case(
        {}, {"dropout": 0.5}, call(HIDDEN, HIDDEN[:, 0], np.array([[0, 2, 2, 5]] * B, "int32"))
    ),
    layers.AttentionPooling: Case({}, {"units": 5}, call(HIDDEN, MASK)),
    layers.ConvolutionPooling: Case({}, {"filters": 3, "widths": (1, 3)}, call(HIDDEN, MASK)),
    layers.BiLSTMPooling: Case({}, {"units": 3}, call(HIDDEN, MASK)),
    layers.ConcatenatedPooling: Case(
        {"poolings": ["max", "mean"]}, {"poolings": ["mean", "max"]}, call(HIDDEN, MASK)
    ),
    layers.PromptlessPooling: Case(
        {"pooling": layers.MeanPooling()}, {"pooling": layers.MaxPooling()}, call(HIDDEN, MASK)
    ),
    layers.ScalarMix: Case({}, {"pooling": layers.MaxPooling()}, call(STATES, MASK)),
    layers.LastLayers: Case(
        {"num_layers": 2},
        {"num_layers": 3, "pooling": layers.AttentionPooling(5)},
        call(STATES, MASK),
    ),
    layers.WindowSampler: Case({"num_windows": 2}, {"num_windows": 3, "seed": 7}, sample_windows),
    layers.WindowTransformer: Case(
        {}, {"num_layers": 2, "num_heads": 2, "intermediate_dim": 6, "dropout": 0.5}, IN_ROWS
    ),
}
CASES[layers.WindowTransformer].run = call(HIDDEN, MASK)

#: Arguments that change nothing that a layer does, so only the configuration can tell.
IDLE = {
    # No table of positions has the offset.
    (layers.UnplacedEmbeddings, "position_offset"),
    (layers.TokenEmbeddings, "position_offset"),
    (layers.XLNetEmbeddings, "position_offset"),
    # There is no norm.
    (layers.XLNetEmbeddings, "layer_norm_epsilon"),
    (layers.XLNetEmbeddings, "norm_condition"),
}


#: Each call reads these arguments, so a new value holds.
MAY_BE_SET = {
    *((cls, "remat") for cls in CASES if "remat" in CASES[cls].changed),
    (layers.GlobalTokens, "pattern"),
    (FindMarkers, "marker_ids"),
}


def observe(layer, run, monkeypatch):
    """Everything that a layer does: initial weights, outputs in both modes, blocks done twice."""
    twice = []
    find_acting = recompute.find_acting  # Each block that is done twice calls it.
    monkeypatch.setattr(recompute, "find_acting", lambda: twice.append(1) or find_acting())
    keras.utils.set_random_seed(0)
    run(layer)
    # A head does not draw the table of tokens, which is the backbone's.
    table = getattr(layer, "token_embedding", None) if hasattr(layer, "activation") else None
    own = [w for w in layer.weights if table is None or all(w is not x for x in table.weights)]
    seen = [to_numpy(weight).copy() for weight in own]
    randomize(layer)
    keras.utils.set_random_seed(1)
    twice.clear()
    outputs = [to_numpy(ops.convert_to_tensor(output)) for output in run(layer)]
    monkeypatch.undo()
    return [*seen, *outputs, np.ones(len(twice))]


def is_same(got, wanted):
    return len(got) == len(wanted) and all(
        a.shape == b.shape and np.allclose(a, b, rtol=0, atol=1e-5)
        for a, b in zip(got, wanted, strict=True)
    )


def make(cls, **arguments):
    """A layer whose initial weights are those of the next layer that is made so."""
    keras.utils.set_random_seed(2)
    # A table or a pooling is read back first too, and draws its numbers.
    return cls(**{name: copy_layer(value) for name, value in arguments.items()})


def copy_layer(value):
    if isinstance(value, list):
        return list(map(copy_layer, value))
    if not isinstance(value, keras.layers.Layer):
        return value
    return keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(value))


def reopen(layer):
    config = json.loads(json.dumps(keras.saving.serialize_keras_object(layer)))
    keras.utils.set_random_seed(2)
    return keras.saving.deserialize_keras_object(config)


def registered(*rooms):
    """The registered layers of some rooms of the package."""
    return {
        cls
        for cls in keras.saving.get_custom_objects().values()
        if isinstance(cls, type) and issubclass(cls, keras.layers.Layer)
        if cls.__module__.startswith(tuple(f"keras_bert_suite.{room}." for room in rooms))
    }


def test_every_argument_of_every_layer_has_a_row():
    wanted = {
        cls: set(list_arguments(cls)) - {"dtype", *(["head_dim"] if cls in WHOLE_HEADS else [])}
        for cls in registered("layers", "models", "heads")
        if not issubclass(cls, keras.Model)
    }
    rows = {cls: set(case.changed) for cls, case in CASES.items()}
    assert rows == {cls: names for cls, names in wanted.items() if names}


@pytest.mark.parametrize("cls", sorted(WHOLE_HEADS, key=lambda cls: cls.__name__))
def test_heads_of_another_width_are_refused(cls):
    with pytest.raises(ValueError, match=r"The heads of an? \w+ have the width .* head_dim=6"):
        cls(**CASES[cls].arguments, head_dim=6)


def list_arguments_once():
    """(class, name) of each argument, at the first class that takes it from the same `__init__`."""
    first = {}
    for cls, case in CASES.items():
        for name in case.changed:
            owner = next(base for base in cls.__mro__ if name in list_own_arguments(base))
            first.setdefault((owner, name), (cls, name))
    return set(first.values())


def list_own_arguments(cls):
    own = vars(cls).get("__init__")
    return inspect.signature(own).parameters if own else ()


every_argument = pytest.mark.parametrize(
    ("cls", "name"),
    short_for(
        ((cls, name) for cls, case in CASES.items() for name in case.changed),
        *list_arguments_once(),
        part="combinations",
    ),
)


@every_argument
def test_it_is_saved(cls, name, monkeypatch):
    case = CASES[cls]
    value = case.changed[name]
    changed = value if isinstance(value, dict) else {name: value}
    others = {n: v for n, v in changed.items() if n != name}
    layer = make(cls, **{**case.arguments, **changed})
    again = reopen(layer)
    wanted = observe(layer, case.run, monkeypatch)
    assert is_same(observe(again, case.run, monkeypatch), wanted)
    assert again.get_config() == layer.get_config()
    if (cls, name) not in IDLE:
        plain = observe(make(cls, **{**case.arguments, **others}), case.run, monkeypatch)
        assert not is_same(plain, wanted), "the value changes nothing"


@every_argument
def test_a_new_value_is_refused_or_holds(cls, name, monkeypatch):
    case = CASES[cls]
    value = case.changed[name]
    changed = value if isinstance(value, dict) else {name: value}
    before = {n: v for n, v in changed.items() if n != name}
    layer, twin = (make(cls, **{**case.arguments, **given}) for given in (before, changed))
    for each in (layer, twin):  # Under TensorFlow and JAX each run draws other numbers.
        keras.utils.set_random_seed(0)
        case.run(each)
    setattr(layer, name, getattr(layer, name))
    if (cls, name) not in MAY_BE_SET:
        # Keras refuses layers that `build` has made.
        ours = f"^{name}=.* has built this {cls.__name__}|You cannot add new elements"
        with pytest.raises((AttributeError, ValueError), match=ours):
            setattr(layer, name, copy_layer(changed[name]))
        return
    setattr(layer, name, changed[name])
    wanted = observe(twin, case.run, monkeypatch)
    assert is_same(observe(layer, case.run, monkeypatch), wanted)


@pytest.mark.parametrize("cls", CASES)
def test_precision_and_trainability_are_saved(cls):
    arguments = {**CASES[cls].arguments, "dtype": "mixed_bfloat16", "name": "other"}
    again = reopen(cls(**arguments, trainable=False))
    assert (again.compute_dtype, again.name, again.trainable) == ("bfloat16", "other", False)
    # Layers that were given have their own precision.
    given = tuple(type(value) for value in arguments.values() if isinstance(value, keras.Layer))
    inner = [layer for layer in again._flatten_layers() if not isinstance(layer, given)]
    assert {layer.compute_dtype for layer in inner} == {"bfloat16"}


#: The layers whose matrices do not begin as BERT's: bert4keras' pointers, Keras' own layers, and
#: bilm-tf's characters. The last two have no matrices in layers of Keras.
OTHER_INITIALIZERS = {
    **dict.fromkeys([layers.GlobalPointer, layers.EfficientGlobalPointer], {"LecunNormal"}),
    **dict.fromkeys([layers.AttentionPooling, layers.ConvolutionPooling], {"GlorotUniform"}),
    PairScore: {"GlorotUniform"},
    Bottleneck: {"TruncatedNormal 0.001"},
    **dict.fromkeys(
        [LowRank, PrefixVectors, PromptVectors], set()
    ),  # Their matrices are their own.
    layers.BiLSTMPooling: {"GlorotUniform", "_OrthogonalMatrix"},
    layers.CharacterEmbeddings: {"RandomUniform", f"RandomNormal {7**-0.5}"},
    **dict.fromkeys([layers.ProjectedLSTM, RelativeBiases], set()),
}


@pytest.mark.parametrize("cls", CASES)
def test_matrices_begin_as_those_of_the_source(cls):
    case = CASES[cls]
    layer = make(cls, **case.arguments)
    case.run(layer)
    given = tuple(
        type(value) for value in case.arguments.values() if isinstance(value, keras.Layer)
    )
    own = [inner for inner in layer._flatten_layers() if not isinstance(inner, given)]
    found = name_initializers(own) - {"Zeros"}  # Of a layer that adds nothing at first.
    has_matrices = any(len(weight.shape) > 1 for inner in own for weight in inner.weights)
    if cls is not layers.ConditionalRandomField and has_matrices:
        assert found == OTHER_INITIALIZERS.get(cls, {"TruncatedNormal 0.02"})


def run_in(cls, policy):
    """Initial values too: some are drawn by operations that know no 16-bit numbers."""
    given = {name: copy_layer(value) for name, value in CASES[cls].arguments.items()}
    CASES[cls].run(cls(**given, dtype=policy))


@pytest.mark.parametrize("policy", ["bfloat16", "float16"])
@pytest.mark.parametrize("cls", CASES)
def test_it_runs_in_16_bits(cls, policy):
    run_in(cls, policy)


#: The layers that hold most of the others.
OUTER = ("Block", "Head", "Field", "Pointer", "WindowTransformer", "BiLSTMPooling")
OUTER += ("ErnieEmbeddings", "XLNetEmbeddings")


@pytest.mark.parametrize(
    "cls",
    [
        pytest.param(
            cls,
            marks=() if cls.__name__.endswith(OUTER) else pytest.mark.long("combinations"),
        )
        for cls in CASES
    ],
)
@pytest.mark.backend("tensorflow")
def test_it_runs_under_tensorflow(cls):
    """TensorFlow refuses operations on two precisions, also some that PyTorch takes."""
    run_in(cls, "bfloat16")


# JAX takes operations on two precisions, and compiles each for a second.
@pytest.mark.long("combinations")
@pytest.mark.backend("jax")
@pytest.mark.parametrize("cls", CASES)
def test_it_runs_under_jax(cls):
    run_in(cls, "bfloat16")
