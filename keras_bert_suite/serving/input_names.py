"""The names of the inputs of a served model."""

import keyword
import re


def choose_input_names(task, inputs=None):
    """Chooses the names of the inputs, a tuple: `inputs`, or else the names of the task.

    They are the texts of a row, and then the columns beside them. `inputs` may name the texts
    alone. More or fewer names, and names that a SavedModel cannot have, are a ValueError.
    """
    known = task.input_names
    columns = tuple(getattr(getattr(task, "data", None), "columns", ()))
    names = inputs if inputs is not None else known or ("text",)
    names = (names,) if isinstance(names, str) else tuple(names)
    if len(names) <= len(known or names):
        names = (*names, *columns)
    names = check_signature_names(names)
    if known is not None and len(names) != len(known) + len(columns):
        beside = f", and the columns {', '.join(columns)}" if columns else ""
        raise ValueError(
            f"{task.name} was trained with rows of {len(known)} texts, {', '.join(known)}{beside}, "
            f"and inputs={names} names {len(names)}."
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
