"""The names of ERNIE's weights in Hugging Face's checkpoints."""

from keras_bert_suite.checkpoints.name_tables.bert import (
    HUGGING_FACE,
    PYTORCH,
    NameTable,
    hugging_face_aliases,
    hugging_face_encoder,
)

#: The names in all classes of ERNIE. Its heads have the names of BERT's heads.
ERNIE = NameTable(
    rows=(
        *hugging_face_encoder("ernie"),
        *PYTORCH.rows(("embeddings/task_type_embedding", "ernie.embeddings.task_type_embeddings")),
        *(row for row in HUGGING_FACE.rows if not row[1].startswith("bert.")),
    ),
    aliases=hugging_face_aliases("ernie"),
    ignored=(r"ernie\.embeddings\.(position_ids|token_type_ids)",),
    copies=tuple(
        (copy, original.replace("bert.", "ernie.", 1), pattern)
        for copy, original, pattern in HUGGING_FACE.copies
    ),
)
