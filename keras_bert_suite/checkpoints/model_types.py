"""The kinds of model that checkpoints may hold: one row says all that differs between them.

A new model is a row here, a name table, and a class in `models`.
"""

from collections.abc import Callable
from dataclasses import dataclass

from keras_bert_suite.checkpoints import name_tables
from keras_bert_suite.checkpoints.byte_pair_files import (
    read_hugging_face_byte_pairs,
    refuse_sentence_pieces,
)
from keras_bert_suite.checkpoints.name_tables import NameTable
from keras_bert_suite.checkpoints.tokenizer_files import read_hugging_face_tokenizer
from keras_bert_suite.files.messages import shorten


@dataclass(frozen=True)
class ModelType:
    """A kind of model. Classes are named, for this room knows none of them.

    Args:
        name: str, the `model_type` of Hugging Face.
        title: str, what messages call it.
        backbone: str, the class of the encoder, a key of `models.BACKBONES`.
        tokenizer: str, the class of the tokenizer, a key of `tokenizers.TOKENIZERS`; None if
            this package does not have it.
        read_tokenizer: function from the directory of a Hugging Face checkpoint to the arguments
            of the tokenizer.
        names: `NameTable` of Hugging Face's tensors.
        classifier_names: the `NameTable` of a model that classifies texts.
        architectures: dict of one of our paths -> the class of transformers for models that have
            it. The first one counts; None stands for the encoder alone.
        keras_hub_names: `NameTable` of KerasHub's tensors.
        keras_hub_built_in: dict of arguments of the backbone that KerasHub's configuration does
            not say, for they are built in.
        position_offset: int, rows of the position embedding before that of the first token.
        dials: configuration fields as in `hugging_face_config.DIALS`, of this model alone.
    """

    name: str
    title: str
    backbone: str
    tokenizer: str
    read_tokenizer: Callable
    names: NameTable
    classifier_names: NameTable
    architectures: dict
    keras_hub_names: NameTable
    keras_hub_built_in: dict
    position_offset: int = 0
    dials: tuple = ()

    @property
    def keras_hub_classifier(self):
        """The class of KerasHub that classifies texts."""
        return self.backbone.replace("Backbone", "TextClassifier")

    def find_architecture(self, paths):
        """The class of transformers that has the weights with these paths of ours."""
        return next(name for path, name in self.architectures.items() if path in (None, *paths))


BERT = ModelType(
    name="bert",
    title="BERT",
    backbone="BertBackbone",
    tokenizer="WordPieceTokenizer",
    read_tokenizer=read_hugging_face_tokenizer,
    names=name_tables.HUGGING_FACE,
    classifier_names=name_tables.HUGGING_FACE,
    architectures={
        "classifier/kernel": "BertForSequenceClassification",
        "token_classifier/kernel": "BertForTokenClassification",
        "next_sentence/kernel": "BertForPreTraining",
        "masked_lm/bias": "BertForMaskedLM",
        None: "BertModel",
    },
    keras_hub_names=name_tables.KERAS_HUB,
    keras_hub_built_in={
        "activation": "gelu_tanh",
        "layer_norm_epsilon": 1e-12,
        "initializer_range": 0.02,
    },
)

ROBERTA = ModelType(
    name="roberta",
    title="RoBERTa",
    backbone="RobertaBackbone",
    tokenizer="BytePairTokenizer",
    read_tokenizer=read_hugging_face_byte_pairs,
    names=name_tables.ROBERTA,
    classifier_names=name_tables.ROBERTA_CLASSIFIER,
    architectures={
        "classifier/kernel": "RobertaForSequenceClassification",
        "token_classifier/kernel": "RobertaForTokenClassification",
        "masked_lm/bias": "RobertaForMaskedLM",
        None: "RobertaModel",
    },
    keras_hub_names=name_tables.KERAS_HUB_ROBERTA,
    keras_hub_built_in={
        # keras.activations.gelu, which is exact unless asked otherwise.
        "activation": "gelu_erf",
        "layer_norm_epsilon": 1e-5,
        "initializer_range": 0.02,
        "num_segments": 1,
    },
    position_offset=2,
    # The position before that of the first token.
    dials=(("pad_token_id", (1,)),),
)

#: It computes what RoBERTa does, from the ids of another tokenizer.
XLM_ROBERTA = ModelType(
    **{
        **vars(ROBERTA),
        "name": "xlm-roberta",
        "title": "XLM-RoBERTa",
        "tokenizer": None,
        "read_tokenizer": refuse_sentence_pieces,
    }
)

MODEL_TYPES = {kind.name: kind for kind in (BERT, ROBERTA, XLM_ROBERTA)}


def type_of_backbone(cls):
    """The first `ModelType` of a class of backbone, or of a class it is derived from; or None."""
    names = [base.__name__ for base in cls.__mro__]
    kinds = [kind for kind in MODEL_TYPES.values() if kind.backbone in names]
    return min(kinds, key=lambda kind: names.index(kind.backbone), default=None)


def check_backbone(checkpoint, cls):
    """Checks that a checkpoint is one of a class of backbone.

    Raises:
        ValueError: naming the class it is of.
    """
    kind, own = checkpoint.model_type, type_of_backbone(cls)
    if own is None or own.backbone != kind.backbone:
        raise ValueError(
            f"{checkpoint.path} holds a {kind.title}, not what a {cls.__name__} is built from. Use "
            f"{kind.backbone}.from_preset."
        )


def find_type(config):
    """The `ModelType` that a config.json names, `ConfigValues`; BERT if it names none.

    Raises:
        ValueError: if it names another one.
    """
    name = config.get("model_type")
    if name is None:
        return BERT
    if not isinstance(name, str) or name not in MODEL_TYPES:
        raise ValueError(
            f"{config.path} has model_type {shorten(repr(name))}, wanted "
            f"{', '.join(map(repr, MODEL_TYPES))}. Other architectures cannot be read."
        )
    return MODEL_TYPES[name]
