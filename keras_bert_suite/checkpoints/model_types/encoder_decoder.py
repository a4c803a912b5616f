"""The encoder-decoder of two BERTs, transformers' EncoderDecoderModel."""

from dataclasses import replace
from types import SimpleNamespace

from keras_bert_suite.argument_checks import with_article
from keras_bert_suite.checkpoints.model_types import activation_names
from keras_bert_suite.checkpoints.model_types.config_fields import (
    BERT_FIELDS,
    DIALS,
    read_fields,
    write_fields,
)
from keras_bert_suite.checkpoints.model_types.config_values import ConfigValues
from keras_bert_suite.checkpoints.model_types.model_type import ModelType
from keras_bert_suite.checkpoints.model_types.name_table import (
    PYTORCH,
    NameTable,
    decoder_copies,
    hugging_face_encoder,
    masked_lm_head,
)
from keras_bert_suite.files.messages import shorten

#: The settings of a decoder; an encoder has the opposite in `DIALS`.
_OF_DECODERS = {"is_decoder": (True,), "add_cross_attention": (True,)}
_DECODER_DIALS = (
    *((name, _OF_DECODERS.get(name, values)) for name, values in DIALS),
    ("cross_attention_hidden_size", ()),
)


def read_encoder_decoder(config):
    """Reads the arguments of a `BertEncoderDecoder` from the two configurations in a file.

    `decoder_arguments` is None if `tie_encoder_decoder` says that both share their weights. Version
    5 of transformers does not read this field, so files that this package writes hold the weights
    twice.
    """
    encoder = _read_part(config.path, "encoder", DIALS)
    decoder = _read_part(config.path, "decoder", _DECODER_DIALS)
    if not config.read("flag", "tie_encoder_decoder", False):
        return {"encoder_arguments": encoder, "decoder_arguments": decoder}
    differing = [name for name, value in encoder.items() if decoder[name] != value]
    if differing:
        raise ValueError(
            f"'tie_encoder_decoder' in {config.path} is true, but encoder and decoder differ in "
            f"{', '.join(differing)}. Correct the file."
        )
    return {"encoder_arguments": encoder, "decoder_arguments": None}


def write_encoder_decoder(backbone):
    """Makes the fields that `read_encoder_decoder` reads."""
    encoder = _write_part(backbone.encoder_arguments, backbone.encoder.activation)
    shares = backbone.decoder_arguments is None
    decoder = encoder if shares else _write_part(backbone.decoder_arguments, backbone.activation)
    return {
        "encoder": {**encoder, "is_decoder": False, "add_cross_attention": False},
        "decoder": {**decoder, "is_decoder": True, "add_cross_attention": True},
        "is_encoder_decoder": True,
        **({"tie_encoder_decoder": True} if shares else {}),
        # The writer fills them in, if it has a tokenizer.
        **dict.fromkeys(("decoder_start_token_id", "eos_token_id")),
    }


def copy_shared_weights(backbone, weights):
    """The weights that a file holds twice, because transformers does not share them.

    The result is a dict of the path in a separate decoder -> weight of the encoder. A backbone
    without a head is a ValueError: transformers would make the head anew.
    """
    if "masked_lm/bias" not in weights:
        raise ValueError(
            "An EncoderDecoderModel of transformers has a head that scores the vocabulary, got "
            f"{with_article(backbone)} alone. Save the Seq2Seq, or use `backbone.save_to_preset`."
        )
    if backbone.decoder_arguments is not None:
        return {}
    own = {weight.path for weight in backbone.encoder.weights}
    left_out = ("pooler/",)
    return {
        f"decoder/{path}": weight
        for path, weight in weights.items()
        if path in own and "/cross_attention" not in path and not path.startswith(left_out)
    }


def _read_part(path, part, dials):
    config = ConfigValues(path, part)
    kind = config.get("model_type")
    if kind != "bert":
        raise ValueError(
            f"The {part} in {path} has model_type {shorten(repr(kind))}; only encoder-decoders of "
            "two models of the type 'bert' can be read."
        )
    config.check_dials(dials)
    return read_fields(config, BERT_FIELDS, activation_names.HUGGING_FACE)


def _write_part(arguments, activation):
    """The fields of a BERT, from the arguments of a `BertBackbone`."""
    owner = "Hugging Face's BERT"
    values = SimpleNamespace(**{**arguments, "activation": activation}, position_offset=0)
    fields = write_fields(values, BERT_FIELDS, activation_names.HUGGING_FACE, owner)
    return {**fields, "model_type": "bert", "pad_token_id": 0}


def _cross_attention(ours):
    """The rows of the attention to the encoder, whose paths begin with `ours`."""
    block = "decoder.bert.encoder.layer.{i}.crossattention."
    return PYTORCH.rows(
        *(
            (f"{ours}transformer_layer_{{i}}/cross_attention{layer}", block + name)
            for layer, name in (
                ("/query", "self.query"),
                ("/key", "self.key"),
                ("/value", "self.value"),
                ("/output_projection", "output.dense"),
                ("_norm", "output.LayerNorm"),
            )
        )
    )


_DECODER = "decoder.cls.predictions"
_IGNORED = r"(encoder|decoder\.bert)\.embeddings\.(position_ids|token_type_ids)"

NAMES = NameTable(
    rows=(
        *hugging_face_encoder("encoder"),
        *(
            (f"decoder/{ours}", theirs, how)
            for ours, theirs, how in hugging_face_encoder("decoder.bert")
            if not ours.startswith("pooler/")
        ),
        *_cross_attention("decoder/"),
        # A decoder with the weights of the encoder has the blocks of the encoder.
        *_cross_attention(""),
        *masked_lm_head(
            f"{_DECODER}.transform.dense", f"{_DECODER}.transform.LayerNorm", f"{_DECODER}.bias"
        ),
        *PYTORCH.rows(("encoder_projection", "enc_to_dec_proj")),
    ),
    aliases=(
        (r"LayerNorm\.gamma$", "LayerNorm.weight"),
        (r"LayerNorm\.beta$", "LayerNorm.bias"),
    ),
    ignored=(_IGNORED,),
    copies=decoder_copies(
        f"{_DECODER}.decoder", f"{_DECODER}.bias", "decoder.bert.embeddings.word_embeddings"
    ),
)

ENCODER_DECODER = ModelType(
    name="encoder-decoder",
    title="BERT encoder-decoder",
    backbone="BertEncoderDecoder",
    names=NAMES,
    classes="EncoderDecoder",
    architecture="EncoderDecoderModel",
    fields=(),
    read_more=read_encoder_decoder,
    write_more=write_encoder_decoder,
    copy_weights=copy_shared_weights,
)

#: The same where `tie_encoder_decoder` says that the weights of the decoder are the encoder's.
SHARED_ENCODER_DECODER = replace(
    ENCODER_DECODER,
    names=replace(
        NAMES,
        ignored=(
            _IGNORED,
            r"decoder\.bert\.embeddings\..*",
            r"decoder\.bert\.encoder\.layer\.\d+\.(?!crossattention\.).*",
        ),
        copies=decoder_copies(
            f"{_DECODER}.decoder", f"{_DECODER}.bias", "encoder.embeddings.word_embeddings"
        ),
    ),
)
