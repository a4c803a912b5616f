"""The case of each kind of task. A kind without a file in `cli/kinds/` is an error."""

import importlib

from keras_bert_cli.kinds import KINDS

CASES = {name: importlib.import_module(f"cli.kinds.{name}").CASE for name in KINDS}
