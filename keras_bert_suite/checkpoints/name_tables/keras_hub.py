"""The names of weights in KerasHub's files of BERT and RoBERTa."""

from dataclasses import replace

from keras_bert_suite.checkpoints.name_tables.bert import OPTIONAL, NameTable, Spelling

KERAS = Spelling("/vars/0", "/vars/1", "/vars/0", "/vars/1", "/vars/0")

#: The names of the transformer layers of all encoders of KerasHub.
KERAS_HUB_BLOCKS = KERAS.block(
    "layers/transformer_encoder_{i}/",
    (
        "_self_attention_layer/query_dense",
        "_self_attention_layer/key_dense",
        "_self_attention_layer/value_dense",
        "_self_attention_layer/output_dense",
        "_self_attention_layer_norm",
        "_feedforward_intermediate_dense",
        "_feedforward_output_dense",
        "_feedforward_layer_norm",
    ),
)

#: The embeddings of its encoders that have tokens and positions in one layer.
KERAS_HUB_POSITIONS = KERAS.rows(
    ("embeddings/token_embedding", "layers/token_and_position_embedding/token_embedding"),
    ("embeddings/position_embedding", "layers/token_and_position_embedding/position_embedding"),
    ("embeddings/segment_embedding", "layers/segment_embedding"),
    ("embeddings/layer_norm", "layers/layer_normalization"),
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
        *KERAS.rows(
            ("embeddings/token_embedding", "layers/reversible_embedding"),
            ("embeddings/position_embedding", "layers/position_embedding"),
            ("embeddings/segment_embedding", "layers/embedding"),
            ("embeddings/layer_norm", "layers/layer_normalization"),
            ("pooler", "layers/dense"),
            # The weights of a task are in another file.
            ("classifier", "BertTextClassifier/layers/dense"),
        ),
        *KERAS_HUB_BLOCKS,
    ),
    aliases=KERAS_HUB_ALIASES,
    ignored=(r"([^/]+/)?optimizer/.*", r".*/seed_generator.*"),
    optional=tuple(pattern for pattern in OPTIONAL if pattern != r"pooler/.*"),
)

#: The names in KerasHub's RoBERTa, and of the two layers of its RobertaTextClassifier.
KERAS_HUB_ROBERTA = replace(
    KERAS_HUB,
    rows=(
        *KERAS_HUB_POSITIONS,
        *KERAS_HUB_BLOCKS,
        *KERAS.rows(
            ("pooler", "RobertaTextClassifier/layers/dense"),
            ("classifier", "RobertaTextClassifier/layers/dense_1"),
        ),
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
