"""ALBERT."""

from keras_bert_suite.checkpoints.model_types.config_fields import BERT_FIELDS, Field
from keras_bert_suite.checkpoints.model_types.model_type import ModelType
from keras_bert_suite.checkpoints.model_types.name_table import (
    PYTORCH,
    hugging_face_heads,
    hugging_face_names,
    masked_lm_head,
)
from keras_bert_suite.checkpoints.tokenizer_files.sentence_piece import read_hugging_face_albert
from keras_bert_suite.checkpoints.tokenizer_files.word_piece import read_hugging_face_tokenizer

ROWS = (
    *PYTORCH.block(
        "albert.encoder.albert_layer_groups.{i}.albert_layers.{j}.",
        (
            "attention.query",
            "attention.key",
            "attention.value",
            "attention.dense",
            "attention.LayerNorm",
            "ffn",
            "ffn_output",
            "full_layer_layer_norm",
        ),
        ours="transformer_layer_{i}_{j}/",
    ),
    *masked_lm_head("predictions.dense", "predictions.LayerNorm", "predictions.bias"),
    *PYTORCH.rows(
        ("pooler", "albert.pooler"),
        # The head that says whether two segments were exchanged.
        ("next_sentence", "sop_classifier.classifier"),
    ),
    *hugging_face_heads(),
)

#: The fields in which a config.json and an albert_config.json differ from BERT's.
FIELDS = (
    Field("embedding_dim", "embedding_size", "size", 128),
    Field("num_groups", "num_hidden_groups", "size", 1),
    Field("num_inner_repetitions", "inner_group_num", "size", 1),
)

ALBERT = ModelType(
    name="albert",
    title="ALBERT",
    backbone="AlbertBackbone",
    tokenizer="AlbertTokenizer",
    read_tokenizer=read_hugging_face_albert,
    # The Chinese models have BERT's tokenizer.
    file_tokenizers=(("vocab.txt", "WordPieceTokenizer", read_hugging_face_tokenizer),),
    names=hugging_face_names(
        "albert",
        ROWS,
        ("embeddings/projection", "encoder.embedding_hidden_mapping_in"),
        decoder="predictions.decoder",
        without=("transformer_layer", "pooler/"),
    ),
    classes="Albert",
    fields=(*BERT_FIELDS, *FIELDS),
    head_dropout=("classifier_dropout_prob", 0.1),
)
