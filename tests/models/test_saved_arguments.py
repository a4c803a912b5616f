"""Each argument of each backbone is saved: the model that is read back does what the saved does."""

import json

import keras
import numpy as np
import pytest
from peer_weights import randomize, to_numpy
from tables import short_for

import keras_bert_suite as kbs
from keras_bert_suite.argument_checks import list_arguments

SIZES = ("num_layers", "num_heads", "hidden_dim", "intermediate_dim")
#: Other values of the arguments that BERT's family has. Together they make one model.
BERT = {
    "vocabulary_size": 21,
    "num_layers": 3,
    "num_heads": 4,
    "hidden_dim": 16,
    "intermediate_dim": 6,
    "activation": "relu",
    "dropout": 0.5,
    "attention_dropout": 0.4,
    "max_sequence_length": 31,
    "num_segments": 3,
    "embedding_dim": 4,
    "layer_norm_epsilon": 0.5,
    "initializer_range": 0.1,
    "output_hidden_states": True,
    "attention_pattern": "left_to_right",
    "hashing": kbs.layers.TokenHashing(chunk_length=2, num_rounds=3, num_buckets=4, seed=5),
    "remat": True,
    "heads_by_layer": None,  # With `hashing` there are none.
    "intermediate_by_layer": [6, 2, 4],
    "embedding_rank": 3,
}
#: The models whose attention is of another kind.
OTHER = {**BERT, "hashing": None, "heads_by_layer": [4, 1, 2]}
WHOLE_HEADS = {"heads_by_layer": None}
MODERN_BERT = {
    **{name: BERT[name] for name in ("vocabulary_size", *SIZES, "activation", "remat")},
    **{"layer_norm_epsilon": 0.5, "initializer_range": 0.1, "output_hidden_states": True},
    "head_activation": "tanh",
    "pooling": "mean",
    "layer_types": ["sliding_attention"] * 2 + ["full_attention"],
    "local_attention": 2,
    "global_rotary_base": 10.0,
    "local_rotary_base": 5.0,
    "max_sequence_length": 31,
    **dict.fromkeys(("embedding_dropout", "attention_dropout", "mlp_dropout"), 0.5),
    **dict.fromkeys(("attention_bias", "mlp_bias", "norm_bias", "head_bias"), True),
}
BART = {
    **{name: BERT[name] for name in ("vocabulary_size", *SIZES, "activation", "remat")},
    **{name: BERT[name] for name in ("dropout", "attention_dropout", "max_sequence_length")},
    **{name: BERT[name] for name in ("layer_norm_epsilon", "initializer_range")},
    **{"num_decoder_layers": 2, "num_decoder_heads": 2, "decoder_intermediate_dim": 5},
    **{"activation_dropout": 0.3, "pre_norm": True, "scale_embeddings": True},
    "output_hidden_states": True,
}
CHANGED = {
    kbs.BartBackbone: BART,
    kbs.BertBackbone: BERT,
    kbs.RobertaBackbone: BERT,
    kbs.AlbertBackbone: {
        **BERT,
        "intermediate_by_layer": None,  # The layers share their weights.
        "num_groups": 2,
        "num_inner_repetitions": 2,
    },
    kbs.DistilBertBackbone: BERT,
    kbs.ElectraBackbone: BERT,
    kbs.ErnieBackbone: {**BERT, "num_task_types": 3, "task_id": 2},
    kbs.RoFormerBackbone: {
        **OTHER,
        "rotary_value": True,
        "use_bias": False,
        "norm_type": "rms_norm",
    },
    kbs.NezhaBackbone: {**OTHER, "max_relative_position": 2},
    kbs.LongformerBackbone: {
        **OTHER,
        **WHOLE_HEADS,
        "attention_pattern": "bidirectional",  # There is no other.
        "attention_window": [2, 4, 4],
        "global_tokens": "first_text",
        "max_global_tokens": 3,
        "separator_id": 5,
        "takes_segments": True,
    },
    kbs.ModernBertBackbone: MODERN_BERT,
    kbs.XLNetBackbone: {
        **OTHER,
        **WHOLE_HEADS,
        "clamp_length": 2,
        "head_dim": 6,
        "memory_length": 5,
        "reuse_length": 4,
        "reversed_rows": True,
        "same_length": True,
        "share_biases": True,
    },
}


#: Arguments about what an encoder reads. The first two exclude each other.
INPUTS = ("frame_dim", "part_embeddings", "norm_condition")
#: Encoders that take no argument of these.
WITHOUT = {
    kbs.BartBackbone: ("part_embeddings", "norm_condition"),
    **dict.fromkeys([kbs.ModernBertBackbone, kbs.XLNetBackbone], ("norm_condition",)),
}
FRAMES = np.random.default_rng(1).standard_normal((3, 8, 5)).astype("float32")


def observe(backbone):
    """Outputs in both modes, of the same weights."""
    ids = np.random.default_rng(0).integers(3, 20, (3, 8)).astype("int32")
    mask = (np.arange(8) < np.array([[8], [5], [3]])).astype("int32")
    inputs = {"token_ids": ids, "segment_ids": ids % 2 * mask, "padding_mask": mask}
    inputs["frames"] = FRAMES
    inputs |= {"decoder_token_ids": ids, "decoder_padding_mask": mask}
    inputs["condition"] = FRAMES[:, 0, :2]
    inputs["memory"] = np.ones((3, backbone.num_layers, 2, backbone.hidden_dim), "float32")
    inputs["is_reversed"] = np.array([[0], [1], [0]], "int32")
    inputs = {name: inputs[name] for name in backbone.input}
    outputs = [backbone(inputs, training=False)]
    keras.utils.set_random_seed(1)
    # PyTorch draws by its own generator, the others by one of each layer.
    for layer in backbone._flatten_layers():
        if hasattr(layer, "seed_generator"):
            layer.seed_generator.state.assign([1, 0])
    outputs.append(backbone(inputs, training=True))
    return [to_numpy(array) for array in keras.tree.flatten(outputs)]


#: They have the arguments of BERT, with other defaults.
LIKE_BERT = (kbs.RobertaBackbone, kbs.DistilBertBackbone, kbs.ElectraBackbone)


@pytest.mark.parametrize(
    "cls",
    [
        # The other backends keep the state of a dropout in its layer.
        pytest.param(cls, marks=pytest.mark.long("combinations") if cls in LIKE_BERT else ())
        for cls in CHANGED
    ],
)
@pytest.mark.backend("torch")
def test_all_arguments_are_saved(cls, tmp_path):
    """In a configuration and in a `.keras` file."""
    changed = CHANGED[cls]
    assert set(changed) == set(list_arguments(cls)) - {"dtype", *INPUTS}
    backbone = randomize(cls(**changed))
    wanted = observe(backbone)
    backbone.save(tmp_path / "backbone.keras")
    again = cls.from_config(json.loads(json.dumps(backbone.get_config())))
    again.set_weights(backbone.get_weights())
    for model in (again, keras.saving.load_model(tmp_path / "backbone.keras")):
        assert type(model) is cls and model.remat
        for got, array in zip(observe(model), wanted, strict=True):
            np.testing.assert_allclose(got, array, rtol=0, atol=1e-5)
        # Also what no output shows.
        assert model.get_config() == backbone.get_config()


READ = [(cls, name) for cls in CHANGED for name in INPUTS if name not in WITHOUT.get(cls, ())]


@pytest.mark.parametrize(
    ("cls", "name"),
    short_for(
        READ,
        # One way hands them from each class to the layers of its embeddings and its blocks.
        *((kbs.BertBackbone, name) for name in INPUTS),
        *((cls, "frame_dim") for cls in (kbs.BartBackbone, kbs.XLNetBackbone)),
        *((cls, "part_embeddings") for cls in (kbs.AlbertBackbone, kbs.ModernBertBackbone)),
        *((cls, "norm_condition") for cls in (kbs.RoFormerBackbone, kbs.LongformerBackbone)),
        (kbs.NezhaBackbone, "frame_dim"),
        part="combinations",
    ),
)
def test_what_an_encoder_reads_is_saved(cls, name, tmp_path):
    sizes = {size: CHANGED[cls][size] for size in ("vocabulary_size", *SIZES)}
    if name == "frame_dim":
        sizes["frame_dim"] = 5
        if cls is not kbs.BartBackbone:  # Its decoder writes tokens.
            sizes["vocabulary_size"] = None
    elif name == "norm_condition":
        sizes["norm_condition"] = kbs.NormCondition(2, 3, "tanh")
    else:
        parts = [[token % 5, token % 3][: token % 3] for token in range(21)]
        sizes["part_embeddings"] = kbs.PartEmbeddings(parts, 5, filters=[(2, 3)])
    backbone = randomize(cls(**sizes))
    wanted = observe(backbone)
    backbone.save(tmp_path / "backbone.keras")
    again = cls.from_config(json.loads(json.dumps(backbone.get_config())))
    again.set_weights(backbone.get_weights())
    assert [w.path for w in again.weights] == [w.path for w in backbone.weights]
    for model in (again, keras.saving.load_model(tmp_path / "backbone.keras")):
        for got, array in zip(observe(model), wanted, strict=True):
            np.testing.assert_allclose(got, array, rtol=0, atol=1e-5)
        assert model.get_config() == backbone.get_config()
    others = {"frame_dim": 6, "norm_condition": kbs.NormCondition(2)}
    value = others.get(name) or kbs.PartEmbeddings([[0]] * 21, 1)
    with pytest.raises(AttributeError, match=f"^{name}=.* has built this {cls.__name__}"):
        setattr(backbone, name, value)


@pytest.mark.parametrize("cls", CHANGED)
def test_a_new_value_is_refused_or_holds(cls):
    sizes = {"vocabulary_size", *SIZES} & {*CHANGED[cls]}
    backbone = cls(**{name: CHANGED[cls][name] for name in sizes})
    config = backbone.get_config()
    for name, value in CHANGED[cls].items():
        if name not in ("remat", "global_tokens") and value != config[name]:
            with pytest.raises(AttributeError, match=f"^{name}=.* has built this {cls.__name__}"):
                setattr(backbone, name, value)
    for name in ("embeddings", "token_embedding"):
        with pytest.raises(AttributeError, match=f"^{name}=the layer .*Make another encoder"):
            setattr(backbone, name, keras.layers.Dense(3))
    with pytest.raises(AttributeError, match="^transformer_layers=.* has built this"):
        backbone.transformer_layers = []
    assert backbone.get_config() == config


@pytest.mark.parametrize("cls", [*CHANGED, kbs.BertEncoderDecoder])
def test_every_layer_has_the_precision_of_its_backbone(cls):
    read_by_all = {name: value for name, value in BERT.items() if name != "hashing"}
    both = {"encoder_arguments": BERT, "decoder_arguments": read_by_all}
    arguments = CHANGED.get(cls, both)
    layers = cls(**arguments, dtype="mixed_bfloat16")._flatten_layers()
    inner = [layer for layer in layers if not isinstance(layer, keras.layers.InputLayer)]
    assert {layer.compute_dtype for layer in inner} == {"bfloat16"}


@pytest.mark.parametrize("cls", CHANGED)
def test_every_layer_has_the_range_and_the_epsilon_of_its_backbone(cls):
    """Also the layers of the heads of pretraining."""
    changed = {"initializer_range": 1.0, "layer_norm_epsilon": 0.25, "output_hidden_states": False}
    backbone = cls(**{**CHANGED[cls], **changed})
    models = [kbs.MaskedLM(backbone)]
    if cls is kbs.BertBackbone:
        models.append(kbs.Pretrainer(backbone, span_boundary=True))
    if cls is kbs.ElectraBackbone:
        models.append(kbs.ElectraPretrainer(backbone))
    for model in models:
        # With the default range, 0.02, no weight is above 0.04.
        for weight in model.weights:
            assert len(weight.shape) < 2 or np.abs(to_numpy(weight)).max() > 0.1, weight.path
        norms = [layer for layer in model._flatten_layers() if hasattr(layer, "epsilon")]
        assert norms and {layer.epsilon for layer in norms} == {0.25}


def test_every_backbone_has_a_row():
    # The arguments of an encoder-decoder are those of two BERTs.
    # `test_elmo.py` and `test_static.py` have the last two.
    others = {kbs.BertEncoderDecoder, kbs.ElmoBackbone, kbs.StaticBackbone}
    assert set(CHANGED) == set(kbs.models.BACKBONES.values()) - others
