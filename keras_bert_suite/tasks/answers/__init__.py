"""From the outputs of a model to what a person reads. NumPy and the names of labels."""
