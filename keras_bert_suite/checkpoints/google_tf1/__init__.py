"""Checkpoints of google-research/bert, in TensorFlow 1's format."""
