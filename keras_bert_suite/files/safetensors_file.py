"""Writes safetensors files."""


def write_safetensors(path, tensors, metadata=None):
    """Writes a safetensors file.

    Args:
        path: `pathlib.Path`.
        tensors: dict of name -> NumPy array.
        metadata: dict of str -> str, such as `{"format": "pt"}`, which transformers asks for.

    Raises:
        OSError: if the file could not be written, for example because the disk is full.
    """
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
