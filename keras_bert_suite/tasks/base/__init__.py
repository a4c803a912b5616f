"""What all tasks share: rows to batches, training, answers, saving."""
