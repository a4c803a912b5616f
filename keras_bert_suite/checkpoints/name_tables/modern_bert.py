"""The names of ModernBERT's weights in checkpoints of Hugging Face."""

from keras_bert_suite.checkpoints.name_tables.bert import (
    HEADS,
    OPTIONAL,
    NameTable,
    same,
    transposed,
    within,
)

#: Every model has one prediction head, `head`, which is our pooler. The layer `classifier` is that
#: of texts, tokens, choices or answers. A checkpoint has one of them.
MODERN_BERT = NameTable(
    rows=(
        ("embeddings/token_embedding/embeddings", "model.embeddings.tok_embeddings.weight", same),
        ("embeddings/layer_norm/gamma", "model.embeddings.norm.weight", same),
        ("embeddings/layer_norm/beta", "model.embeddings.norm.bias", same),
        *within(
            "transformer_layer_{i}/",
            "model.layers.{i}.",
            (
                ("self_attention_norm/gamma", "attn_norm.weight", same),
                ("self_attention_norm/beta", "attn_norm.bias", same),
                ("self_attention/query_key_value/kernel", "attn.Wqkv.weight", transposed),
                ("self_attention/query_key_value/bias", "attn.Wqkv.bias", same),
                ("self_attention/output_projection/kernel", "attn.Wo.weight", transposed),
                ("self_attention/output_projection/bias", "attn.Wo.bias", same),
                ("feedforward_norm/gamma", "mlp_norm.weight", same),
                ("feedforward_norm/beta", "mlp_norm.bias", same),
                ("gated_intermediate/kernel", "mlp.Wi.weight", transposed),
                ("gated_intermediate/bias", "mlp.Wi.bias", same),
                ("feedforward_output/kernel", "mlp.Wo.weight", transposed),
                ("feedforward_output/bias", "mlp.Wo.bias", same),
            ),
        ),
        ("final_norm/gamma", "model.final_norm.weight", same),
        ("final_norm/beta", "model.final_norm.bias", same),
        ("pooler/dense/kernel", "head.dense.weight", transposed),
        ("pooler/dense/bias", "head.dense.bias", same),
        ("pooler/layer_norm/gamma", "head.norm.weight", same),
        ("pooler/layer_norm/beta", "head.norm.bias", same),
        ("masked_lm/bias", "decoder.bias", same),
        *(
            row
            for head in ("classifier", "token_classifier", "choice_scorer", "span_labeler")
            for row in (
                (f"{head}/kernel", "classifier.weight", transposed),
                (f"{head}/bias", "classifier.bias", same),
            )
        ),
    ),
    aliases=((r"^module\.", ""), (r"^(embeddings|layers|final_norm)\.", r"model.\1.")),
    optional=OPTIONAL,
    heads=HEADS,
    copies=(("decoder.weight", "model.embeddings.tok_embeddings.weight", r"masked_lm/.*"),),
)
