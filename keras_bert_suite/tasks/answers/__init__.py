"""From the outputs of a model to what a person reads. No Keras: NumPy and the names of labels."""
