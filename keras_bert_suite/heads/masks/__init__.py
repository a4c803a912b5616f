"""Guesses for masked tokens of texts."""
