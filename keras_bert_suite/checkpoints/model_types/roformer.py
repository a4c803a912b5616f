"""RoFormer, and RoFormerV2, which calls itself RoFormer too."""

import warnings

from keras_bert_suite.checkpoints.model_types.bert import MASKED_LM
from keras_bert_suite.checkpoints.model_types.config_fields import BERT_FIELDS, Field
from keras_bert_suite.checkpoints.model_types.model_type import ModelType
from keras_bert_suite.checkpoints.model_types.name_table import (
    PYTORCH,
    hugging_face_heads,
    hugging_face_names,
)
from keras_bert_suite.checkpoints.tokenizer_files.word_piece import (
    BERT_CLASSES,
    read_hugging_face_tokenizer,
    read_lines,
)
from keras_bert_suite.files.messages import list_names


def read_roformer_tokenizer(directory):
    """The tokenizer of a Hugging Face checkpoint of a RoFormer. Warns of Chinese words.

    Some RoFormers have a vocabulary of Chinese words. transformers then cuts a text into words by
    rjieba, and splits only the words that are not in the vocabulary. `WordPieceTokenizer` always
    splits Chinese text into characters.
    """
    classes = (*BERT_CLASSES, "RoFormerTokenizerFast", "RoFormerTokenizer")
    arguments = read_hugging_face_tokenizer(directory, classes)
    warn_of_words(directory, arguments)
    return arguments


def warn_of_words(directory, arguments):
    """Warns if the vocabulary in the arguments of a `WordPieceTokenizer` has Chinese words."""
    vocabulary = arguments["vocabulary"]
    tokens = read_lines(vocabulary) if isinstance(vocabulary, str) else vocabulary
    words = [token for token in tokens if _is_chinese_word(token)]
    if words:
        warnings.warn(
            f"The vocabulary in {directory} has {len(words)} Chinese words, such as "
            f"{list_names(words[:3])}. The WordPieceTokenizer splits Chinese text into characters, "
            "so transformers gives other token ids. For its ids, pass packed arrays of its "
            "RoFormerTokenizer.",
            stacklevel=4,
        )


def warn_of_version_two(backbone):
    """Warns if transformers would compute another model from a file, and adds no fields to it."""
    if not backbone.use_bias or backbone.norm_type != "layer_norm":
        warnings.warn(
            f"transformers has no RoFormer with use_bias={backbone.use_bias} and "
            f"norm_type={backbone.norm_type!r}, and ignores these fields. The package `roformer` "
            "(JunnYu/RoFormer_pytorch) and this package read them.",
            stacklevel=4,
        )
    return {}


def _is_chinese_word(token):
    """Whether a token has two or more characters of the block of common Chinese characters."""
    return len(token) > 1 and all("\u4e00" <= character <= "\u9fff" for character in token)


#: RoFormer's head for choices is left out. It scores the last token of a row, which is mostly
#: padding.
ROWS = (
    *MASKED_LM,
    *PYTORCH.rows(("pooler", "sequence_summary.summary")),
    *hugging_face_heads(classifier=None, choice_scorer=None),
)

ROFORMER = ModelType(
    name="roformer",
    title="RoFormer",
    backbone="RoFormerBackbone",
    read_tokenizer=read_roformer_tokenizer,
    names=hugging_face_names(
        "roformer",
        ROWS,
        ("embeddings/projection", "embeddings_project"),
        without=("embeddings/position_embedding", "pooler/"),
        # The sines and cosines of positions.
        ignored=(r"roformer\.encoder\.embed_positions\.weight",),
    ),
    two_layer_classifier="classifier",
    classes="RoFormer",
    causal_class="ForCausalLM",
    fields=(
        *BERT_FIELDS,
        Field("embedding_dim", "embedding_size", "width"),
        Field("rotary_value", "rotary_value", "flag", False),
        # RoFormerV2
        Field("use_bias", "use_bias", "flag", True),
        Field("norm_type", "norm_type", "norm", "layer_norm"),
    ),
    write_more=warn_of_version_two,
)
