"""ELECTRA."""

from keras_bert_suite.checkpoints.model_types.config_fields import BERT_FIELDS, Field
from keras_bert_suite.checkpoints.model_types.model_type import ModelType
from keras_bert_suite.checkpoints.model_types.name_table import (
    PYTORCH,
    hugging_face_heads,
    hugging_face_names,
    masked_lm_head,
)

#: The generator and the discriminator have different heads. The encoder has no pooler: our pooler
#: is the summary of ElectraForMultipleChoice.
HEADS = (
    *masked_lm_head(
        "generator_predictions.dense", "generator_predictions.LayerNorm", "generator_lm_head.bias"
    ),
    *PYTORCH.rows(
        ("pooler", "sequence_summary.summary"),
        ("replaced_tokens/transform", "discriminator_predictions.dense"),
        ("replaced_tokens/scorer", "discriminator_predictions.dense_prediction"),
    ),
    *hugging_face_heads(classifier=None),
)

ELECTRA = ModelType(
    name="electra",
    title="ELECTRA",
    backbone="ElectraBackbone",
    names=hugging_face_names(
        "electra",
        HEADS,
        ("embeddings/projection", "embeddings_project"),
        decoder="generator_lm_head",
        without=("pooler/",),
    ),
    two_layer_classifier="classifier",
    classes="Electra",
    causal_class="ForCausalLM",
    fields=(*BERT_FIELDS, Field("embedding_dim", "embedding_size", "size", 128)),
    head_dropouts={"choice_scorer": ("summary_last_dropout", 0.1)},
    # The layer before the head for choices.
    dials=(
        ("summary_type", ("first",)),
        ("summary_use_proj", (True,)),
        ("summary_activation", ("gelu",)),
    ),
)
