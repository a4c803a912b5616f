"""`.. room:: heads`: the names that users import from the package, of one room."""

import importlib
import inspect

from sphinx.util.docutils import SphinxDirective

import keras_bert_suite


def list_names(room):
    """Names of `keras_bert_suite.__all__` that are defined in a room."""
    prefix = f"keras_bert_suite.{room}."
    return [
        name
        for name in keras_bert_suite.__all__
        # A module of names has no `__module__`.
        if f"{getattr(getattr(keras_bert_suite, name), '__module__', '')}.".startswith(prefix)
    ]


class Room(SphinxDirective):
    """A table of the names of a room, then each with its docstring.

    The content has further names, a line each, that are imported from the rooms themselves.
    """

    required_arguments = 1
    has_content = True

    def run(self):
        names = [f"keras_bert_suite.{name}" for name in list_names(self.arguments[0])]
        names += list(self.content)
        table = [".. autosummary::", "   :nosignatures:", "", *(f"   ~{name}" for name in names)]
        entries = [line for name in names for line in ("", *describe(name))]
        return self.parse_text_to_nodes("\n".join([*table, *entries]))


def describe(name):
    module, _, attribute = name.rpartition(".")
    if not inspect.isclass(getattr(importlib.import_module(module), attribute)):
        return [f".. autofunction:: {name}"]
    return [f".. autoclass:: {name}", "   :members:", "   :show-inheritance:"]


def setup(app):
    app.add_directive("room", Room)
    return {"parallel_read_safe": True}
