"""The functions that split Chinese into words, and which functions a file keeps."""

import sys
from collections.abc import Callable
from typing import Any

import keras

#: The segmenters that are saved by their name: name of the module -> its function.
NAMED_SEGMENTERS = {"jieba": "lcut"}


def name_segmenter(segmenter: Any) -> Any:
    """The name of a segmenter that has one; any other segmenter as it is.

    >>> name_segmenter(jieba.lcut), name_segmenter("jieba")
    ('jieba', 'jieba')
    """
    if isinstance(segmenter, str) and segmenter not in NAMED_SEGMENTERS:
        raise ValueError(
            f"word_segmenter must be {', '.join(map(repr, NAMED_SEGMENTERS))}, or a function from "
            f"a str to the list of its words, got {segmenter!r}."
        )
    for name, attribute in NAMED_SEGMENTERS.items():
        # Who passes a function of a module has imported the module.
        if segmenter == getattr(sys.modules.get(name), attribute, None) is not None:
            return name
    return segmenter


def find_segmenter(segmenter: Any) -> Callable[[str], list[str]] | None:
    """The function of a name, with an installed module, or of a result of `name_segmenter`."""
    if not isinstance(segmenter, str):
        return segmenter
    try:
        module = __import__(segmenter)
    except ImportError as error:
        raise ImportError(
            f"word_segmenter={segmenter!r} needs the package {segmenter}: pip install {segmenter}"
        ) from error
    return getattr(module, NAMED_SEGMENTERS[segmenter])


def check_saved_functions(masking: dict[str, Any]) -> None:
    """Raises a ValueError if a file could not give back a function of a `TokenMasker`."""
    for name, value in masking.items():
        if callable(value) and not _is_kept(value):
            raise ValueError(
                f"masking has {name}={value!r}, and a file with this function could not be loaded. "
                "Put the function at the top of a module, under @keras.saving."
                "register_keras_serializable(). jieba is known by its name: "
                "word_segmenter='jieba'."
            )


def _is_kept(function):
    if getattr(function, "__name__", None) == "<lambda>":
        return False
    try:
        config = keras.saving.serialize_keras_object(function)
        twin = keras.saving.deserialize_keras_object(config)
    except (TypeError, ValueError):
        return False
    return twin is function or (type(twin) is type(function) and hasattr(function, "get_config"))
