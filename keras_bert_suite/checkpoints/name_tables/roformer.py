"""The names of RoFormer's weights in Hugging Face's checkpoints."""

from dataclasses import replace

from keras_bert_suite.checkpoints.name_tables.bert import (
    HUGGING_FACE,
    PYTORCH,
    hugging_face_aliases,
    hugging_face_encoder,
    of_two_layers,
)

#: Heads of BERT that are no heads of RoFormer.
_OTHER_HEADS = ("next_sentence/",)

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
        *PYTORCH.rows(
            ("pooler", "sequence_summary.summary"),
            ("embeddings/projection", "roformer.embeddings_project"),
        ),
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
ROFORMER_CLASSIFIER = of_two_layers(ROFORMER)
