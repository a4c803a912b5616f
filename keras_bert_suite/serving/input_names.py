"""The names of the text inputs of a served model."""

import keyword
import re


def choose_input_names(task, inputs=None):
    """Chooses the names of the texts of a row, a tuple: `inputs`, or else the names of the task.

    More or fewer names than texts, and names that a SavedModel cannot have, are a ValueError.
    """
    known = task.input_names
    names = check_signature_names(inputs if inputs is not None else known or ("text",))
    if known is not None and len(names) != len(known):
        raise ValueError(
            f"{task.name} was trained with rows of {len(known)} texts, {', '.join(known)}, and "
            f"inputs={names} names {len(names)}."
        )
    return names


def check_signature_names(inputs):
    """The names of the inputs of a SavedModel, a tuple. Equal or impossible ones are an error."""
    names = (inputs,) if isinstance(inputs, str) else tuple(inputs)
    if not names or len(set(names)) != len(names) or not all(map(_is_input_name, names)):
        raise ValueError(
            "The inputs of a SavedModel must be different names that begin with an English letter "
            "and hold English letters, digits and underscores, such as ('premise', 'hypothesis'), "
            f"got {names}. Pass such names as `inputs`."
        )
    return names


def _is_input_name(name):
    # TensorFlow makes them keyword arguments of a method.
    reserved = keyword.iskeyword(name) or name == "self"
    return not reserved and re.fullmatch("[A-Za-z][A-Za-z0-9_]*", name) is not None
