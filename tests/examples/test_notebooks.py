"""The notebooks in examples/ are their scripts."""

import runpy
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
SCRIPTS = sorted((REPOSITORY / "examples").glob("*.py"))


@pytest.mark.backend_free
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_notebook_is_generated_from_the_script(script):
    make_notebook = runpy.run_path(str(REPOSITORY / "scripts" / "make_notebooks.py"))[
        "make_notebook"
    ]
    written = script.with_suffix(".ipynb").read_text(encoding="utf-8")
    assert make_notebook(script) == written, "run: python scripts/make_notebooks.py"
