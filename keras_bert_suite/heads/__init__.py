"""The tasks, a folder each, and the parts of a head of your own; `names` lists them.

They are imported when one of them is asked for. So the facts of a head, in the `__init__.py` of its
folder, can be read before Keras is imported.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from keras_bert_suite.heads.names import *  # noqa: F403


def __getattr__(name: str) -> Any:
    if name[:1].isupper() or "_" in name.strip("_"):  # The folders have other names.
        names = importlib.import_module(f"{__name__}.names")
        if name in vars(names):
            return getattr(names, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return dir(importlib.import_module(f"{__name__}.names"))
