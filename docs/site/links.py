"""Links that lead elsewhere on the site than in the repository, and pages below a page."""

import re
from pathlib import Path

from docutils import nodes

import keras_bert_suite

#: Pages of other libraries, by the beginning of a name. The rest of the name replaces "{}".
LIBRARIES = {
    "keras.": "https://www.tensorflow.org/api_docs/python/tf/keras/{}",
    "keras_hub.": "https://keras.io/keras_hub/api/",
    "tf.": "https://www.tensorflow.org/api_docs/python/tf/{}",
}
#: Pages that have other pages below them in the table of contents.
BELOW = {"docs/decisions/README": "*", "docs/measurements": "../benchmarks/results/*"}


def rewrite_source(app, document, content):
    """Links to a folder lead to its README, or become plain text where it has none."""

    folder_of_document = Path(app.env.doc2path(document)).parent

    def replace(match):
        text, folder, page = match.groups()
        target = folder_of_document / folder / (page or "README.md")
        if target.resolve() == Path(app.srcdir, "docs/README.md"):
            return f"[{text}]({folder}index.rst)"
        return f"[{text}]({folder}{target.name})" if target.is_file() else text

    content[0] = re.sub(r"\[([^\]]*)\]\(([\w./]*/)(README\.md)?\)", replace, content[0])
    if document in BELOW:
        content[0] += f"\n```{{toctree}}\n:hidden:\n:glob:\n\n{BELOW[document]}\n```\n"


def find_name(app, env, node, content):
    """The link of a class: here by the name that users import, or of another library."""
    target = node.get("reftarget", "").replace("keras.src.", "keras.")
    name = target.rpartition(".")[2]
    if target.startswith("keras_bert_suite.") and name in keras_bert_suite.__all__:
        python, page = env.get_domain("py"), node["refdoc"]
        public = f"keras_bert_suite.{name}"
        return python.resolve_xref(env, page, app.builder, "obj", public, node, content)
    for prefix, address in LIBRARIES.items():
        if target.startswith(prefix):
            address = address.format(target.removeprefix(prefix).replace(".", "/"))
            return nodes.reference("", "", content, internal=False, refuri=address)


def setup(app):
    app.connect("source-read", rewrite_source)
    app.connect("missing-reference", find_name)
    return {"parallel_read_safe": True}
