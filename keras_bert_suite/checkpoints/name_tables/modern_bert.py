"""The names of ModernBERT's weights in checkpoints of Hugging Face."""

from keras_bert_suite.checkpoints.name_tables.bert import (
    PYTORCH,
    NameTable,
    hugging_face_heads,
    same,
)

#: Every model has one prediction head, `head`, which is our pooler. The layer `classifier` is that
#: of texts, tokens, choices or answers. A checkpoint has one of them.
MODERN_BERT = NameTable(
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
    aliases=((r"^module\.", ""), (r"^(embeddings|layers|final_norm)\.", r"model.\1.")),
    copies=(("decoder.weight", "model.embeddings.tok_embeddings.weight", r"masked_lm/.*"),),
)
