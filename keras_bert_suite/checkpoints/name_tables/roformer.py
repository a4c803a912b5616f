"""The names of RoFormer's weights in Hugging Face's checkpoints."""

from dataclasses import replace

from keras_bert_suite.checkpoints.name_tables.bert import (
    HUGGING_FACE,
    ROBERTA_CLASSIFIER,
    hugging_face_aliases,
    hugging_face_encoder,
    same,
    transposed,
)

#: Heads of BERT that are no heads of RoFormer.
_OTHER_HEADS = ("next_sentence/",)

#: The parts of our models that RoFormerForSequenceClassification has under names of its own. Its
#: head has two layers; the first is our pooler.
_CLASSIFIER = ("pooler/", "classifier/")

#: The names in all classes but RoFormerForSequenceClassification. RoFormerForMultipleChoice alone
#: has a pooler, its summary.
ROFORMER = replace(
    HUGGING_FACE,
    rows=(
        *(
            row
            for row in hugging_face_encoder("roformer")
            if "position_embedding" not in row[0] and not row[0].startswith("pooler/")
        ),
        ("pooler/kernel", "sequence_summary.summary.weight", transposed),
        ("pooler/bias", "sequence_summary.summary.bias", same),
        ("embeddings/projection/kernel", "roformer.embeddings_project.weight", transposed),
        ("embeddings/projection/bias", "roformer.embeddings_project.bias", same),
        *(
            row
            for row in HUGGING_FACE.rows
            if not row[1].startswith("bert.")
            and not row[0].startswith((*_OTHER_HEADS, "classifier/"))
        ),
    ),
    aliases=(
        *hugging_face_aliases("roformer"),
        (r"^embeddings_project\.", "roformer.embeddings_project."),
    ),
    # The sines and cosines of positions.
    ignored=(r"roformer\.encoder\.embed_positions\.weight",),
    optional=tuple(
        pattern for pattern in HUGGING_FACE.optional if not pattern.startswith(_OTHER_HEADS)
    ),
    copies=tuple(
        (copy, original.replace("bert.", "roformer.", 1), pattern)
        for copy, original, pattern in HUGGING_FACE.copies
    ),
)

#: The names in RoFormerForSequenceClassification.
ROFORMER_CLASSIFIER = replace(
    ROFORMER,
    rows=(
        *(
            row
            for row in ROFORMER.rows
            if not row[0].startswith(("token_classifier/", "choice_scorer/", "pooler/"))
        ),
        *(row for row in ROBERTA_CLASSIFIER.rows if row[0].startswith(_CLASSIFIER)),
    ),
)
