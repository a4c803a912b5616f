"""RoBERTa, and XLM-RoBERTa, which is a RoBERTa with another tokenizer."""

from dataclasses import replace

from keras_bert_suite.checkpoints.model_types.model_type import ModelType
from keras_bert_suite.checkpoints.model_types.name_table import (
    hugging_face_heads,
    hugging_face_names,
    masked_lm_head,
)
from keras_bert_suite.checkpoints.tokenizer_files.byte_pair import read_hugging_face_byte_pairs
from keras_bert_suite.checkpoints.tokenizer_files.sentence_piece import read_hugging_face_fairseq

#: The heads of RoBERTa and Longformer, without that for texts.
HEADS = (
    *masked_lm_head("lm_head.dense", "lm_head.layer_norm", "lm_head.bias"),
    *hugging_face_heads(classifier=None),
)

ROBERTA = ModelType(
    name="roberta",
    title="RoBERTa",
    backbone="RobertaBackbone",
    tokenizer="BytePairTokenizer",
    read_tokenizer=read_hugging_face_byte_pairs,
    names=hugging_face_names("roberta", HEADS, decoder="lm_head.decoder"),
    two_layer_classifier="classifier",
    classes="Roberta",
    causal_class="ForCausalLM",
    position_offset=2,
    # Padding has the position before the position of the first token.
    dials=(("pad_token_id", (1,)),),
)

XLM_ROBERTA = replace(
    ROBERTA,
    name="xlm-roberta",
    title="XLM-RoBERTa",
    tokenizer="XLMRobertaTokenizer",
    read_tokenizer=read_hugging_face_fairseq,
    classes="XLMRoberta",
)
