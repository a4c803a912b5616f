"""Each dropout rate of each backbone acts: alone, at every place that has it, in training only.

And its weights begin as wide as its arguments say.
"""

import re

import numpy as np
import pytest
from family import MEMBERS, choose_sizes
from peer_weights import randomize, to_numpy
from tables import everywhere_for, short_for

import keras_bert_suite as kbs
from keras_bert_suite.argument_checks import list_arguments
from keras_bert_suite.layers import Dropout
from keras_bert_suite.preprocessing.sequence_packing import lay_out_buckets, lay_out_sequences

LAYERS = 2
SIZES = {
    "vocabulary_size": 20,
    "num_layers": LAYERS,
    "num_heads": 2,
    "hidden_dim": 16,
    "intermediate_dim": 12,
}
#: The places of each rate: of BERT's family the embeddings and one layer in each block.
BERT = {"dropout": 1 + LAYERS, "attention_dropout": LAYERS}
MODERN_BERT = {
    "embedding_dropout": 1,
    "attention_dropout": 2 * LAYERS,
    "mlp_dropout": LAYERS,
}
#: Also sinusoids and last states, and in each block the feed-forward network.
XLNET = {"dropout": 3 + 2 * LAYERS, "attention_dropout": LAYERS}
BART = {
    "dropout": 2 + 2 * LAYERS,
    "attention_dropout": 3 * LAYERS,
    "activation_dropout": 2 * LAYERS,
}
#: name -> (class, arguments, number of places of each rate).
FAMILY = {
    "bert": (kbs.BertBackbone, {}, BERT),
    "roberta": (kbs.RobertaBackbone, {}, BERT),
    "albert": (kbs.AlbertBackbone, {"embedding_dim": 8, "num_groups": 2}, BERT),
    "distilbert": (kbs.DistilBertBackbone, {}, BERT),
    "electra": (kbs.ElectraBackbone, {"embedding_dim": 8}, BERT),
    "ernie": (kbs.ErnieBackbone, {"num_task_types": 2}, BERT),
    "roformer": (kbs.RoFormerBackbone, {}, BERT),
    "roformer v2": (kbs.RoFormerBackbone, {"use_bias": False, "norm_type": "rms_norm"}, BERT),
    "nezha": (kbs.NezhaBackbone, {"max_relative_position": 2}, BERT),
    "longformer": (kbs.LongformerBackbone, {"attention_window": 2}, BERT),
    "xlnet": (kbs.XLNetBackbone, {}, XLNET),
    "bart": (kbs.BartBackbone, {}, BART),
    "mbart": (kbs.BartBackbone, {"pre_norm": True}, BART),
    "modernbert": (kbs.ModernBertBackbone, {"local_attention": 2}, MODERN_BERT),
}
#: They take no packed rows, as `packs` in tests/family.py says.
PADDED = ("mbart", *(name for name, member in MEMBERS.items() if not member.packs))
OWN_ATTENTION = ("bert", "roformer", "nezha", "longformer", "modernbert", "xlnet")
MASK = (np.arange(8) < np.array([[8], [5], [3]])).astype("int32")
#: The ways in which rows come to the attention, each of which has code of its own.
ROWS = {
    "padded": lambda: {},
    "packed": lambda: {"sequence_layout": lay_out_sequences(MASK)},
    "buckets": lambda: {"sequence_layout": lay_out_buckets(MASK, num_buckets=2)},
}


def make_inputs(backbone, rows):
    ids = np.random.default_rng(0).integers(3, 20, MASK.shape).astype("int32")
    arrays = {"token_ids": ids, "segment_ids": ids % 2, "padding_mask": MASK}
    return {**{name: arrays[name] for name in backbone.input_names}, **ROWS[rows]()}


def encode(backbone, inputs, training):
    return to_numpy(backbone(inputs, training=training)["sequence_output"])[MASK == 1]


def set_rates(backbone, acting):
    """Gives the rate 0.5 to some dropouts, and 0 to all others."""
    for layer in backbone._flatten_layers():
        own = getattr(layer, "probability_dropout", None)
        if own is not None:
            vars(layer)["dropout"] = 0.5 * (own in acting)  # An argument, which is fixed.
        if isinstance(layer, Dropout):
            layer.rate = 0.5 * (layer in acting)


def test_every_family_and_rate_is_here():
    kinds = {cls for cls, _, _ in FAMILY.values()}
    # Its layers are those of BERTs. An ELMo has no blocks, and static vectors have no dropout.
    others = {kbs.BertEncoderDecoder, kbs.ElmoBackbone, kbs.StaticBackbone}
    assert kinds == set(kbs.models.BACKBONES.values()) - others
    for cls, _, places in FAMILY.values():
        assert {name for name in list_arguments(cls) if "dropout" in name} == set(places)


#: (family, rate, rows).
RATES = [
    (family, rate, rows)
    for family, (_, _, places) in FAMILY.items()
    for rate in places
    for rows in ROWS
    if rows == "padded" or family not in PADDED
]


@pytest.mark.parametrize(
    ("family", "rate", "rows"),
    short_for(
        RATES,
        # Packed rows go another way through the attention alone. Some classes have only defaults of
        # their own.
        *(
            row
            for row in RATES
            if (row[0] in OWN_ATTENTION and (row[2] == "padded" or row[1] == "attention_dropout"))
            or (row[0] in ("albert", "bart") and row[2] == "padded")
        ),
        part="combinations",
    ),
)
def test_a_rate_alone(family, rate, rows):
    cls, arguments, places = FAMILY[family]
    rates = {name: 0.5 if name == rate else 0.0 for name in places}
    backbone = randomize(cls(**choose_sizes(cls, **SIZES), **arguments, **rates))
    if rows == "buckets" and not backbone.takes_buckets():
        pytest.skip("it takes no buckets")
    inputs = make_inputs(backbone, rows)
    in_use = [encode(backbone, inputs, training) for training in (False, None)]
    dropped = [x for x in backbone._flatten_layers() if isinstance(x, Dropout) and x.rate]
    assert [x.rate for x in dropped] == [0.5] * places[rate]
    set_rates(backbone, [])
    wanted = encode(backbone, inputs, True)
    for outputs in in_use:
        np.testing.assert_allclose(outputs, wanted, atol=1e-5)
    for number, layer in enumerate(dropped):
        set_rates(backbone, [layer])
        first, second = (encode(backbone, inputs, True) for _ in range(2))
        assert np.abs(first - second).max() > 1e-3, number
        assert np.abs(first - wanted).max() > 1e-3, number


def test_dropout_of_attention_follows_that_of_bert_unless_set():
    backbone = kbs.BertBackbone(**SIZES, dropout=0.3)
    rates = {x.rate for x in backbone._flatten_layers() if isinstance(x, Dropout)}
    assert rates == {0.3} and backbone.attention_dropout == 0.3


@pytest.mark.parametrize("family", everywhere_for(["bert", "modernbert"], "bert"))
def test_rates_act_when_compiled(family):
    cls, arguments, places = FAMILY[family]
    backbone = cls(**choose_sizes(cls, **SIZES), **arguments, **dict.fromkeys(places, 0.5))
    inputs = make_inputs(backbone, "padded")
    first, second = (encode(backbone, inputs, True) for _ in range(2))
    assert np.abs(first - second).max() > 1e-3
    np.testing.assert_array_equal(*(encode(backbone, inputs, False) for _ in range(2)))


#: The standard deviation of a normal distribution that ends at two standard deviations.
TRUNCATED = 0.8796


@pytest.mark.parametrize(
    "family", short_for(FAMILY, *OWN_ATTENTION, "albert", "bart", part="combinations")
)
def test_weights_begin_as_wide_as_the_range_and_the_depth_say(family):
    cls, arguments, _ = FAMILY[family]
    wide = {"num_layers": 4, "hidden_dim": 32, "intermediate_dim": 32}
    backbone = cls(**choose_sizes(cls, **{**SIZES, **wide}), **arguments, initializer_range=0.5)
    matrices = [weight for weight in backbone.weights if len(weight.shape) > 1]
    assert len(matrices) > 8
    for weight in matrices:
        wanted = 0.5 * TRUNCATED
        # As in transformers, ModernBERT's layers that write hidden states, and its pooler.
        if cls is kbs.ModernBertBackbone and re.search("output|pooler", weight.path):
            wanted /= (2 * wide["num_layers"]) ** 0.5
        values = to_numpy(weight)
        tolerance = 4 / (2 * values.size) ** 0.5  # Four deviations of what is measured.
        assert values.std() == pytest.approx(wanted, rel=tolerance), weight.path
