"""The pages of the documentation: in the tables of contents, and without broken links."""

import re
from pathlib import Path

import pytest

from keras_bert_suite.checkpoints.head_types.records import HEAD_TYPES

REPOSITORY = Path(__file__).resolve().parents[2]
PACKAGE = REPOSITORY / "keras_bert_suite"
INDEX = REPOSITORY / "docs/index.rst"

#: Patterns of files that are no pages.
EXCLUDED = eval(
    re.search(
        r"^exclude_patterns = (\[.*?\])",
        (REPOSITORY / "docs/site/conf.py").read_text("utf-8"),
        re.M | re.S,
    )[1]
)
#: Pages of the site, as `include_patterns` of docs/site/conf.py has them.
PAGES = [
    path
    for pattern in (
        "*.md",
        "docs/**/*.md",
        "docs/**/*.rst",
        "examples/*.ipynb",
        "examples/README.md",
        "examples/*/README.md",
        "benchmarks/results/*.md",
        "saved_models/README.md",
    )
    for path in sorted(REPOSITORY.glob(pattern))
    if path != INDEX and str(path.relative_to(REPOSITORY)) not in EXCLUDED
]
MARKDOWN = [path for path in [*PAGES, INDEX.with_name("README.md")] if path.suffix == ".md"]


def list_entries():
    """The files that the tables of contents name."""
    lines = re.findall(r"^   (?!:)(?:.* <)?([\w./*]+)>?$", INDEX.read_text("utf-8"), re.M)
    below = re.search(r"^BELOW = (\{.*\})$", read_site("appendices.py"), re.M)[1]
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


def list_tables(text):
    """(first line, lines) of each table of a page."""
    text = re.sub(r"(?ms)^```.*?^```", lambda block: "\n" * block[0].count("\n"), text)
    for table in re.finditer(r"(?m)(?:^\|.*\n?)+", text):
        yield text[: table.start()].count("\n") + 1, table[0].splitlines()


def test_rows_of_a_table_have_as_many_cells_as_its_header():
    """A bar ends a cell also in code, unless a backslash is before it."""
    torn = [
        (str(page.relative_to(REPOSITORY)), first + i)
        for page in MARKDOWN
        for first, lines in list_tables(page.read_text("utf-8"))
        for i, line in enumerate(lines)
        if len(re.findall(r"(?<!\\)\|", line)) != len(re.findall(r"(?<!\\)\|", lines[0]))
    ]
    assert torn == []


#: The work of a user in its order, as the headings of a page of a task.
WORK = ["Make it", "Fit", "Predict", "Score", "Save", "Export"]

TASKS = sorted((INDEX.parent / "tasks").glob("[!R]*.md"))


@pytest.mark.parametrize("page", TASKS, ids=lambda path: path.stem)
def test_pages_of_tasks_have_the_work_in_its_order(page):
    headings = re.findall(r"^## (.*)$", page.read_text("utf-8"), re.M)
    pretrainers = ("electra_pretrainer", "elmo_pretrainer", "seq2seq_pretrainer")
    pretrainers = (*pretrainers, "frame_pretrainer")
    without = ["Predict"] if page.stem in pretrainers else []
    assert headings[: 6 - len(without)] == [name for name in WORK if name not in without]


def test_every_task_has_a_page_that_the_tables_of_tasks_name():
    titles = {page.read_text("utf-8").partition("\n")[0].removeprefix("# ") for page in TASKS}
    assert titles == {head.task for head in HEAD_TYPES}
    table = (INDEX.parent / "tasks/README.md").read_text("utf-8")
    assert [page.name for page in TASKS if f"({page.name}" not in table] == []
    table = (REPOSITORY / "README.md").read_text("utf-8")
    assert [page.name for page in TASKS if f"(docs/tasks/{page.name}" not in table] == []


def test_lines_of_the_examples_of_bert4keras():
    """The table has the number of lines of each block, which its name precedes."""
    text = (INDEX.parent / "coming_from/bert4keras.md").read_text("utf-8")
    table = re.findall(r"^\| `(\w+)` \| \d+ \| (\d+) \|$", text, re.M)
    assert len(table) == 10
    for name, number in table:
        block = re.search(rf"^`{name}`.*?```\w+\n(.*?)^```$", text, re.M | re.S)[1]
        lines = [line for line in block.splitlines() if line.strip() and line.strip()[0] != "#"]
        assert (name, len(lines)) == (name, int(number))


#: Names in pages that are those of other projects' files.
OTHERS = r"(keras|keras_hub|keras_nlp|tf_models|official|google-research|transformers)\b"
#: Rooms whose names are also those of the parts of a task: `data.pack`.
PARTS = ("data", "spans")


def list_names_in_pages():
    """(page, name) of the Python names and files of the project that pages name."""
    rooms = {path.name for path in PACKAGE.rglob("*") if path.is_dir()}
    rooms |= {PACKAGE.name, "kbs", "keras_bert_cli"} - {*PARTS}
    for page in [REPOSITORY / "README.md", *MARKDOWN]:
        text = re.sub(r"(?ms)^```.*?^```", "", page.read_text("utf-8"))
        for name in re.findall(r"`([\w/.]+)`", text):
            is_name = re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+", name)
            is_file = re.search(r"/.*\.py$", name)
            named = (
                is_name
                and name.split(".")[0] in rooms - {*PARTS}
                and not name.endswith((".md", ".py"))
            )
            if (named or is_file) and not re.match(OTHERS, name):
                yield page.relative_to(REPOSITORY), name


def is_there(name):
    """Whether the project has a file or folder, or a module and its attribute."""
    if "/" in name:
        return any(REPOSITORY.glob(f"**/{name}")) or any(REPOSITORY.glob(name))
    parts = name.removeprefix("kbs.").removeprefix(f"{PACKAGE.name}.").split(".")
    for end in range(len(parts), 0, -1):
        found = [
            *PACKAGE.rglob("/".join(parts[:end]) + ".py"),
            *PACKAGE.rglob("/".join(parts[:end])),
        ]
        if found:
            file = found[0] / "__init__.py" if found[0].is_dir() else found[0]
            return end == len(parts) or parts[end] in file.read_text("utf-8")
    lists = ("__init__.py", "heads/tasks.py", "models/backbones.py")
    return any(parts[0] in (PACKAGE / path).read_text("utf-8") for path in lists)


def test_pages_name_what_there_is():
    names = [*list_names_in_pages()]
    assert len(names) > 100
    assert [(str(page), name) for page, name in names if not is_there(name)] == []
