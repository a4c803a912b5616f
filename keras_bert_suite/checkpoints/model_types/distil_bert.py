"""DistilBERT."""

from keras_bert_suite.checkpoints.model_types.config_fields import Field
from keras_bert_suite.checkpoints.model_types.model_type import ModelType
from keras_bert_suite.checkpoints.model_types.name_table import (
    PYTORCH,
    NameTable,
    decoder_copies,
    hugging_face_heads,
    masked_lm_head,
)

#: Its encoder has no pooler. The first layer of the heads for texts and for choices is our pooler.
NAMES = NameTable(
    rows=(
        *PYTORCH.rows(
            ("embeddings/token_embedding", "distilbert.embeddings.word_embeddings"),
            ("embeddings/position_embedding", "distilbert.embeddings.position_embeddings"),
            ("embeddings/layer_norm", "distilbert.embeddings.LayerNorm"),
            ("pooler", "pre_classifier"),
        ),
        *PYTORCH.block(
            "distilbert.transformer.layer.{i}.",
            (
                "attention.q_lin",
                "attention.k_lin",
                "attention.v_lin",
                "attention.out_lin",
                "sa_layer_norm",
                "ffn.lin1",
                "ffn.lin2",
                "output_layer_norm",
            ),
        ),
        *masked_lm_head("vocab_transform", "vocab_layer_norm", "vocab_projector.bias"),
        *hugging_face_heads(),
    ),
    aliases=((r"^(embeddings|transformer)\.", r"distilbert.\1."),),
    ignored=(r"distilbert\.embeddings\.position_ids",),
    copies=decoder_copies(
        "vocab_projector", "vocab_projector.bias", "distilbert.embeddings.word_embeddings"
    ),
)

DISTIL_BERT = ModelType(
    name="distilbert",
    title="DistilBERT",
    backbone="DistilBertBackbone",
    names=NAMES,
    classes="DistilBert",
    fields=(
        Field("vocabulary_size", "vocab_size", "size"),
        Field("num_layers", "n_layers", "size"),
        Field("num_heads", "n_heads", "size"),
        Field("hidden_dim", "dim", "size"),
        Field("intermediate_dim", "hidden_dim", "size"),
        Field("activation", "activation", "activation"),
        Field("dropout", "dropout", "rate"),
        Field("attention_dropout", "attention_dropout", "rate"),
        Field("max_sequence_length", "max_position_embeddings", "positions"),
        Field("initializer_range", "initializer_range", "positive", 0.02),
    ),
    built_in={"layer_norm_epsilon": 1e-12, "num_segments": 0},
    head_dropouts={
        "classifier": ("seq_classif_dropout", 0.2),
        "choice_scorer": ("seq_classif_dropout", 0.2),
        # The head on tokens has the dropout of the encoder. transformers keeps its field unread.
    },
)
