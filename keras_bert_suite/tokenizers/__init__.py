"""Text to token ids, with the offsets of each token; a folder for each kind of tokenizer."""

from keras_bert_suite.tokenizers.byte_pair.byte_pair_tokenizer import BytePairTokenizer
from keras_bert_suite.tokenizers.byte_pair.modern_bert_tokenizer import ModernBertTokenizer
from keras_bert_suite.tokenizers.byte_pair.vocabulary_training import train_byte_pairs
from keras_bert_suite.tokenizers.characters.character_tokenizer import CharacterTokenizer
from keras_bert_suite.tokenizers.open_tokenizer import TOKENIZERS, open_tokenizer
from keras_bert_suite.tokenizers.sentence_piece.albert_tokenizer import AlbertTokenizer
from keras_bert_suite.tokenizers.sentence_piece.mbart_tokenizer import MBartTokenizer
from keras_bert_suite.tokenizers.sentence_piece.sentence_piece_tokenizer import (
    SentencePieceTokenizer,
)
from keras_bert_suite.tokenizers.sentence_piece.vocabulary_training import train_sentence_pieces
from keras_bert_suite.tokenizers.sentence_piece.xlm_roberta_tokenizer import XLMRobertaTokenizer
from keras_bert_suite.tokenizers.sentence_piece.xlnet_tokenizer import XLNetTokenizer
from keras_bert_suite.tokenizers.trimming import trim_vocabulary
from keras_bert_suite.tokenizers.word_piece.vocabulary_training import train_vocabulary
from keras_bert_suite.tokenizers.word_piece.word_piece_tokenizer import WordPieceTokenizer

__all__ = [
    "TOKENIZERS",
    "AlbertTokenizer",
    "BytePairTokenizer",
    "CharacterTokenizer",
    "MBartTokenizer",
    "ModernBertTokenizer",
    "SentencePieceTokenizer",
    "WordPieceTokenizer",
    "XLMRobertaTokenizer",
    "XLNetTokenizer",
    "open_tokenizer",
    "trim_vocabulary",
    "train_byte_pairs",
    "train_sentence_pieces",
    "train_vocabulary",
]
