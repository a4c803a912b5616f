"""Attributes of a task that its data or its answers hold."""

import operator


def part_attribute(part: str, name: str) -> property:
    """A property of a task that reads and sets an attribute of a part, such as "data.labels"."""
    find_part = operator.attrgetter(part)
    read = operator.attrgetter(f"{part}.{name}")
    return property(
        read, lambda task, value: setattr(find_part(task), name, value), doc=f"`{part}.{name}`."
    )
