"""The kinds of model that Google released as TensorFlow 1 checkpoints."""

from collections.abc import Callable
from dataclasses import dataclass

from keras_bert_suite.checkpoints.head_types.records import HEADS_BY_LAYER
from keras_bert_suite.checkpoints.model_types.albert import ALBERT
from keras_bert_suite.checkpoints.model_types.albert import FIELDS as ALBERT_FIELDS
from keras_bert_suite.checkpoints.model_types.bert import BERT
from keras_bert_suite.checkpoints.model_types.config_fields import GOOGLE_FIELDS, Field
from keras_bert_suite.checkpoints.model_types.model_type import ModelType
from keras_bert_suite.checkpoints.model_types.name_table import (
    NameTable,
    Spelling,
    same,
    transposed,
)
from keras_bert_suite.checkpoints.tokenizer_files.sentence_piece import read_google_albert
from keras_bert_suite.checkpoints.tokenizer_files.word_piece import read_google_tokenizer

#: Our field beside `hidden_act` "gelu". False means the exact function. The other readers of the
#: format, bert4keras and the converter of transformers, take "gelu" for the exact function, and
#: ignore unknown fields.
GELU_APPROXIMATE = "gelu_approximate"


@dataclass(frozen=True)
class GoogleModel:
    """A kind of model in Google's format.

    Args:
        config: str, the prefix of the name of the configuration file.
        checkpoint: str, the prefix of the files of the weights, as Google called it.
        dials: as `config_fields.DIALS`.
        read_tokenizer: function from a directory to (class of the tokenizer, its arguments).
        gelu: str, the function that its code calls "gelu".
        open_tensors: function from the tensors of a file to tensors of which each is one of ours.
        read_more: function from `ConfigValues` to further arguments of the backbone, for fields
            that are no plain values.
    """

    kind: ModelType
    config: str
    checkpoint: str
    fields: tuple
    names: NameTable
    dials: tuple
    read_tokenizer: Callable
    gelu: str = "gelu_tanh"
    open_tensors: Callable = lambda tensors: tensors
    read_more: Callable = lambda config: {}


GOOGLE = Spelling("/kernel", "/bias", "/gamma", "/beta", "")

#: The rows that both models have. Google's scripts make the variables of heads without a layer.
_ROWS = (
    *GOOGLE.rows(
        ("embeddings/token_embedding", "bert/embeddings/word_embeddings"),
        ("embeddings/position_embedding", "bert/embeddings/position_embeddings"),
        ("embeddings/segment_embedding", "bert/embeddings/token_type_embeddings"),
        ("embeddings/layer_norm", "bert/embeddings/LayerNorm"),
        # bert4keras' BERTs have it if embeddings and hidden states differ in width.
        ("embeddings/projection", "bert/encoder/embedding_hidden_mapping_in"),
        ("pooler", "bert/pooler/dense"),
        ("masked_lm/transform", "cls/predictions/transform/dense"),
        ("masked_lm/layer_norm", "cls/predictions/transform/LayerNorm"),
    ),
    ("masked_lm/bias", "cls/predictions/output_bias", same),
    *(
        row
        for layer, head in HEADS_BY_LAYER.items()
        if head.google_tf1 is not None
        for row in (
            (f"{layer}/kernel", f"{head.google_tf1}output_weights", transposed),
            (f"{layer}/bias", f"{head.google_tf1}output_bias", same),
        )
    ),
)

#: The names of variables that only a training needs.
OPTIMIZER_STATES = (
    r"(.*/)?((adam|lamb)_[mv]|(Adam|LAMB)(_1)?)",
    r"global_step|beta[12]_power|loss_scale|good_steps",
)

#: The layers of a transformer layer of BERT, in the order of `name_table.BLOCK`.
BLOCK = (
    "attention/self/query",
    "attention/self/key",
    "attention/self/value",
    "attention/output/dense",
    "attention/output/LayerNorm",
    "intermediate/dense",
    "output/dense",
    "output/LayerNorm",
)

GOOGLE_TF1 = NameTable(
    rows=(*_ROWS, *GOOGLE.block("bert/encoder/layer_{i}/", BLOCK)),
    ignored=OPTIMIZER_STATES,
)

GOOGLE_TF1_ALBERT = NameTable(
    rows=(
        # Its code for questions has another head than BERT's.
        *(row for row in _ROWS if not row[0].startswith("span_labeler/")),
        *GOOGLE.block(
            "bert/encoder/transformer/group_{i}/inner_group_{j}/",
            (
                "attention_1/self/query",
                "attention_1/self/key",
                "attention_1/self/value",
                "attention_1/output/dense",
                "LayerNorm",
                "ffn_1/intermediate/dense",
                "ffn_1/intermediate/output/dense",
                "LayerNorm_1",
            ),
            ours="transformer_layer_{i}_{j}/",
        ),
    ),
    # The modules of TensorFlow Hub put a prefix before all names.
    aliases=(("^module/", ""),),
    ignored=OPTIMIZER_STATES,
)

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
        fields=(*GOOGLE_FIELDS, *ALBERT_FIELDS),
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
