"""Masking: which tokens pretraining hides or moves, and which tokens it predicts."""
