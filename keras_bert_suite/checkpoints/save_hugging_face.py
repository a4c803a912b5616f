"""Writing a model as a Hugging Face checkpoint."""

import json

import keras
import numpy as np

from keras_bert_suite.checkpoints.atomic_directory import atomic_directory
from keras_bert_suite.checkpoints.load_weights import weights_by_path
from keras_bert_suite.checkpoints.name_tables import HUGGING_FACE
from keras_bert_suite.checkpoints.tokenizer_files import check_vocabulary, write_tokenizer

#: The name of an activation function, ours or Keras' -> `hidden_act`.
_HIDDEN_ACTS = {
    "gelu": "gelu",  # keras.activations.gelu, which is exact unless asked otherwise
    "gelu_erf": "gelu",
    "gelu_tanh": "gelu_new",
    "relu": "relu",
    "silu": "silu",
    "tanh": "tanh",
}


def save_hugging_face(model, path, tokenizer=None, label_names=None):
    """Writes a directory that `transformers` loads as the model it is.

    That is BertModel, BertForSequenceClassification, BertForPreTraining or BertForMaskedLM.

    It holds config.json, model.safetensors in float32, and with a tokenizer vocab.txt
    and tokenizer_config.json. It appears whole or, on any error, not at all.

    Args:
        model: `BertBackbone`, or a task with a `.backbone` and no weights of its own but
            those of a `Pretrainer`, or of a layer called "classifier" on the pooled output.
        path: str or path of the directory, which must not exist.
        tokenizer: `WordPieceTokenizer`, or None to write none.
        label_names: list of str, the classes in the order of their ids. Defaults to the
            model's own `label_names`, and if it has none to LABEL_0, LABEL_1 and so on.

    Raises:
        FileExistsError: if `path` exists.
        OSError: if the disk is full.
        ValueError: if the format has no place for what the model is: an `embedding_dim`
            other than `hidden_dim`, another activation, other weights; or if the sizes of
            vocabulary or labels are not the model's.
    """
    backbone = getattr(model, "backbone", model)
    weights = weights_by_path(model)
    config = _make_config(backbone)
    strangers = [weight for weight in weights if HUGGING_FACE.their_name(weight) is None]
    if strangers:
        raise ValueError(
            f"Hugging Face's BERT has no place for these weights of {model.name!r}: "
            f"{', '.join(strangers)}. Save its `backbone` alone, or use `model.save`."
        )
    config["architectures"] = [_find_architecture(weights)]
    if "classifier/kernel" in weights:
        label_names = label_names or getattr(model, "label_names", None)
        config.update(_label_maps(label_names, weights["classifier/kernel"].shape[-1]))
    elif label_names is not None:
        raise ValueError(
            f"{model.name!r} has no classifier, so `label_names` must be None, got {label_names!r}."
        )
    if tokenizer is not None:
        check_vocabulary(tokenizer.vocabulary_size(), backbone.vocabulary_size)
        config["pad_token_id"] = tokenizer.pad_token_id

    with atomic_directory(path) as directory:
        text = json.dumps(config, indent=2, ensure_ascii=False) + "\n"
        (directory / "config.json").write_text(text, encoding="utf-8")
        if tokenizer is not None:
            write_tokenizer(tokenizer, backbone.max_sequence_length, directory)
        _write_tensors(dict(_convert(weights)), directory / "model.safetensors")


def _find_architecture(weights):
    """The class of `transformers` that has these weights."""
    for path, name in (
        ("classifier/kernel", "BertForSequenceClassification"),
        ("next_sentence/kernel", "BertForPreTraining"),
        ("masked_lm/bias", "BertForMaskedLM"),
    ):
        if path in weights:
            return name
    return "BertModel"


def _make_config(backbone):
    if backbone.embedding_dim != backbone.hidden_dim:
        raise ValueError(
            "Hugging Face's BERT has embeddings as wide as its hidden states, got embedding_dim="
            f"{backbone.embedding_dim} and hidden_dim={backbone.hidden_dim}. Use `model.save`."
        )
    activation = getattr(backbone.activation, "__name__", None)
    if activation not in _HIDDEN_ACTS:
        raise ValueError(
            f"Hugging Face's BERT has no activation {backbone.activation!r}; wanted one of "
            f"{', '.join(_HIDDEN_ACTS)}. Use `model.save`."
        )
    return {
        "attention_probs_dropout_prob": backbone.attention_dropout,
        "hidden_act": _HIDDEN_ACTS[activation],
        "hidden_dropout_prob": backbone.dropout,
        "hidden_size": backbone.hidden_dim,
        "initializer_range": backbone.initializer_range,
        "intermediate_size": backbone.intermediate_dim,
        "layer_norm_eps": backbone.layer_norm_epsilon,
        "max_position_embeddings": backbone.max_sequence_length,
        "model_type": "bert",
        "num_attention_heads": backbone.num_heads,
        "num_hidden_layers": backbone.num_layers,
        "pad_token_id": 0,
        "type_vocab_size": backbone.num_segments,
        "vocab_size": backbone.vocabulary_size,
    }


def _label_maps(label_names, num_classes):
    if label_names is None:
        label_names = [f"LABEL_{i}" for i in range(num_classes)]
    if len(label_names) != num_classes or len(set(label_names)) != num_classes:
        raise ValueError(
            f"label_names must be {num_classes} different names, one for each output of the "
            f"classifier, got {list(label_names)}."
        )
    return {
        "id2label": {str(i): name for i, name in enumerate(label_names)},
        "label2id": {name: i for i, name in enumerate(label_names)},
    }


def _convert(weights):
    """Yields their (name, tensor) for each of our weights."""
    for path, weight in weights.items():
        name, transform = HUGGING_FACE.their_name(path)
        value = keras.ops.convert_to_numpy(keras.ops.cast(weight, "float32"))
        yield name, np.ascontiguousarray(transform(value))


def _write_tensors(tensors, path):
    from safetensors import SafetensorError
    from safetensors.numpy import save_file

    try:
        save_file(tensors, path, metadata={"format": "pt"})
    except SafetensorError as error:
        size = sum(tensor.nbytes for tensor in tensors.values())
        raise OSError(
            f"{path} could not be written: {error}. Make room for {size:,} bytes, or choose "
            "another path."
        ) from error
