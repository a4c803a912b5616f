"""Inputs of an encoder that are no tokens: frames in the place of token ids, a condition."""

from collections.abc import Iterable
from typing import Any

import keras

#: The name of the input that takes the place of `token_ids`.
FRAMES = "frames"

#: The name of the input on which the norms depend.
CONDITION = "condition"


def check_tokens(**sizes: Any) -> dict[str, Any]:
    """The size that says what an encoder reads: one of `sizes`, all of which may be None.

    Raises:
        ValueError: if there is none, or more than one.
    """
    given = {name: size for name, size in sizes.items() if size is not None}
    if len(given) != 1:
        shown = " and ".join(f"{name}={size}" for name, size in sizes.items())
        characters = " their characters (characters)," if "characters" in sizes else ""
        raise ValueError(
            f"An encoder reads the tokens of a vocabulary (vocabulary_size),{characters} or "
            f"vectors in their place (frame_dim), got {shown}. Give one of them, and None for the "
            "others."
        )
    return given


def name_frame_inputs(names: Iterable[str]) -> tuple[str, ...]:
    """The names of inputs with `frames` in the place of `token_ids`."""
    return tuple(FRAMES if name == "token_ids" else name for name in names)


def make_inputs(names: Iterable[str], frame_dim: int | None) -> dict[str, Any]:
    """Symbolic inputs by name: int32 (B, L), and `frames` float32 (B, L, D)."""
    return {
        name: keras.Input((None, frame_dim), dtype="float32", name=name)
        if name == FRAMES
        else keras.Input((None,), dtype="int32", name=name)
        for name in names
    }
