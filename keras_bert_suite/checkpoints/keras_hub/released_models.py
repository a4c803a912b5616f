"""The kinds of model that KerasHub computes in the same way."""

from dataclasses import dataclass

from keras_bert_suite.checkpoints.model_types.albert import ALBERT
from keras_bert_suite.checkpoints.model_types.bert import BERT
from keras_bert_suite.checkpoints.model_types.distil_bert import DISTIL_BERT
from keras_bert_suite.checkpoints.model_types.model_type import ModelType
from keras_bert_suite.checkpoints.model_types.name_table import NameTable, Spelling
from keras_bert_suite.checkpoints.model_types.roberta import ROBERTA, XLM_ROBERTA


@dataclass(frozen=True)
class KerasHubModel:
    """KerasHub's model of a kind.

    Args:
        family: str, the prefix of KerasHub's classes of this kind.
        tokenizer: str, our class that splits text as KerasHub's tokenizer does.
        built_in: dict of arguments of our backbone that are constants in KerasHub, and are not in
            its configuration.
        sizes: tuple of str, the sizes in its configuration that are arguments of our backbone.
    """

    kind: ModelType
    family: str
    names: NameTable
    tokenizer: str
    built_in: dict
    sizes: tuple

    @property
    def backbone(self):
        """str, the class of the encoder."""
        return f"{self.family}Backbone"

    @property
    def classifier(self):
        """str, the class that classifies texts."""
        return f"{self.family}TextClassifier"


KERAS = Spelling("/vars/0", "/vars/1", "/vars/0", "/vars/1", "/vars/0")


def _names(*layers, ours="transformer_layer_{i}/"):
    """The tensors in KerasHub's h5 files, by their paths there.

    Layers of one class are numbered, except for the first. The weights of a task are in another
    file, whose names begin with the class of the task. `layers` are the others beside the
    transformer layers, as for `Spelling.rows`.
    """
    block = (
        "_self_attention_layer/query_dense",
        "_self_attention_layer/key_dense",
        "_self_attention_layer/value_dense",
        "_self_attention_layer/output_dense",
        "_self_attention_layer_norm",
        "_feedforward_intermediate_dense",
        "_feedforward_output_dense",
        "_feedforward_layer_norm",
    )
    return NameTable(
        rows=(*KERAS.rows(*layers), *KERAS.block("layers/transformer_encoder_{i}/", block, ours)),
        aliases=(
            (r"^layers/transformer_encoder/", "layers/transformer_encoder_0/"),
            (r"/_(query|key|value|output)_dense/", r"/\1_dense/"),  # in older versions of Keras
        ),
        ignored=(r"([^/]+/)?optimizer/.*", r".*/seed_generator.*"),
    )


_EMBEDDINGS = (
    ("embeddings/token_embedding", "layers/reversible_embedding"),
    ("embeddings/position_embedding", "layers/position_embedding"),
    ("embeddings/segment_embedding", "layers/embedding"),
    ("embeddings/layer_norm", "layers/layer_normalization"),
)

#: The embeddings of encoders that have tokens and positions in one layer.
_JOINT_EMBEDDINGS = (
    ("embeddings/token_embedding", "layers/token_and_position_embedding/token_embedding"),
    ("embeddings/position_embedding", "layers/token_and_position_embedding/position_embedding"),
    ("embeddings/layer_norm", "layers/layer_normalization"),
)

_SIZES = (
    *("vocabulary_size", "num_layers", "num_heads", "hidden_dim", "intermediate_dim"),
    "max_sequence_length",
)
_BERT_BUILT_IN = {
    "activation": "gelu_tanh",
    "layer_norm_epsilon": 1e-12,
    "initializer_range": 0.02,
}
_ROBERTA_BUILT_IN = {
    # keras.activations.gelu, which is exact by default.
    "activation": "gelu_erf",
    "layer_norm_epsilon": 1e-5,
    "initializer_range": 0.02,
    "num_segments": 1,
}


def _two_layers(family):
    """The head for texts of a family whose encoder has no pooler."""
    return (
        ("pooler", f"{family}TextClassifier/layers/dense"),
        ("classifier", f"{family}TextClassifier/layers/dense_1"),
    )


def _roberta(kind, family):
    segments = ("embeddings/segment_embedding", "layers/segment_embedding")
    return KerasHubModel(
        kind,
        family,
        names=_names(*_JOINT_EMBEDDINGS, segments, *_two_layers(family)),
        tokenizer=kind.tokenizer,
        built_in=_ROBERTA_BUILT_IN,
        sizes=_SIZES,
    )


_MODELS = (
    KerasHubModel(
        BERT,
        "Bert",
        names=_names(
            *_EMBEDDINGS,
            ("pooler", "layers/dense"),
            ("classifier", "BertTextClassifier/layers/dense"),
        ),
        tokenizer="WordPieceTokenizer",
        built_in=_BERT_BUILT_IN,
        sizes=(*_SIZES, "num_segments"),
    ),
    _roberta(ROBERTA, "Roberta"),
    _roberta(XLM_ROBERTA, "XLMRoberta"),
    KerasHubModel(
        DISTIL_BERT,
        "DistilBert",
        names=_names(*_JOINT_EMBEDDINGS, *_two_layers("DistilBert")),
        tokenizer="WordPieceTokenizer",
        built_in={**_ROBERTA_BUILT_IN, "layer_norm_epsilon": 1e-12, "num_segments": 0},
        sizes=_SIZES,
    ),
    KerasHubModel(
        ALBERT,
        "Albert",
        # For groups of one layer. It numbers the layers of all groups.
        names=_names(
            *_EMBEDDINGS,
            ("embeddings/projection", "layers/dense"),
            ("pooler", "layers/dense_1"),
            ("classifier", "AlbertTextClassifier/layers/dense"),
            ours="transformer_layer_{i}_0/",
        ),
        # It has none of ALBERT's rules for text.
        tokenizer="SentencePieceTokenizer",
        built_in=_BERT_BUILT_IN,
        sizes=(*_SIZES, "num_segments", "embedding_dim", "num_groups", "num_inner_repetitions"),
    ),
)

#: The models by the `model_type` of Hugging Face.
KERAS_HUB_MODELS = {model.kind.name: model for model in _MODELS}
