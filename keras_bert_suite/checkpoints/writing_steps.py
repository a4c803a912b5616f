"""The common steps of writing a model in the format of another library."""

import warnings

import keras
import numpy as np

from keras_bert_suite.argument_checks import with_article
from keras_bert_suite.checkpoints.head_types.head_fields import SINGLE_LABEL
from keras_bert_suite.checkpoints.load_weights import weights_by_path
from keras_bert_suite.checkpoints.tokenizer_files.word_piece import check_vocabulary
from keras_bert_suite.files.messages import list_names


def find_tokenizer(model, tokenizer, classes, owner):
    """Finds the tokenizer to write: `tokenizer`, or else the task's.

    It is None if none was given, and the preprocessor has none of this package. Another class than
    `classes`, or a vocabulary of another size than the model's, is a ValueError.
    """
    segment_ids = getattr(getattr(model, "preprocessor", None), "segment_ids", None)
    if segment_ids is not None:
        warnings.warn(
            f"The files of {owner} do not keep segment_ids={segment_ids} of the SegmentPacker. Set "
            "them again when you open the files, or texts are packed otherwise.",
            stacklevel=4,
        )
    if tokenizer is None:
        own = getattr(getattr(model, "preprocessor", None), "tokenizer", None)
        if not hasattr(own, "hugging_face_config"):
            return None
        tokenizer = own
    if type(tokenizer).__name__ not in classes:
        raise ValueError(
            f"{owner} is written with its {' or '.join(classes)}, got "
            f"{with_article(tokenizer)}. Set its `preprocessor` to None to write no tokenizer."
        )
    backbone = getattr(model, "backbone", model)
    check_vocabulary(tokenizer.vocabulary_size(), backbone.vocabulary_size)
    return tokenizer


def find_length(model, sequence_length):
    """Finds the maximum sequence length to write with a tokenizer: the given one, or the task's.

    It is at most the number of positions, and None if the model takes rows of any length and no
    length was given.
    """
    positions = getattr(model, "backbone", model).max_sequence_length
    if sequence_length is None:
        own = getattr(getattr(model, "preprocessor", None), "sequence_length", positions)
        return own if positions is None else min(own, positions)
    if sequence_length < 4 or (positions is not None and sequence_length > positions):
        most = "" if positions is None else f" to {positions}, the number of positions of the model"
        raise ValueError(f"sequence_length must be from 4{most}, got {sequence_length}.")
    return sequence_length


def check_single_label(model, owner):
    """Raises ValueError unless the classes of a model exclude each other, if it has classes."""
    problem_type = getattr(model, "problem_type", SINGLE_LABEL)
    if problem_type != SINGLE_LABEL:
        raise ValueError(
            f"{owner} has classes that exclude each other, got {with_article(model)} with "
            f"problem_type={problem_type!r}. Use `save_hugging_face` or `model.save`, or save its "
            "`backbone` alone."
        )


def check_rules(tokenizer, settings, owner):
    """Raises a ValueError if a tokenizer has unusual special tokens or rules.

    `settings` are the arguments that the format can hold.
    """
    got, usual = tokenizer.get_config(), type(tokenizer)().get_config()
    # Accents go with uppercase letters unless an argument says otherwise.
    for config in (got, usual):
        if config.get("strip_accents", False) is None:
            config["strip_accents"] = tokenizer.lowercase
    # Libraries differ in the limit for the length of a word.
    kept = (*settings, "name", "dtype", "trainable", "config_file", "max_word_length")
    names = [n for n in {**usual, **got} if n not in kept]
    wrong = [f"{n}={got[n]!r}" for n in names if got[n] != usual.get(n)]
    if wrong:
        wanted = ", ".join(f"{n}={usual[n]!r}" for n in names if usual.get(n) is not None)
        raise ValueError(
            f"{owner} cannot hold {list_names(wrong)} of the tokenizer; wanted {wanted}. Use "
            "`save_hugging_face`, or `model.save`."
        )


def collect_weights(model, table, owner):
    """dict of path -> weight of a built model, all of which the format, a `NameTable`, can hold.

    A pooler is left out if the format has it in classifiers alone, and the model is none.

    Raises:
        ValueError: if the format cannot hold some weights, naming them; or the pooling of a
            classifier; or a head for three relations of a `Pretrainer`.
    """
    for name in ("frame_dim", "part_embeddings", "norm_condition"):
        if getattr(getattr(model, "backbone", model), name, None) is not None:
            raise ValueError(
                f"The files of {owner} have no place for {name} of an encoder. Save a preset of "
                "this package: `save_to_preset(path)`."
            )
    if getattr(getattr(model, "backbone", model), "adapters", None):
        raise ValueError(
            f"{owner} has no adapters, got {with_article(model)} with some. Write "
            "`task.merge_adapter()`, a copy that computes the same with LoRA in its kernels; or "
            "`task.save_adapter(path)`, or `task.save_peft(path)`."
        )
    weights = weights_by_path(model)
    for name in ("pooling", "window_pooling"):
        pooling = getattr(model, name, None)
        if pooling is not None and "classifier/kernel" in weights:
            raise ValueError(
                f"{owner} classifies the pooled output of the encoder, got "
                f"{with_article(model)} with {name}={type(pooling).__name__}. Save its `backbone` "
                "alone, or use `model.save`."
            )
    if getattr(model, "head_layers", None):
        names = list_names(layer.name for layer in model.head_layers)
        raise ValueError(
            f"{owner} has no layers between the encoder and the head, got "
            f"{with_article(model)} with head_layers: {names}. Save its `backbone` alone, or use "
            "`model.save`."
        )
    strangers = [path for path in weights if table.their_name(path) is None]
    idle = {path for path in strangers if path.startswith("pooler/")}
    weights = {path: weight for path, weight in weights.items() if path not in idle}
    strangers = [path for path in strangers if path not in idle]
    if strangers:
        raise ValueError(
            f"{owner} cannot hold these weights of {model.name!r}: {list_names(strangers)}. "
            "Save its `backbone` alone, or use `model.save`. (keras-bert convert --part masked_lm "
            "leaves out the other heads of a Pretrainer.)"
        )
    relations = weights.get("next_sentence/kernel")
    if relations is not None and relations.shape[-1] != 2:
        raise ValueError(
            f"{owner} tells two relations of texts apart, got a head with sentence_relations="
            f"{relations.shape[-1]}. Leave it out, by keras-bert convert --part masked_lm, or "
            "use `model.save`."
        )
    return weights


def convert_weights(weights, table):
    """Yields their (name, float32 array) for each of our weights. One at a time is in memory."""
    for path, weight in weights.items():
        name, transform = table.their_name(path)
        value = keras.ops.convert_to_numpy(keras.ops.cast(weight, "float32"))
        yield name, np.ascontiguousarray(transform(value))
