"""The names of weights in KerasHub's files of BERT and RoBERTa."""

from dataclasses import replace

from keras_bert_suite.checkpoints.name_tables.bert import HEADS, OPTIONAL, NameTable, same, within

#: The names of the transformer layers of all encoders of KerasHub.
KERAS_HUB_BLOCKS = within(
    "transformer_layer_{i}/",
    "layers/transformer_encoder_{i}/",
    (
        ("self_attention/query/kernel", "_self_attention_layer/query_dense/vars/0", same),
        ("self_attention/query/bias", "_self_attention_layer/query_dense/vars/1", same),
        ("self_attention/key/kernel", "_self_attention_layer/key_dense/vars/0", same),
        ("self_attention/key/bias", "_self_attention_layer/key_dense/vars/1", same),
        ("self_attention/value/kernel", "_self_attention_layer/value_dense/vars/0", same),
        ("self_attention/value/bias", "_self_attention_layer/value_dense/vars/1", same),
        (
            "self_attention/output_projection/kernel",
            "_self_attention_layer/output_dense/vars/0",
            same,
        ),
        (
            "self_attention/output_projection/bias",
            "_self_attention_layer/output_dense/vars/1",
            same,
        ),
        ("self_attention_norm/gamma", "_self_attention_layer_norm/vars/0", same),
        ("self_attention_norm/beta", "_self_attention_layer_norm/vars/1", same),
        ("intermediate/kernel", "_feedforward_intermediate_dense/vars/0", same),
        ("intermediate/bias", "_feedforward_intermediate_dense/vars/1", same),
        ("feedforward_output/kernel", "_feedforward_output_dense/vars/0", same),
        ("feedforward_output/bias", "_feedforward_output_dense/vars/1", same),
        ("feedforward_norm/gamma", "_feedforward_layer_norm/vars/0", same),
        ("feedforward_norm/beta", "_feedforward_layer_norm/vars/1", same),
    ),
)

#: The aliases of these names.
KERAS_HUB_ALIASES = (
    (r"^layers/transformer_encoder/", "layers/transformer_encoder_0/"),
    (r"/_(query|key|value|output)_dense/", r"/\1_dense/"),  # in older versions of Keras
)

#: The tensors in KerasHub's h5 files, by the names of their groups. Layers of one class are
#: numbered, except for the first.
KERAS_HUB = NameTable(
    rows=(
        *within(
            "embeddings/",
            "layers/",
            (
                ("token_embedding/embeddings", "reversible_embedding/vars/0", same),
                ("position_embedding/embeddings", "position_embedding/vars/0", same),
                ("segment_embedding/embeddings", "embedding/vars/0", same),
                ("layer_norm/gamma", "layer_normalization/vars/0", same),
                ("layer_norm/beta", "layer_normalization/vars/1", same),
            ),
        ),
        *KERAS_HUB_BLOCKS,
        ("pooler/kernel", "layers/dense/vars/0", same),
        ("pooler/bias", "layers/dense/vars/1", same),
        # The weights of a task are in another file.
        ("classifier/kernel", "BertTextClassifier/layers/dense/vars/0", same),
        ("classifier/bias", "BertTextClassifier/layers/dense/vars/1", same),
    ),
    aliases=KERAS_HUB_ALIASES,
    ignored=(r"([^/]+/)?optimizer/.*", r".*/seed_generator.*"),
    optional=tuple(pattern for pattern in OPTIONAL if pattern != r"pooler/.*"),
    heads=HEADS,
)

#: The names in KerasHub's RoBERTa, and of the two layers of its RobertaTextClassifier.
KERAS_HUB_ROBERTA = replace(
    KERAS_HUB,
    rows=(
        *within(
            "embeddings/",
            "layers/",
            (
                (
                    "token_embedding/embeddings",
                    "token_and_position_embedding/token_embedding/vars/0",
                    same,
                ),
                (
                    "position_embedding/embeddings",
                    "token_and_position_embedding/position_embedding/vars/0",
                    same,
                ),
                ("segment_embedding/embeddings", "segment_embedding/vars/0", same),
                ("layer_norm/gamma", "layer_normalization/vars/0", same),
                ("layer_norm/beta", "layer_normalization/vars/1", same),
            ),
        ),
        *KERAS_HUB_BLOCKS,
        ("pooler/kernel", "RobertaTextClassifier/layers/dense/vars/0", same),
        ("pooler/bias", "RobertaTextClassifier/layers/dense/vars/1", same),
        ("classifier/kernel", "RobertaTextClassifier/layers/dense_1/vars/0", same),
        ("classifier/bias", "RobertaTextClassifier/layers/dense_1/vars/1", same),
    ),
    optional=OPTIONAL,
)

#: KerasHub's XLM-RoBERTa has the names of its RoBERTa, but for the class of the classifier.
KERAS_HUB_XLM_ROBERTA = replace(
    KERAS_HUB_ROBERTA,
    rows=tuple(
        (ours, theirs.replace("RobertaTextClassifier", "XLMRobertaTextClassifier"), transform)
        for ours, theirs, transform in KERAS_HUB_ROBERTA.rows
    ),
)
