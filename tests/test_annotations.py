"""Every argument of the public names has an annotation, and a type checker sees them."""

import importlib
import inspect
from importlib import resources

import keras_bert_suite

#: Rooms whose `__all__` the README uses.
ROOMS = ("keras_bert_suite", "keras_bert_suite.corpus", "keras_bert_suite.pretraining")


def list_functions():
    """Yields (name, function) of public functions, constructors and public methods."""
    for room in ROOMS:
        module = importlib.import_module(room)
        for name in module.__all__:
            value = getattr(module, name)
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
