"""Benchmarks, examples and scripts import only what exists; they are run by hand."""

import ast
import importlib
import importlib.util
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
SCRIPTS = sorted(
    path.relative_to(REPOSITORY)
    for folder in ("benchmarks", "examples", "scripts")
    for path in (REPOSITORY / folder).rglob("*.py")
)


@pytest.mark.parametrize("script", SCRIPTS, ids=str)
def test_imports(script):
    tree = ast.parse((REPOSITORY / script).read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("keras_bert_"):
            module = importlib.import_module(node.module)
            for alias in node.names:
                assert hasattr(module, alias.name) or importlib.util.find_spec(
                    f"{node.module}.{alias.name}"
                ), f"line {node.lineno}: {node.module} has no {alias.name}"


@pytest.mark.parametrize("script", SCRIPTS, ids=str)
def test_imports_of_the_same_folder(script):
    tree = ast.parse((REPOSITORY / script).read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        # A script in benchmarks/ imports `harness.side_runs`, and its module there does so, too.
        module = str(getattr(node, "module", None)).replace(".", "/")
        sibling = REPOSITORY / script.parts[0] / f"{module}.py"
        if isinstance(node, ast.ImportFrom) and sibling.is_file():
            names = {
                getattr(part, "name", None) or getattr(part.targets[0], "id", None)
                for part in ast.parse(sibling.read_text(encoding="utf-8")).body
                if isinstance(part, ast.FunctionDef | ast.ClassDef | ast.Assign)
            }
            assert {alias.name for alias in node.names} <= names, f"line {node.lineno}"
