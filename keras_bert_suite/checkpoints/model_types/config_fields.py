"""Tables of the fields of configuration files, and of the arguments of our backbones.

One table serves both ways: `read_fields` makes the arguments of a backbone, and `write_fields` the
fields of a file.
"""

import warnings
from dataclasses import dataclass
from typing import Any

from keras_bert_suite.argument_checks import with_article
from keras_bert_suite.checkpoints.model_types.activation_names import find_ours, find_theirs

_NORM_TYPES = {name: name for name in ("layer_norm", "rms_norm")}


@dataclass(frozen=True)
class Field:
    """A field of a configuration file, and the argument of a backbone that has its value.

    Args:
        argument: str, the argument of our backbone, which is also an attribute of it.
        name: str, the name of the field.
        kind: str, as for `ConfigValues.read`: "size", "rate", "positive" or "flag". "positions" is
            a size that counts the rows of the position embedding before the row of the first token
            too. "width" is a size whose default is the width of the hidden states. "activation" is
            the name of an activation function, and "norm" the type of the norms.
        default: the value if the file lacks the field. None: the field is required.
        switch: str, the name of a flag. Where it is absent or false, the value is 0, and the field
            is not written.
    """

    argument: str
    name: str
    kind: str
    default: Any = None
    switch: str | None = None


#: The fields of Google's bert_config.json.
GOOGLE_FIELDS = (
    Field("vocabulary_size", "vocab_size", "size"),
    Field("num_layers", "num_hidden_layers", "size"),
    Field("num_heads", "num_attention_heads", "size"),
    Field("hidden_dim", "hidden_size", "size"),
    Field("intermediate_dim", "intermediate_size", "size"),
    Field("activation", "hidden_act", "activation"),
    Field("dropout", "hidden_dropout_prob", "rate"),
    Field("attention_dropout", "attention_probs_dropout_prob", "rate"),
    Field("max_sequence_length", "max_position_embeddings", "positions"),
    Field("num_segments", "type_vocab_size", "size"),
    Field("initializer_range", "initializer_range", "positive", 0.02),
)

#: The fields of the config.json of BERT and RoBERTa in transformers.
BERT_FIELDS = (*GOOGLE_FIELDS, Field("layer_norm_epsilon", "layer_norm_eps", "positive", 1e-12))

#: Configuration fields that change the computation, each with the values that our backbones
#: support. BERT's own fields come first, then fields of models that call themselves BERT. (Other
#: fields, such as `use_cache`, `output_attentions` and `chunk_size_feed_forward`, change the
#: outputs that are returned, the speed or the dropout, but no value of an output.)
DIALS: tuple[tuple[str, tuple], ...] = (
    ("position_embedding_type", ("absolute",)),
    ("is_decoder", (False,)),
    ("add_cross_attention", (False,)),
    ("pruned_heads", ({},)),
    ("quantization_config", ()),
    ("num_hidden_groups", ()),
    ("inner_group_num", (1,)),
    ("feed_forward_type", ("original",)),
    ("alibi_starting_size", ()),
    ("rotary_emb_fraction", (0, 0.0)),
    ("relative_attention", (False,)),
    ("prenorm", (False,)),
    ("ln_type", ("postln",)),
    # fields of the code of StructBERT
    ("attention_type", ("self",)),
    ("transition_function", ("linear",)),
    ("pre_ln", (False,)),
    ("rezero", (False,)),
    ("squeeze_excitation", (False,)),
    ("roberta_style", (False,)),
    ("set_mask_zero", (False,)),
    ("emb_size", (-1,)),
)


def read_fields(config, fields, activations, position_offset=0):
    """dict of the arguments of a backbone, from the `ConfigValues` of a configuration file.

    `activations` is a table of `activation_names`. The position embedding has `position_offset`
    rows before the row of the first token.
    """
    arguments = {}
    for field in fields:
        if field.switch and not config.read("flag", field.switch, False):
            value = 0
        elif field.kind == "activation":
            value = config.choice(field.name, find_ours(activations))
        elif field.kind == "norm":
            value = config.choice(field.name, _NORM_TYPES, field.default)
        elif field.kind == "positions":
            value = config.read("size", field.name, field.default) - position_offset
        elif field.kind == "width":
            value = config.read("size", field.name, arguments["hidden_dim"])
        else:
            value = config.read(field.kind, field.name, field.default)
        arguments[field.argument] = value
    return arguments


def write_fields(
    backbone,
    fields,
    activations,
    owner,
    position_offset=0,
    built_in=None,
    patterns=("bidirectional",),
):
    """Makes the fields of a configuration file, which `read_fields` reads.

    Args:
        backbone: a backbone of ours, or of KerasHub, which is refused.
        fields, activations, position_offset: as for `read_fields`.
        owner: str, the owner of the format in messages, such as "Google's BERT".
        built_in: dict of the name of an attribute -> the value that it has in each model of the
            format, which the file does not say.
        patterns: tuple of the attention patterns that a file of the format can say.

    Raises:
        ValueError: if the backbone is of another package, or the format is for another model; or if
            the format does not have the activation, the positions, the width of the embeddings or
            an attribute of `built_in` of the backbone.
    """
    _check_backbone(backbone, fields, owner, position_offset, built_in or {}, patterns)
    written = {}
    for field in fields:
        value = getattr(backbone, field.argument)
        if field.kind == "activation":
            value = find_theirs(value, activations, owner)
        elif field.kind == "positions":
            if value is None:
                raise ValueError(
                    f"{owner} has a number of positions, got {field.argument}=None. Build the "
                    f"backbone with a number, as `from_preset(..., {field.argument}=512)` does."
                )
            value += position_offset
        if field.switch:
            written[field.switch] = value > 0
        if value or not field.switch:
            written[field.name] = value
    return written


def _check_backbone(backbone, fields, owner, position_offset, built_in, patterns):
    """Checks settings without a field, and warns of an attention pattern that is not in a file."""
    # Backbones of KerasHub lack some of our attributes.
    if not hasattr(backbone, "position_offset"):
        raise ValueError(
            f"{owner} can hold a backbone of keras_bert_suite, got "
            f"{type(backbone).__module__.partition('.')[0]}'s {type(backbone).__name__}. Use "
            "`model.save_to_preset`."
        )
    if backbone.position_offset != position_offset:
        raise ValueError(
            f"{owner} has its first token at position {position_offset}, got "
            f"{with_article(backbone)} with position {backbone.position_offset}. Use "
            "`save_hugging_face`, or `model.save`."
        )
    reduced = ("heads_by_layer", "intermediate_by_layer", "embedding_rank")
    for name in reduced:
        if (value := getattr(backbone, name, None)) is not None:
            raise ValueError(
                f"{owner} has layers of one size and a whole table of tokens, got {name}={value}. "
                "Write `model.to_full_size()`, which has the same outputs, or use "
                "`model.save_to_preset`."
            )
    if getattr(backbone, "hashing", None) is not None:
        raise ValueError(
            f"{owner} has no attention by hashing, got hashing={backbone.hashing}. Use "
            "`model.save_to_preset`, or `model.save`."
        )
    pattern = backbone.attention_pattern
    if pattern not in patterns:
        warnings.warn(
            f"{owner} cannot hold this attention pattern, so who reads the files gets a model "
            f"whose tokens look at all tokens, got attention_pattern={pattern!r}. `from_preset` "
            "takes the pattern as an argument.",
            stacklevel=5,
        )
    constants = dict(built_in)
    if all(field.argument != "embedding_dim" for field in fields):
        constants["embedding_dim"] = backbone.hidden_dim
    for name, constant in constants.items():
        value = getattr(backbone, name, constant)
        if value != constant:
            raise ValueError(f"{owner} has {name}={constant}, got {value}. Use `model.save`.")
