"""BART, and mBART, whose norms come before the sublayers."""

from dataclasses import replace

from keras_bert_suite.checkpoints.model_types.config_fields import Field
from keras_bert_suite.checkpoints.model_types.model_type import ModelType
from keras_bert_suite.checkpoints.model_types.name_table import (
    PYTORCH,
    NameTable,
    as_row,
    hugging_face_heads,
)
from keras_bert_suite.checkpoints.tokenizer_files.byte_pair import read_hugging_face_byte_pairs
from keras_bert_suite.checkpoints.tokenizer_files.sentence_piece import read_hugging_face_mbart
from keras_bert_suite.checkpoints.tokenizer_files.word_piece import read_hugging_face_tokenizer

_TABLE = "model.shared.weight"


def _attention(ours, theirs, norm):
    """The (our path, their name) pairs of an attention layer and its norm."""
    names = {"query": "q_proj", "key": "k_proj", "value": "v_proj", "output_projection": "out_proj"}
    pairs = ((f"{ours}/{own}", f"{theirs}.{name}") for own, name in names.items())
    return (*pairs, (f"{ours}_norm", norm))


_BLOCK = (
    *_attention("self_attention", "self_attn", "self_attn_layer_norm"),
    ("intermediate", "fc1"),
    ("feedforward_output", "fc2"),
    ("feedforward_norm", "final_layer_norm"),
)
_CROSS_ATTENTION = _attention("cross_attention", "encoder_attn", "encoder_attn_layer_norm")


def _side(ours, theirs, block):
    """The rows of the encoder or the decoder."""
    layers = (
        ("embeddings/position_embedding", "embed_positions"),
        ("embeddings/layer_norm", "layernorm_embedding"),
        ("final_norm", "layer_norm"),
        *((f"transformer_layer_{{i}}/{own}", f"layers.{{i}}.{name}") for own, name in block),
    )
    return PYTORCH.rows(*((ours + own, theirs + name) for own, name in layers))


NAMES = NameTable(
    rows=(
        *PYTORCH.rows(("embeddings/token_embedding", _TABLE.removesuffix(".weight"))),
        *_side("", "model.encoder.", _BLOCK),
        *_side("decoder/", "model.decoder.", (*_BLOCK, *_CROSS_ATTENTION)),
        ("masked_lm/bias", "final_logits_bias", as_row),
        *hugging_face_heads(classifier=None, token_classifier=None, choice_scorer=None),
    ),
    aliases=((r"^(shared|encoder|decoder)\.", r"model.\1."),),
    ignored=(r"model\.(encoder|decoder)\.version",),
    copies=(("lm_head.weight", _TABLE),),
    tied=tuple((f"model.{side}.embed_tokens.weight", _TABLE) for side in ("encoder", "decoder")),
)

FIELDS = (
    Field("vocabulary_size", "vocab_size", "size"),
    Field("num_layers", "encoder_layers", "size"),
    Field("num_heads", "encoder_attention_heads", "size"),
    Field("hidden_dim", "d_model", "size"),
    Field("intermediate_dim", "encoder_ffn_dim", "size"),
    Field("num_decoder_layers", "decoder_layers", "size"),
    Field("num_decoder_heads", "decoder_attention_heads", "size"),
    Field("decoder_intermediate_dim", "decoder_ffn_dim", "size"),
    Field("activation", "activation_function", "activation"),
    Field("dropout", "dropout", "rate"),
    Field("attention_dropout", "attention_dropout", "rate", 0.0),
    Field("activation_dropout", "activation_dropout", "rate", 0.0),
    # Unlike RoBERTa's, the number leaves out the two rows before the first token's.
    Field("max_sequence_length", "max_position_embeddings", "size"),
    Field("scale_embeddings", "scale_embedding", "flag", False),
    Field("initializer_range", "init_std", "positive", 0.02),
)


def read_bart(config):
    """Checks that the decoder begins with the token that ends a row, as our rows have it."""
    start, end = config.get("decoder_start_token_id"), config.get("eos_token_id")
    if None not in (start, end) and start != end:
        raise ValueError(
            f"'decoder_start_token_id' in {config.path} is {start}, and 'eos_token_id' is {end}. "
            "The decoder of a BART begins with the token that ends a row. Correct the file."
        )
    return {"pre_norm": False}


def read_mbart(config):
    """The arguments that all mBARTs share."""
    return {"pre_norm": True}


def write_bart(backbone):
    """The fields without an argument. A tokenizer replaces the ids, which are the released ones'.

    No token is forced: `Seq2Seq` takes the forced tokens as arguments.
    """
    return {
        "is_encoder_decoder": True,
        "pad_token_id": 1,
        "bos_token_id": 0,
        "eos_token_id": 2,
        "decoder_start_token_id": 2,
        "forced_eos_token_id": None,
    }


def write_mbart(backbone):
    """The fields without an argument. The decoder begins as rows of the tokenizer end."""
    fields = write_bart(backbone)
    del fields["bos_token_id"]  # The tokenizer's first token is a language.
    return {**fields, "decoder_start_token_id": None}


BART = ModelType(
    name="bart",
    title="BART",
    backbone="BartBackbone",
    tokenizer="BytePairTokenizer",
    read_tokenizer=read_hugging_face_byte_pairs,
    # Chinese BARTs have the tokenizer of a BERT.
    file_tokenizers=(("vocab.txt", "WordPieceTokenizer", read_hugging_face_tokenizer),),
    names=NAMES,
    two_layer_classifier="classification_head",
    classes="Bart",
    endings={"masked_lm": "ForConditionalGeneration"},
    position_offset=2,
    any_padding=True,
    starts_with_end=True,
    fields=FIELDS,
    built_in={"layer_norm_epsilon": 1e-5},
    head_dropout=("classifier_dropout", 0.0),
    dials=(
        # Of transformers 2. No released BART has another value.
        ("normalize_before", (False,)),
        ("add_final_layer_norm", (False,)),
        ("normalize_embedding", (True,)),
        ("static_position_embeddings", (False,)),
        ("extra_pos_embeddings", (2,)),
    ),
    read_more=read_bart,
    write_more=write_bart,
    fits=lambda backbone: not backbone.pre_norm,
)

MBART = replace(
    BART,
    name="mbart",
    title="mBART",
    tokenizer="MBartTokenizer",
    read_tokenizer=read_hugging_face_mbart,
    file_tokenizers=(),
    classes="MBart",
    dials=(
        ("normalize_before", (True,)),
        ("add_final_layer_norm", (True,)),
        *(
            dial
            for dial in BART.dials
            if dial[0] not in ("normalize_before", "add_final_layer_norm")
        ),
    ),
    read_more=read_mbart,
    write_more=write_mbart,
    fits=lambda backbone: backbone.pre_norm,
)
