"""From what users pass to what a model sees. No Keras: NumPy and a packer of texts."""
