"""The names of ELECTRA's weights in Hugging Face's checkpoints."""

from dataclasses import replace

from keras_bert_suite.checkpoints.name_tables.bert import (
    HEADS,
    OPTIONAL,
    NameTable,
    hugging_face_aliases,
    hugging_face_encoder,
    same,
    transposed,
)

#: The names in all classes of ELECTRA but ElectraForSequenceClassification. Its encoder has no
#: pooler. The summary of ElectraForMultipleChoice is our pooler.
ELECTRA = NameTable(
    rows=(
        *(row for row in hugging_face_encoder("electra") if not row[0].startswith("pooler/")),
        ("embeddings/projection/kernel", "electra.embeddings_project.weight", transposed),
        ("embeddings/projection/bias", "electra.embeddings_project.bias", same),
        ("pooler/kernel", "sequence_summary.summary.weight", transposed),
        ("pooler/bias", "sequence_summary.summary.bias", same),
        # of the generator
        ("masked_lm/transform/kernel", "generator_predictions.dense.weight", transposed),
        ("masked_lm/transform/bias", "generator_predictions.dense.bias", same),
        ("masked_lm/layer_norm/gamma", "generator_predictions.LayerNorm.weight", same),
        ("masked_lm/layer_norm/beta", "generator_predictions.LayerNorm.bias", same),
        ("masked_lm/bias", "generator_lm_head.bias", same),
        # of the discriminator
        ("replaced_tokens/transform/kernel", "discriminator_predictions.dense.weight", transposed),
        ("replaced_tokens/transform/bias", "discriminator_predictions.dense.bias", same),
        (
            "replaced_tokens/scorer/kernel",
            "discriminator_predictions.dense_prediction.weight",
            transposed,
        ),
        ("replaced_tokens/scorer/bias", "discriminator_predictions.dense_prediction.bias", same),
        ("token_classifier/kernel", "classifier.weight", transposed),
        ("token_classifier/bias", "classifier.bias", same),
        ("choice_scorer/kernel", "classifier.weight", transposed),
        ("choice_scorer/bias", "classifier.bias", same),
        ("span_labeler/kernel", "qa_outputs.weight", transposed),
        ("span_labeler/bias", "qa_outputs.bias", same),
    ),
    aliases=(*hugging_face_aliases("electra"), (r"^embeddings_project\.", "electra.\\g<0>")),
    ignored=(r"electra\.embeddings\.(position_ids|token_type_ids)",),
    optional=tuple(pattern for pattern in OPTIONAL if pattern != r"next_sentence/.*"),
    heads=HEADS,
    copies=(
        (
            "generator_lm_head.weight",
            "electra.embeddings.word_embeddings.weight",
            r"masked_lm/.*",
        ),
    ),
)

#: The names in ElectraForSequenceClassification. Its head has two layers; the first is our pooler.
ELECTRA_CLASSIFIER = replace(
    ELECTRA,
    rows=(
        *(
            row
            for row in ELECTRA.rows
            if not row[0].startswith(("pooler/", "token_classifier/", "choice_scorer/"))
        ),
        ("pooler/kernel", "classifier.dense.weight", transposed),
        ("pooler/bias", "classifier.dense.bias", same),
        ("classifier/kernel", "classifier.out_proj.weight", transposed),
        ("classifier/bias", "classifier.out_proj.bias", same),
    ),
)
