"""A run from its start to its end: batches, training, evaluation, prediction."""
