"""Writes the rows that a model answers wrongly as a table, or as a page for a browser."""

import collections
import csv
import json
from html import escape

from .command_flags import UsageError

FORMATS = (".csv", ".jsonl", ".html")

#: A page of more rows would be slow.
MOST_ROWS_OF_A_PAGE = 1000

#: The most pairs of a label and an answer that a page counts.
MOST_PAIRS = 50

#: The facts of a row in a file beside its place and its texts.
FIELDS = ("label", "predicted", "probability", "label_probability", "loss", "label_looks_wrong")

# A page loads nothing, from anywhere, so it also works without a network.
HEAD = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy"
  content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<style>
:root { color-scheme: light dark }
body { font: 15px/1.45 system-ui, sans-serif; margin: 2em auto; max-width: 80em; padding: 0 1em }
table { border-collapse: collapse; margin: 1em 0 }
th { text-align: left; border-bottom: 2px solid; position: sticky; top: 0; background: Canvas }
th, td { padding: .35em .7em; vertical-align: top }
tr { border-bottom: 1px solid #8884 }
.number { text-align: right; white-space: nowrap }
.text { white-space: pre-wrap; overflow-wrap: anywhere; max-height: 9em; overflow: auto }
.issue > :first-child, button[value=issue] { border-left: 4px solid #d9822b }
meter { width: 4em }
button { font: inherit }
</style>
"""

SCRIPT = """<script>
for (const button of document.querySelectorAll("button"))
  button.onclick = () => {
    for (const row of document.querySelectorAll("#rows > tr"))
      row.hidden = !row.classList.contains(button.value);
  };
</script>
"""


def check_errors_file(path):
    """Raises a `UsageError` if the name of the file does not say its format."""
    if not path.lower().endswith(FORMATS):
        raise UsageError(f"--errors needs a name that ends in {', '.join(FORMATS)}, got {path}")


def write_errors(path, wrong, examples, names, title):
    """Writes wrong answers, in the format that the name of the file says.

    Args:
        path: `pathlib.Path`.
        wrong: list of `WrongAnswer`, the highest loss first.
        examples: `Examples`, of which they are rows.
        names: the names of the texts of a row.
        title: str, for a page.
    """
    records = [make_record(answer, examples, names) for answer in wrong]
    # Excel takes a file without this mark for one in the encoding of the system.
    encoding = "utf-8-sig" if path.suffix.lower() == ".csv" else "utf-8"
    with open(path, "w", encoding=encoding, errors="backslashreplace", newline="") as file:
        if path.suffix.lower() == ".html":
            file.writelines(make_page(records, len(examples), title))
        elif path.suffix.lower() == ".jsonl":
            file.writelines(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
        else:
            writer = csv.DictWriter(file, records[0] if records else ("row", *names, *FIELDS))
            writer.writeheader()
            writer.writerows({name: to_text(v) for name, v in record.items()} for record in records)


def make_record(answer, examples, names):
    """dict of the columns of a `WrongAnswer`: its place, its texts and `FIELDS`."""
    place = ("row", answer.row) if examples.lines is None else ("line", examples.lines[answer.row])
    word = {} if answer.word is None else {"word": answer.word, "place": answer.place}
    texts = dict(zip(names, answer.texts, strict=True))
    own = {place[0]: place[1], **word, **{field: getattr(answer, field) for field in FIELDS}}
    texts = {f"text {name}" if name in own else name: text for name, text in texts.items()}
    return {place[0]: place[1], **texts, **own}


def make_page(records, num_rows, title):
    """Yields the parts of a page of HTML.

    Args:
        records: list of dicts, from `make_record`.
        num_rows: int, how many rows were answered.
        title: str.
    """
    suspects = sum(record["label_looks_wrong"] for record in records)
    yield f"{HEAD}<title>{escape(title)}</title>\n<h1>{escape(title)}</h1>\n"
    yield f"<p>{len(records)} wrong answers in {num_rows} rows, the highest loss first. "
    yield '<button value="any">Show all</button> '
    yield f'<button value="issue">{suspects} labels look wrong</button></p>\n'
    pairs = collections.Counter(map(find_pair, records)).most_common(MOST_PAIRS)
    numbers = {pair: number for number, (pair, _) in enumerate(pairs)}
    if records and isinstance(records[0]["label"], (str, list)):
        yield "<table>\n<tr><th>label<th>predicted<th>rows\n"
        for pair, count in pairs:
            cells = "".join(f"<td>{escape(part)}" for part in pair)
            yield f'<tr>{cells}<td><button value="p{numbers[pair]}">{count}</button>\n'
        yield "</table>\n"
    columns = [name for name in records[0] if name != "label_looks_wrong"] if records else []
    titles = "".join(f"<th>{escape(name).replace('_', ' ')}" for name in columns)
    yield f"<table>\n<thead><tr>{titles}</thead>\n"
    yield '<tbody id="rows">\n'
    for record in records[:MOST_ROWS_OF_A_PAGE]:
        issue = " issue" if record["label_looks_wrong"] else ""
        cells = "".join(format_cell(name, record[name]) for name in columns)
        yield f'<tr class="any p{numbers.get(find_pair(record))}{issue}">{cells}\n'
    yield "</table>\n"
    if len(records) > MOST_ROWS_OF_A_PAGE:
        yield f"<p>The first {MOST_ROWS_OF_A_PAGE} rows. A file .csv or .jsonl has all of them.</p>"
    yield SCRIPT


def find_pair(record):
    """(str, str), the label and the answer."""
    return to_text(record["label"]), to_text(record["predicted"])


def format_cell(name, value):
    """A cell of a table of HTML."""
    if value is None:
        return "<td>"
    if name.endswith("probability"):
        return f'<td class="number">{value:.3f} <meter value="{value:.3f}"></meter>'
    if isinstance(value, (int, float)):
        return f'<td class="number">{value if isinstance(value, int) else format(value, ".3f")}'
    if name in ("label", "predicted"):
        return f"<td>{escape(to_text(value))}"
    return f'<td><div class="text" dir="auto">{escape(to_text(value))}</div>'


def to_text(value):
    """A field as text: sets of labels and several numbers with commas between them."""
    if value is None:
        return ""
    return ", ".join(map(to_text, value)) if isinstance(value, list) else str(value)
