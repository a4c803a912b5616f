"""The kinds of model that Google released as TensorFlow 1 checkpoints."""

from collections.abc import Callable
from dataclasses import dataclass

from keras_bert_suite.checkpoints.model_types.config_fields import GOOGLE_FIELDS, Field
from keras_bert_suite.checkpoints.model_types.model_type import ModelType
from keras_bert_suite.checkpoints.model_types.table import ALBERT, BERT
from keras_bert_suite.checkpoints.name_tables.albert import GOOGLE_TF1_ALBERT
from keras_bert_suite.checkpoints.name_tables.bert import GOOGLE_TF1, NameTable
from keras_bert_suite.checkpoints.tokenizer_files.sentence_piece import read_google_albert
from keras_bert_suite.checkpoints.tokenizer_files.word_piece import read_google_tokenizer

#: A field of ours beside `hidden_act` "gelu". False means the exact function. The other readers of
#: the format, bert4keras and the converter of transformers, take "gelu" for the exact function, and
#: ignore unknown fields.
GELU_APPROXIMATE = "gelu_approximate"


@dataclass(frozen=True)
class GoogleModel:
    """A kind of model in Google's format.

    Args:
        kind: `ModelType`.
        config: str, what the name of the file of the configuration begins with.
        checkpoint: str, the prefix of the files of the weights, as Google called it.
        fields: tuple of `Field`.
        names: `NameTable`.
        dials: as `hugging_face.config.DIALS`.
        read_tokenizer: function from a directory to (class of the tokenizer, its arguments).
    """

    kind: ModelType
    config: str
    checkpoint: str
    fields: tuple
    names: NameTable
    dials: tuple
    read_tokenizer: Callable


#: The models by the names of the classes of our backbones.
GOOGLE_MODELS = {
    "BertBackbone": GoogleModel(
        kind=BERT,
        config="bert_config",
        checkpoint="bert_model.ckpt",
        # In bert4keras, embeddings and hidden states may differ in width.
        fields=(*GOOGLE_FIELDS, Field("embedding_dim", "embedding_size", "width")),
        names=GOOGLE_TF1,
        # Dials of the BERTs of brightmart, which are no BERT.
        dials=(
            ("num_hidden_groups", ()),
            ("inner_group_num", ()),
            ("ln_type", ("postln",)),
            (GELU_APPROXIMATE, (False, True)),
        ),
        read_tokenizer=lambda directory: ("WordPieceTokenizer", read_google_tokenizer(directory)),
    ),
    "AlbertBackbone": GoogleModel(
        kind=ALBERT,
        config="albert_config",
        checkpoint="model.ckpt-best",
        fields=(
            *GOOGLE_FIELDS,
            Field("embedding_dim", "embedding_size", "size", 128),
            Field("num_groups", "num_hidden_groups", "size", 1),
            Field("num_inner_repetitions", "inner_group_num", "size", 1),
        ),
        names=GOOGLE_TF1_ALBERT,
        dials=(
            ("net_structure_type", (0,)),
            ("gap_size", (0,)),
            ("num_memory_blocks", (0,)),
            ("down_scale_factor", (1,)),
            (GELU_APPROXIMATE, (False, True)),
        ),
        read_tokenizer=read_google_albert,
    ),
}
