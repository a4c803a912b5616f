"""The names of DistilBERT's weights in the checkpoints of Hugging Face and KerasHub."""

from dataclasses import replace

from keras_bert_suite.checkpoints.name_tables.bert import (
    HEADS,
    OPTIONAL,
    NameTable,
    same,
    transposed,
    within,
)
from keras_bert_suite.checkpoints.name_tables.keras_hub import KERAS_HUB, KERAS_HUB_BLOCKS

#: The names in all classes of DistilBERT. Its encoder has no pooler. The first layer of the heads
#: for texts and for choices is our pooler.
DISTIL_BERT = NameTable(
    rows=(
        *within(
            "embeddings/",
            "distilbert.embeddings.",
            (
                ("token_embedding/embeddings", "word_embeddings.weight", same),
                ("position_embedding/embeddings", "position_embeddings.weight", same),
                ("layer_norm/gamma", "LayerNorm.weight", same),
                ("layer_norm/beta", "LayerNorm.bias", same),
            ),
        ),
        *within(
            "transformer_layer_{i}/",
            "distilbert.transformer.layer.{i}.",
            (
                ("self_attention/query/kernel", "attention.q_lin.weight", transposed),
                ("self_attention/query/bias", "attention.q_lin.bias", same),
                ("self_attention/key/kernel", "attention.k_lin.weight", transposed),
                ("self_attention/key/bias", "attention.k_lin.bias", same),
                ("self_attention/value/kernel", "attention.v_lin.weight", transposed),
                ("self_attention/value/bias", "attention.v_lin.bias", same),
                ("self_attention/output_projection/kernel", "attention.out_lin.weight", transposed),
                ("self_attention/output_projection/bias", "attention.out_lin.bias", same),
                ("self_attention_norm/gamma", "sa_layer_norm.weight", same),
                ("self_attention_norm/beta", "sa_layer_norm.bias", same),
                ("intermediate/kernel", "ffn.lin1.weight", transposed),
                ("intermediate/bias", "ffn.lin1.bias", same),
                ("feedforward_output/kernel", "ffn.lin2.weight", transposed),
                ("feedforward_output/bias", "ffn.lin2.bias", same),
                ("feedforward_norm/gamma", "output_layer_norm.weight", same),
                ("feedforward_norm/beta", "output_layer_norm.bias", same),
            ),
        ),
        ("pooler/kernel", "pre_classifier.weight", transposed),
        ("pooler/bias", "pre_classifier.bias", same),
        ("masked_lm/transform/kernel", "vocab_transform.weight", transposed),
        ("masked_lm/transform/bias", "vocab_transform.bias", same),
        ("masked_lm/layer_norm/gamma", "vocab_layer_norm.weight", same),
        ("masked_lm/layer_norm/beta", "vocab_layer_norm.bias", same),
        ("masked_lm/bias", "vocab_projector.bias", same),
        ("classifier/kernel", "classifier.weight", transposed),
        ("classifier/bias", "classifier.bias", same),
        # The heads for texts, tokens and choices have the same name. A checkpoint has one of them.
        ("token_classifier/kernel", "classifier.weight", transposed),
        ("token_classifier/bias", "classifier.bias", same),
        ("choice_scorer/kernel", "classifier.weight", transposed),
        ("choice_scorer/bias", "classifier.bias", same),
        ("span_labeler/kernel", "qa_outputs.weight", transposed),
        ("span_labeler/bias", "qa_outputs.bias", same),
    ),
    aliases=(
        (r"^module\.", ""),
        (r"^(embeddings|transformer)\.", r"distilbert.\1."),
    ),
    ignored=(r"distilbert\.embeddings\.position_ids",),
    optional=tuple(pattern for pattern in OPTIONAL if pattern != r"next_sentence/.*"),
    heads=HEADS,
    copies=(
        (
            "vocab_projector.weight",
            "distilbert.embeddings.word_embeddings.weight",
            r"masked_lm/.*",
        ),
    ),
)

#: The names in KerasHub's DistilBERT, and of the two layers of its DistilBertTextClassifier.
KERAS_HUB_DISTIL_BERT = replace(
    KERAS_HUB,
    rows=(
        *within(
            "embeddings/",
            "layers/",
            (
                (
                    "token_embedding/embeddings",
                    "token_and_position_embedding/token_embedding/vars/0",
                    same,
                ),
                (
                    "position_embedding/embeddings",
                    "token_and_position_embedding/position_embedding/vars/0",
                    same,
                ),
                ("layer_norm/gamma", "layer_normalization/vars/0", same),
                ("layer_norm/beta", "layer_normalization/vars/1", same),
            ),
        ),
        *KERAS_HUB_BLOCKS,
        ("pooler/kernel", "DistilBertTextClassifier/layers/dense/vars/0", same),
        ("pooler/bias", "DistilBertTextClassifier/layers/dense/vars/1", same),
        ("classifier/kernel", "DistilBertTextClassifier/layers/dense_1/vars/0", same),
        ("classifier/bias", "DistilBertTextClassifier/layers/dense_1/vars/1", same),
    ),
    optional=OPTIONAL,
)
