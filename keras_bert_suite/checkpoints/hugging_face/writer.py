"""Writes a model as a Hugging Face checkpoint."""

import warnings

import keras
import keras_hub

from keras_bert_suite.annotations import PathLike
from keras_bert_suite.argument_checks import with_article
from keras_bert_suite.checkpoints.head_types.records import MASKED_TOKENS, TEXTS, find_head
from keras_bert_suite.checkpoints.load_weights import weights_by_path
from keras_bert_suite.checkpoints.model_types import activation_names
from keras_bert_suite.checkpoints.model_types.config_fields import write_fields
from keras_bert_suite.checkpoints.model_types.table import MODEL_TYPES, type_of_model
from keras_bert_suite.checkpoints.tokenizer_files.word_piece import write_tokenizer
from keras_bert_suite.checkpoints.writing_steps import (
    collect_weights,
    convert_weights,
    find_length,
    find_tokenizer,
)
from keras_bert_suite.files.atomic_directory import atomic_directory
from keras_bert_suite.files.atomic_file import write_json
from keras_bert_suite.files.safetensors_file import write_safetensors


def save_hugging_face(
    model: keras.Model,
    path: PathLike,
    tokenizer: keras_hub.tokenizers.Tokenizer | None = None,
    sequence_length: int | None = None,
) -> None:
    """Writes a directory that `transformers` loads as a model of the right class.

    The class follows from the kind of model and its head: for a BERT BertModel,
    BertForSequenceClassification, BertForTokenClassification, BertForQuestionAnswering,
    BertForMultipleChoice, BertForPreTraining or BertForMaskedLM; with a head for masked tokens on
    a backbone that reads from left to right BertLMHeadModel. A RoBERTa with an
    `XLMRobertaTokenizer` is written as an XLM-RoBERTa. A `BartBackbone` with `pre_norm` is an
    mBART, and a `Seq2Seq` on it a BartForConditionalGeneration or MBartForConditionalGeneration.

    A `TextClassifier` is written with its `label_names` and its `problem_type`. Tuned thresholds
    are in the field `label_thresholds`, which this package reads, and transformers only keeps. So
    is the `word_cutting` of a `TokenClassifier`.

    The field `model_max_length` of tokenizer_config.json is the length to which the task cuts
    texts. With `truncation=True` transformers cuts texts to it, too, and so does a task from
    `from_preset`. The format holds neither the `truncation` of a packer, nor the settings of
    windows, such as `stride` and `query_length`.

    The directory holds config.json, model.safetensors in float32, and with a tokenizer its files
    and tokenizer_config.json. If there is an error, no directory is written.

    Args:
        model: a backbone of this package, or a task with a `.backbone`. Beside the backbone it may
            have the heads of a `Pretrainer`, a layer called "classifier" or "choice_scorer" on the
            pooled output, or a layer called "token_classifier" or "span_labeler" on the sequence
            output.
        path: str or path of the directory, which must not exist.
        tokenizer: the tokenizer of the model. None takes a task's tokenizer, if it is from this
            package; no tokenizer is written with a backbone alone.
        sequence_length: int, the maximum sequence length that is written with the tokenizer. None
            takes the length of a task's preprocessor, or else the number of positions.

    Raises:
        FileExistsError: if `path` exists.
        OSError: if the disk is full.
        ValueError: if the format cannot hold the model: it has an `embedding_dim` other than
            `hidden_dim`, another activation, or other weights; or if the tokenizer or the length
            do not fit the model.

    Warns:
        UserWarning: if a task on a `LongformerBackbone` has other global tokens than transformers
            has for its head.
    """
    backbone = getattr(model, "backbone", model)
    kind = type_of_model(model, tokenizer)
    if kind.name not in MODEL_TYPES:
        raise ValueError(
            f"transformers has no {kind.title}, got {with_article(backbone)}. Use `save_to_preset`."
        )
    owner = f"Hugging Face's {kind.title}"
    config = {
        **write_fields(
            *(backbone, kind.fields, activation_names.HUGGING_FACE, owner),
            *(kind.position_offset, kind.built_in, kind.patterns),
        ),
        # RoBERTa's padding has the position before the first token's.
        "pad_token_id": kind.pad_token_id or 0,
        **kind.write_more(backbone),
        "model_type": kind.name,
    }
    is_causal = "left_to_right" in kind.patterns and backbone.attention_pattern == "left_to_right"
    if is_causal:
        config.update(kind.causal_fields)
    names = kind.classifier_names if TEXTS.path in weights_by_path(model) else kind.names
    names = kind.fit_names(names, getattr(backbone, "num_heads", None))
    weights = collect_weights(model, names, owner)
    weights.update(kind.copy_weights(backbone, weights))
    head = find_head(weights)
    if head is not None and head.drops_pooler:
        weights = _drop_idle_pooler(model, weights)
    config["architectures"] = [_name_class(kind, head, is_causal)]
    if head is not None:
        config.update(head.write(model, weights[head.path].shape[-1]))
        config.update(_describe_dropout(model, backbone, kind, head))
    _warn_of_global_tokens(model, backbone, config["architectures"][0])
    tokenizer = find_tokenizer(model, tokenizer, kind.tokenizers, owner)
    length = find_length(model, sequence_length)
    if tokenizer is not None:
        _check_padding(tokenizer, kind)
        config["pad_token_id"] = tokenizer.pad_token_id
        special = _list_special_ids(tokenizer, kind)
        config.update((name, token_id) for name, token_id in special.items() if name in config)

    with atomic_directory(path) as directory:
        write_json(directory / "config.json", config)
        if tokenizer is not None:
            write_tokenizer(tokenizer, length, directory)
        write_safetensors(
            directory / "model.safetensors",
            dict(convert_weights(weights, names)),
            metadata={"format": "pt"},
        )


def _drop_idle_pooler(model, weights):
    """The weights without a pooler, if the outputs of a task do not depend on it."""
    poolers = {path for path in weights if path.startswith("pooler/")}
    idle = getattr(model, "unused_paths", poolers)
    return {path: weight for path, weight in weights.items() if path not in idle}


def _name_class(kind, head, is_causal):
    """The name of the class in transformers."""
    ending = "Model" if head is None else kind.find_ending(head)
    if is_causal and head is MASKED_TOKENS:
        ending = kind.causal_class
    return kind.architecture or kind.classes + ending


def _list_special_ids(tokenizer, kind):
    """The fields for the ids of special tokens, of which a kind of models has some."""
    start, end = tokenizer.start_token_id, tokenizer.end_token_id
    target = tokenizer.target_template
    reads_end = kind.starts_with_end and target.summary_place == "first"
    return {
        **dict.fromkeys(("bos_token_id", "cls_token_id"), start),
        **dict.fromkeys(("eos_token_id", "sep_token_id"), end),
        "decoder_start_token_id": end if reads_end else target.start_token_id,
    }


def _check_padding(tokenizer, kind):
    """Checks that transformers would find the positions of a model with this tokenizer."""
    wanted = kind.pad_token_id
    if wanted is not None and tokenizer.pad_token_id != wanted:
        raise ValueError(
            f"transformers finds the positions of a {kind.title} by padding of id {wanted}, got "
            f"a tokenizer whose pad_token_id is {tokenizer.pad_token_id}. Use `model.save`."
        )


def _describe_dropout(model, backbone, kind, head):
    """The field for the dropout rate before the head of a task."""
    name, usual = kind.find_dropout(head.layer, getattr(backbone, "dropout", 0.0))
    return {} if getattr(model, "dropout", usual) == usual else {name: model.dropout}


def _warn_of_global_tokens(model, backbone, architecture):
    """Warns if a task has other global tokens than transformers has for its head."""
    usual, own = (getattr(owner, "global_tokens", None) for owner in (model, backbone))
    if None not in (usual, own) and usual != own:
        warnings.warn(
            f"The global tokens of {model.name!r} are {own!r}, and a {architecture} has {usual!r}, "
            "so it computes other outputs. In transformers, pass a `global_attention_mask`. Here, "
            f"set `backbone.global_tokens = {own!r}` after `from_preset`.",
            stacklevel=3,
        )
