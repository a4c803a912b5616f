"""Writes the notebook of each script in examples/ beside it.

    python scripts/make_notebooks.py

The scripts are in jupytext's percent format. A notebook has no outputs, and the same
script always gives the same file.
"""

from pathlib import Path

import jupytext
import nbformat

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def make_notebook(script):
    """The JSON text of the notebook of a script."""
    notebook = jupytext.read(script, fmt="py:percent")
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    for i, cell in enumerate(notebook.cells):
        cell.id = f"cell-{i}"
        cell.metadata = {}
    return nbformat.writes(notebook) + "\n"


if __name__ == "__main__":
    for script in sorted(EXAMPLES.glob("*.py")):
        notebook = script.with_suffix(".ipynb")
        notebook.write_text(make_notebook(script), encoding="utf-8")
        print(f"wrote {notebook}")
