"""Pretraining of an encoder: masked tokens, pairs of texts, replaced tokens."""
