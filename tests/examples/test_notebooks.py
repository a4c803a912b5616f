"""The notebooks in examples/ are their scripts, with the outputs of a real run."""

import base64
import re
import runpy
from pathlib import Path

import nbformat
import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
#: Scripts in cells. The others, such as demo.py, have no notebook.
SCRIPTS = [
    path
    for path in sorted((REPOSITORY / "examples").glob("*.py"))
    if "# %%" in path.read_text("utf-8")
]
MOST_BYTES = 300_000


@pytest.fixture(scope="module")
def maker():
    return runpy.run_path(str(REPOSITORY / "scripts" / "make_notebooks.py"))


def read(script):
    return nbformat.read(script.with_suffix(".ipynb"), as_version=4)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_notebook_is_generated_from_the_script(script, maker):
    wanted, written = maker["make_notebook"](script), read(script)
    for cell in written.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    assert written == wanted, "run: python scripts/make_notebooks.py"


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_notebook_has_the_outputs_of_a_run(script):
    path = script.with_suffix(".ipynb")
    assert path.stat().st_size < MOST_BYTES
    cells = [cell for cell in read(script).cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    outputs = [output for cell in cells for output in cell.outputs]
    assert all(
        output.output_type in ("stream", "display_data", "execute_result") for output in outputs
    )
    text = "".join(output.text for output in outputs if output.output_type == "stream")
    assert text.strip()
    assert {output.name for output in outputs if output.output_type == "stream"} == {"stdout"}
    assert not re.search(r"/(home|root|tmp|usr|work|Users)/|site-packages|[A-Z]:\\", text)
    pictures = [o.data["image/png"] for o in outputs if "image/png" in o.get("data", {})]
    assert len(pictures) == len(
        re.findall(r"^(?:kbs\.)?plot_\w+\(", script.read_text("utf-8"), re.M)
    )
    for picture in pictures:
        assert base64.b64decode(picture).startswith(b"\x89PNG")


def test_scripts_are_short_and_in_the_table_of_recipes():
    recipes = (REPOSITORY / "examples/README.md").read_text("utf-8")
    for script in SCRIPTS:
        assert len(script.read_text("utf-8").splitlines()) < 60, script.name
        assert f"({script.name})" in recipes
        assert f"({script.stem}.ipynb)" in recipes


def test_a_notebook_with_the_same_code_keeps_its_outputs(tmp_path, maker):
    script = tmp_path / "recipe.py"
    script.write_text('# %% [markdown]\n"""\nA score.\n"""\n\n# %%\nprint(1)\n')
    notebook = maker["make_notebook"](script)
    notebook.cells[1].outputs = maker["tidy_outputs"](
        [
            nbformat.v4.new_output("stream", name="stderr", text="no GPU\n"),
            nbformat.v4.new_output("stream", name="stdout", text="1\n"),
            nbformat.v4.new_output("stream", name="stdout", text="2\n"),
        ]
    )
    assert [dict(output) for output in notebook.cells[1].outputs] == [
        {"output_type": "stream", "name": "stdout", "text": "1\n2\n"}
    ]
    nbformat.write(notebook, tmp_path / "recipe.ipynb")

    script.write_text(script.read_text().replace("A score.", "A score of 1."))
    again = maker["make_notebook"](script)
    assert maker["keep_outputs"](again, tmp_path / "recipe.ipynb")
    assert again.cells[1].outputs == notebook.cells[1].outputs

    script.write_text(script.read_text().replace("print(1)", "print(2)"))
    changed = maker["make_notebook"](script)
    assert not maker["keep_outputs"](changed, tmp_path / "recipe.ipynb")
    assert not changed.cells[1].outputs
