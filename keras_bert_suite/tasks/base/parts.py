"""Attributes of a task that its data or its answers hold."""

import operator


def part_attribute(part: str, name: str) -> property:
    """A property of a task that reads and sets an attribute of one of its parts.

    Args:
        part: str, the path of the part, such as "data" or "data.labels".
        name: str, such as "stride".
    """
    find_part = operator.attrgetter(part)
    read = operator.attrgetter(f"{part}.{name}")
    return property(
        read, lambda task, value: setattr(find_part(task), name, value), doc=f"`{part}.{name}`."
    )
