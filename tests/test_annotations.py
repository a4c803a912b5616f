"""Every argument of the public names has an annotation, which a type checker sees, and is read."""

import ast
import importlib
import inspect
import re
from importlib import resources
from pathlib import Path

import keras_bert_suite

#: Rooms whose `__all__` the README uses.
ROOMS = ("keras_bert_suite", "keras_bert_suite.corpus", "keras_bert_suite.pretraining")

#: Private functions, and methods whose arguments Keras or the data of a task fix.
FIXED = re.compile(r"_(?!_init__)|on_|(build|call|pack|quantize|get_layout_map|compute_\w+)$")


def list_functions():
    """Yields (name, function) of public functions, constructors and public methods."""
    for room in ROOMS:
        module = importlib.import_module(room)
        for name in module.__all__:
            value = getattr(module, name)
            if inspect.ismodule(value):
                members = vars(value).items()
                own = [m for m in members if inspect.isfunction(m[1]) and m[0][0] != "_"]
                yield from ((f"{room}.{name}.{member}", function) for member, function in own)
                continue
            if not inspect.isclass(value):
                yield f"{room}.{name}", value
                continue
            for cls in value.__mro__:
                if not cls.__module__.startswith("keras_bert_suite"):
                    continue
                for attribute, member in vars(cls).items():
                    if attribute.startswith("_") and attribute not in ("__init__", "__call__"):
                        continue
                    member = getattr(member, "__func__", getattr(member, "fget", member))
                    if inspect.isfunction(member):
                        yield f"{room}.{name}.{attribute}", member


def describe_missing(name, function):
    """Yields what has no annotation: "TokenMasker.call(epoch)", "TokenMasker.call ->"."""
    signature = inspect.signature(function)
    for argument in signature.parameters.values():
        if argument.annotation is argument.empty and argument.name not in ("self", "cls"):
            yield f"{name}({argument.name})"
    if signature.return_annotation is signature.empty:
        yield f"{name} ->"


def test_arguments_and_results_are_annotated():
    functions = list(list_functions())
    assert len(functions) > 80
    assert [text for pair in functions for text in describe_missing(*pair)] == []


def test_the_package_says_that_it_is_typed():
    assert resources.files(keras_bert_suite).joinpath("py.typed").is_file()


def list_unread(path):
    """Yields (function, argument): the arguments with a default that a function never reads."""
    for function in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(function, ast.FunctionDef) or FIXED.match(function.name):
            continue
        loads = (x for x in ast.walk(function) if isinstance(x, ast.Name))
        names = {name.id for name in loads if isinstance(name.ctx, ast.Load)}
        arguments = function.args
        places = zip(arguments.args[::-1], arguments.defaults[::-1], strict=False)
        optional = [*places, *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)]
        for argument, default in optional:
            if default is not None and argument.arg not in names:
                yield function.name, argument.arg


def test_every_option_is_read():
    """An option that its function forgets has no effect, and no error says so."""
    # To import the command line first would leave packages unopened.
    names = ("keras_bert_suite", "keras_bert_cli")
    folders = [Path(importlib.import_module(name).__file__).parent for name in names]
    paths = [path for folder in folders for path in sorted(folder.rglob("*.py"))]
    assert len(paths) > 200
    assert [(path.name, *found) for path in paths for found in list_unread(path)] == []
