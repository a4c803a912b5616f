"""Text to token ids, with the offsets of each token; a folder for each kind of tokenizer."""

from keras_bert_suite.tokenizers.word_piece.vocabulary_training import train_vocabulary
from keras_bert_suite.tokenizers.word_piece.word_piece_tokenizer import WordPieceTokenizer

__all__ = ["WordPieceTokenizer", "train_vocabulary"]
