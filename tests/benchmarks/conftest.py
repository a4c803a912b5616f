"""Lets the tests import `harness`, as a script in benchmarks/ does."""

import sys
from pathlib import Path

# Only for this import. The scripts there have the names of folders here.
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
import harness  # noqa: E402, F401

del sys.path[0]
