"""Reads the articles of a Wikipedia dump, `...pages-articles...xml`, packed by bzip2 or not.

The XML is parsed as it is read, so a dump of any size takes the memory of a page. A range of a dump
can be read alone if it begins where a page begins. The multistream dumps of Wikimedia are sequences
of bzip2 files of a hundred pages each. So they can be cut between these, too.

Format: https://www.mediawiki.org/wiki/Help:Export and
https://meta.wikimedia.org/wiki/Data_dumps/Dump_format.
"""

import bz2
import contextlib
import dataclasses
import os
import re
from xml.etree.ElementTree import ParseError, XMLPullParser

#: The ends of the names of dumps, also of the parts of large dumps.
DUMP_NAME = re.compile(r"\.xml(-p\d+p\d+)?(\.bz2)?$")

BLOCK_BYTES = 1 << 20

#: How a bzip2 file begins.
_STREAM_BEGIN = re.compile(rb"BZh[1-9]1AY&SY")

#: Names of namespaces that every wiki knows, beside the names in its language.
_ENGLISH_NAMESPACES = ("category", "file", "image", "media")

_INVISIBLE_TAGS = ("ref", "table")
_MAGIC_WORDS = re.compile(r"__[A-Z]+__")
#: The rest of removed templates in "(pronounced {{IPA|...}}; born ...)" and the like.
_EMPTY_BRACKETS = re.compile(r" ?[(（][\s,;:，；：、]*[)）]")
#: A text in each variant of a language, as in -{zh-hans:软件; zh-hant:軟體}-. Flags end with "|".
#: https://www.mediawiki.org/wiki/Writing_systems/Syntax
_VARIANTS = re.compile(r"-\{(?:([A-Za-z;\s-]*)\|)?([^{}]*)\}-")
_FIRST_VARIANT = re.compile(r"\s*[a-z]{2,3}(?:-[a-z]+)*\s*:\s*([^;]*)")
_HIDING_FLAGS = {"H", "T", "-"}
#: A part of the name of a compound, as in N-{4-[(2-amino)methyl]phenyl}-2-aminoacetamide.
_COMPOUND = re.compile(r"(?<=[A-Za-z0-9)\]])-\{[!-z]+\}-(?=[A-Za-z0-9(\[])")
#: Rows of tables and references that the parser finds no end of.
_LEFT_MARKUP = re.compile(r"^(?:\{\||[|!]).*$|</?ref\b[^>]*>", re.MULTILINE)


class UnreadableDumpError(ValueError):
    """A dump that ends early, or holds something else."""


@dataclasses.dataclass(frozen=True)
class Article:
    """An article of a dump.

    Attributes:
        markup: str, in the syntax of MediaWiki.
        namespaces: frozenset of str, the names of namespaces in lower case. Links to their pages
            show a file or name a category, and are no text.
    """

    markup: str
    namespaces: frozenset

    def read_text(self):
        """The text without markup, str: no templates, tables, references, headings and files."""
        import mwparserfromhell

        code = mwparserfromhell.parse(_VARIANTS.sub(_choose_variant, self.markup))
        self._hide(code)
        text = code.strip_code()
        for pattern in (_MAGIC_WORDS, _LEFT_MARKUP, _EMPTY_BRACKETS):
            text = pattern.sub("", text)
        return text

    def _hide(self, code):
        """Removes hidden nodes. `Wikicode.remove` would search the page for each node."""
        code.nodes = [node for node in code.nodes if not self._is_hidden(node)]
        for node in code.nodes:
            for name in ("contents", "text"):  # of a tag and of a link
                inner = getattr(node, name, None)
                if hasattr(inner, "nodes"):
                    self._hide(inner)

    def _is_hidden(self, node):
        """Whether a node shows no text. The link [[:File:a.png]] does."""
        from mwparserfromhell.nodes import Heading, Tag, Wikilink

        if isinstance(node, Wikilink):
            namespace, colon, _ = str(node.title).partition(":")
            return bool(colon) and namespace.strip().lower() in self.namespaces
        if isinstance(node, Tag):
            return str(node.tag).lower() in _INVISIBLE_TAGS
        return isinstance(node, Heading)


def _choose_variant(match):
    """The text of the first variant of a match of `_VARIANTS`, or "" if a flag hides it."""
    flags, text = match.groups(default="")
    first = _FIRST_VARIANT.match(text)
    if not first and _COMPOUND.match(match.string, match.start()):
        return match[0]
    if _HIDING_FLAGS & {flag.strip() for flag in flags.split(";")}:
        return ""
    return first[1] if first else text


def check_markup_parser():
    """Raises an `ImportError` if the parser of MediaWiki's markup is not installed."""
    try:
        import mwparserfromhell  # noqa: F401
    except ImportError as error:
        raise ImportError(
            "A Wikipedia dump needs mwparserfromhell: pip install mwparserfromhell"
        ) from error


def find_page(file, packed):
    """The next place of a dump where a page begins.

    Args:
        file: binary file, which is read from its position on.
        packed: bool, whether it is packed by bzip2. Then only the beginnings of its streams are
            looked at.

    Returns:
        int, or the size of the file if there is none.
    """
    if packed:
        return _find_stream(file)
    while line := file.readline():
        if line.strip() == b"<page>":
            return file.tell() - len(line)
    return file.tell()


def _find_stream(file):
    overlap = b""
    while block := file.read(BLOCK_BYTES):
        data = overlap + block
        if match := _STREAM_BEGIN.search(data):
            place = file.tell() - len(data) + match.start()
            file.seek(place)
            with contextlib.suppress(OSError):
                begin = bz2.BZ2Decompressor().decompress(file.read(BLOCK_BYTES), max_length=64)
                if begin.lstrip().startswith(b"<page>"):
                    return place
            break  # The streams of other programs begin anywhere.
        overlap = data[-9:]
    return file.seek(0, 2)


def read_articles(path, start, end):
    """Yields the articles of a range of a dump. Redirects and other namespaces are left out.

    Args:
        path: str.
        start, end: int, bytes of the file, as it is on disk. A page begins at `start`, unless it is
            0. The range ends before a page, or with the file.

    Yields:
        `Article`, with the newest revision that the dump has.

    Raises:
        UnreadableDumpError: if the file ends within a page or before the end of the dump, or is no
            dump. It names the last whole page.
    """
    namespaces, num_pages, title = read_namespaces(path), 0, None
    try:
        for page in _read_elements(path, start, end, "page"):
            num_pages, title = num_pages + 1, page.findtext("title")
            texts = page.findall("revision/text")
            is_text = page.findtext("revision/model", "wikitext") == "wikitext"
            if page.findtext("ns") == "0" and page.find("redirect") is None and is_text and texts:
                yield Article(texts[-1].text or "", namespaces)
    except (EOFError, OSError, ParseError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        last = f", the last is {title!r}" if title else ""
        raise UnreadableDumpError(
            f"ends early or is damaged ({error}): {num_pages:,} whole pages were read from byte "
            f"{start:,} on{last}. Download it again."
        ) from error


def read_namespaces(path):
    """The names of all namespaces of a dump but the articles', frozenset of str."""
    names = set(_ENGLISH_NAMESPACES)
    with contextlib.suppress(EOFError, OSError, ParseError):  # They are raised again by the pages.
        for element in _read_elements(path, 0, os.path.getsize(path), "siteinfo", "page"):
            names |= {(name.text or "").lower() for name in element.iter() if name.get("key")}
            break
    return frozenset(names - {""})


def _read_elements(path, start, end, *names):
    """Yields the elements of an XML file, without the names of its XML namespace."""
    parser, root = XMLPullParser(("start", "end")), None
    if start:
        parser.feed(b"<mediawiki>")
    for block in _read_blocks(path, start, end):
        parser.feed(block)
        for event, element in parser.read_events():
            root = element if root is None else root
            if event == "start":
                continue
            element.tag = element.tag.rpartition("}")[2]
            if element.tag in names:
                yield element
                root.clear()
    if end == os.path.getsize(path):
        parser.close()  # An error, unless the root was closed.


def _read_blocks(path, start, end):
    """Yields the unpacked bytes of a range of a file.

    Raises:
        EOFError: if a packed file ends within its data.
        OSError: without a number, if the file is not packed by bzip2.
    """
    unpacker = None
    with open(path, "rb") as file:
        file.seek(start)
        while block := file.read(min(BLOCK_BYTES, end - file.tell())):
            while block and path.endswith(".bz2"):
                if unpacker is None or unpacker.eof:
                    unpacker = bz2.BZ2Decompressor()
                yield unpacker.decompress(block)
                block = unpacker.unused_data
            if block:
                yield block
    if unpacker is not None and not unpacker.eof:
        raise EOFError("its packed data are not complete")
