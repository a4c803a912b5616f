"""Writes an embedder as a directory of sentence-transformers."""

import keras
import numpy as np

from keras_bert_suite.annotations import PathLike
from keras_bert_suite.argument_checks import with_article
from keras_bert_suite.checkpoints.hugging_face.sentence_transformers import (
    ACTIVATIONS,
    POOLINGS,
    SQUARE_ROOT,
    STATIC_MODULE,
)
from keras_bert_suite.checkpoints.hugging_face.writer import save_hugging_face
from keras_bert_suite.checkpoints.model_types.static import STATIC
from keras_bert_suite.checkpoints.model_types.table import type_of_backbone
from keras_bert_suite.checkpoints.static.reader import UNCUT_LENGTH
from keras_bert_suite.checkpoints.tokenizer_files.fast_word_piece import write_fast_tokenizer
from keras_bert_suite.checkpoints.writing_steps import collect_weights, convert_weights
from keras_bert_suite.files.atomic_directory import atomic_directory
from keras_bert_suite.files.atomic_file import write_json
from keras_bert_suite.files.safetensors_file import write_safetensors


def save_sentence_transformers(embedder: keras.Model, path: PathLike) -> None:
    """Writes a directory that sentence-transformers opens, with the same vectors.

    The directory holds the encoder as `save_hugging_face` writes it, modules.json,
    sentence_bert_config.json, config_sentence_transformers.json and the folders of the pooling and
    of Dense layers; with a WordPiece vocabulary also tokenizer.json, for servers that read it. A
    `StaticBackbone` is written as a StaticEmbedding: its table and tokenizer.json, in a folder. If
    there is an error, no directory is written.

    Args:
        embedder: `TextEmbedder` on a `BertBackbone`, `RobertaBackbone` or `StaticBackbone`, with a
            `SegmentPacker`.
        path: str or path of the directory, which must not exist.

    Raises:
        FileExistsError: if `path` exists.
        OSError: if the disk is full.
        ValueError: if the format cannot hold the embedder, its pooling or its preprocessor, or it
            is another task.
    """
    if not hasattr(embedder, "pooling_names"):
        raise ValueError(
            f"sentence-transformers has vectors of texts, got {with_article(embedder)}. "
            "save_hugging_face writes it; a TextRanker is a CrossEncoder there."
        )
    packer = embedder.preprocessor
    is_static = type_of_backbone(type(embedder.backbone)) is STATIC
    pooling = None if is_static else _write_pooling(embedder)
    dense = [_write_dense(layer) for layer in embedder.dense_layers]
    truncation = getattr(packer, "truncation", None)
    if truncation is None:
        raise ValueError(
            "A directory of sentence-transformers holds a tokenizer, got an embedder with the "
            f"preprocessor {type(packer).__name__}. Set `preprocessor` to a SegmentPacker."
        )
    if truncation in ("tail", "head_tail"):
        raise ValueError(
            "sentence-transformers keeps the beginning of a long text, got a SegmentPacker with "
            f"truncation={truncation!r}. Use `save` or `save_to_preset`, or train with "
            "truncation='head'."
        )
    encoder = [STATIC_MODULE] if is_static else ["Transformer", "Pooling"]
    modules = [*encoder, *["Dense"] * len(dense), *(["Normalize"] if embedder.normalize else [])]
    folders = [f"{number}_{kind}" for number, kind in enumerate(modules)]
    if is_static:
        _check_static(embedder)
    else:
        folders[0] = ""
    with atomic_directory(path) as directory:
        for folder in filter(None, folders):
            (directory / folder).mkdir()
        if is_static:
            _write_static(embedder, directory / folders[0])
        else:
            _write_encoder(embedder, directory)
            write_json(directory / folders[1] / "config.json", pooling)
        write_json(
            directory / "modules.json",
            [
                {
                    "idx": number,
                    "name": str(number),
                    "path": folder,
                    "type": f"sentence_transformers.models.{kind}",
                }
                for number, (folder, kind) in enumerate(zip(folders, modules, strict=True))
            ],
        )
        write_json(
            directory / "config_sentence_transformers.json",
            {
                "prompts": dict(embedder.prompts),
                "default_prompt_name": None,
                "similarity_fn_name": "cosine",
                **({"truncate_dim": embedder.dimensions} if embedder.dimensions else {}),
            },
        )
        for folder, (config, tensors) in zip(folders[len(encoder) :], dense, strict=False):
            write_json(directory / folder / "config.json", config)
            write_safetensors(directory / folder / "model.safetensors", tensors, {"format": "pt"})


def _write_encoder(embedder, directory):
    """Writes the encoder and its tokenizer, and the length to which texts are cut."""
    encoder, packer = directory / "encoder", embedder.preprocessor
    length = packer.sequence_length
    save_hugging_face(embedder.backbone, encoder, packer.tokenizer, sequence_length=length)
    for file in encoder.iterdir():
        file.rename(directory / file.name)
    encoder.rmdir()
    if type(packer.tokenizer).__name__ == "WordPieceTokenizer":
        write_fast_tokenizer(packer.tokenizer, length, directory)
    write_json(
        directory / "sentence_bert_config.json",
        {"max_seq_length": length, "do_lower_case": False},
    )


def _check_static(embedder):
    """Raises a ValueError unless a StaticEmbedding makes the same vectors of a text."""
    packer, names = embedder.preprocessor, embedder.pooling_names
    if names != ["mean"] or not embedder.pools_prompts:
        raise ValueError(
            "A StaticEmbedding has the mean of the vectors of all tokens, got "
            f"{with_article(embedder.pooling)}. Use `save` or `save_to_preset`."
        )
    if packer.add_special_tokens:
        raise ValueError(
            "A StaticEmbedding reads no special tokens, got a SegmentPacker with "
            "add_special_tokens=True. Use `save` or `save_to_preset`, or train with "
            "add_special_tokens=False."
        )
    if type(packer.tokenizer).__name__ != "WordPieceTokenizer":
        raise ValueError(
            "A StaticEmbedding has a tokenizer.json, which is written of a WordPieceTokenizer, got "
            f"{with_article(packer.tokenizer)}. Use `save` or `save_to_preset`."
        )


def _write_static(embedder, folder):
    """Writes the table and the tokenizer of an embedder on a `StaticBackbone`."""
    length = embedder.preprocessor.sequence_length
    length = None if length >= UNCUT_LENGTH else length
    write_fast_tokenizer(embedder.preprocessor.tokenizer, length, folder)
    weights = collect_weights(embedder.backbone, STATIC.names, STATIC.title)
    tensors = dict(convert_weights(weights, STATIC.names))
    write_safetensors(folder / "model.safetensors", tensors, {"format": "pt"})


def _write_pooling(embedder):
    """The config.json of the pooling of a `TextEmbedder`."""
    names = embedder.pooling_names
    if names != [name for name in POOLINGS if name in names]:
        raise ValueError(
            f"sentence-transformers has no module for {type(embedder.pooling).__name__} with the "
            f"poolings {names}, wanted some of {', '.join(POOLINGS)}, in this order. Use `save` or "
            "`save_to_preset`."
        )
    flags = {flag: name in names for name, (_, flag) in POOLINGS.items()}
    # Versions before 2.3 do not know the last two flags, nor the prompts.
    old = list(flags)[:3]
    return {
        "word_embedding_dimension": embedder.backbone.hidden_dim,
        **{flag: value for flag, value in flags.items() if value or flag in old},
        SQUARE_ROOT[1]: False,
        **({} if embedder.pools_prompts else {"include_prompt": False}),
    }


def _write_dense(layer):
    """(config.json, tensors) of the Dense module of a layer."""
    theirs = {name: torch for torch, name in ACTIVATIONS.items()}
    is_dense = isinstance(layer, keras.layers.Dense)
    name = keras.activations.serialize(layer.activation) if is_dense else None
    activation = theirs.get(name) if isinstance(name, str) else None
    if activation is None:
        raise ValueError(
            "sentence-transformers has Dense layers with the activations "
            f"{', '.join(theirs)}, got {layer.name!r}, {with_article(layer)} with the "
            f"activation {getattr(layer, 'activation', None)!r}. Use `save` or `save_to_preset`."
        )
    place = "linear" if activation == "Identity" else "activation"
    weights = {"linear.weight": layer.kernel, "linear.bias": layer.bias}
    return {
        "in_features": layer.kernel.shape[0],
        "out_features": layer.units,
        "bias": layer.use_bias,
        "activation_function": f"torch.nn.modules.{place}.{activation}",
    }, {
        name: np.ascontiguousarray(keras.ops.convert_to_numpy(weight).T.astype("float32"))
        for name, weight in weights.items()
        if weight is not None
    }
