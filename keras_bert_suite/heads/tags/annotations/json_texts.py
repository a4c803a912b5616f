"""Reads texts with spans in JSON: the files of doccano, spaCy, Prodigy, CLUENER and CMeEE."""

from keras_bert_suite.heads.tags.annotations.marked_texts import read_spans
from keras_bert_suite.heads.tags.tag_schemes import find_entities

#: Why a text is left out.
UNLABELLED = "a text without annotations"
MISSING_TAGS = "a text with tags that are missing, -"

#: The keys of a text, of which one has its spans.
_SPANS = ("label", "labels", "entities", "ents", "spans", "annotations")

#: The names of the parts of a span.
_PARTS = {
    "start": ("start", "start_offset", "start_idx"),
    "end": ("end", "end_offset", "end_idx"),
    "label": ("label", "type"),
    "text": ("text", "entity"),
}


def has_spans(content, keys, part=None):
    """Whether a record has a text, and a list of spans in a key of `keys`.

    `part` is the name that the start has in each span; None is for spans that are lists.
    """
    if not isinstance(content, dict) or not isinstance(content.get("text"), str):
        return False
    lists = [content[key] for key in keys if isinstance(content.get(key), list)]
    return any(
        all(isinstance(span, list) if part is None else _has_part(span, part) for span in spans)
        for spans in lists
    )


def is_spacy(content):
    """Whether a record is [text, {"entities": [...]}], or a document of spaCy's JSON."""
    if isinstance(content, list):
        return len(content) == 2 and isinstance(content[0], str) and _is_annotation(content[1])
    if isinstance(content, dict) and isinstance(content.get("paragraphs"), list):
        return all(isinstance(part, dict) and "sentences" in part for part in content["paragraphs"])
    return has_spans(content, ("entities",)) or has_spans(content, ("ents",), "start")


def is_prodigy(content):
    """Whether a record is a task of Prodigy."""
    is_answered = isinstance(content, dict) and isinstance(content.get("text"), str)
    is_answered = is_answered and content.get("answer") in ("accept", "reject", "ignore")
    return is_answered or has_spans(content, ("spans",), "start")


def is_cluener(content):
    """Whether a record has a dict of its entities."""
    return (
        isinstance(content, dict)
        and isinstance(content.get("text"), str)
        and isinstance(content.get("label"), dict)
    )


def read_texts(records, file):
    """Reads records of a text and a list of spans into a `MarkedFile`."""
    for record in records:
        with file.reading(record):
            content = record.content
            keys = [key for key in _SPANS if isinstance(content.get(key), list)]
            if not keys:
                file.leave_out(UNLABELLED, record.mark(content["text"], []).name)
                continue
            filled = [key for key in keys if content[key]]
            if len(filled) > 1:
                raise ValueError(f"spans in {' and in '.join(filled)}; remove one of them")
            spans = [span for value in content[(filled or keys)[0]] for span in _read_span(value)]
            file.texts.append(record.mark(content["text"], spans, content.get("id")))


def read_prodigy(records, file):
    """Reads tasks of Prodigy into a `MarkedFile`. A task without an answer is taken as accepted."""
    for record in records:
        with file.reading(record):
            content = record.content
            answer = content.get("answer", "accept")
            spans = [part for value in content.get("spans") or [] for part in _read_span(value)]
            text = record.mark(content["text"], spans, task=content.get("_input_hash"))
            if answer != "accept":
                file.leave_out(f"a text with the answer {str(answer)[:20]}", text.name)
            elif content.get("spans") is None and "answer" not in content:
                file.leave_out(UNLABELLED, text.name)
            else:
                file.texts.append(text)


def read_cluener(records, file):
    """Reads rows of CLUENER, in which the key of a place is its text, into a `MarkedFile`."""
    for record in records:
        with file.reading(record):
            content = record.content
            if content.get("label") is None:
                file.leave_out(UNLABELLED, record.mark(content["text"], []).name)
                continue
            spans = [
                span
                for label, names in content["label"].items()
                for text, places in names.items()
                for start, end in places
                for span in read_spans(start, end, label, text)
            ]
            file.texts.append(record.mark(content["text"], spans, content.get("id")))


def read_spacy(records, file):
    """Reads training data of spaCy into a `MarkedFile`."""
    for record in records:
        with file.reading(record):
            content = record.content
            if isinstance(content, dict) and "paragraphs" in content:
                for paragraph in content["paragraphs"]:
                    _read_paragraph(paragraph, record, file)
            elif isinstance(content, dict):
                read_texts([record], file)
            else:
                text, spans = content
                spans = spans["entities"] if isinstance(spans, dict) else spans
                spans = [part for span in spans for part in _read_span(span)]
                file.texts.append(record.mark(text, spans))


def _read_paragraph(paragraph, record, file):
    """Reads tokens with tags, as spaCy 2 has them. "raw" is the text between the tokens."""
    tokens = [token for part in paragraph["sentences"] for token in part["tokens"]]
    words = [token["orth"] for token in tokens]
    text = paragraph.get("raw") or " ".join(words)
    starts, place = [], 0
    for word in words:
        place = text.index(word, place)
        starts.append(place)
        place += len(word)
    tags = [token.get("ner") or "O" for token in tokens]
    if "-" in tags:
        file.leave_out(MISSING_TAGS, record.mark(text, []).name)
        return
    spans = [
        span
        for kind, first, end in find_entities(tags)
        for span in read_spans(starts[first], starts[end - 1] + len(words[end - 1]), kind)
    ]
    file.texts.append(record.mark(text, spans))


def _read_span(span):
    """list of `MarkedSpan` from [start, end, label], or from a dict."""
    if isinstance(span, list):
        start, end, label = span
        return read_spans(start, end, label)
    found = {
        part: span.get(next((name for name in names if name in span), names[0]))
        for part, names in _PARTS.items()
    }
    return read_spans(found["start"], found["end"], found["label"], found["text"])


def _has_part(span, part):
    return isinstance(span, dict) and part in span


def _is_annotation(value):
    if isinstance(value, dict):
        return isinstance(value.get("entities"), list)
    return isinstance(value, list) and all(isinstance(span, list) for span in value)
