"""Imports between the rooms of the package point one way, and TensorFlow stays in its place."""

import ast
import functools
import re
import sys
from graphlib import TopologicalSorter
from pathlib import Path

PACKAGE = "keras_bert_suite"
ROOT = Path(__file__).resolve().parents[1] / PACKAGE

#: room -> the rooms it may import from. A file beside the rooms is a room of its own.
ALLOWED = {
    "annotations": set(),
    "foreign_arguments": set(),
    "argument_checks": {"foreign_arguments"},
    "fixed_arguments": {"argument_checks"},
    "jax_cache": set(),
    "pictures": set(),
    "processor": set(),
    "files": set(),
    "replicas": {"files"},
    "layers": {"replicas", "processor", "argument_checks", "fixed_arguments"},
    "checkpoints": {"files", "argument_checks"},
    "training": {"replicas", "argument_checks"},
    "models": {"layers", "checkpoints", "argument_checks", "fixed_arguments"},
    # KerasHub has a tokenizer and a preprocessor name the class of their backbone.
    "tokenizers": {"models", "checkpoints", "files", "argument_checks", "fixed_arguments"},
    "preprocessing": {
        *("tokenizers", "models", "checkpoints"),
        *("files", "argument_checks"),
    },
    "corpus": {"tokenizers", "files", "argument_checks", "ray_cluster"},
    "data": {"tokenizers", "replicas", "files", "argument_checks"},
    "masking": {
        *("preprocessing", "tokenizers", "models", "files"),
        *("argument_checks", "fixed_arguments"),
    },
    "runs": {
        *("preprocessing", "models", "layers", "data", "training"),
        *("replicas", "files", "argument_checks", "processor"),
    },
    "heads": {
        *("layers", "models", "tokenizers", "preprocessing", "masking", "data", "runs"),
        *("training", "replicas", "checkpoints", "files", "argument_checks", "fixed_arguments"),
        "pictures",
    },
    "pretraining": {
        *("corpus", "masking", "preprocessing", "data", "heads", "models"),
        *("files", "argument_checks"),
    },
    "serving": {
        *("models", "tokenizers", "preprocessing", "data", "runs", "heads"),
        *("checkpoints", "files", "argument_checks"),
    },
    "ray_cluster": set(),
    "many_texts": {"serving", "files", "argument_checks", "ray_cluster"},
    "attacks": {"heads", "data", "files", "pictures", "argument_checks"},
    "__init__": {
        "jax_cache",
        "attacks",
        *("data", "layers", "models", "tokenizers", "preprocessing", "masking"),
        *("training", "runs", "heads", "pretraining", "serving", "many_texts"),
    },
}

#: Where TensorFlow may be imported, inside a function, and why.
TENSORFLOW = {
    "serving/": "exports TensorFlow's format",
    "heads/": "answers in the graph of a SavedModel, and encodes labels in a dataset of TensorFlow",
    "data/tensorflow_input.py": "feeds `fit` under that backend",
    "heads/base/label_tensors.py": "encodes labels in a dataset of TensorFlow",
    "tokenizers/": "works on TensorFlow's tensors when it is handed some",
    "preprocessing/": "works on TensorFlow's tensors when it is handed some",
    "masking/": "works on TensorFlow's tensors when it is handed some",
    "training/gradient_cache.py": "writes a gradient of its own under that backend",
    "layers/dense.py": "writes the product so that TensorFlow joins it, under that backend",
    "layers/dropout.py": "draws random bits under that backend",
    "layers/attention/bucketed_layout.py": "cuts arrays by the operation whose gradient joins them",
    "layers/recompute.py": "calls TensorFlow's own recomputation under that backend",
    "replicas/": "sums over the devices of a strategy, under that backend",
    "training/cross_entropy.py": "writes a gradient of its own under that backend",
    "training/techniques/differentiation.py": "records a gradient under that backend",
    "training/fused_updates.py": "calls TensorFlow's own optimizer kernel under that backend",
}

FILES = sorted(ROOT.rglob("*.py"))


def room_of(path):
    """`layers/x.py` -> "layers", `__init__.py` -> "__init__"."""
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def find_imports(path):
    """Yields (line, full dotted name, whether at module level) of each import of a file."""
    module = (PACKAGE, *path.relative_to(ROOT).with_suffix("").parts)

    def visit(node, top_level):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name, top_level
        elif isinstance(node, ast.ImportFrom):
            base = module[: len(module) - node.level] if node.level else ()
            base = ".".join((*base, *([node.module] if node.module else [])))
            for alias in node.names:
                yield node.lineno, f"{base}.{alias.name}", top_level
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            if node.args and isinstance(node.args[0], ast.Constant):
                yield node.lineno, node.args[0].value, top_level
        functions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
        for child in ast.iter_child_nodes(node):
            yield from visit(child, top_level and not isinstance(node, functions))

    yield from visit(ast.parse(path.read_text(encoding="utf-8")), True)


@functools.cache
def list_imports(path):
    return list(find_imports(path))


def imported_room(name):
    """`keras_bert_suite.layers.x` -> "layers", a public name -> "__init__", other -> None."""
    package, *rest = name.split(".")
    if package != PACKAGE:
        return None
    return rest[0] if rest and rest[0] in ALLOWED else "__init__"


#: head -> the heads that it builds on. Every head may import `base`, which imports no head.
HEADS = {
    "base": set(),
    "documents": {"texts"},
    "entailments": {"choices"},
    "texts": {"entailments", "vectors"},
    "exits": {"texts"},
    "spans": {"tags"},
    "rankings": {"choices", "vectors"},
    "towers": {"rankings", "vectors"},
    "patterns": {"masks"},
    "pretraining": {"masks"},
    "targets": {"masks", "pretraining"},
    "continuations": {"masks", "targets"},
}


def test_the_tables_are_one_way():
    list(TopologicalSorter(ALLOWED).static_order())  # raises CycleError
    list(TopologicalSorter(HEADS).static_order())


def find_known(head):
    return {head, *HEADS.get(head, ()), *([] if head == "base" else ["base"])}


def test_heads_import_few_heads():
    folder = ROOT / "heads"
    wrong = [
        f"{path.relative_to(ROOT)}, line {line}: {name}"
        for path in folder.rglob("*/*.py")
        for line, name, _ in list_imports(path)
        if (other := re.match(rf"{PACKAGE}\.heads\.(\w+)", name))
        and (folder / other[1]).is_dir()
        and other[1] not in find_known(path.relative_to(folder).parts[0])
    ]
    assert not wrong


def test_every_room_is_in_the_table():
    assert {room_of(path) for path in FILES} <= set(ALLOWED)


def test_imports_follow_the_table():
    wrong = [
        f"{path.relative_to(ROOT)}, line {line}: {room_of(path)} imports {name}"
        for path in FILES
        for line, name, _ in list_imports(path)
        if imported_room(name) not in {None, room_of(path), "annotations", *ALLOWED[room_of(path)]}
    ]
    assert not wrong


def test_tensorflow_stays_in_its_place():
    wrong = [
        f"{path.relative_to(ROOT)}, line {line}: {name}{' at module level' if top_level else ''}"
        for path in FILES
        for line, name, top_level in list_imports(path)
        if name.split(".")[0] in ("tensorflow", "tensorflow_text")
        if not path.relative_to(ROOT).as_posix().startswith(tuple(TENSORFLOW))
        or (top_level and room_of(path) != "serving")
    ]
    assert not wrong


def test_readers_of_files_need_the_standard_library_alone():
    """The command line reads a file before it imports Keras."""
    tags = ROOT / "heads" / "tags"
    readers = [
        *(ROOT / "data" / "readers").rglob("*.py"),
        *(ROOT / "heads").glob("*/reader.py"),
        *(tags / f"{name}.py" for name in ("tag_forms", "tag_schemes")),
        *(path for name in ("conll", "annotations") for path in (tags / name).rglob("*.py")),
    ]
    modules = [".".join((PACKAGE, *p.relative_to(ROOT).with_suffix("").parts)) for p in readers]
    own = (*modules, f"{PACKAGE}.data.readers.", f"{PACKAGE}.heads.questions.squad_answers")
    own += (f"{PACKAGE}.argument_checks.", f"{PACKAGE}.files.messages.")  # They need no more, too.
    wrong = [
        f"{path.relative_to(ROOT)}, line {line}: {name}"
        for path in readers
        for line, name, _ in list_imports(path)
        if name.split(".")[0] not in sys.stdlib_module_names
        and not name.startswith(own)
        # `tag_schemes` is imported as a module, and a Parquet file is read where pandas is.
        and name not in (f"{PACKAGE}.heads.tags.tag_forms", f"{PACKAGE}.heads.tags.tag_schemes")
        and (path.name, name) != ("records.py", "pandas")
    ]
    assert len(readers) > 8 and not wrong


def test_the_reader_of_imports_sees_them_all(tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    (tmp_path / "layers").mkdir()
    source = tmp_path / "layers" / "sample.py"
    source.write_text(
        "import tensorflow.io\n"
        "from . import other\n"
        "from ..models import BertBackbone\n"
        "class A:\n"
        "    from keras_bert_suite import TextClassifier, heads\n"
        "def f():\n"
        "    import tensorflow_text as text\n"
        "    importlib.import_module('keras_bert_suite.serving')\n"
    )
    assert [(name, top_level) for _, name, top_level in find_imports(source)] == [
        ("tensorflow.io", True),
        ("keras_bert_suite.layers.other", True),
        ("keras_bert_suite.models.BertBackbone", True),
        ("keras_bert_suite.TextClassifier", True),
        ("keras_bert_suite.heads", True),
        ("tensorflow_text", False),
        ("keras_bert_suite.serving", False),
    ]
    names = [name for _, name, _ in find_imports(source)]
    expected = [None, "layers", "models", "__init__", "heads", None, "serving"]
    assert [imported_room(name) for name in names] == expected
