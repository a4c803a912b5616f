"""What pages have on the site beside the text of their files."""

import json

from flags import list_commands
from rooms import TASK_PAGES, describe

#: Pages that have other pages below them in the table of contents.
BELOW = {"docs/decisions/README": "*", "docs/measurements": "../benchmarks/results/*"}

TASKS = {page: name for name, page in TASK_PAGES.items()}


def append(app, document, content):
    if document in BELOW:
        content[0] += f"\n```{{toctree}}\n:hidden:\n:glob:\n\n{BELOW[document]}\n```\n"
    if document in TASKS:
        lines = "\n".join(describe(f"keras_bert_suite.{TASKS[document]}"))
        content[0] += f"\n## Reference\n\n```{{eval-rst}}\n{lines}\n```\n"
    if document == "docs/command_line":
        content[0] += list_commands()
    if app.env.doc2path(document).suffix == ".ipynb":
        content[0] = link_script(content[0], document.rpartition("/")[2])


def link_script(notebook, name):
    """The text of a notebook with links to its script and to itself, below its title."""
    notebook = json.loads(notebook)
    text = f"{{download}}`{name}.py` · {{download}}`{name}.ipynb`"
    cell = {"cell_type": "markdown", "id": "files", "metadata": {}, "source": [text]}
    notebook["cells"].insert(1, cell)
    return json.dumps(notebook)


def setup(app):
    # After the links of the text were rewritten.
    app.connect("source-read", append, priority=600)
    return {"parallel_read_safe": True}
