"""Writes a model as a checkpoint of the original google-research/bert."""

import warnings

import keras
import keras_hub

from keras_bert_suite.annotations import PathLike
from keras_bert_suite.checkpoints import activation_names
from keras_bert_suite.checkpoints.config_fields import GOOGLE_FIELDS, write_fields
from keras_bert_suite.checkpoints.google_tf1 import GELU_APPROXIMATE, LAYER_NORM_EPSILON
from keras_bert_suite.checkpoints.hugging_face_config import SINGLE_LABEL
from keras_bert_suite.checkpoints.model_types import BERT, type_of_backbone
from keras_bert_suite.checkpoints.name_tables import GOOGLE_TF1
from keras_bert_suite.checkpoints.tensor_bundle import write_bundle
from keras_bert_suite.checkpoints.tokenizer_files import SPECIAL_TOKENS, check_vocabulary
from keras_bert_suite.checkpoints.writer_parts import (
    collect_weights,
    convert_weights,
    find_tokenizer,
)
from keras_bert_suite.files.atomic_directory import atomic_directory
from keras_bert_suite.files.atomic_file import write_json

_OWNER = "Google's BERT"


def save_google_tf1(
    model: keras.Model, path: PathLike, tokenizer: keras_hub.tokenizers.Tokenizer | None = None
) -> None:
    """Writes a directory with the files of the models that Google released.

    Google's run_pretraining.py, run_classifier.py and others take its `bert_model.ckpt` as
    `--init_checkpoint`. It is written without TensorFlow.

    The directory holds bert_config.json, bert_model.ckpt.index and
    bert_model.ckpt.data-00000-of-00001 in float32, and with a tokenizer vocab.txt. If there is an
    error, no directory is written.

    The format stores neither the names of labels, nor whether text is lowercased. Google's scripts
    have the flag `--do_lower_case` for this.

    Args:
        model: `BertBackbone`, or a task with a `.backbone`. Beside the backbone it may have the
            heads of a `Pretrainer`, a layer called "classifier" on the pooled output, or the
            "span_labeler" of a `QuestionAnswerer`.
        path: str or path of the directory, which must not exist.
        tokenizer: `WordPieceTokenizer`. None takes that of a task's preprocessor, if it has one; no
            tokenizer is written with a backbone alone.

    Raises:
        FileExistsError: if `path` exists.
        OSError: if the disk is full.
        ValueError: if the format cannot hold the model: it has a backbone other than
            `BertBackbone`, a `layer_norm_epsilon` other than 1e-12, an activation other than
            "gelu_tanh", "gelu_erf", "relu" and "tanh", or other weights; if the format cannot
            hold the settings of the tokenizer; or if the sizes of vocabulary and embeddings
            differ.

    Warns:
        UserWarning: if the activation is "gelu_erf". `open_checkpoint`, bert4keras and the
            converter of transformers compute it, but Google's code computes "gelu_tanh".
    """
    backbone = getattr(model, "backbone", model)
    config = write_fields(backbone, GOOGLE_FIELDS, activation_names.GOOGLE, _OWNER)
    kind = type_of_backbone(type(backbone))
    if kind is not BERT:
        raise ValueError(
            f"{_OWNER} can hold a BertBackbone, got a {type(backbone).__name__}. Use "
            "`save_hugging_face`, or `model.save`."
        )
    is_exact_gelu = config["hidden_act"] == "gelu_erf"
    if is_exact_gelu:
        config.update({"hidden_act": "gelu", GELU_APPROXIMATE: False})
    if backbone.embedding_dim != backbone.hidden_dim:
        config["embedding_size"] = backbone.embedding_dim  # bert4keras' name
    if backbone.layer_norm_epsilon != LAYER_NORM_EPSILON:
        raise ValueError(
            f"{_OWNER} normalises with an epsilon of {LAYER_NORM_EPSILON}, got layer_norm_epsilon="
            f"{backbone.layer_norm_epsilon}. Use `model.save`."
        )
    _check_problem_type(model)
    weights = collect_weights(model, GOOGLE_TF1, _OWNER)
    tokenizer = find_tokenizer(model, tokenizer, ("WordPieceTokenizer",))
    if tokenizer is not None:
        check_vocabulary(tokenizer.vocabulary_size(), backbone.vocabulary_size)
        _check_settings(tokenizer)

    with atomic_directory(path) as directory:
        write_json(directory / "bert_config.json", config)
        if tokenizer is not None:
            tokenizer.save_assets(directory)
        write_bundle(directory / "bert_model.ckpt", convert_weights(weights, GOOGLE_TF1))
    if is_exact_gelu:
        warnings.warn(
            f"The model in {path} has the exact GELU. keras_bert_suite, bert4keras and the "
            "converter of transformers compute it, but Google's own code computes the tanh "
            "approximation, which differs by up to 0.0005 in each activation.",
            stacklevel=2,
        )


def _check_problem_type(model):
    problem_type = getattr(model, "problem_type", SINGLE_LABEL)
    if problem_type != SINGLE_LABEL:
        raise ValueError(
            f"{_OWNER} has classes that exclude each other, got a {type(model).__name__} with "
            f"problem_type={problem_type!r}. Use `save_hugging_face` or `model.save`, or save its "
            "`backbone` alone."
        )


def _check_settings(tokenizer):
    """Checks that a tokenizer has the settings that are built into Google's scripts."""
    wanted = dict(SPECIAL_TOKENS.values())
    got = {name: getattr(tokenizer, name) for name in wanted}
    if tokenizer.strip_accents is not None:
        wanted["strip_accents"] = tokenizer.lowercase
        got["strip_accents"] = tokenizer.strip_accents
    wrong = [f"{name}={got[name]!r}" for name in wanted if got[name] != wanted[name]]
    if wrong:
        usual = ", ".join(f"{name}={value!r}" for name, value in wanted.items())
        raise ValueError(
            f"{_OWNER} has no place for {', '.join(wrong)} of the tokenizer; wanted {usual}. "
            "Use `save_hugging_face`, or `model.save`."
        )
