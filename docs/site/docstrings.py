"""Reads docstrings, which write code as Markdown does, as reStructuredText."""

import inspect
import re

from links import find_public_name
from sphinx.util import inspect as sphinx_inspect

import keras_bert_suite


def translate(app, what, name, obj, options, lines):
    """Rewrites a docstring in place, before napoleon reads its sections."""
    translated, margin = [], None
    for line in join_names(lines):
        fence = re.match(r"(\s*)```(\w*)\s*$", line)
        if fence and margin is None:
            margin = fence[1]
            translated += ["", f"{margin}.. code-block:: {fence[2] or 'text'}", ""]
        elif fence:
            margin = None
            translated.append("")
        else:
            translated.append(escape(line) if margin is None else f"    {line}" if line else "")
    lines[:] = translated


def join_names(lines):
    """Joins lines with the names of arguments that one text describes: "a, b,", "**kwargs: c"."""
    joined = []
    for line in lines:
        if joined and re.match(r"\s*(\w+, )+\w+,$", joined[-1]):
            joined[-1] += " " + line.strip()
        else:
            joined.append(line)
    return joined


def escape(line):
    """Marks what is markup in reStructuredText alone, outside of backticks."""
    parts = line.split("`")
    for i in range(0, len(parts), 2):
        parts[i] = re.sub(r"(\*\*\w[^*]*\*\*)|([|*])", escape_mark, parts[i])
        # Code ends before a letter: `tf.Example`s.
        if i and re.match(r"\w", parts[i]):
            parts[i] = "\\ " + parts[i]
    return "`".join(parts)


def escape_mark(match):
    """Bold words stay bold. Other asterisks and bars are characters."""
    return match[1] or f"\\{match[2]}"


def find_signature(app, what, name, obj, options, signature, return_annotation):
    """The arguments of a constructor, which `__new__` of Keras' layers and optimizers hides."""
    if what != "class" or not inspect.isfunction(obj.__init__):
        return None
    found = sphinx_inspect.signature(obj.__init__, bound_method=True)
    found = found.replace(return_annotation=inspect.Signature.empty)
    return sphinx_inspect.stringify_signature(found, unqualified_typehints=True), None


def name_bases(app, name, obj, options, bases):
    """Writes bases by their full names: `TextClassifier` of this package has one of KerasHub."""
    bases[:] = [f":py:obj:`{find_full_name(base)}`" for base in bases]


def find_full_name(cls):
    """The name by which users import a class."""
    if cls.__name__ in keras_bert_suite.__all__ and cls.__module__.startswith("keras_bert_suite."):
        return f"keras_bert_suite.{cls.__name__}"
    if cls is object:
        return "object"
    return find_public_name(f"{cls.__module__}.{cls.__qualname__}")


def setup(app):
    app.connect("autodoc-process-signature", find_signature)
    app.connect("autodoc-process-bases", name_bases)
    # Napoleon has the priority 500, and takes a line that ends in a colon for a section.
    app.connect("autodoc-process-docstring", translate, priority=400)
    return {"parallel_read_safe": True}
