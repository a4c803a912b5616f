"""The names of RoFormer's weights in Hugging Face's checkpoints."""

from dataclasses import replace

from keras_bert_suite.checkpoints.name_tables.bert import (
    HUGGING_FACE,
    OPTIONAL_WITHOUT_PAIRS,
    PYTORCH,
    hugging_face_aliases,
    hugging_face_encoder,
    hugging_face_heads,
    of_two_layers,
)

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
        *(row for row in HUGGING_FACE.rows if row[1].startswith("cls.predictions.")),
        *hugging_face_heads(classifier=None),
    ),
    aliases=(
        *hugging_face_aliases("roformer"),
        (r"^embeddings_project\.", "roformer.embeddings_project."),
    ),
    # The sines and cosines of positions.
    ignored=(r"roformer\.encoder\.embed_positions\.weight",),
    optional=OPTIONAL_WITHOUT_PAIRS,
    copies=tuple(
        (copy, original.replace("bert.", "roformer.", 1), pattern)
        for copy, original, pattern in HUGGING_FACE.copies
    ),
)

#: The names in RoFormerForSequenceClassification.
ROFORMER_CLASSIFIER = of_two_layers(ROFORMER)
