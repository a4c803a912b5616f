"""Writes safetensors files."""


def write_safetensors(path, tensors, metadata=None):
    """Writes a dict of name -> NumPy array. transformers asks for the metadata {"format": "pt"}."""
    from safetensors import SafetensorError
    from safetensors.numpy import save_file

    try:
        save_file(tensors, path, metadata=metadata)
    except SafetensorError as error:
        size = sum(tensor.nbytes for tensor in tensors.values())
        raise OSError(
            f"{path} could not be written: {error}. Make room for {size:,} bytes, or choose "
            "another path."
        ) from error
