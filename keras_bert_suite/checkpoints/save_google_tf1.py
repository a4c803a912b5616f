"""Writing a model as a checkpoint of the original google-research/bert."""

import warnings

import keras
import keras_hub

from keras_bert_suite.annotations import PathLike
from keras_bert_suite.checkpoints.google_tf1 import GELU_APPROXIMATE, LAYER_NORM_EPSILON
from keras_bert_suite.checkpoints.name_tables import GOOGLE_TF1
from keras_bert_suite.checkpoints.tensor_bundle import write_bundle
from keras_bert_suite.checkpoints.tokenizer_files import SPECIAL_TOKENS, check_vocabulary
from keras_bert_suite.checkpoints.writer_parts import collect_weights, convert_weights, make_config
from keras_bert_suite.files.atomic_directory import atomic_directory
from keras_bert_suite.files.atomic_file import write_json
from keras_bert_suite.files.messages import name_of

_OWNER = "Google's BERT"

#: The name of an activation function, ours or Keras' -> `hidden_act`.
_HIDDEN_ACTS = {
    "gelu_tanh": "gelu",
    "gelu_erf": "gelu",
    "gelu": "gelu",  # keras.activations.gelu, which is exact unless asked otherwise
    "relu": "relu",
    "tanh": "tanh",
}


def save_google_tf1(
    model: keras.Model, path: PathLike, tokenizer: keras_hub.tokenizers.Tokenizer | None = None
) -> None:
    """Writes a directory laid out as the models that Google released.

    Its `bert_model.ckpt` is what run_pretraining.py, run_classifier.py and others take as
    `--init_checkpoint`. It is written without TensorFlow.

    It holds bert_config.json, bert_model.ckpt.index and bert_model.ckpt.data-00000-of-00001
    in float32, and with a tokenizer vocab.txt. It appears whole or, on any error, not at all.

    The format does not store the names of labels, nor whether text is lowercased, which
    Google's scripts are told with `--do_lower_case`.

    Args:
        model: `BertBackbone`, or a task with a `.backbone` and no weights of its own but
            those of a `Pretrainer`, or of a layer called "classifier" on the pooled output.
        path: str or path of the directory, which must not exist.
        tokenizer: `WordPieceTokenizer`, or None to write none.

    Raises:
        FileExistsError: if `path` exists.
        OSError: if the disk is full.
        ValueError: if the format has no place for what the model is: a backbone other than
            `BertBackbone`, a `layer_norm_epsilon` other than 1e-12, another activation than
            "gelu_tanh", "gelu_erf", "relu" and "tanh", other weights; or for what the
            tokenizer is; or if the sizes of vocabulary and embeddings differ.

    Warns:
        UserWarning: if the activation is "gelu_erf". `open_checkpoint`, bert4keras and the
            converter of transformers compute it, but Google's code has "gelu_tanh" alone.
    """
    backbone = getattr(model, "backbone", model)
    config = make_config(backbone, _HIDDEN_ACTS, _OWNER)
    is_exact_gelu = name_of(backbone.activation) in ("gelu", "gelu_erf")
    if is_exact_gelu:
        config[GELU_APPROXIMATE] = False
    if backbone.embedding_dim != backbone.hidden_dim:
        config["embedding_size"] = backbone.embedding_dim  # bert4keras' name
    if backbone.layer_norm_epsilon != LAYER_NORM_EPSILON:
        raise ValueError(
            f"{_OWNER} normalises with an epsilon of {LAYER_NORM_EPSILON}, got layer_norm_epsilon="
            f"{backbone.layer_norm_epsilon}. Use `model.save`."
        )
    weights = collect_weights(model, GOOGLE_TF1, _OWNER)
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


def _check_settings(tokenizer):
    """Checks that a tokenizer is what Google's scripts have built in."""
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
