"""The kinds of model that checkpoints may hold.

For a new kind, add a file to this folder with its name table, its fields and its `ModelType`, add
that to `MODEL_TYPES`, and a class to `models`.
"""

from keras_bert_suite.argument_checks import with_article
from keras_bert_suite.checkpoints.model_types.albert import ALBERT
from keras_bert_suite.checkpoints.model_types.bart import BART, MBART
from keras_bert_suite.checkpoints.model_types.bert import BERT, STRUCT_BERT
from keras_bert_suite.checkpoints.model_types.distil_bert import DISTIL_BERT
from keras_bert_suite.checkpoints.model_types.electra import ELECTRA
from keras_bert_suite.checkpoints.model_types.elmo import ELMO
from keras_bert_suite.checkpoints.model_types.encoder_decoder import (
    ENCODER_DECODER,
    SHARED_ENCODER_DECODER,
)
from keras_bert_suite.checkpoints.model_types.ernie import ERNIE
from keras_bert_suite.checkpoints.model_types.longformer import LONGFORMER
from keras_bert_suite.checkpoints.model_types.modern_bert import MODERN_BERT
from keras_bert_suite.checkpoints.model_types.nezha import NEZHA
from keras_bert_suite.checkpoints.model_types.roberta import ROBERTA, XLM_ROBERTA
from keras_bert_suite.checkpoints.model_types.roformer import ROFORMER
from keras_bert_suite.checkpoints.model_types.static import STATIC
from keras_bert_suite.checkpoints.model_types.xlnet import XLNET
from keras_bert_suite.files.messages import shorten

MODEL_TYPES = {
    kind.name: kind
    for kind in (
        *(BERT, ROBERTA, XLM_ROBERTA, DISTIL_BERT, ELECTRA, ERNIE, STRUCT_BERT),
        *(ALBERT, ROFORMER, NEZHA, MODERN_BERT, LONGFORMER, XLNET, ENCODER_DECODER, BART, MBART),
    )
}

#: Also the kinds that Hugging Face does not have.
ALL_TYPES = {**MODEL_TYPES, ELMO.name: ELMO, STATIC.name: STATIC}


def type_of_backbone(cls):
    """The first of `ALL_TYPES` of a class of backbone or of its nearest base class, or None."""
    names = [base.__name__ for base in cls.__mro__]
    kinds = [kind for kind in ALL_TYPES.values() if kind.backbone in names]
    return min(kinds, key=lambda kind: names.index(kind.backbone), default=None)


def type_of_model(model, tokenizer):
    """The `ModelType` that a model is written as.

    Two kinds may have the same class of backbone. Then the backbone decides, or else the tokenizer:
    the written one, or None for the task's.
    """
    backbone = getattr(model, "backbone", model)
    kind = type_of_backbone(type(backbone)) or BERT
    tokenizer = tokenizer or getattr(getattr(model, "preprocessor", None), "tokenizer", None)
    kinds = [k for k in ALL_TYPES.values() if k.backbone == kind.backbone and k.fits(backbone)]
    return next((k for k in kinds if k.tokenizer == type(tokenizer).__name__), kinds[0])


def check_backbone(checkpoint, cls):
    """Raises a ValueError that names the class if a checkpoint needs another class of backbone."""
    kind, own = checkpoint.model_type, type_of_backbone(cls)
    if own is None or own.backbone != kind.backbone:
        raise ValueError(
            f"{checkpoint.path} holds weights of {kind.title}, which {with_article(cls)} cannot "
            f"take. Use {kind.backbone}.from_preset."
        )


def find_type(config):
    """The `ModelType` that a config.json names. It is BERT if config.json has no `model_type`."""
    name = config.get("model_type")
    if name is None:
        return BERT
    if not isinstance(name, str) or name not in MODEL_TYPES:
        raise ValueError(
            f"{config.path} has model_type {shorten(repr(name))}, wanted "
            f"{', '.join(map(repr, MODEL_TYPES))}. Does your model have the layers and the "
            'tokenizer of a BERT, for example? Then set "model_type": "bert" in this file.'
        )
    if name == ENCODER_DECODER.name and config.get("tie_encoder_decoder"):
        return SHARED_ENCODER_DECODER
    return MODEL_TYPES[name]
