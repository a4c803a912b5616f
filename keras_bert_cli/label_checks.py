"""Checks the labels of examples before hours of work."""

import collections

#: A message lists no more labels.
MANY_LABELS = 20


def check_labels(examples, sets, label_names, source):
    """Raises a `ValueError` if a label is not one that the model knows, naming its line.

    Args:
        examples: `Examples`.
        sets: the labels of each row, an iterable of iterables of str.
        label_names: list of str.
        source: str, the source of `label_names`: the training file, or the model.
    """
    known = set(label_names)
    for row, labels in enumerate(sets):
        for label in labels:
            if label not in known:
                raise ValueError(
                    f"{examples.locate(row)}: the label {label!r} does not occur in {source}, "
                    f"whose labels are {list_labels(label_names)}. Correct it, or train with texts "
                    "that have it."
                )


def weigh_labels(labels):
    """dict of label -> weight that gives every label the same weight in the loss.

    >>> weigh_labels(["no", "no", "no", "yes"])
    {'no': 0.6666666666666666, 'yes': 2.0}
    """
    counts = collections.Counter(labels)
    return {label: len(labels) / (len(counts) * count) for label, count in counts.items()}


def list_labels(label_names):
    """The first labels as text for a line, and how many more there are.

    >>> list_labels(["no", "yes"])
    'no, yes'
    """
    more = len(label_names) - MANY_LABELS
    return ", ".join(label_names[:MANY_LABELS]) + (f" and {more} more" if more > 0 else "")


def check_lines(examples):
    """Raises a `ValueError` if a label has a line feed, naming its line.

    The names of labels are stored one in each line, beside an exported model.

    Args:
        examples: `Examples` with names of labels, or sets of them.
    """
    for name in examples.label_names:
        if "\n" in name:
            row = next(row for row, label in enumerate(examples.y) if name in label)
            raise ValueError(
                f"{examples.locate(row)}: the label {name!r} has a line feed. If a quote is "
                "missing before it, add it; otherwise write the label in one line."
            )
