"""Writes a model as a checkpoint of the original google-research/bert or google-research/albert."""

import warnings

import keras
import keras_hub

from keras_bert_suite.annotations import PathLike
from keras_bert_suite.argument_checks import with_article
from keras_bert_suite.checkpoints.google_tf1.reader import LAYER_NORM_EPSILON
from keras_bert_suite.checkpoints.google_tf1.released_models import GELU_APPROXIMATE, GOOGLE_MODELS
from keras_bert_suite.checkpoints.google_tf1.tensor_bundle import write_bundle
from keras_bert_suite.checkpoints.model_types import activation_names
from keras_bert_suite.checkpoints.model_types.config_fields import write_fields
from keras_bert_suite.checkpoints.model_types.table import type_of_backbone
from keras_bert_suite.checkpoints.writing_steps import (
    check_rules,
    check_single_label,
    collect_weights,
    convert_weights,
    find_tokenizer,
)
from keras_bert_suite.files.atomic_directory import atomic_directory
from keras_bert_suite.files.atomic_file import write_json


def save_google_tf1(
    model: keras.Model, path: PathLike, tokenizer: keras_hub.tokenizers.Tokenizer | None = None
) -> None:
    """Writes a directory with the files of the models that Google released.

    Google's run_pretraining.py, run_classifier.py and others take its `bert_model.ckpt` as
    `--init_checkpoint`. It is written without TensorFlow.

    The directory holds bert_config.json, bert_model.ckpt.index and
    bert_model.ckpt.data-00000-of-00001 in float32, and with a tokenizer its files: vocab.txt or
    spiece.model. Of an ALBERT it holds albert_config.json and model.ckpt-best. If there is an
    error, no directory is written.

    The format stores neither the names of labels, nor whether text is lowercased. Google's scripts
    have the flag `--do_lower_case` for this.

    Args:
        model: `BertBackbone`, `AlbertBackbone`, or a task with a `.backbone`. Beside the backbone
            it may have the heads of a `Pretrainer`, a layer called "classifier" on the pooled
            output, or, of a BERT, the "span_labeler" of a `QuestionAnswerer`.
        path: str or path of the directory, which must not exist.
        tokenizer: `WordPieceTokenizer`, or of an ALBERT `AlbertTokenizer`. None takes a task's
            tokenizer, if it has one; no tokenizer is written with a backbone alone.

    Raises:
        FileExistsError: if `path` exists.
        OSError: if the disk is full.
        ValueError: if the format cannot hold the model: it has another backbone, a
            `layer_norm_epsilon` other than 1e-12, an activation other than "gelu_tanh",
            "gelu_erf", "relu" and "tanh", or other weights; if the format cannot hold the settings
            of the tokenizer; or if the sizes of vocabulary and embeddings differ.

    Warns:
        UserWarning: if the activation is "gelu_erf". `open_checkpoint`, bert4keras and the
            converter of transformers compute it, but Google's code computes "gelu_tanh".
    """
    backbone = getattr(model, "backbone", model)
    kind = type_of_backbone(type(backbone))
    google = GOOGLE_MODELS.get(kind and kind.backbone)
    if google is None:
        raise ValueError(
            f"Google's format can hold a {' or '.join(GOOGLE_MODELS)}, got "
            f"{with_article(backbone)}. Use `save_hugging_face`, or `model.save`."
        )
    owner = f"Google's {kind.title}"
    config = write_fields(
        *(backbone, google.fields, activation_names.GOOGLE, owner),
        built_in={"layer_norm_epsilon": LAYER_NORM_EPSILON},
    )
    is_exact_gelu = config["hidden_act"] == "gelu_erf"
    if is_exact_gelu:
        config.update({"hidden_act": "gelu", GELU_APPROXIMATE: False})
    for field in google.fields:
        # bert4keras' name; Google's BERT lacks it.
        if field.kind == "width" and config[field.name] == backbone.hidden_dim:
            del config[field.name]
    check_single_label(model, owner)
    weights = collect_weights(model, google.names, owner)
    tokenizer = find_tokenizer(model, tokenizer, kind.tokenizers, owner)
    if tokenizer is not None:
        # Whether text is lowercased is a flag of Google's scripts.
        check_rules(tokenizer, ("lowercase",), owner)

    with atomic_directory(path) as directory:
        write_json(directory / f"{google.config}.json", config)
        if tokenizer is not None:
            tokenizer.save_assets(directory)
        write_bundle(directory / google.checkpoint, convert_weights(weights, google.names))
    if is_exact_gelu:
        warnings.warn(
            f"The model in {path} has the exact GELU. keras_bert_suite, bert4keras and the "
            "converter of transformers compute it, but Google's own code computes the tanh "
            "approximation, which differs by up to 0.0005 in each activation.",
            stacklevel=2,
        )
