"""NEZHA."""

from keras_bert_suite.checkpoints.model_types.bert import HEADS
from keras_bert_suite.checkpoints.model_types.config_fields import BERT_FIELDS, Field
from keras_bert_suite.checkpoints.model_types.model_type import ModelType
from keras_bert_suite.checkpoints.model_types.name_table import hugging_face_names

NEZHA = ModelType(
    name="nezha",
    title="NEZHA",
    backbone="NezhaBackbone",
    names=hugging_face_names(
        "nezha",
        HEADS,
        without=("embeddings/position_embedding",),
        # The sinusoids of distances, which old files keep.
        ignored=(r"nezha\..*\.relative_positions_encoding\.positions_encoding",),
    ),
    classes="Nezha",
    fields=(*BERT_FIELDS, Field("max_relative_position", "max_relative_position", "size", 64)),
    head_dropout=("classifier_dropout", 0.1),
    dials=(("use_relative_position", (True,)),),
)
