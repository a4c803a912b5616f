"""From what users pass to what a model sees. NumPy and a packer of texts: no model, no step."""
