"""Lets a command read files with modules of keras_bert_suite before Keras is imported.

To import a module is to import its packages, and the packages below import Keras. So they are left
unopened: a module in them is imported alone, and the code of a package runs when one of its names
is asked for. A missing file is then reported at once, and not after ten seconds.
"""

import importlib.util
import sys
import types

PACKAGES = (
    "keras_bert_suite",
    "keras_bert_suite.checkpoints",
    "keras_bert_suite.data",
    "keras_bert_suite.heads",
    "keras_bert_suite.pretraining",
    "keras_bert_suite.serving",
)


class Unopened(types.ModuleType):
    """A package whose own code has not run."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        module = f"{self.__name__}.{name}"
        if importlib.util.find_spec(module):
            return importlib.import_module(module)
        self.__class__ = types.ModuleType
        self.__spec__.loader.exec_module(self)
        return getattr(self, name)


def leave_unopened():
    """Puts the packages in their places, if they have not been imported already."""
    if PACKAGES[0] in sys.modules:
        return
    for name in PACKAGES:
        package = importlib.util.module_from_spec(importlib.util.find_spec(name))
        package.__class__ = Unopened
        sys.modules[name] = package
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], child, package)
