"""ERNIE."""

from keras_bert_suite.checkpoints.model_types.bert import HEADS
from keras_bert_suite.checkpoints.model_types.config_fields import BERT_FIELDS, Field
from keras_bert_suite.checkpoints.model_types.model_type import ModelType
from keras_bert_suite.checkpoints.model_types.name_table import hugging_face_names

ERNIE = ModelType(
    name="ernie",
    title="ERNIE",
    backbone="ErnieBackbone",
    names=hugging_face_names(
        "ernie", HEADS, ("embeddings/task_type_embedding", "embeddings.task_type_embeddings")
    ),
    classes="Ernie",
    causal_class="ForCausalLM",
    fields=(
        *BERT_FIELDS,
        Field("num_task_types", "task_type_vocab_size", "size", 3, switch="use_task_id"),
    ),
    # transformers takes the task as an input, which is 0 by default.
    built_in={"task_id": 0},
)
