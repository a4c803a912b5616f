"""The kinds of model that checkpoints may hold.

One row has all differences between the kinds. For a new kind, add a row here, a name table, and a
class in `models`.
"""

from collections.abc import Callable
from dataclasses import dataclass

from keras_bert_suite.checkpoints import name_tables
from keras_bert_suite.checkpoints.byte_pair_files import (
    read_hugging_face_byte_pairs,
    read_modern_bert_tokenizer,
    refuse_sentence_pieces,
)
from keras_bert_suite.checkpoints.config_fields import BERT_FIELDS
from keras_bert_suite.checkpoints.modern_bert_config import (
    MODERN_BERT_DIALS,
    MODERN_BERT_FIELDS,
    read_modern_bert,
    write_modern_bert,
)
from keras_bert_suite.checkpoints.name_tables import NameTable
from keras_bert_suite.checkpoints.name_tables_modern_bert import MODERN_BERT as MODERN_BERT_NAMES
from keras_bert_suite.checkpoints.tokenizer_files import read_hugging_face_tokenizer
from keras_bert_suite.files.messages import shorten


@dataclass(frozen=True)
class ModelType:
    """A kind of model. It has the names of classes, because this package must not import them.

    Args:
        name: str, the `model_type` of Hugging Face.
        title: str, the name of the kind in messages.
        backbone: str, the class of the encoder, a key of `models.BACKBONES`.
        tokenizer: str, the class of the tokenizer, a key of `tokenizers.TOKENIZERS`; None if
            keras_bert_suite does not have this tokenizer.
        read_tokenizer: function from the directory of a Hugging Face checkpoint to the arguments
            of the tokenizer.
        names: `NameTable` of Hugging Face's tensors.
        classifier_names: the `NameTable` of a model that classifies texts.
        architectures: dict of a path of ours -> the class of transformers for models that have a
            weight at this path. The first path that a model has counts. None stands for the
            encoder alone.
        keras_hub_names: `NameTable` of KerasHub's tensors; None if KerasHub has no such model.
        keras_hub_built_in: dict of arguments of the backbone that are constants in KerasHub, and
            are not in its configuration.
        position_offset: int, how many rows the position embedding has before the row of the first
            token.
        fields: tuple of `Field`, the fields of config.json that are arguments of the backbone.
        classifier_dropout: str, the field of config.json for the dropout rate of a classifier.
        read_more: function from `ConfigValues` to further arguments of the backbone, for fields
            that are no plain values.
        write_more: function from a backbone to the fields that `read_more` reads.
        dials: configuration fields as in `hugging_face_config.DIALS`, of this kind alone.
    """

    name: str
    title: str
    backbone: str
    tokenizer: str
    read_tokenizer: Callable
    names: NameTable
    classifier_names: NameTable
    architectures: dict
    keras_hub_names: NameTable | None
    keras_hub_built_in: dict
    position_offset: int = 0
    fields: tuple = BERT_FIELDS
    classifier_dropout: str = "classifier_dropout"
    dials: tuple = ()
    read_more: Callable = lambda config: {}
    write_more: Callable = lambda backbone: {}

    @property
    def keras_hub_classifier(self):
        """str, the class of KerasHub that classifies texts."""
        return self.backbone.replace("Backbone", "TextClassifier")

    def find_architecture(self, paths):
        """The class of transformers for a model that has weights at these paths of ours."""
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
        "span_labeler/kernel": "BertForQuestionAnswering",
        "choice_scorer/kernel": "BertForMultipleChoice",
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
        "span_labeler/kernel": "RobertaForQuestionAnswering",
        "choice_scorer/kernel": "RobertaForMultipleChoice",
        "masked_lm/bias": "RobertaForMaskedLM",
        None: "RobertaModel",
    },
    keras_hub_names=name_tables.KERAS_HUB_ROBERTA,
    keras_hub_built_in={
        # keras.activations.gelu, which is exact by default.
        "activation": "gelu_erf",
        "layer_norm_epsilon": 1e-5,
        "initializer_range": 0.02,
        "num_segments": 1,
    },
    position_offset=2,
    # Padding has the position before the position of the first token.
    dials=(("pad_token_id", (1,)),),
)

#: XLM-RoBERTa is a RoBERTa with another tokenizer.
XLM_ROBERTA = ModelType(
    **{
        **vars(ROBERTA),
        "name": "xlm-roberta",
        "title": "XLM-RoBERTa",
        "tokenizer": None,
        "read_tokenizer": refuse_sentence_pieces,
    }
)

MODERN_BERT = ModelType(
    name="modernbert",
    title="ModernBERT",
    backbone="ModernBertBackbone",
    tokenizer="ModernBertTokenizer",
    read_tokenizer=read_modern_bert_tokenizer,
    names=MODERN_BERT_NAMES,
    classifier_names=MODERN_BERT_NAMES,
    architectures={
        "classifier/kernel": "ModernBertForSequenceClassification",
        "token_classifier/kernel": "ModernBertForTokenClassification",
        "span_labeler/kernel": "ModernBertForQuestionAnswering",
        "choice_scorer/kernel": "ModernBertForMultipleChoice",
        "masked_lm/bias": "ModernBertForMaskedLM",
        None: "ModernBertModel",
    },
    keras_hub_names=None,
    keras_hub_built_in={},
    fields=MODERN_BERT_FIELDS,
    dials=MODERN_BERT_DIALS,
    read_more=read_modern_bert,
    write_more=write_modern_bert,
)

MODEL_TYPES = {kind.name: kind for kind in (BERT, ROBERTA, XLM_ROBERTA, MODERN_BERT)}


def type_of_backbone(cls):
    """The first `ModelType` of a class of backbone or of its nearest base class, or None."""
    names = [base.__name__ for base in cls.__mro__]
    kinds = [kind for kind in MODEL_TYPES.values() if kind.backbone in names]
    return min(kinds, key=lambda kind: names.index(kind.backbone), default=None)


def check_backbone(checkpoint, cls):
    """Checks that a class of backbone can be built from a checkpoint.

    Raises:
        ValueError: if the checkpoint needs another class, naming it.
    """
    kind, own = checkpoint.model_type, type_of_backbone(cls)
    if own is None or own.backbone != kind.backbone:
        raise ValueError(
            f"{checkpoint.path} holds a {kind.title}, from which no {cls.__name__} can be built. "
            f"Use {kind.backbone}.from_preset."
        )


def find_type(config):
    """The `ModelType` that a config.json names. It is BERT if config.json has no `model_type`.

    Args:
        config: `ConfigValues`.

    Raises:
        ValueError: if `model_type` is not one of `MODEL_TYPES`.
    """
    name = config.get("model_type")
    if name is None:
        return BERT
    if not isinstance(name, str) or name not in MODEL_TYPES:
        raise ValueError(
            f"{config.path} has model_type {shorten(repr(name))}, wanted "
            f"{', '.join(map(repr, MODEL_TYPES))}. If layers and tokenizer are those of one of "
            'these, write its name there, such as "model_type": "bert".'
        )
    return MODEL_TYPES[name]
