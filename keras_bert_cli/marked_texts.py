"""Texts for a person at a terminal, with marks on the parts that a model has found."""

import collections
import sys

#: The colours of labels, in the order in which the labels come.
COLORS = ("cyan", "magenta", "green", "yellow", "blue", "red")


def is_for_reader(values):
    """Whether the output of `predict` goes to a terminal, in no format that a flag names."""
    return values.format is None and values.output == "-" and sys.stdout.isatty()


def show_entities(texts, answers):
    """Yields each text for a terminal, with its entities in brackets: [Ada Lovelace PER] wrote.

    Args:
        texts: list of N str.
        answers: list of N lists of dicts with `label`, `start` and `end`.
    """
    colors = {}
    marked = (mark_entities(*row, colors) for row in zip(texts, answers, strict=True))
    return show_lines([text] for text in marked)


def mark_entities(text, entities, colors):
    """Puts the entities of a text in brackets. Entities within entities get inner brackets.

    Args:
        text: str.
        entities: list of dicts with `label`, `start` and `end`.
        colors: dict of label -> colour, to which new labels are added.

    Returns:
        `rich.text.Text`.
    """
    from rich.text import Text

    # The outer one of two entities opens first and closes last.
    outer_first = sorted(entities, key=lambda e: (e["start"], -e["end"]))
    opening, closing = collections.defaultdict(list), collections.defaultdict(list)
    for entity in outer_first:
        color = colors.setdefault(entity["label"], COLORS[len(colors) % len(COLORS)])
        opening[entity["start"]].append(("[", color))
        closing[entity["end"]].insert(0, (f" {entity['label']}]", color))
    marked, place, depth = Text(), 0, 0
    for edge in sorted({*opening, *closing, len(text)}):
        marked.append(text[place:edge], style="bold" if depth else "")
        for mark, color in (*closing[edge], *opening[edge]):
            marked.append(mark, style=color)
        depth += len(opening[edge]) - len(closing[edge])
        place = edge
    return marked


def show_answers(questions, contexts, answers):
    """Yields each question for a terminal, and its context with the answer marked.

    Args:
        questions, contexts: lists of N str.
        answers: list of N dicts with `text`, `start`, `end` and `score`.
    """
    return show_lines(_mark_answer(*row) for row in zip(questions, contexts, answers, strict=True))


def _mark_answer(question, context, answer):
    from rich.text import Text

    marked = Text(context)
    if answer["text"]:
        marked.stylize("bold reverse", answer["start"], answer["end"])
    else:
        marked = Text("(no answer)", style="italic")
    asked = Text.assemble((question, "bold"), f" {answer['score']:.1%}")
    return asked, marked, Text()


def show_lines(blocks):
    """Yields a str for a terminal for each block, an iterable of `rich.text.Text`."""
    from rich.console import Console

    console = Console(highlight=False, markup=False)
    for lines in blocks:
        with console.capture() as capture:
            for line in lines:
                console.print(line)
        yield capture.get()
