"""Writes a model as a preset of KerasHub."""

import os
import tempfile
import warnings

import keras
import keras_hub

from keras_bert_suite.annotations import PathLike
from keras_bert_suite.checkpoints.keras_hub.reader import TOKENIZERS, KerasHubCheckpoint
from keras_bert_suite.checkpoints.keras_hub.released_models import KERAS_HUB_MODELS
from keras_bert_suite.checkpoints.load_weights import spelled_shapes
from keras_bert_suite.checkpoints.model_types import activation_names
from keras_bert_suite.checkpoints.model_types.activation_names import find_theirs
from keras_bert_suite.checkpoints.model_types.config_fields import write_fields
from keras_bert_suite.checkpoints.model_types.table import type_of_model
from keras_bert_suite.checkpoints.writing_steps import (
    check_rules,
    check_single_label,
    collect_weights,
    convert_weights,
    find_length,
    find_tokenizer,
)
from keras_bert_suite.files.atomic_directory import atomic_directory

#: The constants of KerasHub's models that a model of ours may have otherwise: the first is warned
#: of, and the second matters for new weights alone.
_FREE = ("activation", "initializer_range")


def save_keras_hub(
    model: keras.Model,
    path: PathLike,
    tokenizer: keras_hub.tokenizers.Tokenizer | None = None,
    sequence_length: int | None = None,
) -> None:
    """Writes a directory that KerasHub opens by itself, without this package.

    (`save_to_preset` of a task or backbone of ours writes a preset of our classes, which a process
    can open that has imported this package.)

    KerasHub's BERT has fewer settings than ours. The names of labels, and `attention_dropout` where
    it is not `dropout`, are not stored.

    Args:
        model: `BertBackbone`, `RobertaBackbone` (with an `XLMRobertaTokenizer` it is written as
            KerasHub's XLM-RoBERTa), `DistilBertBackbone`, `AlbertBackbone` with one layer in each
            group, or a `TextClassifier` on one.
        path: str or path of the directory, which must not exist.
        tokenizer: `WordPieceTokenizer`, `BytePairTokenizer` or `XLMRobertaTokenizer`; for an
            ALBERT `SentencePieceTokenizer`, because KerasHub's has none of the rules of
            `AlbertTokenizer`. None takes a task's tokenizer; no tokenizer is written with a
            backbone alone.
        sequence_length: int, the length of the rows that KerasHub's preprocessor packs. None takes
            the length of a task's preprocessor, or else the number of positions.

    Raises:
        FileExistsError: if `path` exists.
        OSError: if the disk is full.
        ValueError: if KerasHub's model cannot hold the model: it has other weights, such as other
            heads, another `layer_norm_epsilon` or `embedding_dim`, an activation other than GELU,
            or classes that do not exclude each other; if the tokenizer has other special tokens
            or other rules, such as `normalization`; or if the sizes of vocabulary and embeddings
            differ.

    Warns:
        UserWarning: if KerasHub computes another GELU than the model.
    """
    backbone = getattr(model, "backbone", model)
    kind = type_of_model(model, tokenizer)
    owner = f"KerasHub's {kind.title}"
    theirs = KERAS_HUB_MODELS.get(kind.name)
    if theirs is None:
        raise ValueError(
            f"KerasHub has no model that computes the same as {type(backbone).__name__}. Use "
            "`save_hugging_face`, or `save_to_preset`."
        )
    built_in = {name: value for name, value in theirs.built_in.items() if name not in _FREE}
    # Only the checks of the backbone are needed.
    write_fields(
        *(backbone, kind.fields, activation_names.KERAS_HUB, owner),
        *(kind.position_offset, built_in),
    )
    weights = collect_weights(model, theirs.names, owner)
    has_classifier = "classifier/kernel" in weights
    if has_classifier:
        check_single_label(model, owner)
    packer = None
    tokenizer = find_tokenizer(model, tokenizer, (theirs.tokenizer,), owner)
    if tokenizer is not None:
        length = find_length(model, sequence_length)
        packer = _make_preprocessor(tokenizer, theirs, length, owner)

    names = (*theirs.sizes, "dropout")
    sizes = {name: getattr(backbone, name) for name in names}
    twin = getattr(keras_hub.models, theirs.backbone)(**sizes)
    with atomic_directory(path) as directory:
        if has_classifier:
            twin = getattr(keras_hub.models, theirs.classifier)(
                twin,
                num_classes=weights["classifier/kernel"].shape[-1],
                preprocessor=packer,
                activation=model.activation,
                dropout=model.dropout,
            )
        twin.save_to_preset(str(directory))
        if packer is not None:
            packer.save_to_preset(str(directory))
        _fill(directory, weights, theirs)
    usual = theirs.built_in["activation"]
    if find_theirs(backbone.activation, activation_names.KERAS_HUB, owner) != usual:
        warnings.warn(
            f"The model in {path} was trained with another GELU than the {usual} of {owner}. "
            "They differ by up to 0.0005 in each activation.",
            stacklevel=2,
        )


def _make_preprocessor(tokenizer, theirs, sequence_length, owner):
    """KerasHub's preprocessor for texts, with the same tokens."""
    names, flags, _ = TOKENIZERS[theirs.tokenizer]
    check_rules(tokenizer, flags, owner)
    arguments = {flag: getattr(tokenizer, flag) for flag in flags}
    if arguments.get("strip_accents", False) is None:
        arguments["strip_accents"] = tokenizer.lowercase
    with tempfile.TemporaryDirectory() as folder:
        tokenizer.save_assets(folder)
        for (argument, file), own in zip(names.items(), tokenizer.asset_names, strict=True):
            argument = "proto" if file.endswith(".spm") else argument
            arguments[argument] = os.path.join(folder, own)
        twin = getattr(keras_hub.tokenizers, f"{theirs.family}Tokenizer")(**arguments)
    cls = getattr(keras_hub.models, f"{theirs.family}TextClassifierPreprocessor")
    return cls(twin, sequence_length=sequence_length)


def _fill(directory, weights, theirs):
    """Writes weights into the files of a new preset of KerasHub."""
    import h5py

    checkpoint = KerasHubCheckpoint(directory)
    names = {name: actual for name, (actual, _) in spelled_shapes(checkpoint).items()}
    values = dict(convert_weights(weights, theirs.names))
    offset = theirs.kind.position_offset
    if offset:
        table = theirs.names.their_name
        positions = table("embeddings/position_embedding/embeddings")[0]
        segments = values.pop(table("embeddings/segment_embedding/embeddings")[0])
        # KerasHub has neither segments, nor positions before the first token.
        values[positions] = values[positions][offset:] + segments
    for name, value in values.items():
        if name in names:  # Without a classifier, not every encoder has a pooler.
            file, inner = checkpoint.find(names[name])
            with h5py.File(file.path, "r+") as opened:
                opened[inner][...] = value.reshape(opened[inner].shape)
