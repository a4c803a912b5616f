"""The kinds of model that checkpoints may hold.

One row has all differences between the kinds. For a new kind, add a row here, a name table, and a
class in `models`.
"""

from dataclasses import replace

from keras_bert_suite.checkpoints.hugging_face.encoder_decoder_config import (
    copy_shared_weights,
    read_encoder_decoder,
    write_encoder_decoder,
)
from keras_bert_suite.checkpoints.hugging_face.longformer_config import (
    LONGFORMER_FIELDS,
    read_longformer,
    write_longformer,
)
from keras_bert_suite.checkpoints.hugging_face.modern_bert_config import (
    MODERN_BERT_DIALS,
    MODERN_BERT_FIELDS,
    read_modern_bert,
    write_modern_bert,
)
from keras_bert_suite.checkpoints.hugging_face.roformer_files import (
    read_roformer_tokenizer,
    scores_pooled_output,
    write_roformer,
)
from keras_bert_suite.checkpoints.model_types.config_fields import (
    ALBERT_FIELDS,
    DISTIL_BERT_FIELDS,
    ELECTRA_FIELDS,
    ERNIE_FIELDS,
    NEZHA_FIELDS,
    ROFORMER_FIELDS,
)
from keras_bert_suite.checkpoints.model_types.model_type import (
    KerasHubModel,
    ModelType,
)
from keras_bert_suite.checkpoints.name_tables import (
    albert,
    bert,
    distil_bert,
    electra,
    encoder_decoder,
    ernie,
    keras_hub,
    longformer,
    modern_bert,
    nezha,
    roformer,
)
from keras_bert_suite.checkpoints.tokenizer_files.byte_pair import (
    read_hugging_face_byte_pairs,
    read_modern_bert_tokenizer,
)
from keras_bert_suite.checkpoints.tokenizer_files.sentence_piece import (
    read_hugging_face_albert,
    read_hugging_face_fairseq,
)
from keras_bert_suite.checkpoints.tokenizer_files.word_piece import read_hugging_face_tokenizer
from keras_bert_suite.files.messages import shorten

#: Constants of KerasHub's models.
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

BERT = ModelType(
    name="bert",
    title="BERT",
    backbone="BertBackbone",
    names=bert.HUGGING_FACE,
    classes="Bert",
    keras_hub=KerasHubModel(
        "BertBackbone",
        keras_hub.KERAS_HUB,
        tokenizer="WordPieceTokenizer",
        built_in=_BERT_BUILT_IN,
    ),
)

ROBERTA = ModelType(
    name="roberta",
    title="RoBERTa",
    backbone="RobertaBackbone",
    tokenizer="BytePairTokenizer",
    read_tokenizer=read_hugging_face_byte_pairs,
    names=bert.ROBERTA,
    classifier_names=bert.ROBERTA_CLASSIFIER,
    classes="Roberta",
    keras_hub=KerasHubModel(
        "RobertaBackbone",
        keras_hub.KERAS_HUB_ROBERTA,
        tokenizer="BytePairTokenizer",
        built_in=_ROBERTA_BUILT_IN,
    ),
    position_offset=2,
    # Padding has the position before the position of the first token.
    dials=(("pad_token_id", (1,)),),
)

#: XLM-RoBERTa is a RoBERTa with another tokenizer.
XLM_ROBERTA = replace(
    ROBERTA,
    name="xlm-roberta",
    title="XLM-RoBERTa",
    tokenizer="XLMRobertaTokenizer",
    read_tokenizer=read_hugging_face_fairseq,
    classes="XLMRoberta",
    keras_hub=KerasHubModel(
        "XLMRobertaBackbone",
        keras_hub.KERAS_HUB_XLM_ROBERTA,
        tokenizer="XLMRobertaTokenizer",
        built_in=_ROBERTA_BUILT_IN,
    ),
)

DISTIL_BERT = ModelType(
    name="distilbert",
    title="DistilBERT",
    backbone="DistilBertBackbone",
    names=distil_bert.DISTIL_BERT,
    classes="DistilBert",
    keras_hub=KerasHubModel(
        "DistilBertBackbone",
        distil_bert.KERAS_HUB_DISTIL_BERT,
        tokenizer="WordPieceTokenizer",
        built_in={**_ROBERTA_BUILT_IN, "layer_norm_epsilon": 1e-12, "num_segments": 0},
    ),
    fields=DISTIL_BERT_FIELDS,
    built_in={"layer_norm_epsilon": 1e-12, "num_segments": 0},
    head_dropouts={
        "classifier": ("seq_classif_dropout", 0.2),
        "choice_scorer": ("seq_classif_dropout", 0.2),
        # The head on tokens has the dropout of the encoder. transformers keeps its field unread.
    },
)

ELECTRA = ModelType(
    name="electra",
    title="ELECTRA",
    backbone="ElectraBackbone",
    names=electra.ELECTRA,
    classifier_names=electra.ELECTRA_CLASSIFIER,
    classes="Electra",
    # KerasHub's ELECTRA computes other activations, in its layers and in its pooler.
    fields=ELECTRA_FIELDS,
    head_dropouts={"choice_scorer": ("summary_last_dropout", 0.1)},
    # The layer before the head for choices.
    dials=(
        ("summary_type", ("first",)),
        ("summary_use_proj", (True,)),
        ("summary_activation", ("gelu",)),
    ),
)

ERNIE = replace(
    BERT,
    name="ernie",
    title="ERNIE",
    backbone="ErnieBackbone",
    names=ernie.ERNIE,
    classes="Ernie",
    keras_hub=None,
    fields=ERNIE_FIELDS,
    # transformers takes the task as an input, which is 0 by default.
    built_in={"task_id": 0},
)

#: ModelScope's name for StructBERT, which is a BERT with other pretraining.
STRUCT_BERT = replace(BERT, name="structbert", title="StructBERT")

ALBERT = ModelType(
    name="albert",
    title="ALBERT",
    backbone="AlbertBackbone",
    tokenizer="AlbertTokenizer",
    read_tokenizer=read_hugging_face_albert,
    # The Chinese models have BERT's tokenizer.
    file_tokenizers=(("vocab.txt", "WordPieceTokenizer", read_hugging_face_tokenizer),),
    names=albert.ALBERT,
    classes="Albert",
    keras_hub=KerasHubModel(
        "AlbertBackbone",
        albert.KERAS_HUB_ALBERT,
        # It has none of ALBERT's rules for text.
        tokenizer="SentencePieceTokenizer",
        built_in=_BERT_BUILT_IN,
        sizes=("embedding_dim", "num_groups", "num_inner_repetitions"),
    ),
    fields=ALBERT_FIELDS,
    head_dropout=("classifier_dropout_prob", 0.1),
)

ROFORMER = ModelType(
    name="roformer",
    title="RoFormer",
    backbone="RoFormerBackbone",
    read_tokenizer=read_roformer_tokenizer,
    names=roformer.ROFORMER,
    classifier_names=roformer.ROFORMER_CLASSIFIER,
    classes="RoFormer",
    fields=ROFORMER_FIELDS,
    head_dropouts={"choice_scorer": ("summary_last_dropout", 0.0)},
    head_checks={"choice_scorer": scores_pooled_output},
    write_more=write_roformer,
)

NEZHA = replace(
    BERT,
    name="nezha",
    title="NEZHA",
    backbone="NezhaBackbone",
    names=nezha.NEZHA,
    classes="Nezha",
    keras_hub=None,
    fields=NEZHA_FIELDS,
    head_dropout=("classifier_dropout", 0.1),
    dials=(("use_relative_position", (True,)),),
)

MODERN_BERT = ModelType(
    name="modernbert",
    title="ModernBERT",
    backbone="ModernBertBackbone",
    tokenizer="ModernBertTokenizer",
    read_tokenizer=read_modern_bert_tokenizer,
    names=modern_bert.MODERN_BERT,
    classes="ModernBert",
    fields=MODERN_BERT_FIELDS,
    dials=MODERN_BERT_DIALS,
    read_more=read_modern_bert,
    write_more=write_modern_bert,
)

LONGFORMER = ModelType(
    name="longformer",
    title="Longformer",
    backbone="LongformerBackbone",
    tokenizer="BytePairTokenizer",
    read_tokenizer=read_hugging_face_byte_pairs,
    names=longformer.LONGFORMER,
    classifier_names=longformer.LONGFORMER_CLASSIFIER,
    classes="Longformer",
    position_offset=2,
    fields=LONGFORMER_FIELDS,
    # The tokenizer makes no segments.
    built_in={"takes_segments": False},
    dials=ROBERTA.dials,
    read_more=read_longformer,
    write_more=write_longformer,
)

#: Two BERTs. `find_type` has the kind whose decoder shares the weights of the encoder.
ENCODER_DECODER = ModelType(
    name="encoder-decoder",
    title="BERT encoder-decoder",
    backbone="BertEncoderDecoder",
    names=encoder_decoder.ENCODER_DECODER,
    classes="EncoderDecoder",
    architecture="EncoderDecoderModel",
    fields=(),
    read_more=read_encoder_decoder,
    write_more=write_encoder_decoder,
    copy_weights=copy_shared_weights,
)

MODEL_TYPES = {
    kind.name: kind
    for kind in (
        *(BERT, ROBERTA, XLM_ROBERTA, DISTIL_BERT, ELECTRA, ERNIE, STRUCT_BERT),
        *(ALBERT, ROFORMER, NEZHA, MODERN_BERT, LONGFORMER, ENCODER_DECODER),
    )
}


def type_of_backbone(cls):
    """The first `ModelType` of a class of backbone or of its nearest base class, or None."""
    names = [base.__name__ for base in cls.__mro__]
    kinds = [kind for kind in MODEL_TYPES.values() if kind.backbone in names]
    return min(kinds, key=lambda kind: names.index(kind.backbone), default=None)


def type_of_model(model, tokenizer):
    """The `ModelType` that a model is written as.

    Two kinds may have the same class of backbone. Their tokenizers then decide.

    Args:
        model: backbone or task.
        tokenizer: the tokenizer that is written, or None for that of the task's preprocessor.
    """
    kind = type_of_backbone(type(getattr(model, "backbone", model))) or BERT
    tokenizer = tokenizer or getattr(getattr(model, "preprocessor", None), "tokenizer", None)
    kinds = [other for other in MODEL_TYPES.values() if other.backbone == kind.backbone]
    return next((k for k in kinds if k.tokenizer == type(tokenizer).__name__), kind)


def check_backbone(checkpoint, cls):
    """Checks that a class of backbone can be built from a checkpoint.

    Raises:
        ValueError: if the checkpoint needs another class, naming it.
    """
    kind, own = checkpoint.model_type, type_of_backbone(cls)
    if own is None or own.backbone != kind.backbone:
        raise ValueError(
            f"{checkpoint.path} holds weights of {kind.title}, not those of a {cls.__name__}. "
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
            f"{', '.join(map(repr, MODEL_TYPES))}. Does your model have the layers and the "
            'tokenizer of a BERT, for example? Then set "model_type": "bert" in this file.'
        )
    if name == ENCODER_DECODER.name and config.get("tie_encoder_decoder"):
        return replace(ENCODER_DECODER, names=encoder_decoder.SHARED_ENCODER_DECODER)
    return MODEL_TYPES[name]
