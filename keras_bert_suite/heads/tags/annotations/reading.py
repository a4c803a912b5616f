"""Reads spans in texts from the files of annotation tools."""

import functools
import os
import warnings

from keras_bert_suite.data.readers.examples import Examples
from keras_bert_suite.data.readers.text_places import ERRORS
from keras_bert_suite.heads.tags.annotations.findings import Findings
from keras_bert_suite.heads.tags.annotations.formats import read_marked_file
from keras_bert_suite.heads.tags.annotations.offsets import (
    OFFSETS,
    Ruler,
    choose_offsets,
    list_moved,
)
from keras_bert_suite.heads.tags.annotations.spans import (
    CUT,
    DISAGREED,
    IN_PIECES,
    OVERLAPPING,
    describe,
    find_overlapping,
    place_span,
)
from keras_bert_suite.heads.tags.annotations.words import cut_words, find_words
from keras_bert_suite.heads.tags.tag_forms import OUTSIDE
from keras_bert_suite.heads.tags.tag_schemes import SCHEMES, list_tags, write_tags

#: Why a text is left out, or changed.
EMPTY = "no words"
UNREADABLE = "no span that can be read"


def read_annotations(
    path: str | os.PathLike[str],
    scheme: str | None = None,
    errors: str = "raise",
    offsets: str | None = None,
    encoding: str = "utf-8",
) -> Examples:
    """Reads texts and their spans from a file of an annotation tool.

    The tools are doccano, Label Studio, BRAT, spaCy and Prodigy; the forms of CLUENER and CMeEE are
    read, too.

    ```python
    train = kbs.read_annotations("annotations.jsonl")
    train.x[0], train.y[0]  # ("Ada lived in London.", [(0, 3, "PER"), (13, 19, "LOC")])
    tags = kbs.read_annotations("annotations.jsonl", scheme="BIO")
    tags.x[0], tags.y[0]  # (["Ada", "lived", ...], ["B-PER", "O", ...])
    ```

    The keys of a file say which tool wrote it. `docs/files_we_read.md` has the forms. The text that
    a file gives to a span is compared with the text at its place. The unit of the places is found
    by these texts, or else by the borders of words: Label Studio and doccano may count UTF-16 code
    units, of which an emoji has two, and CLUENER names the last character of a span.

    Args:
        path: str or path: a JSON file, JSON lines, or for BRAT a folder or one of its files.
        scheme: how `y` says where the entities are. None: by spans that count characters of texts.
            "spans": by spans that count words. "BIO", "IOB1", "BIOES" or "BMES": by tags of words.
            Words are cut as BERT cuts them: a Chinese character and a punctuation mark are words.
        errors: the treatment of a wrong span: it is not within its text, empty, of spaces alone,
            without a label, or has spaces at its border; its text is elsewhere or nowhere; with a
            `scheme`, it cuts through a word or, for tags, overlaps another span. "raise" is an
            error. "fix" trims a span, moves it to the nearest place of its text, or widens it to
            whole words. "skip" does not. In both cases a span that is still wrong is left out, the
            shorter of two that overlap, and a text if none of its spans can be read. One warning
            has the numbers. Of annotators who disagree, "fix" takes the last one; "skip" leaves out
            the text.
        offsets: the unit of the places of the file: "characters"; "utf16", code units; "newlines",
            characters with the two that end a line on Windows as one; "inclusive", characters, with
            an end that is the last character. None finds it out. Another unit than the tool writes
            is an error that `errors="fix"` corrects.
        encoding: str, the encoding of the file.

    Returns:
        `Examples` of at least one text, for `EntitySpanClassifier`, or with tags for
        `TokenClassifier` and `CrfTokenClassifier`. `x`: the texts, or lists of words. `y`: lists of
        `(start, end, type)`, or lists of tags. `label_names`: the types, sorted, or all tags of
        these types, "O" first. `ids` and `lines`, if the file has them. `left_out`: ids, lines or
        numbers by the reason, of texts that were left out, and of parts of the file that are not
        read: relations, notes, spans of several pieces, cancelled annotations. `corrected`: of
        texts in which a span was changed or left out.

    Raises:
        OSError: if a file cannot be read.
        ValueError: if the file is of another form, showing its content; if a span is wrong, or
            annotators disagree, naming the text; if no text is left; or if an argument has another
            value.
    """
    for name, value, known in (
        ("errors", errors, ERRORS),
        ("scheme", scheme, (None, "spans", *SCHEMES)),
        ("offsets", offsets, (None, *OFFSETS)),
    ):
        if value not in known:
            raise ValueError(f"{name} must be one of {', '.join(map(str, known))}, got {value!r}.")
    file, usual = read_marked_file(path, encoding)
    findings = Findings(file, errors)
    texts = _join_annotators(file.texts, findings)
    if offsets is None:
        offsets = _find_offsets(texts, usual, findings)
    read = _read_characters if scheme is None else functools.partial(_read_words, scheme)
    rows = [(text, read(text, _place_spans(text, offsets, findings), findings)) for text in texts]
    rows = [(text, *row) for text, row in rows if row is not None]
    findings.finish(len(texts), len(rows))
    texts, x, y = map(list, zip(*rows, strict=True))
    names = sorted({label for spans in y for _, _, label in spans})
    if scheme in SCHEMES:
        # Entities of one word, and of several beside one of their type, have all tags.
        rows = [write_tags([(kind, 0, 1), (kind, 1, 4)], 4, scheme) for kind in names]
        names = list_tags([[OUTSIDE], *rows])
        y = [_tag(spans, len(words), scheme) for words, spans in zip(x, y, strict=True)]
    ids, lines = [text.id for text in texts], [text.line for text in texts]
    return Examples(
        str(path),
        x,
        y,
        names,
        None if None in lines else lines,
        None if None in ids else ids,
        findings.left_out,
        findings.corrected,
    )


def _join_annotators(texts, findings):
    """One text of each task: the last annotation."""
    tasks = {}
    for number, text in enumerate(texts):
        # Files of two projects, joined, may have two tasks with one id.
        key = (number, None) if text.task is None else (text.task, text.text)
        tasks.setdefault(key, []).append(text)
    joined = []
    for group in tasks.values():
        if len({frozenset(text.spans) for text in group}) > 1:
            findings.note(
                DISAGREED,
                group[-1],
                f"{len(group)} annotations have not the same spans. Keep one of them; in Label "
                "Studio, mark it as ground truth.",
            )
            if findings.errors == "skip":
                findings.leave_out(DISAGREED, group[-1])
                continue
        joined.append(group[-1])
    return joined


def _find_offsets(texts, usual, findings):
    """The unit of the places of a file, as the tool writes it or, to be fixed, another."""
    offsets, is_certain = choose_offsets(texts, usual)
    moved = list_moved(texts, usual[0], offsets)
    reason = f"places that count {OFFSETS[offsets]}"
    if offsets not in usual and findings.errors != "fix":
        text, span, before, after = next(case for case in moved if case[3] is not None)
        parts = [place and text.text[slice(*place)][:40] for place in (before, after)]
        raise ValueError(
            f"{findings.path}, {text.where}: the span {span.start} to {span.end} with the label "
            f"{span.label!r} is {parts[0]!r} if places count {OFFSETS[usual[0]]}, and {parts[1]!r} "
            f"if they count {OFFSETS[offsets]}. The second fits most of the {len(moved)} spans "
            f'that differ. If it is right, pass offsets={offsets!r} or errors="fix"; else pass '
            f"offsets={usual[0]!r}."
        )
    for text, *_ in moved:
        if offsets in usual:
            findings.correct(reason, text)
        else:
            findings.note(reason, text, "")
    if not is_certain:
        other = next(name for name in usual if name != offsets)
        names = {text.name for text, *_ in list_moved(texts, offsets, other)}
        warnings.warn(
            f"{findings.path}: the file does not say what the places of its spans count. In "
            f"{len(names)} texts, such as {min(map(str, names))}, this matters. They are read as "
            f"{OFFSETS[offsets]}. If this is right, pass offsets={offsets!r}; if they count "
            f"{OFFSETS[other]}, offsets={other!r}.",
            stacklevel=3,
        )
    return offsets


def _place_spans(text, offsets, findings):
    """The spans of a text that can be read: sorted list of (start, end, type), all different."""
    ruler = Ruler(text.text, offsets)
    placed = set()
    for span in text.spans:
        place, problem = place_span(text.text, span, ruler)
        if problem == IN_PIECES:
            findings.leave_out(problem, text)
            continue
        if problem is not None:
            findings.note(problem, text, describe(problem, span.label, text.text, place, span))
        if place is not None and (problem is None or findings.errors == "fix"):
            placed.add((*place, span.label))
    return sorted(placed)


def _read_characters(text, spans, findings):
    """(the text, its spans), or None if the text is left out."""
    if not text.text.strip():
        return findings.leave_out(EMPTY, text)
    if text.spans and not spans:
        return findings.leave_out(UNREADABLE, text)
    return text.text, spans


def _read_words(scheme, text, spans, findings):
    """(the words of a text, its spans of words), or None if the text is left out."""
    places = cut_words(text.text)
    found = []
    for start, end, label in spans:
        first, last = find_words(places, start, end)
        whole = (places[first][0], places[last - 1][1])
        if whole != (start, end):
            findings.note(CUT, text, describe(CUT, label, text.text, (start, end), whole=whole))
        if whole == (start, end) or findings.errors == "fix":
            found.append((first, last, label))
    found = sorted(set(found))
    if scheme != "spans":
        overlapping = find_overlapping([span[:2] for span in found])
        for first, last, label in (found[number] for number in overlapping):
            place = (places[first][0], places[last - 1][1])
            findings.note(OVERLAPPING, text, describe(OVERLAPPING, label, text.text, place))
        found = [span for number, span in enumerate(found) if number not in overlapping]
    if _read_characters(text, found, findings) is None:
        return None
    return [text.text[slice(*place)] for place in places], found


def _tag(spans, num_words, scheme):
    return write_tags([(label, first, end) for first, end, label in spans], num_words, scheme)
