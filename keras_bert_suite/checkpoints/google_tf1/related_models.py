"""NEZHA, RoFormer and ELECTRA in the format of Google's BERT. They are read, and not written."""

from dataclasses import replace

from keras_bert_suite.checkpoints.google_tf1.released_models import (
    BLOCK,
    GOOGLE,
    GOOGLE_MODELS,
    OPTIMIZER_STATES,
)
from keras_bert_suite.checkpoints.google_tf1.xlnet import XLNET_TF1
from keras_bert_suite.checkpoints.model_types.config_fields import Field
from keras_bert_suite.checkpoints.model_types.electra import ELECTRA
from keras_bert_suite.checkpoints.model_types.name_table import NameTable, same
from keras_bert_suite.checkpoints.model_types.nezha import NEZHA
from keras_bert_suite.checkpoints.model_types.roformer import ROFORMER, warn_of_words
from keras_bert_suite.checkpoints.tokenizer_files.word_piece import read_google_tokenizer

_BERT = GOOGLE_MODELS["BertBackbone"]
_POSITIONS = "bert/embeddings/position_embeddings"
_NORM = "bert/embeddings/LayerNorm/gamma"


def _bert_without(*parts):
    rows = tuple(row for row in _BERT.names.rows if not row[0].startswith(parts))
    return replace(_BERT.names, rows=rows)


def _read_roformer_tokenizer(directory):
    arguments = read_google_tokenizer(directory)
    warn_of_words(directory, arguments)
    return "WordPieceTokenizer", arguments


#: huawei-noah's NEZHA-TensorFlow.
NEZHA_TF1 = replace(
    _BERT,
    kind=NEZHA,
    fields=(*_BERT.fields, Field("max_relative_position", "max_relative_position", "size", 64)),
    names=_bert_without("embeddings/position_embedding"),
    dials=(*_BERT.dials, *NEZHA.dials),
)

#: ZhuiyiTechnology's RoFormer, of bert4keras, whose "gelu" is exact. RoFormer-sim has a pooler of
#: another activation than our class.
ROFORMER_TF1 = replace(
    _BERT,
    kind=ROFORMER,
    fields=(*_BERT.fields, Field("rotary_value", "rotary_value", "flag", False)),
    names=_bert_without("embeddings/position_embedding", "pooler"),
    read_tokenizer=_read_roformer_tokenizer,
    gelu="gelu_erf",
)


def _electra_names(scope, embeddings, heads, others):
    return NameTable(
        rows=(
            *GOOGLE.rows(
                ("embeddings/token_embedding", f"{embeddings}/embeddings/word_embeddings"),
                ("embeddings/position_embedding", f"{embeddings}/embeddings/position_embeddings"),
                ("embeddings/segment_embedding", f"{embeddings}/embeddings/token_type_embeddings"),
                ("embeddings/layer_norm", f"{embeddings}/embeddings/LayerNorm"),
                ("embeddings/projection", f"{scope}/embeddings_project"),
            ),
            *GOOGLE.block(scope + "/encoder/layer_{i}/", BLOCK),
            *heads,
        ),
        ignored=OPTIMIZER_STATES,
        others=others,
    )


#: google-research/electra. Its file of a pretraining holds both models.
ELECTRA_TF1 = replace(
    _BERT,
    kind=ELECTRA,
    config="electra_config",
    names=_electra_names(
        *("electra", "electra"),
        GOOGLE.rows(
            ("replaced_tokens/transform", "discriminator_predictions/dense"),
            ("replaced_tokens/scorer", "discriminator_predictions/dense_1"),
        ),
        others=("generator(_predictions)?/.*",),
    ),
    gelu="gelu_erf",
)


#: The models that the names of configurations tell apart.
NAMED_MODELS = (*GOOGLE_MODELS.values(), ELECTRA_TF1, XLNET_TF1)


def _generator(embeddings):
    """The generator. `embeddings` names the model whose embeddings it has."""
    heads = (
        *GOOGLE.rows(
            ("masked_lm/transform", "generator_predictions/dense"),
            ("masked_lm/layer_norm", "generator_predictions/LayerNorm"),
        ),
        ("masked_lm/bias", "generator_predictions/output_bias", same),
    )
    others = ("electra/(encoder|embeddings_project).*", "discriminator_predictions/.*")
    others = (*others, "electra/embeddings/.*") if embeddings == "generator" else others
    return replace(ELECTRA_TF1, names=_electra_names("generator", embeddings, heads, others))


def find_model(model, config, shapes):
    """The `GoogleModel` of a checkpoint: by the name of its configuration, or a related one.

    A checkpoint that fits two kinds is a ValueError.
    """
    if any(name.startswith("electra/") for name in shapes):
        return _find_electra(config, shapes)
    if model is not _BERT or not any(name.startswith("bert/") for name in shapes):
        return model
    name = config.get("model_type")
    if name in ("nezha", "roformer", "bert") or _POSITIONS in shapes:
        return {"nezha": NEZHA_TF1, "roformer": ROFORMER_TF1}.get(name, model)
    if config.get("use_relative_position"):
        return NEZHA_TF1
    raise ValueError(
        f"{config.path.parent} holds a BERT without position embeddings, probably a RoFormer. "
        f'Add "model_type": "roformer" to {config.path.name}. If it is a NEZHA, add "model_type": '
        '"nezha".'
    )


def _find_electra(config, shapes):
    """The discriminator, unless only the generator has the width of the configuration."""
    kernel = "{}/encoder/layer_0/attention/self/query/kernel"
    width = config.get("hidden_size")
    ours, theirs = (shapes.get(kernel.format(scope)) for scope in ("electra", "generator"))
    if theirs and theirs[0] == width and (not ours or ours[0] != width):
        untied = "generator/embeddings/word_embeddings" in shapes
        return _generator("generator" if untied else "electra")
    return ELECTRA_TF1


def more_arguments(model, shapes):
    """Arguments of the backbone that only the variables tell: a RoFormerV2 has no norm weights."""
    if model is ROFORMER_TF1 and _NORM not in shapes:
        return {"use_bias": False, "norm_type": "rms_norm"}
    return {}
