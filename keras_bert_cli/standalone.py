"""The modules of keras_bert_suite that a command needs before Keras is imported.

To import a module is to import its package, and keras_bert_suite imports Keras. These modules need
only the standard library, so they are loaded from their files. A command then reports a missing
file at once, and not after ten seconds.
"""

import importlib.util
import sys
from pathlib import Path


def _load(file):
    package = importlib.util.find_spec("keras_bert_suite")  # finds it without importing it
    path = Path(package.submodule_search_locations[0]) / file
    name = f"{__name__}.{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


atomic_file = _load("files/atomic_file.py")
checksums = _load("files/checksums.py")
folder_lock = _load("files/folder_lock.py")
messages = _load("files/messages.py")
conll = _load("data/conll.py")
glue = _load("data/glue.py")
score_counts = _load("data/score_counts.py")
squad = _load("data/squad.py")
swag = _load("data/swag.py")
tables = _load("data/tables.py")
tag_schemes = _load("data/tag_schemes.py")
input_names = _load("serving/input_names.py")
versions = _load("serving/versions.py")
