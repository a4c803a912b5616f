"""Small text encoders of KerasHub, each with its own preprocessor."""

import io

import keras_hub
from small_texts import VOCABULARY, WORDS

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


def train_sentence_pieces(**kwargs):
    """bytes, a SentencePiece model of the words of small texts."""
    import sentencepiece

    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([" ".join(WORDS), "un ly s . , !"] * 4),
        model_writer=model,
        vocab_size=60,
        hard_vocab_limit=False,
        minloglevel=2,
        **kwargs,
    )
    return model.getvalue()


def make_albert():
    """(backbone, preprocessor); both layers have the same weights."""
    tokenizer = keras_hub.models.AlbertTokenizer(
        train_sentence_pieces(
            **{"pad_id": 0, "unk_id": 1, "bos_id": 2, "eos_id": 3},
            **{"pad_piece": "<pad>", "bos_piece": "[CLS]", "eos_piece": "[SEP]"},
            user_defined_symbols="[MASK]",
        )
    )
    backbone = keras_hub.models.AlbertBackbone(
        vocabulary_size=tokenizer.vocabulary_size(),
        max_sequence_length=32,
        embedding_dim=4,
        **{**SIZES, "num_layers": 2},
    )
    return backbone, keras_hub.models.AlbertTextClassifierPreprocessor(tokenizer, SEQUENCE_LENGTH)


def make_deberta_v3():
    """(backbone, preprocessor)."""
    tokenizer = keras_hub.models.DebertaV3Tokenizer(
        train_sentence_pieces(
            **{"pad_id": 0, "bos_id": 1, "eos_id": 2, "unk_id": 3},
            **{"pad_piece": "[PAD]", "bos_piece": "[CLS]", "eos_piece": "[SEP]"},
            unk_piece="[UNK]",
            user_defined_symbols="[MASK]",
        )
    )
    backbone = keras_hub.models.DebertaV3Backbone(
        vocabulary_size=tokenizer.vocabulary_size(),
        max_sequence_length=32,
        bucket_size=8,
        **SIZES,
    )
    return backbone, keras_hub.models.DebertaV3TextClassifierPreprocessor(
        tokenizer, SEQUENCE_LENGTH
    )


def make_xlm_roberta():
    """(backbone, preprocessor)."""
    tokenizer = keras_hub.models.XLMRobertaTokenizer(
        train_sentence_pieces(unk_id=0, bos_id=1, eos_id=2)
    )
    backbone = keras_hub.models.XLMRobertaBackbone(
        vocabulary_size=tokenizer.vocabulary_size(), max_sequence_length=32, **SIZES
    )
    return backbone, keras_hub.models.XLMRobertaTextClassifierPreprocessor(
        tokenizer, SEQUENCE_LENGTH
    )


def make_electra():
    """(backbone, preprocessor). KerasHub has none for ELECTRA, so it is BERT's."""
    backbone = keras_hub.models.ElectraBackbone(
        vocab_size=len(VOCABULARY), max_sequence_length=32, embedding_dim=4, **SIZES
    )
    tokenizer = keras_hub.models.ElectraTokenizer(VOCABULARY, lowercase=True)
    return backbone, keras_hub.models.BertTextClassifierPreprocessor(tokenizer, SEQUENCE_LENGTH)


#: All text encoders of KerasHub that heads are tested on.
ENCODERS = {
    **MODELS,
    "ALBERT": make_albert,
    "DeBERTaV3": make_deberta_v3,
    "ELECTRA": make_electra,
    "XLM-RoBERTa": make_xlm_roberta,
}
