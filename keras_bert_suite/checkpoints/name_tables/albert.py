"""The names of ALBERT's weights in the checkpoints of Hugging Face, Google and KerasHub."""

from dataclasses import replace

from keras_bert_suite.checkpoints.name_tables.bert import (
    GOOGLE,
    GOOGLE_TF1,
    PYTORCH,
    NameTable,
    hugging_face_aliases,
    hugging_face_encoder,
    hugging_face_heads,
    same,
)
from keras_bert_suite.checkpoints.name_tables.keras_hub import KERAS, KERAS_HUB

#: The names in all classes of ALBERT.
ALBERT = NameTable(
    rows=(
        *(row for row in hugging_face_encoder("albert") if row[0].startswith("embeddings/")),
        *PYTORCH.rows(
            ("embeddings/projection", "albert.encoder.embedding_hidden_mapping_in"),
            ("pooler", "albert.pooler"),
            ("masked_lm/transform", "predictions.dense"),
            ("masked_lm/layer_norm", "predictions.LayerNorm"),
            # The head that says whether two segments were exchanged.
            ("next_sentence", "sop_classifier.classifier"),
        ),
        *PYTORCH.block(
            "albert.encoder.albert_layer_groups.{i}.albert_layers.{j}.",
            (
                "attention.query",
                "attention.key",
                "attention.value",
                "attention.dense",
                "attention.LayerNorm",
                "ffn",
                "ffn_output",
                "full_layer_layer_norm",
            ),
            ours="transformer_layer_{i}_{j}/",
        ),
        ("masked_lm/bias", "predictions.bias", same),
        *hugging_face_heads(),
    ),
    aliases=hugging_face_aliases("albert"),
    ignored=(r"albert\.embeddings\.(position_ids|token_type_ids)",),
    copies=(
        (
            "predictions.decoder.weight",
            "albert.embeddings.word_embeddings.weight",
            r"masked_lm/.*",
        ),
        ("predictions.decoder.bias", "predictions.bias", r"masked_lm/.*"),
    ),
)

#: The names in google-research/albert. Its code for questions has another head than BERT's.
GOOGLE_TF1_ALBERT = replace(
    GOOGLE_TF1,
    rows=(
        *(
            row
            for row in GOOGLE_TF1.rows
            if not row[0].startswith(("transformer_layer", "span_labeler"))
        ),
        *GOOGLE.block(
            "bert/encoder/transformer/group_{i}/inner_group_{j}/",
            (
                "attention_1/self/query",
                "attention_1/self/key",
                "attention_1/self/value",
                "attention_1/output/dense",
                "LayerNorm",
                "ffn_1/intermediate/dense",
                "ffn_1/intermediate/output/dense",
                "LayerNorm_1",
            ),
            ours="transformer_layer_{i}_{j}/",
        ),
    ),
    # The modules of TensorFlow Hub put a prefix before all names.
    aliases=(("^module/", ""),),
)

#: The names in KerasHub's ALBERT, for groups of one layer. It numbers the layers of all groups.
KERAS_HUB_ALBERT = replace(
    KERAS_HUB,
    rows=(
        *(row for row in KERAS_HUB.rows if row[0].startswith("embeddings/")),
        *KERAS.rows(
            ("embeddings/projection", "layers/dense"),
            ("pooler", "layers/dense_1"),
            ("classifier", "AlbertTextClassifier/layers/dense"),
        ),
        *(
            (ours.replace("transformer_layer_{i}/", "transformer_layer_{i}_0/"), theirs, transform)
            for ours, theirs, transform in KERAS_HUB.rows
            if ours.startswith("transformer_layer")
        ),
    ),
)
