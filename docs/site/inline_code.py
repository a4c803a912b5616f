"""Inline code: names such as `kbs.AdamW` and `keras.Model` are links, and words stay whole."""

import re
from pathlib import Path

from docutils import nodes
from members import list_members
from rooms import TASK_PAGES
from sphinx import addnodes

import keras_bert_suite

API = Path(__file__).parents[1] / "api"
#: The full names of what the pages of the API describe, by the names that texts use.
NAMES = {
    name.rpartition(".")[2]: name
    for name in [
        *(f"keras_bert_suite.{name}" for name in keras_bert_suite.__all__),
        *re.findall(
            r"^ +(keras_bert_suite\.\S+)$",
            "".join(page.read_text("utf-8") for page in API.glob("*.rst")),
            re.M,
        ),
    ]
    # A lower-case word is a word: `objectives`, `get`.
    if re.search("[A-Z_]", name.rpartition(".")[2])
}
OURS = re.compile(
    rf"(?:kbs\.|keras_bert_suite\.(?:\w+\.)*)?({'|'.join(NAMES)})((?:\.[A-Za-z]\w*)*)(?:\(.*\))?",
    re.S,
)
OTHERS = re.compile(r"(keras|keras_hub|transformers)(\.[A-Za-z]\w*)+")
#: Code that is not broken at the end of a line, such as `--epochs` and `TextClassifier`.
WORD = re.compile(r"\S{1,32}")
#: Where code is no link.
OUTSIDE = (nodes.title, nodes.reference, addnodes.pending_xref, addnodes.desc_signature)


def find_target(code):
    """The full name that inline code begins with, or None."""
    if match := OURS.fullmatch(code):
        return NAMES[match[1]] + match[2]
    if OTHERS.fullmatch(code):
        return code


def link_names(app, doctree):
    methods = list_methods(app.env.docname)
    for literal in list(doctree.findall(nodes.literal)):
        if WORD.fullmatch(literal.astext()):
            literal["classes"].append("word")
        target = find_target(literal.astext()) or methods.get(literal.astext())
        if target and not any(isinstance(node, OUTSIDE) for node in list_parents(literal)):
            link = addnodes.pending_xref(
                "",
                refdomain="py",
                reftype="obj",
                reftarget=target,
                refdoc=app.env.docname,
                refexplicit=True,
                refwarn=False,
            )
            literal.replace_self(link)
            link += literal


def list_methods(document):
    """The full names of the methods of a task by the names that its page uses."""
    task = next((name for name, page in TASK_PAGES.items() if page == document), None)
    if task is None:
        return {}
    members = list_members(getattr(keras_bert_suite, task))
    return {name: f"{NAMES[task]}.{name}" for name, _ in members}


def list_parents(node):
    while node.parent is not None:
        node = node.parent
        yield node


def setup(app):
    app.connect("doctree-read", link_names)
    return {"parallel_read_safe": True}
