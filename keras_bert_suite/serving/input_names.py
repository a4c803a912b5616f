"""What a served model calls the texts of a row."""

import keyword
import re


def choose_input_names(task, inputs=None):
    """Chooses the names of the texts of a row: the names in `inputs`, or else the task's.

    Args:
        task: a task with `input_names`.
        inputs: a name, several, or None.

    Returns:
        tuple of str.

    Raises:
        ValueError: if the task was trained on more or fewer texts a row, or a name is not one
            that a SavedModel can have.
    """
    known = task.input_names
    names = check_signature_names(inputs if inputs is not None else known or ("text",))
    if known is not None and len(names) != len(known):
        raise ValueError(
            f"{task.name} was trained with {len(known)} texts a row, {', '.join(known)}, and "
            f"inputs={names} names {len(names)}. Name as many, or leave `inputs` out."
        )
    return names


def check_signature_names(inputs):
    """A name, or several, as a tuple.

    Raises:
        ValueError: if there are none, two are the same, or a SavedModel cannot have one of them.
    """
    names = (inputs,) if isinstance(inputs, str) else tuple(inputs)
    if not names or len(set(names)) != len(names) or not all(map(_is_input_name, names)):
        raise ValueError(
            "The inputs of a SavedModel must be different names that begin with an English letter "
            "and hold English letters, digits and underscores, such as ('text',) or ('premise', "
            f"'hypothesis'), got {names}. Pass such names as `inputs`."
        )
    return names


def _is_input_name(name):
    # TensorFlow makes them keyword arguments of a method.
    reserved = keyword.iskeyword(name) or name == "self"
    return not reserved and re.fullmatch("[A-Za-z][A-Za-z0-9_]*", name) is not None
