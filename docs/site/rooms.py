"""`.. room:: heads`: the names that users import from the package, of one room."""

import dataclasses
import importlib
import inspect
from pathlib import Path

from members import BASES, list_members
from sphinx.util.docutils import SphinxDirective

import keras_bert_suite

#: The page of each task, by the name of its class, which is the title.
TASK_PAGES = {
    path.read_text("utf-8").split("\n", 1)[0].removeprefix("# "): f"docs/tasks/{path.stem}"
    for path in sorted((Path(__file__).parents[1] / "tasks").glob("[!R]*.md"))
}


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
    """A table of the names of a room, then each with its docstring, unless it has its own page.

    The content has further names, a line each, that are imported from the rooms themselves.
    """

    required_arguments = 1
    has_content = True

    def run(self):
        public = list_names(self.arguments[0])
        further = list(self.content)
        described = [f"keras_bert_suite.{name}" for name in public if name not in TASK_PAGES]
        names = [*(f"keras_bert_suite.{name}" for name in public), *further]
        table = [".. autosummary::", "   :nosignatures:", "", *(f"   ~{name}" for name in names)]
        entries = [line for name in [*described, *further] for line in ("", *describe(name))]
        return self.parse_text_to_nodes("\n".join([*table, *entries]))


def describe(name):
    """The lines of reStructuredText that describe a class or a function."""
    module, _, attribute = name.rpartition(".")
    found = getattr(importlib.import_module(module), attribute)
    if not inspect.isclass(found):
        return [f".. autofunction:: {name}"]
    lines = [f".. autoclass:: {name}", "   :show-inheritance:"]
    if found in BASES or dataclasses.is_dataclass(found):
        return [*lines, "   :members:"]
    for member, is_property in list_members(found):
        kind = "autoproperty" if is_property else "automethod"
        lines += ["", f"   .. {kind}:: {name}.{member}"]
    return lines


def setup(app):
    app.add_directive("room", Room)
    return {"parallel_read_safe": True}
