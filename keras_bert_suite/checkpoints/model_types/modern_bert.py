"""ModernBERT."""

from keras_bert_suite.checkpoints.model_types.config_fields import Field
from keras_bert_suite.checkpoints.model_types.model_type import ModelType
from keras_bert_suite.checkpoints.model_types.name_table import (
    PYTORCH,
    NameTable,
    decoder_copies,
    hugging_face_heads,
    same,
)
from keras_bert_suite.checkpoints.tokenizer_files.byte_pair import read_modern_bert_tokenizer
from keras_bert_suite.files.messages import shorten

#: Every model has one prediction head, `head`, which is our pooler. The layer `classifier` is that
#: of texts, tokens, choices or answers. A checkpoint has one of them.
NAMES = NameTable(
    rows=(
        *PYTORCH.rows(
            ("embeddings/token_embedding", "model.embeddings.tok_embeddings"),
            ("embeddings/layer_norm", "model.embeddings.norm"),
            *(
                ("transformer_layer_{i}/" + ours, "model.layers.{i}." + theirs)
                for ours, theirs in (
                    ("self_attention_norm", "attn_norm"),
                    ("self_attention/query_key_value", "attn.Wqkv"),
                    ("self_attention/output_projection", "attn.Wo"),
                    ("feedforward_norm", "mlp_norm"),
                    ("gated_intermediate", "mlp.Wi"),
                    ("feedforward_output", "mlp.Wo"),
                )
            ),
            ("final_norm", "model.final_norm"),
            ("pooler/dense", "head.dense"),
            ("pooler/layer_norm", "head.norm"),
        ),
        *hugging_face_heads(span_labeler="classifier"),
        ("masked_lm/bias", "decoder.bias", same),
    ),
    aliases=((r"^(embeddings|layers|final_norm)\.", r"model.\1."),),
    copies=decoder_copies("decoder", "decoder.bias", "model.embeddings.tok_embeddings"),
)

FIELDS = (
    Field("vocabulary_size", "vocab_size", "size"),
    Field("num_layers", "num_hidden_layers", "size"),
    Field("num_heads", "num_attention_heads", "size"),
    Field("hidden_dim", "hidden_size", "size"),
    Field("intermediate_dim", "intermediate_size", "size"),
    Field("activation", "hidden_activation", "activation"),
    Field("head_activation", "classifier_activation", "activation"),
    Field("local_attention", "local_attention", "size", 128),
    Field("max_sequence_length", "max_position_embeddings", "positions"),
    Field("embedding_dropout", "embedding_dropout", "rate", 0.0),
    Field("attention_dropout", "attention_dropout", "rate", 0.0),
    Field("mlp_dropout", "mlp_dropout", "rate", 0.0),
    Field("attention_bias", "attention_bias", "flag", False),
    Field("mlp_bias", "mlp_bias", "flag", False),
    Field("norm_bias", "norm_bias", "flag", False),
    Field("head_bias", "classifier_bias", "flag", False),
    Field("layer_norm_epsilon", "norm_eps", "positive", 1e-5),
    Field("initializer_range", "initializer_range", "positive", 0.02),
)

_GLOBAL, _LOCAL = "full_attention", "sliding_attention"

#: The argument of our backbone -> (kind of layer, field of older files, its default).
_ROTARY_BASES = {
    "global_rotary_base": (_GLOBAL, "global_rope_theta", 160000.0),
    "local_rotary_base": (_LOCAL, "local_rope_theta", 10000.0),
}


def read_modern_bert(config):
    """Reads the arguments of the backbone that are not plain fields.

    transformers 5 writes `layer_types` and `rope_parameters`, older versions
    `global_attn_every_n_layers`, `global_rope_theta` and `local_rope_theta`.
    """
    arguments = {"pooling": config.get("classifier_pooling") or "cls"}
    layer_types, number = config.get("layer_types"), config.read("size", "num_hidden_layers")
    if layer_types is None:
        every = config.read("size", "global_attn_every_n_layers", 3)
        layer_types = [_LOCAL if i % every else _GLOBAL for i in range(number)]
    unknown = set(layer_types) - {_GLOBAL, _LOCAL}
    if unknown or len(layer_types) != number:
        raise ValueError(
            f"'layer_types' in {config.path} must be a list of {number} names, each {_GLOBAL!r} or "
            f"{_LOCAL!r}, got {shorten(repr(layer_types))}."
        )
    rotations = config.get("rope_parameters") or {}
    for argument, (kind, field, default) in _ROTARY_BASES.items():
        parameters = rotations.get(kind) or {}
        scaled = set(parameters) - {"rope_theta", "rope_type"}
        if scaled or parameters.get("rope_type") not in (None, "default"):
            raise ValueError(
                f"'rope_parameters' in {config.path} must have for {kind!r} a 'rope_theta' and the "
                f"'rope_type' 'default', got {shorten(repr(parameters))}."
            )
        base = parameters.get("rope_theta")
        if base is None:
            base = config.read("positive", field, default)
        arguments[argument] = float(base)
    return {**arguments, "layer_types": layer_types}


def write_modern_bert(backbone):
    """The fields that `read_modern_bert` reads: of transformers 5, and of older versions if they
    can say the same.

    The ids of special tokens are None. By default they would be the released models'.
    """
    layer_types = list(backbone.layer_types)
    fields = {"classifier_pooling": backbone.pooling, "layer_types": layer_types}
    fields.update(dict.fromkeys(("bos_token_id", "eos_token_id", "cls_token_id", "sep_token_id")))
    rotations = fields["rope_parameters"] = {}
    for argument, (kind, field, _) in _ROTARY_BASES.items():
        fields[field] = base = getattr(backbone, argument)
        rotations[kind] = {"rope_theta": base, "rope_type": "default"}
    for every in range(1, len(layer_types) + 1):
        if layer_types == [_LOCAL if i % every else _GLOBAL for i in range(len(layer_types))]:
            fields["global_attn_every_n_layers"] = every
            break
    return fields


MODERN_BERT = ModelType(
    name="modernbert",
    title="ModernBERT",
    backbone="ModernBertBackbone",
    tokenizer="ModernBertTokenizer",
    read_tokenizer=read_modern_bert_tokenizer,
    names=NAMES,
    classes="ModernBert",
    fields=FIELDS,
    dials=(
        ("decoder_bias", (True,)),
        ("rope_scaling", ()),
        ("classifier_pooling", ("cls", "mean")),
    ),
    read_more=read_modern_bert,
    write_more=write_modern_bert,
)
