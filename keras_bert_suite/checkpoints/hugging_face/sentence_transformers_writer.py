"""Writes an embedder as a directory of sentence-transformers."""

import keras

from keras_bert_suite.annotations import PathLike
from keras_bert_suite.checkpoints.hugging_face.sentence_transformers import POOLINGS
from keras_bert_suite.checkpoints.hugging_face.writer import save_hugging_face
from keras_bert_suite.files.atomic_directory import atomic_directory
from keras_bert_suite.files.atomic_file import write_json

#: The flags by which every version of sentence-transformers knows the poolings.
_FLAGS = {
    "cls": "pooling_mode_cls_token",
    "max": "pooling_mode_max_tokens",
    "mean": "pooling_mode_mean_tokens",
}


def save_sentence_transformers(embedder: keras.Model, path: PathLike) -> None:
    """Writes a directory that sentence-transformers opens, with the same vectors.

    The directory holds the encoder as `save_hugging_face` writes it, modules.json,
    sentence_bert_config.json, config_sentence_transformers.json and the folder of the pooling. If
    there is an error, no directory is written.

    Args:
        embedder: `TextEmbedder` on a `BertBackbone` or `RobertaBackbone`, with a `SegmentPacker`.
        path: str or path of the directory, which must not exist.

    Raises:
        FileExistsError: if `path` exists.
        OSError: if the disk is full.
        ValueError: if the format cannot hold the embedder, its pooling or its preprocessor.
    """
    packer, pooling = embedder.preprocessor, embedder.pooling_name
    if pooling not in POOLINGS:
        raise ValueError(
            f"sentence-transformers has no module for {type(embedder.pooling).__name__}, wanted "
            f"one of the poolings {', '.join(POOLINGS)}. Use `save` or `save_to_preset`."
        )
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
    width = embedder.backbone.hidden_dim
    modules = [("", "Transformer"), ("1_Pooling", "Pooling")]
    if embedder.normalize:
        modules.append(("2_Normalize", "Normalize"))
    with atomic_directory(path) as directory:
        encoder = directory / "encoder"
        length = packer.sequence_length
        save_hugging_face(embedder.backbone, encoder, packer.tokenizer, sequence_length=length)
        for file in encoder.iterdir():
            file.rename(directory / file.name)
        encoder.rmdir()
        for folder, _ in modules[1:]:
            (directory / folder).mkdir()
        write_json(
            directory / "modules.json",
            [
                {
                    "idx": number,
                    "name": str(number),
                    "path": folder,
                    "type": f"sentence_transformers.models.{kind}",
                }
                for number, (folder, kind) in enumerate(modules)
            ],
        )
        write_json(
            directory / "sentence_bert_config.json",
            {"max_seq_length": packer.sequence_length, "do_lower_case": False},
        )
        write_json(
            directory / "config_sentence_transformers.json",
            {
                "prompts": dict(embedder.prompts),
                "default_prompt_name": None,
                "similarity_fn_name": "cosine",
            },
        )
        write_json(
            directory / "1_Pooling" / "config.json",
            {
                "word_embedding_dimension": width,
                **{flag: name == pooling for name, flag in _FLAGS.items()},
                # Versions before 2.3 do not know this flag.
                **({"pooling_mode_lasttoken": True} if pooling == "last" else {}),
                "pooling_mode_mean_sqrt_len_tokens": False,
            },
        )
