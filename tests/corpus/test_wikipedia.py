"""Dumps of Wikipedia."""

import bz2
import sys
import tracemalloc

import pytest
from corpus.test_documents import read_all, read_with_faults

from keras_bert_suite.corpus.input_files import find_files, format_of, plan_slices
from keras_bert_suite.corpus.wikipedia import Article, read_articles

pytest.importorskip("mwparserfromhell")

#: As https://dumps.wikimedia.org writes it.
HEAD = """\
<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" version="0.11" xml:lang="de">
  <siteinfo>
    <sitename>Wikipedia</sitename>
    <namespaces>
      <namespace key="-2" case="first-letter">Medium</namespace>
      <namespace key="0" case="first-letter" />
      <namespace key="1" case="first-letter">Diskussion</namespace>
      <namespace key="6" case="first-letter">Datei</namespace>
      <namespace key="14" case="first-letter">Kategorie</namespace>
    </namespaces>
  </siteinfo>
"""
PAGE = """\
  <page>
    <title>{title}</title>
    <ns>{ns}</ns>
    <id>{number}</id>{redirect}
    <revision>
      <id>{number}</id>
      <model>{model}</model>
      <format>text/x-wiki</format>
      <text bytes="{size}" xml:space="preserve">{text}</text>
    </revision>
  </page>
"""
TAIL = "</mediawiki>\n"

MARKUP = """\
{{Infobox Fluss|NAME=Elbe {{!}} x}}
[[Datei:Elbe.jpg|mini|Die [[Elbe]] bei Nacht]]
Die '''Elbe''' ({{lang|cs|Labe}}; {{IPA|x}}) ist ein [[Strom (Gewässer)|Strom]] &amp; fließt nach
[[Hamburg]].&lt;ref name="a"&gt;Buch, S. 3.&lt;/ref&gt; Siehe [[:Kategorie:Fluss|alle Flüsse]].
__NOTOC__
== Verlauf ==
{| class="wikitable"
| Zelle
|}
* Riesengebirge&lt;!-- nicht --&gt;
&lt;math&gt;a^2&lt;/math&gt;Ende
[[Kategorie:Fluss in Europa]]
[[File:b.png|thumb|c]]
{| class="ohne Ende"
|-
! Kopf"""
TEXT = [
    "Die Elbe ist ein Strom & fließt nach",
    "Hamburg.",
    "Siehe alle Flüsse.",
    "Riesengebirge",
    "Ende",
]


def make_page(text, number=1, ns=0, redirect="", model="wikitext"):
    size = len(text.encode())
    names = {"title": f"Seite {number}", "number": number, "ns": ns, "redirect": redirect}
    return PAGE.format(text=text, size=size, model=model, **names)


def make_pages():
    """(pages, the documents of their articles)."""
    pages = [
        make_page(MARKUP, 1),
        make_page("#REDIRECT [[Elbe]]", 2, redirect='\n    <redirect title="Elbe" />'),
        make_page("Eine Diskussion.", 3, ns=1),
        make_page(".a { color: red }", 4, model="sanitized-css"),
        *(make_page(f"Artikel {number}. 长江是亚洲第一长河。", number) for number in range(5, 30)),
    ]
    articles = [[f"Artikel {number}.", "长江是亚洲第一长河。"] for number in range(5, 30)]
    return pages, [TEXT, *articles]


def write_multistream(path, pages, per_stream=4):
    """Writes a dump as a sequence of bzip2 files."""
    groups = [pages[i : i + per_stream] for i in range(0, len(pages), per_stream)]
    streams = [HEAD, *map("".join, groups), TAIL]
    path.write_bytes(b"".join(bz2.compress(stream.encode()) for stream in streams))


@pytest.mark.parametrize("name", ["wiki.xml", "wiki.xml.bz2", "one_stream.xml.bz2"])
def test_a_dump(tmp_path, name):
    """The articles are the same, however the dump is cut."""
    pages, documents = make_pages()
    path, content = tmp_path / name, (HEAD + "".join(pages) + TAIL).encode()
    if name == "wiki.xml":
        path.write_bytes(content)
    elif name == "wiki.xml.bz2":
        write_multistream(path, pages)
    else:
        path.write_bytes(bz2.compress(content))
    folder, names = find_files(path)
    for slice_bytes in (1, 300, 1000, 1 << 20):
        assert read_all(path, slice_bytes) == documents
    most = {"wiki.xml": len(pages), "wiki.xml.bz2": 8, "one_stream.xml.bz2": 1}[name]
    assert len(plan_slices(folder, names, "auto", 1)) >= most


@pytest.mark.parametrize(
    ("markup", "text"),
    [  # Of https://www.mediawiki.org/wiki/Writing_systems/Syntax.
        ("-{zh-hans:计算机; zh-hant:電腦;}-科学", "计算机科学"),
        ("用-{電腦}-的", "用電腦的"),
        ("-{A|zh-cn:博客; zh-tw:網誌}-很多", "博客很多"),
        ("-{H|zh-cn:博客; zh-tw:網誌}-很多", "很多"),
        ("-{T|zh-cn:博客}-很多", "很多"),
        ("见-{[[河|长江]]}-。", "见长江。"),
        ("若 x-{y 则 z", "若 x-{y 则 z"),
        ("iOS-{zh-cn:软件; zh-tw:軟體}-2", "iOS软件2"),
        ("'''-{iOS}-'''", "iOS"),
        ("N-{4-[(2-amino)methyl]phenyl}-2-amide", "N-{4-[(2-amino)methyl]phenyl}-2-amide"),
    ],
)
def test_variants_of_a_language(markup, text):
    assert Article(markup, frozenset()).read_text() == text


@pytest.mark.parametrize("name", ["wiki.xml", "wiki.xml.bz2", "one_stream.xml.bz2"])
@pytest.mark.parametrize("slice_bytes", [300, 1 << 20])
def test_a_dump_that_ends_early(tmp_path, name, slice_bytes):
    pages, documents = make_pages()
    path, content = tmp_path / name, (HEAD + "".join(pages) + TAIL).encode()
    if name == "wiki.xml.bz2":
        write_multistream(path, pages)
    else:
        path.write_bytes(bz2.compress(content) if name.endswith("2") else content)
    whole = path.read_bytes()
    path.write_bytes(whole[: -100 if name == "wiki.xml.bz2" else -300])
    found, faults = read_with_faults(path, slice_bytes, on_error="skip")
    assert faults.documents == 1 and found == documents[: len(found)] != documents
    with pytest.raises(ValueError) as error:
        read_all(path, slice_bytes)
    assert f"{path} ends early or is damaged" in str(error.value)
    if name != "one_stream.xml.bz2":  # One block of bzip2 is whole or not at all.
        assert "whole pages were read from byte" in str(error.value)
        assert "the last is 'Seite 2" in str(error.value)


def test_no_dump(tmp_path):
    (tmp_path / "a.xml.bz2").write_bytes(b"<mediawiki>")
    with pytest.raises(ValueError, match="a.xml.bz2 ends early or is damaged .*0 whole pages"):
        read_all(tmp_path / "a.xml.bz2")


@pytest.mark.parametrize(
    ("name", "format"),
    [
        ("enwiki-20260101-pages-articles.xml", "wikipedia"),
        ("enwiki-20260101-pages-articles-multistream.xml.bz2", "wikipedia"),
        ("enwiki-20260101-pages-articles1.xml-p1p41242.bz2", "wikipedia"),
        ("enwiki-20260101-pages-articles-multistream-index.txt.bz2", "sentences"),
        ("xml.txt", "sentences"),
    ],
)
def test_names_of_dumps(name, format):
    assert format_of(name, "auto") == format


def test_memory_does_not_grow(tmp_path):
    path = tmp_path / "wiki.xml"
    page = make_page("Ein Satz. " * 1000)
    path.write_text(HEAD + page * 1200 + TAIL, encoding="utf-8")
    tracemalloc.start()
    try:
        size = path.stat().st_size
        assert sum(1 for _ in read_articles(str(path), 0, size)) == 1200
        assert tracemalloc.get_traced_memory()[1] < size / 2
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(("name", "format"), [("a.xml", "auto"), ("a.txt", "wikipedia")])
def test_without_its_parser_no_dump_is_begun(tmp_path, monkeypatch, name, format):
    (tmp_path / name).write_text(HEAD + TAIL)
    monkeypatch.setitem(sys.modules, "mwparserfromhell", None)
    with pytest.raises(ImportError, match=r"pip install mwparserfromhell"):
        plan_slices(str(tmp_path), [name], format, 1000)
