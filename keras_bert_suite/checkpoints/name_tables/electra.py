"""The names of ELECTRA's weights in Hugging Face's checkpoints."""

from keras_bert_suite.checkpoints.name_tables.bert import (
    OPTIONAL_WITHOUT_PAIRS,
    PYTORCH,
    NameTable,
    hugging_face_aliases,
    hugging_face_encoder,
    hugging_face_heads,
    of_two_layers,
    same,
)

#: The names in all classes of ELECTRA but ElectraForSequenceClassification. Its encoder has no
#: pooler. The summary of ElectraForMultipleChoice is our pooler.
ELECTRA = NameTable(
    rows=(
        *(row for row in hugging_face_encoder("electra") if not row[0].startswith("pooler/")),
        # The generator and the discriminator have heads of their own.
        ("masked_lm/bias", "generator_lm_head.bias", same),
        *PYTORCH.rows(
            ("embeddings/projection", "electra.embeddings_project"),
            ("pooler", "sequence_summary.summary"),
            ("masked_lm/transform", "generator_predictions.dense"),
            ("masked_lm/layer_norm", "generator_predictions.LayerNorm"),
            ("replaced_tokens/transform", "discriminator_predictions.dense"),
            ("replaced_tokens/scorer", "discriminator_predictions.dense_prediction"),
        ),
        *hugging_face_heads(classifier=None),
    ),
    aliases=(*hugging_face_aliases("electra"), (r"^embeddings_project\.", "electra.\\g<0>")),
    ignored=(r"electra\.embeddings\.(position_ids|token_type_ids)",),
    optional=OPTIONAL_WITHOUT_PAIRS,
    copies=(
        (
            "generator_lm_head.weight",
            "electra.embeddings.word_embeddings.weight",
            r"masked_lm/.*",
        ),
    ),
)

#: The names in ElectraForSequenceClassification.
ELECTRA_CLASSIFIER = of_two_layers(ELECTRA)
