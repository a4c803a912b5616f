"""A small text embedder, and texts of two topics."""

import numpy as np
from small_texts import ONE_LAYER, VOCABULARY, make_reviews

from keras_bert_suite import BertBackbone, SegmentPacker, TextEmbedder, WordPieceTokenizer

LENGTH = 16


def make_embedder(dropout=0.0, dtype=None, **kwargs):
    # One length, so that JAX compiles each step once.
    packer = SegmentPacker(WordPieceTokenizer(VOCABULARY), LENGTH, padding_lengths=(LENGTH,))
    backbone = BertBackbone(**ONE_LAYER, dropout=dropout, dtype=dtype)
    return TextEmbedder(backbone, preprocessor=packer, **kwargs)


def make_pairs(num_rows, seed=0):
    """(first texts, second texts), and 1.0 where both have the word "good" or both lack it."""
    first, first_labels = make_reviews(num_rows, seed)
    second, second_labels = make_reviews(num_rows, seed + 1)
    scores = [float(a == b) for a, b in zip(first_labels, second_labels, strict=True)]
    return (first, second), np.array(scores, "float32")
