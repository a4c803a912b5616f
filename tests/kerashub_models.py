"""Small text encoders of KerasHub, each with its own preprocessor."""

import keras_hub
from small_texts import VOCABULARY

SIZES = {"num_layers": 1, "num_heads": 2, "hidden_dim": 8, "intermediate_dim": 8}
SEQUENCE_LENGTH = 16


def make_bert():
    """(backbone, preprocessor)."""
    backbone = keras_hub.models.BertBackbone(
        vocabulary_size=len(VOCABULARY), max_sequence_length=32, **SIZES
    )
    tokenizer = keras_hub.models.BertTokenizer(VOCABULARY, lowercase=True)
    return backbone, keras_hub.models.BertTextClassifierPreprocessor(tokenizer, SEQUENCE_LENGTH)


def make_distil_bert():
    """(backbone, preprocessor)."""
    backbone = keras_hub.models.DistilBertBackbone(
        vocabulary_size=len(VOCABULARY), max_sequence_length=32, **SIZES
    )
    tokenizer = keras_hub.models.DistilBertTokenizer(VOCABULARY, lowercase=True)
    return backbone, keras_hub.models.DistilBertTextClassifierPreprocessor(
        tokenizer, SEQUENCE_LENGTH
    )


def make_roberta():
    """(backbone, preprocessor); its vocabulary holds single bytes alone."""
    characters = ["Ġ", "th", *"abcdefghijklmnopqrstuvwxyz.!,"]
    tokens = ["<s>", "<pad>", "</s>", "<unk>", *characters, "<mask>"]
    vocabulary = {token: i for i, token in enumerate(tokens)}
    tokenizer = keras_hub.models.RobertaTokenizer(vocabulary, merges=["t h"])
    backbone = keras_hub.models.RobertaBackbone(
        vocabulary_size=len(tokens), max_sequence_length=32, **SIZES
    )
    return backbone, keras_hub.models.RobertaTextClassifierPreprocessor(tokenizer, SEQUENCE_LENGTH)


MODELS = {"BERT": make_bert, "DistilBERT": make_distil_bert, "RoBERTa": make_roberta}
