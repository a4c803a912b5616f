"""Finds the adapters of a SavedModel of `export_adapters`, without TensorFlow and Keras."""

import os
from pathlib import Path


def find_served(path: str | os.PathLike[str], adapter: str | None = None) -> Path:
    """The folder in a SavedModel that describes its task, or that of an adapter.

    Args:
        path: str or path of the SavedModel.
        adapter: str, the name of one of several adapters; None for a SavedModel of one task.

    Raises:
        ValueError: if the SavedModel has no such adapter, or has adapters and none is named.
    """
    extra = Path(path) / "assets.extra"
    adapters = sorted(file.parent.name for file in extra.glob("*/task.json"))
    if adapter in adapters or (adapter is None and not adapters):
        return extra / (adapter or "")
    named = f"the adapters {', '.join(adapters)}" if adapters else "one task, and no adapters"
    remedy = "Choose one of them by `adapter`" if adapters else "Leave `adapter` out"
    raise ValueError(f"{path} has {named}, got adapter={adapter!r}. {remedy}.")


def name_arrays(adapter: str) -> str:
    """The name of the signature of an adapter that takes packed arrays."""
    return f"{adapter}_arrays"
