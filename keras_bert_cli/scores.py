"""Prints scores as lines and tables."""

#: A confusion matrix of more classes is not printed.
MOST_PRINTED_CLASSES = 20


def format_scores(scores):
    """The numbers among scores, as text for a line.

    >>> format_scores({"accuracy": 0.75, "rows": 8, "classes": {}})
    'accuracy 0.7500, rows 8'
    """
    numbers = ((name, x) for name, x in scores.items() if isinstance(x, (int, float)))
    return ", ".join(f"{name} {_format(x)}" for name, x in numbers)


def print_scores(scores):
    """Prints scores: numbers, and dicts of the same numbers for each class or part of the rows.

    Classes also have `label_names` and `confusion_matrix`.
    """
    print(format_scores(scores))
    for name, part in scores.items():
        if isinstance(part, dict) and part:
            rows = part if name in ("classes", "types", "relations", "attributes") else {"": part}
            titles = next(iter(rows.values()))
            cells = ([row, *map(_format, figures.values())] for row, figures in rows.items())
            print_table([name, *titles], cells)
    names = scores.get("label_names", ())
    if 0 < len(names) <= MOST_PRINTED_CLASSES:
        rows = zip(names, scores["confusion_matrix"], strict=True)
        print_table(["true \\ predicted", *names], ([name, *counts] for name, counts in rows))


def print_table(titles, rows):
    """Prints a table. All columns but the first one are aligned to the right."""
    from rich.console import Console
    from rich.table import Table

    table = Table(titles[0])
    for title in titles[1:]:
        table.add_column(title, justify="right")
    for row in rows:
        table.add_row(*map(str, row))
    Console(highlight=False, markup=False).print(table)


def _format(number):
    return str(number) if isinstance(number, int) else f"{number:.4f}"
