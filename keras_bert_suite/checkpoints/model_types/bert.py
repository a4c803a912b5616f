"""BERT, and StructBERT, which is a BERT with other pretraining."""

from dataclasses import replace

from keras_bert_suite.checkpoints.model_types.model_type import ModelType
from keras_bert_suite.checkpoints.model_types.name_table import (
    PYTORCH,
    hugging_face_heads,
    hugging_face_names,
    masked_lm_head,
)

MASKED_LM = masked_lm_head(
    "cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm", "cls.predictions.bias"
)

#: The heads of BERT, ERNIE and NEZHA.
HEADS = (
    *MASKED_LM,
    *PYTORCH.rows(("next_sentence", "cls.seq_relationship")),
    *hugging_face_heads(),
)

BERT = ModelType(
    name="bert",
    title="BERT",
    backbone="BertBackbone",
    names=hugging_face_names("bert", HEADS),
    classes="Bert",
    causal_class="LMHeadModel",
)

#: The name is ModelScope's.
STRUCT_BERT = replace(BERT, name="structbert", title="StructBERT")
