"""Reads docstrings, which write code as Markdown does, as reStructuredText."""

import re


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
        parts[i] = re.sub(r"([|*])", r"\\\1", parts[i])
        # Code ends before a letter: `tf.Example`s.
        if i and re.match(r"\w", parts[i]):
            parts[i] = "\\ " + parts[i]
    return "`".join(parts)


def setup(app):
    # Napoleon has the priority 500, and takes a line that ends in a colon for a section.
    app.connect("autodoc-process-docstring", translate, priority=400)
    return {"parallel_read_safe": True}
