"""Longformer."""

from keras_bert_suite.checkpoints.model_types.config_fields import BERT_FIELDS, Field
from keras_bert_suite.checkpoints.model_types.model_type import ModelType
from keras_bert_suite.checkpoints.model_types.name_table import hugging_face_names
from keras_bert_suite.checkpoints.model_types.roberta import HEADS, ROBERTA
from keras_bert_suite.checkpoints.tokenizer_files.byte_pair import read_hugging_face_byte_pairs
from keras_bert_suite.files.messages import shorten


def read_longformer(config):
    """dict of the windows of the layers. A file has an int for all or a list of an int for each."""
    number = config.read("size", "num_hidden_layers")
    windows = config.get("attention_window", 512)
    each = [windows] * number if type(windows) is int else windows
    is_list = isinstance(each, list) and len(each) == number
    if not is_list or not all(window > 0 and window % 2 == 0 for window in each):
        raise ValueError(
            f"'attention_window' in {config.path} must be an even number, or a list of {number} of "
            f"them, one for each layer, got {shorten(repr(windows))}."
        )
    return {"attention_window": each}


LONGFORMER = ModelType(
    name="longformer",
    title="Longformer",
    backbone="LongformerBackbone",
    tokenizer="BytePairTokenizer",
    read_tokenizer=read_hugging_face_byte_pairs,
    names=hugging_face_names(
        "longformer",
        HEADS,
        *(
            (
                f"transformer_layer_{{i}}/self_attention/global_{name}",
                f"encoder.layer.{{i}}.attention.self.{name}_global",
            )
            for name in ("query", "key", "value")
        ),
        decoder="lm_head.decoder",
    ),
    two_layer_classifier="classifier",
    classes="Longformer",
    position_offset=2,
    fields=(*BERT_FIELDS, Field("separator_id", "sep_token_id", "size", 2)),
    # The tokenizer makes no segments.
    built_in={"takes_segments": False},
    dials=ROBERTA.dials,
    read_more=read_longformer,
    write_more=lambda backbone: {"attention_window": list(backbone.attention_window)},
)
