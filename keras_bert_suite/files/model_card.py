"""The model card: facts of a model for persons, in a file beside it.

The command line loads this file before Keras is imported, so it imports the standard library only.
"""

import importlib.metadata
import re
import warnings
from pathlib import Path

from keras_bert_suite.files.atomic_file import atomic_file

#: The file of the card.
CARD = "model_card.md"

_BEGIN = "<!-- keras-bert-suite writes these lines anew with the model. Write above or below. -->"
_END = "<!-- Here the lines of keras-bert-suite end. -->"


def write_card(folder, facts):
    """Writes the card of a model, a table of `facts`, and keeps a person's additions.

    The first of the facts, dict of str -> str, is the header. A card without the two comments that
    mark our lines is left as it is, with a warning.
    """
    path = Path(folder) / CARD
    text = ours = f"{_BEGIN}\n\n{format_table(facts)}\n{_END}\n"
    if path.is_file():
        begin, _, rest = path.read_text(encoding="utf-8").partition(_BEGIN)
        _, end, after = rest.partition(_END)
        if not end:
            warnings.warn(
                f"{path} is a card of your own, and stays as it is. To have ours, with the scores "
                "and versions of this model, move it away and save again.",
                stacklevel=2,
            )
            return
        text = begin + ours + after.removeprefix("\n")
    with atomic_file(path) as aside:
        aside.write_text(text, encoding="utf-8")


def format_table(facts):
    """The table of a card in Markdown, str. The first row of `facts` is its header."""
    header, *rows = (f"| {name} | {_escape(text)} |\n" for name, text in facts.items())
    return f"{header}| --- | --- |\n{''.join(rows)}"


def read_card(folder):
    """The text of the card in the folder of a preset or of an export, or None."""
    for place in (Path(folder), Path(folder) / "assets.extra"):
        if (place / CARD).is_file():
            return (place / CARD).read_text(encoding="utf-8")
    return None


def find_licence(folder):
    """The licence that a README.md of the Hugging Face Hub in a folder names, or None."""
    path = Path(folder) / "README.md"
    if not path.is_file():
        return None
    header = re.match(
        r"---\n(.*?\n)---\n", path.read_text(encoding="utf-8", errors="replace"), re.S
    )
    named = header and re.search(r"^license: *(.+?) *$", header[1], re.M)
    return named[1] if named else None


def name_package():
    """The name of this package with its version, if it is installed and not a checkout alone."""
    try:
        return f"keras_bert_suite {importlib.metadata.version('keras-bert-suite')}"
    except importlib.metadata.PackageNotFoundError:
        return "keras_bert_suite"


def _escape(text):
    return " ".join(str(text).split()).replace("|", "\\|")
