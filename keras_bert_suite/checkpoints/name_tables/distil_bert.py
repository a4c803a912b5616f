"""The names of DistilBERT's weights in the checkpoints of Hugging Face and KerasHub."""

from dataclasses import replace

from keras_bert_suite.checkpoints.name_tables.bert import (
    OPTIONAL,
    OPTIONAL_WITHOUT_PAIRS,
    PYTORCH,
    NameTable,
    hugging_face_heads,
    same,
)
from keras_bert_suite.checkpoints.name_tables.keras_hub import (
    KERAS,
    KERAS_HUB,
    KERAS_HUB_BLOCKS,
    KERAS_HUB_POSITIONS,
)

#: The names in all classes of DistilBERT. Its encoder has no pooler. The first layer of the heads
#: for texts and for choices is our pooler.
DISTIL_BERT = NameTable(
    rows=(
        *PYTORCH.rows(
            ("embeddings/token_embedding", "distilbert.embeddings.word_embeddings"),
            ("embeddings/position_embedding", "distilbert.embeddings.position_embeddings"),
            ("embeddings/layer_norm", "distilbert.embeddings.LayerNorm"),
            ("pooler", "pre_classifier"),
            ("masked_lm/transform", "vocab_transform"),
            ("masked_lm/layer_norm", "vocab_layer_norm"),
        ),
        *hugging_face_heads(),
        *PYTORCH.block(
            "distilbert.transformer.layer.{i}.",
            (
                "attention.q_lin",
                "attention.k_lin",
                "attention.v_lin",
                "attention.out_lin",
                "sa_layer_norm",
                "ffn.lin1",
                "ffn.lin2",
                "output_layer_norm",
            ),
        ),
        ("masked_lm/bias", "vocab_projector.bias", same),
    ),
    aliases=(
        (r"^module\.", ""),
        (r"^(embeddings|transformer)\.", r"distilbert.\1."),
    ),
    ignored=(r"distilbert\.embeddings\.position_ids",),
    optional=OPTIONAL_WITHOUT_PAIRS,
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
        *(row for row in KERAS_HUB_POSITIONS if "segment_embedding" not in row[0]),
        *KERAS_HUB_BLOCKS,
        *KERAS.rows(
            ("pooler", "DistilBertTextClassifier/layers/dense"),
            ("classifier", "DistilBertTextClassifier/layers/dense_1"),
        ),
    ),
    optional=OPTIONAL,
)
