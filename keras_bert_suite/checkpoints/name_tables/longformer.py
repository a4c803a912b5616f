"""The names of Longformer's weights in Hugging Face's checkpoints."""

from dataclasses import replace

from keras_bert_suite.checkpoints.name_tables.bert import (
    PYTORCH,
    ROBERTA,
    ROBERTA_CLASSIFIER,
    hugging_face_aliases,
)

#: The projections of global attention.
GLOBAL_PROJECTIONS = PYTORCH.rows(
    *(
        (
            "transformer_layer_{i}/self_attention/global_" + name,
            "longformer.encoder.layer.{i}.attention.self." + name + "_global",
        )
        for name in ("query", "key", "value")
    )
)


def _of_longformer(table):
    """A table of RoBERTa's names, for a Longformer with the same head."""

    def rename(name):
        return name.replace("roberta", "longformer", 1)

    return replace(
        table,
        rows=(
            *((path, rename(name), transform) for path, name, transform in table.rows),
            *GLOBAL_PROJECTIONS,
        ),
        aliases=hugging_face_aliases("longformer"),
        ignored=tuple(map(rename, table.ignored)),
        copies=tuple((copy, rename(original), pattern) for copy, original, pattern in table.copies),
    )


LONGFORMER = _of_longformer(ROBERTA)

#: The names in LongformerForSequenceClassification. The first layer of its head is our pooler.
LONGFORMER_CLASSIFIER = _of_longformer(ROBERTA_CLASSIFIER)
