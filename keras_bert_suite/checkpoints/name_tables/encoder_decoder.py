"""The names of transformers' EncoderDecoderModel of two BERTs."""

from dataclasses import replace

from keras_bert_suite.checkpoints.name_tables.bert import (
    PYTORCH,
    NameTable,
    hugging_face_encoder,
    same,
)

#: Our layers of the attention to the encoder, and what they are called after "crossattention.".
_CROSS_ATTENTION = (
    ("cross_attention/query", "self.query"),
    ("cross_attention/key", "self.key"),
    ("cross_attention/value", "self.value"),
    ("cross_attention/output_projection", "output.dense"),
    ("cross_attention_norm", "output.LayerNorm"),
)


def _cross_attention(ours):
    """The rows of the attention to the encoder, whose paths begin with `ours`."""
    block = "decoder.bert.encoder.layer.{i}.crossattention."
    return PYTORCH.rows(
        *((f"{ours}transformer_layer_{{i}}/{a}", block + b) for a, b in _CROSS_ATTENTION)
    )


ENCODER_DECODER = NameTable(
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
        ("masked_lm/bias", "decoder.cls.predictions.bias", same),
        *PYTORCH.rows(
            ("masked_lm/transform", "decoder.cls.predictions.transform.dense"),
            ("masked_lm/layer_norm", "decoder.cls.predictions.transform.LayerNorm"),
            ("encoder_projection", "enc_to_dec_proj"),
        ),
    ),
    aliases=(
        (r"^module\.", ""),
        (r"LayerNorm\.gamma$", "LayerNorm.weight"),
        (r"LayerNorm\.beta$", "LayerNorm.bias"),
    ),
    ignored=(r"(encoder|decoder\.bert)\.embeddings\.(position_ids|token_type_ids)",),
    copies=(
        (
            "decoder.cls.predictions.decoder.weight",
            "decoder.bert.embeddings.word_embeddings.weight",
            r"masked_lm/.*",
        ),
        ("decoder.cls.predictions.decoder.bias", "decoder.cls.predictions.bias", r"masked_lm/.*"),
    ),
)

#: The same where `tie_encoder_decoder` says that the weights of the decoder are the encoder's.
SHARED_ENCODER_DECODER = replace(
    ENCODER_DECODER,
    ignored=(
        *ENCODER_DECODER.ignored,
        r"decoder\.bert\.embeddings\..*",
        r"decoder\.bert\.encoder\.layer\.\d+\.(?!crossattention\.).*",
    ),
    copies=(
        (
            "decoder.cls.predictions.decoder.weight",
            "encoder.embeddings.word_embeddings.weight",
            r"masked_lm/.*",
        ),
        ENCODER_DECODER.copies[1],
    ),
)
