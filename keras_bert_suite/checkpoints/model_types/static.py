"""Static vectors, as sentence-transformers has them."""

from keras_bert_suite.checkpoints.model_types.model_type import ModelType
from keras_bert_suite.checkpoints.model_types.name_table import NameTable, same

#: `MODEL_TYPES` has the kinds of transformers, which has no static vectors.
STATIC = ModelType(
    name="static",
    title="StaticEmbedding",
    backbone="StaticBackbone",
    names=NameTable(rows=(("token_embedding/embeddings", "embedding.weight", same),)),
    classes="Static",
    fields=(),
)
