"""The names of ALBERT's weights in the checkpoints of Hugging Face, Google and KerasHub."""

from dataclasses import replace

from keras_bert_suite.checkpoints.name_tables.bert import (
    GOOGLE_TF1,
    HUGGING_FACE,
    NameTable,
    hugging_face_aliases,
    hugging_face_encoder,
    same,
    transposed,
    within,
)
from keras_bert_suite.checkpoints.name_tables.keras_hub import KERAS_HUB

_MAPPING = "albert.encoder.embedding_hidden_mapping_in."
#: The projection after the attention, in a layer of google-research/albert.
_ATTENDED = "attention_1/output/dense/"

#: The names in all classes of ALBERT.
ALBERT = NameTable(
    rows=(
        *(row for row in hugging_face_encoder("albert") if row[0].startswith("embeddings/")),
        ("embeddings/projection/kernel", _MAPPING + "weight", transposed),
        ("embeddings/projection/bias", _MAPPING + "bias", same),
        *within(
            "transformer_layer_{i}_{j}/",
            "albert.encoder.albert_layer_groups.{i}.albert_layers.{j}.",
            (
                ("self_attention/query/kernel", "attention.query.weight", transposed),
                ("self_attention/query/bias", "attention.query.bias", same),
                ("self_attention/key/kernel", "attention.key.weight", transposed),
                ("self_attention/key/bias", "attention.key.bias", same),
                ("self_attention/value/kernel", "attention.value.weight", transposed),
                ("self_attention/value/bias", "attention.value.bias", same),
                ("self_attention/output_projection/kernel", "attention.dense.weight", transposed),
                ("self_attention/output_projection/bias", "attention.dense.bias", same),
                ("self_attention_norm/gamma", "attention.LayerNorm.weight", same),
                ("self_attention_norm/beta", "attention.LayerNorm.bias", same),
                ("intermediate/kernel", "ffn.weight", transposed),
                ("intermediate/bias", "ffn.bias", same),
                ("feedforward_output/kernel", "ffn_output.weight", transposed),
                ("feedforward_output/bias", "ffn_output.bias", same),
                ("feedforward_norm/gamma", "full_layer_layer_norm.weight", same),
                ("feedforward_norm/beta", "full_layer_layer_norm.bias", same),
            ),
        ),
        ("pooler/kernel", "albert.pooler.weight", transposed),
        ("pooler/bias", "albert.pooler.bias", same),
        ("masked_lm/transform/kernel", "predictions.dense.weight", transposed),
        ("masked_lm/transform/bias", "predictions.dense.bias", same),
        ("masked_lm/layer_norm/gamma", "predictions.LayerNorm.weight", same),
        ("masked_lm/layer_norm/beta", "predictions.LayerNorm.bias", same),
        ("masked_lm/bias", "predictions.bias", same),
        # The head that says whether two segments were exchanged.
        ("next_sentence/kernel", "sop_classifier.classifier.weight", transposed),
        ("next_sentence/bias", "sop_classifier.classifier.bias", same),
        *(row for row in HUGGING_FACE.rows if row[1].startswith(("classifier.", "qa_outputs."))),
    ),
    aliases=hugging_face_aliases("albert"),
    ignored=(r"albert\.embeddings\.(position_ids|token_type_ids)",),
    optional=HUGGING_FACE.optional,
    heads=HUGGING_FACE.heads,
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
        *within(
            "transformer_layer_{i}_{j}/",
            "bert/encoder/transformer/group_{i}/inner_group_{j}/",
            (
                ("self_attention/query/kernel", "attention_1/self/query/kernel", same),
                ("self_attention/query/bias", "attention_1/self/query/bias", same),
                ("self_attention/key/kernel", "attention_1/self/key/kernel", same),
                ("self_attention/key/bias", "attention_1/self/key/bias", same),
                ("self_attention/value/kernel", "attention_1/self/value/kernel", same),
                ("self_attention/value/bias", "attention_1/self/value/bias", same),
                ("self_attention/output_projection/kernel", _ATTENDED + "kernel", same),
                ("self_attention/output_projection/bias", _ATTENDED + "bias", same),
                ("self_attention_norm/gamma", "LayerNorm/gamma", same),
                ("self_attention_norm/beta", "LayerNorm/beta", same),
                ("intermediate/kernel", "ffn_1/intermediate/dense/kernel", same),
                ("intermediate/bias", "ffn_1/intermediate/dense/bias", same),
                ("feedforward_output/kernel", "ffn_1/intermediate/output/dense/kernel", same),
                ("feedforward_output/bias", "ffn_1/intermediate/output/dense/bias", same),
                ("feedforward_norm/gamma", "LayerNorm_1/gamma", same),
                ("feedforward_norm/beta", "LayerNorm_1/beta", same),
            ),
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
        ("embeddings/projection/kernel", "layers/dense/vars/0", same),
        ("embeddings/projection/bias", "layers/dense/vars/1", same),
        *(
            (ours.replace("transformer_layer_{i}/", "transformer_layer_{i}_0/"), theirs, transform)
            for ours, theirs, transform in KERAS_HUB.rows
            if ours.startswith("transformer_layer")
        ),
        ("pooler/kernel", "layers/dense_1/vars/0", same),
        ("pooler/bias", "layers/dense_1/vars/1", same),
        ("classifier/kernel", "AlbertTextClassifier/layers/dense/vars/0", same),
        ("classifier/bias", "AlbertTextClassifier/layers/dense/vars/1", same),
    ),
)
