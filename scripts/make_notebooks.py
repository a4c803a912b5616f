"""Writes the notebook of each script in examples/ beside it, with its outputs and pictures.

    python scripts/make_notebooks.py                    # all notebooks
    python scripts/make_notebooks.py serve_model ...    # these

The scripts are in jupytext's percent format. A script without cells has no notebook. A notebook
whose code has not changed keeps its outputs, so the text above the code may say what the outputs
are. Delete a notebook to run it again.
"""

import copy
import os
import sys
import tempfile
from pathlib import Path

import jupytext
import nbformat

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def make_notebook(script):
    """The notebook of a script, without outputs."""
    notebook = jupytext.read(script, fmt="py:percent")
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    for i, cell in enumerate(notebook.cells):
        cell.id = f"cell-{i}"
        cell.metadata = {}
    return notebook


def keep_outputs(notebook, path):
    """Takes the outputs of the file at `path`, if its code is the same, and says whether it is."""
    if not path.exists():
        return False
    written = list_code(nbformat.read(path, as_version=4))
    new = list_code(notebook)
    if [cell.source for cell in written] != [cell.source for cell in new]:
        return False
    for cell, old in zip(new, written, strict=True):
        cell.outputs, cell.execution_count = old.outputs, old.execution_count
    return True


def list_code(notebook):
    """The code cells."""
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def execute(notebook, data=EXAMPLES / "data"):
    """Runs the notebook in a folder that has nothing but the data, and keeps its outputs."""
    from nbclient import NotebookClient

    metadata = copy.deepcopy(notebook.metadata)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "data").symlink_to(data)
        resources = {"metadata": {"path": folder}}
        # Without the time of day.
        client = NotebookClient(notebook, timeout=None, record_timing=False, resources=resources)
        client.execute()
    notebook.metadata = metadata  # the kernel has added the versions of the machine
    for cell in list_code(notebook):
        cell.outputs = tidy_outputs(cell.outputs)


def tidy_outputs(outputs):
    """Joins the parts of what was printed. Leaves out stderr, which is about the machine."""
    tidy = []
    for output in outputs:
        if output.output_type == "stream" and output.name == "stderr":
            continue
        if output.output_type == "stream" and tidy and tidy[-1].output_type == "stream":
            tidy[-1].text += output.text
        else:
            tidy.append(output)
    return tidy


def main(*names):
    os.environ.setdefault("KERAS_BACKEND", "tensorflow")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    in_cells = (path for path in EXAMPLES.glob("*.py") if "# %%" in path.read_text("utf-8"))
    scripts = [EXAMPLES / f"{name}.py" for name in names] or sorted(in_cells)
    for script in scripts:
        notebook, path = make_notebook(script), script.with_suffix(".ipynb")
        if not keep_outputs(notebook, path):
            print(f"running {script}", flush=True)
            execute(notebook)
        path.write_text(nbformat.writes(notebook) + "\n", encoding="utf-8")
        print(f"wrote {path}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
