"""Heads on the hidden states: for masked tokens, labels of words, and spans."""
