"""Checkpoints of Hugging Face and of sentence-transformers."""
