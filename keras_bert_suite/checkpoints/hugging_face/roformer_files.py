"""Reads and writes what only RoFormer's files have: Chinese words, other choices, version 2."""

import warnings

from keras_bert_suite.checkpoints.model_types import activation_names
from keras_bert_suite.checkpoints.model_types.activation_names import find_theirs
from keras_bert_suite.checkpoints.tokenizer_files.word_piece import (
    BERT_CLASSES,
    read_hugging_face_tokenizer,
    read_lines,
)
from keras_bert_suite.files.messages import list_names


def read_roformer_tokenizer(directory):
    """The tokenizer of a Hugging Face checkpoint of a RoFormer.

    Some RoFormers have a vocabulary of Chinese words. transformers then cuts a text into words by
    rjieba, and splits only the words that are not in the vocabulary. `WordPieceTokenizer` always
    splits Chinese text into characters.

    Args, Returns, Raises: as for `read_hugging_face_tokenizer`.

    Warns:
        UserWarning: if there are Chinese words in the vocabulary.
    """
    classes = (*BERT_CLASSES, "RoFormerTokenizerFast", "RoFormerTokenizer")
    arguments = read_hugging_face_tokenizer(directory, classes)
    vocabulary = arguments["vocabulary"]
    pieces = read_lines(vocabulary) if isinstance(vocabulary, str) else vocabulary
    words = [piece for piece in pieces if _is_chinese_word(piece)]
    if words:
        warnings.warn(
            f"The vocabulary in {directory} has {len(words)} Chinese words, such as "
            f"{list_names(words[:3])}. The WordPieceTokenizer splits Chinese text into characters, "
            "so transformers gives other token ids. For its ids, pass packed arrays of its "
            "RoFormerTokenizer.",
            stacklevel=3,
        )
    return arguments


def scores_pooled_output(config):
    """Whether the head for choices of a RoFormer is that of `MultipleChoice`.

    By default transformers scores the state at the last position of a row, which in most rows is
    padding. With these fields it has our pooler, and scores the pooled output.

    Args:
        config: `ConfigValues`.
    """
    first, projected = config.get("summary_type") == "first", config.get("summary_use_proj") is True
    to_labels = config.get("summary_proj_to_labels")
    activated = config.get("summary_activation") == config.get("hidden_act")
    return first and projected and activated and not to_labels


def write_roformer(backbone):
    """Makes the fields that say how RoFormerForMultipleChoice scores a choice.

    Args:
        backbone: `RoFormerBackbone`.

    Returns:
        dict, see `scores_pooled_output`.

    Warns:
        UserWarning: if the backbone has no biases, or norms without weights.
    """
    if not backbone.use_bias or backbone.norm_type != "layer_norm":
        warnings.warn(
            f"transformers has no RoFormer with use_bias={backbone.use_bias} and "
            f"norm_type={backbone.norm_type!r}, and ignores these fields. The package `roformer` "
            "(JunnYu/RoFormer_pytorch) and this package read them.",
            stacklevel=4,
        )
    return {
        "summary_type": "first",
        "summary_use_proj": True,
        "summary_activation": find_theirs(
            backbone.activation, activation_names.HUGGING_FACE, "Hugging Face's RoFormer"
        ),
    }


def _is_chinese_word(piece):
    """Whether a token has two or more characters of the block of common Chinese characters."""
    return len(piece) > 1 and all("\u4e00" <= character <= "\u9fff" for character in piece)
