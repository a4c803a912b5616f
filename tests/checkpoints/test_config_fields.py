"""The fields of every kind of configuration: their names, their defaults, and what each changes."""

import json
from types import SimpleNamespace

import pytest
import transformers

from keras_bert_suite.argument_checks import list_arguments
from keras_bert_suite.checkpoints.google_tf1.released_models import GOOGLE_MODELS
from keras_bert_suite.checkpoints.model_types import activation_names
from keras_bert_suite.checkpoints.model_types.config_fields import read_fields, write_fields
from keras_bert_suite.checkpoints.model_types.config_values import ConfigValues
from keras_bert_suite.checkpoints.model_types.table import MODEL_TYPES
from keras_bert_suite.models import BACKBONES

#: Fields that are of the code of RoFormerV2, not of transformers.
OTHERS = ("use_bias", "norm_type")
#: Values of which no two are equal, by the kind of a field.
ROOM = 100


def make_values(fields):
    """A file in which each number stands once."""
    values = {}
    for number, field in enumerate(fields):
        values[field.name] = {
            "rate": 0.01 * (number + 1),
            "positive": 1e-5 * (number + 1),
            "flag": True,
            "activation": "relu",
            "norm": "rms_norm",
        }.get(field.kind, ROOM + 2 * number)
        if field.switch:
            values[field.switch] = True
    values.update((field.name, 2) for field in fields if field.argument == "num_heads")
    return values


def change(field, value):
    """Another value of the same kind."""
    if field.argument == "num_heads":
        return 1
    if field.kind in ("size", "positions", "width"):
        return value + 2 * ROOM
    others = {"activation": "tanh", "norm": "layer_norm", "flag": False}
    return others[field.kind] if field.kind in others else 2 * value


TABLES = {
    # An encoder-decoder has the fields of two BERTs.
    **{k.name: (k.fields, "HUGGING_FACE", k) for k in MODEL_TYPES.values() if k.fields},
    **{f"Google's {name}": (m.fields, "GOOGLE", m.kind) for name, m in GOOGLE_MODELS.items()},
}


@pytest.mark.parametrize("name", TABLES)
def test_each_field_alone(name, tmp_path):
    fields, names, kind = TABLES[name]
    has_heads = "num_heads" in list_arguments(BACKBONES[kind.backbone])
    assert [f.argument for f in fields].count("num_heads") == has_heads
    activations = getattr(activation_names, names)
    path = tmp_path / "config.json"

    def read(values):
        path.write_text(json.dumps(values))
        return read_fields(ConfigValues(path), fields, activations, kind.position_offset)

    values = make_values(fields)
    usual = read(values)
    assert set(usual) == {field.argument for field in fields}
    for field in fields:
        changed = {**values, field.name: change(field, values[field.name])}
        got = read(changed)
        assert {n for n in usual if usual[n] != got[n]} == {field.argument}, field
        wanted = changed[field.name]
        if field.kind == "positions":
            wanted -= kind.position_offset
        assert got[field.argument] == wanted, field
        facts = {"attention_pattern": "bidirectional", "hidden_dim": None, **got}
        backbone = SimpleNamespace(**facts, position_offset=kind.position_offset)
        backbone.activation = SimpleNamespace(__name__=got["activation"])
        if "head_activation" in got:
            backbone.head_activation = SimpleNamespace(__name__=got["head_activation"])
        written = write_fields(backbone, fields, activations, "x", kind.position_offset)
        assert written == changed, field
        if field.default is not None and not field.switch:
            default = read({n: v for n, v in values.items() if n != field.name})
            assert default[field.argument] == field.default


@pytest.mark.parametrize(
    "kind", [kind for kind in MODEL_TYPES.values() if kind.name not in ("structbert", "nezha")]
)
def test_fields_and_defaults_are_those_of_transformers(kind):
    theirs = transformers.CONFIG_MAPPING[kind.name]().to_dict()
    for field in kind.fields:
        if field.name in OTHERS:
            continue
        assert field.name in theirs, field
        if field.default is not None:
            assert theirs[field.name] == field.default, field
    for name, default in (kind.head_dropout, *kind.head_dropouts.values()):
        # None is the rate of the encoder, and that of ModernBERT has none. Some classes of
        # configurations do not list a field that their heads read.
        usual = (default, 0.0) if kind.name == "modernbert" else (default,)
        assert theirs.get(name, default) in usual, name
