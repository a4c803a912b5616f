"""Prints the ten slowest test files of the reports in a folder, with their seconds by backend.

python scripts/slowest_files.py .test_reports/tests
"""

import collections
import sys
import xml.etree.ElementTree
from pathlib import Path

seconds = collections.defaultdict(collections.Counter)
for report in sorted(Path(sys.argv[1]).glob("*.xml")):
    for case in xml.etree.ElementTree.parse(report).iter("testcase"):
        seconds[case.get("classname")][report.stem] += float(case.get("time"))

print("slowest files, seconds of one process:")
for name, backends in sorted(seconds.items(), key=lambda item: -item[1].total())[:10]:
    parts = ", ".join(f"{backend} {time:.0f}" for backend, time in backends.items())
    print(f"{backends.total():5.0f}  {name.replace('.', '/')}.py ({parts})")
