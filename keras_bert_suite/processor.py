"""The processor of this machine."""

import functools
import platform
from pathlib import Path


@functools.cache
def read_processor() -> tuple[str, frozenset[str]]:
    """The vendor of the processor, and the names of its instructions as Linux has them.

    Where Linux does not say: what Python knows of the processor, which has the vendor in it on
    Windows, and no instructions.
    """
    table = Path("/proc/cpuinfo")
    if not table.exists():
        return platform.processor(), frozenset()
    first, _, _ = table.read_text(encoding="utf-8", errors="replace").partition("\n\n")
    pairs = (line.partition(":")[::2] for line in first.splitlines())
    fields = {name.strip(): value.strip() for name, value in pairs}
    return fields.get("vendor_id", ""), frozenset(fields.get("flags", "").split())
