"""The names of NEZHA's weights in Hugging Face's checkpoints."""

from dataclasses import replace

from keras_bert_suite.checkpoints.name_tables.bert import (
    HUGGING_FACE,
    hugging_face_aliases,
    hugging_face_encoder,
)

#: The names in all classes of NEZHA. Its heads have the names of BERT's heads.
NEZHA = replace(
    HUGGING_FACE,
    rows=(
        *(row for row in hugging_face_encoder("nezha") if "position_embedding" not in row[0]),
        *(row for row in HUGGING_FACE.rows if not row[1].startswith("bert.")),
    ),
    aliases=hugging_face_aliases("nezha"),
    # The sinusoids of distances, which old files keep.
    ignored=(
        r"nezha\.embeddings\.token_type_ids",
        r"nezha\..*\.relative_positions_encoding\.positions_encoding",
    ),
    copies=tuple(
        (copy, original.replace("bert.", "nezha.", 1), pattern)
        for copy, original, pattern in HUGGING_FACE.copies
    ),
)
