"""Writes a model as a preset of KerasHub."""

import os
import tempfile
import warnings

import keras
import keras_hub

from keras_bert_suite.annotations import PathLike
from keras_bert_suite.checkpoints.keras_hub.reader import KerasHubCheckpoint
from keras_bert_suite.checkpoints.load_weights import spelled_shapes
from keras_bert_suite.checkpoints.model_types import activation_names
from keras_bert_suite.checkpoints.model_types.activation_names import find_theirs
from keras_bert_suite.checkpoints.model_types.config_fields import write_fields
from keras_bert_suite.checkpoints.model_types.table import type_of_model
from keras_bert_suite.checkpoints.tokenizer_files.word_piece import check_vocabulary
from keras_bert_suite.checkpoints.writing_steps import (
    check_constants,
    check_rules,
    check_single_label,
    check_tokenizer,
    collect_weights,
    convert_weights,
    find_length,
    find_tokenizer,
)
from keras_bert_suite.files.atomic_directory import atomic_directory

#: The settings of a tokenizer that are built into KerasHub's, or that it takes.
_TOKENIZER_SETTINGS = {
    "WordPieceTokenizer": ("lowercase", "strip_accents"),
    "BytePairTokenizer": ("add_prefix_space",),
    "XLMRobertaTokenizer": (),
    "SentencePieceTokenizer": (),
}

#: The arguments of KerasHub's tokenizers that take the files of ours.
_FILE_ARGUMENTS = {
    "WordPieceTokenizer": ("vocabulary",),
    "BytePairTokenizer": ("vocabulary", "merges"),
    "XLMRobertaTokenizer": ("proto",),
    "SentencePieceTokenizer": ("proto",),
}


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
            `AlbertTokenizer`. None takes that of a task's preprocessor; no tokenizer is written
            with a backbone alone.
        sequence_length: int, the length of the rows that KerasHub's preprocessor packs. None takes
            that of a task's preprocessor, or else the number of positions.

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
    if kind.keras_hub is None:
        raise ValueError(
            f"KerasHub has no model that computes the same as {type(backbone).__name__}. Use "
            "`save_hugging_face`, or `save_to_preset`."
        )
    # Only the checks of the backbone are needed.
    write_fields(backbone, kind.fields, activation_names.KERAS_HUB, owner, kind.position_offset)
    constants = kind.keras_hub.built_in
    constants = {n: constants[n] for n in ("layer_norm_epsilon", "num_segments") if n in constants}
    if "embedding_dim" not in kind.keras_hub.sizes:
        constants["embedding_dim"] = backbone.hidden_dim
    check_constants(backbone, constants, owner)
    weights = collect_weights(model, kind.keras_hub.names, owner)
    has_classifier = "classifier/kernel" in weights
    if has_classifier:
        check_single_label(model, owner)
    packer = None
    # Another tokenizer of this kind of model is refused, and not left out.
    kinds = (kind.keras_hub.tokenizer, *kind.tokenizers)
    tokenizer = find_tokenizer(model, tokenizer, kinds)
    if tokenizer is not None:
        length = find_length(model, sequence_length)
        packer = _make_preprocessor(tokenizer, kind, length, owner)
        check_vocabulary(tokenizer.vocabulary_size(), backbone.vocabulary_size)

    twin = _make_backbone(backbone, kind)
    with atomic_directory(path) as directory:
        if has_classifier:
            twin = getattr(keras_hub.models, kind.keras_hub.classifier)(
                twin,
                num_classes=weights["classifier/kernel"].shape[-1],
                preprocessor=packer,
                activation=model.activation,
                dropout=model.dropout,
            )
        twin.save_to_preset(str(directory))
        if packer is not None:
            packer.save_to_preset(str(directory))
        _fill(directory, weights, kind)
    built_in = kind.keras_hub.built_in["activation"]
    if find_theirs(backbone.activation, activation_names.KERAS_HUB, owner) != built_in:
        warnings.warn(
            f"The model in {path} was trained with another GELU than the {built_in} of {owner}. "
            "They differ by up to 0.0005 in each activation.",
            stacklevel=2,
        )


def _make_backbone(backbone, kind):
    """KerasHub's model of the same sizes."""
    names = ["vocabulary_size", "num_layers", "num_heads", "hidden_dim", "intermediate_dim"]
    names += ["dropout", "max_sequence_length"]
    if "num_segments" not in kind.keras_hub.built_in:
        names.append("num_segments")
    sizes = {name: getattr(backbone, name) for name in (*names, *kind.keras_hub.sizes)}
    return getattr(keras_hub.models, kind.keras_hub.backbone)(**sizes)


def _make_preprocessor(tokenizer, kind, sequence_length, owner):
    """KerasHub's preprocessor for texts, with the same tokens."""
    family = kind.keras_hub.family
    wanted = kind.keras_hub.tokenizer
    check_tokenizer(tokenizer, (wanted,), owner)
    check_rules(tokenizer, _TOKENIZER_SETTINGS[wanted], owner)
    settings = {name: getattr(tokenizer, name) for name in _TOKENIZER_SETTINGS[wanted]}
    if settings.get("strip_accents", False) is None:
        settings["strip_accents"] = tokenizer.lowercase
    with tempfile.TemporaryDirectory() as folder:
        tokenizer.save_assets(folder)
        files = [os.path.join(folder, name) for name in tokenizer.asset_names]
        files = dict(zip(_FILE_ARGUMENTS[wanted], files, strict=True))
        twin = getattr(keras_hub.tokenizers, f"{family}Tokenizer")(**files, **settings)
    cls = getattr(keras_hub.models, f"{family}TextClassifierPreprocessor")
    return cls(twin, sequence_length=sequence_length)


def _fill(directory, weights, kind):
    """Writes weights into the files of a new preset of KerasHub."""
    import h5py

    checkpoint = KerasHubCheckpoint(directory)
    names = {name: actual for name, (actual, _) in spelled_shapes(checkpoint).items()}
    values = dict(convert_weights(weights, kind.keras_hub.names))
    if kind.position_offset:
        table = kind.keras_hub.names.their_name
        positions = table("embeddings/position_embedding/embeddings")[0]
        segments = values.pop(table("embeddings/segment_embedding/embeddings")[0])
        # KerasHub has neither segments, nor positions before the first token.
        values[positions] = values[positions][kind.position_offset :] + segments
    for name, value in values.items():
        if name in names:  # Without a classifier, not every encoder has a pooler.
            file, inner = checkpoint.find(names[name])
            with h5py.File(file.path, "r+") as opened:
                opened[inner][...] = value.reshape(opened[inner].shape)
