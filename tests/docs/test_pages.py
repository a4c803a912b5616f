"""The pages of the documentation: in the tables of contents, and without broken links."""

import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
INDEX = REPOSITORY / "docs/index.rst"

#: Pages of the site, as `include_patterns` of docs/site/conf.py has them.
PAGES = [
    path
    for pattern in (
        "*.md",
        "docs/**/*.md",
        "docs/**/*.rst",
        "examples/*.ipynb",
        "examples/*/README.md",
        "benchmarks/results/*.md",
        "saved_models/README.md",
    )
    for path in sorted(REPOSITORY.glob(pattern))
    if path not in (INDEX, INDEX.with_name("README.md"))
]
MARKDOWN = [path for path in [*PAGES, INDEX.with_name("README.md")] if path.suffix == ".md"]


def list_entries():
    """The files that the tables of contents name."""
    lines = re.findall(r"^   (?!:)(?:.* <)?([\w./*]+)>?$", INDEX.read_text("utf-8"), re.M)
    below = re.search(r"^BELOW = (\{.*\})$", read_site("links.py"), re.M)[1]
    patterns = [(INDEX.parent, line) for line in lines]
    patterns += [((REPOSITORY / page).parent, line) for page, line in eval(below).items()]
    for folder, pattern in patterns:
        for ending in (".md", ".rst", ".ipynb"):
            yield from (
                folder.resolve().glob(f"{pattern}{ending}")
                if "*" in pattern
                else [folder / f"{pattern}{ending}"]
            )


def read_site(name):
    return (REPOSITORY / "docs/site" / name).read_text("utf-8")


def test_every_page_is_in_a_table_of_contents():
    entries = {path.resolve() for path in list_entries()}
    assert [str(path) for path in PAGES if path not in entries] == []


def slugs(path):
    """The anchors of the headings of a page, as code hosts make them."""
    text = re.sub(r"^```.*?^```", "", path.read_text("utf-8"), flags=re.M | re.S)
    for heading in re.findall(r"^#+ (.*)$", text, re.M):
        yield re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@pytest.mark.parametrize("page", MARKDOWN, ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_links_lead_to_files_and_headings(page):
    text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text("utf-8"), flags=re.S)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if link.startswith(("http", "mailto:")):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        assert not anchor or anchor in slugs(target), link


def test_lines_of_the_examples_of_bert4keras():
    """The table has the number of lines of each block, which its name precedes."""
    text = (INDEX.parent / "coming_from/bert4keras.md").read_text("utf-8")
    table = re.findall(r"^\| `(\w+)` \| \d+ \| (\d+) \|$", text, re.M)
    assert len(table) == 10
    for name, number in table:
        block = re.search(rf"^`{name}`.*?```\w+\n(.*?)^```$", text, re.M | re.S)[1]
        lines = [line for line in block.splitlines() if line.strip() and line.strip()[0] != "#"]
        assert (name, len(lines)) == (name, int(number))
