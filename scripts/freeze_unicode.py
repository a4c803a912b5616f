"""Writes `keras_bert_suite/tokenizers/unicode14.txt`, the frozen character tables.

    python3.11 scripts/freeze_unicode.py

The tables are the answers of Python 3.11's `unicodedata` and `str.lower` (Unicode 14), the version
under which BERT's reference ids were made. A Python with another version of Unicode is refused.
"""

import pathlib
import textwrap
import unicodedata

OUTPUT = pathlib.Path(__file__).parents[1] / "keras_bert_suite/tokenizers/unicode14.txt"
CHARACTERS = [chr(code) for code in range(0x110000)]

HEADER = """Character tables of Unicode 14, written by `scripts/freeze_unicode.py`: do not edit.

A table is a line with its name, and code point ranges in hexadecimal: `first-last` or a single
`code`. `LOWERCASE` adds the step and the distance to the lower-case character:
`first-last/step+distance`.
"""

COMMENTS = {
    "CONTROL": "Categories Cc and Cf without tab, line feed and carriage return.",
    "PUNCTUATION": "Category P*. ASCII symbols are not in it, but BERT treats them alike.",
    "NONSPACING": "Category Mn: the characters that are dropped when accents are stripped.",
    "UNASSIGNED": "Category Cn, noncharacters among them.",
    "CASED": "The letters beside which a capital sigma may be final (cased, not case-ignorable).",
    "CASE_IGNORABLE": "The characters that the search for such a neighbour skips.",
    "LOWERCASE": "Characters that str.lower changes to one other. U+0130 alone becomes two.",
}


def is_cased(character):
    return (character + "Σ").lower().endswith("ς")


def is_case_ignorable(character):
    return ("A" + character + "Σ").lower().endswith("ς") and not is_cased(character)


def format_code_points(codes):
    """[0x41, 0x42, 0x43, 0x61] -> "41-43 61"."""
    ranges = []
    for code in codes:
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    return " ".join(f"{a:x}" if a == b else f"{a:x}-{b:x}" for a, b in ranges)


def format_case_pairs():
    """The text of `LOWERCASE`: neighbours of one step and one distance are one range."""
    runs = []
    for character in CHARACTERS:
        lowered = character.lower()
        if lowered == character or len(lowered) > 1:
            continue
        code, distance = ord(character), ord(lowered) - ord(character)
        if runs and runs[-1][3] == distance:
            first, last, step, _ = runs[-1]
            if code - last in (1, 2) and (first == last or code - last == step):
                runs[-1] = [first, code, code - last, distance]
                continue
        runs.append([code, code, 1, distance])
    return " ".join(f"{a:x}-{b:x}/{step}{distance:+x}" for a, b, step, distance in runs)


def select(predicate):
    return format_code_points(ord(character) for character in CHARACTERS if predicate(character))


def main():
    if unicodedata.unidata_version != "14.0.0":
        raise SystemExit(
            f"This Python knows Unicode {unicodedata.unidata_version}; the tables are those of "
            "14.0.0. Run this script with Python 3.11."
        )
    category = unicodedata.category
    tables = {
        "CONTROL": select(lambda c: category(c) in ("Cc", "Cf") and c not in "\t\n\r"),
        "PUNCTUATION": select(lambda c: category(c).startswith("P")),
        "NONSPACING": select(lambda c: category(c) == "Mn"),
        "UNASSIGNED": select(lambda c: category(c) == "Cn"),
        "CASED": select(is_cased),
        "CASE_IGNORABLE": select(is_case_ignorable),
        "LOWERCASE": format_case_pairs(),
    }
    parts = [HEADER]
    for name, table in tables.items():
        wrapped = "\n".join(textwrap.wrap(table, 100, break_on_hyphens=False))
        parts.append(f"[{name}] {COMMENTS[name]}\n{wrapped}\n")
    OUTPUT.write_text("\n".join(parts), encoding="utf-8")


if __name__ == "__main__":
    main()
