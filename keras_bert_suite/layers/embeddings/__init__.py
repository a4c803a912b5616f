"""Embeddings of tokens, segments and positions."""
