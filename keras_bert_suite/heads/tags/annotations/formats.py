"""Finds out which tool wrote a file, and reads it as a `MarkedFile`."""

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path

from keras_bert_suite.data.readers.text_files import read_text
from keras_bert_suite.heads.tags.annotations import brat, json_texts, label_studio
from keras_bert_suite.heads.tags.annotations.marked_texts import MarkedFile, Record, list_lines


@dataclasses.dataclass(frozen=True)
class Format:
    """How a tool writes texts with spans.

    Attributes:
        form: str, for messages.
        recognizes: function from a part of a JSON file to bool.
        read: function(records, file) that adds to a `MarkedFile`.
        offsets: tuple of keys of `OFFSETS`: the unit of the tool. The first is the default.
    """

    form: str
    recognizes: Callable
    read: Callable
    offsets: tuple = ("characters",)


def _is_doccano(content):
    lists = json_texts.has_spans(content, ("label", "labels"))
    dicts = json_texts.has_spans(content, ("entities", "annotations"), "start_offset")
    return lists or dicts or ("cats" in content if json_texts.is_spacy(content) else False)


#: The formats of JSON. An empty list of spans fits several; then the first one is taken.
FORMATS = (
    Format(
        'Label Studio\'s {"data": {"text": ...}, "annotations": [{"result": [...]}]}',
        label_studio.is_tasks,
        label_studio.read_tasks,
        ("characters", "utf16"),
    ),
    Format(
        'Label Studio\'s {"text": ..., "label": [{"start": ..., "end": ..., "labels": [...]}]}',
        label_studio.is_min,
        label_studio.read_min,
        ("characters", "utf16"),
    ),
    Format(
        'CLUENER\'s {"text": ..., "label": {"name": {"Ada": [[0, 2]]}}}',
        json_texts.is_cluener,
        json_texts.read_cluener,
        ("inclusive",),
    ),
    Format(
        'CMeEE\'s {"text": ..., "entities": [{"start_idx": ..., "end_idx": ..., "type": ...}]}',
        lambda content: json_texts.has_spans(content, ("entities",), "start_idx"),
        json_texts.read_texts,
        ("inclusive", "characters"),
    ),
    Format(
        'doccano\'s {"text": ..., "label": [[start, end, label]]}, or "entities" with start_offset',
        _is_doccano,
        json_texts.read_texts,
        ("characters", "utf16"),
    ),
    Format(
        'spaCy\'s [text, {"entities": [[start, end, label]]}]',
        json_texts.is_spacy,
        json_texts.read_spacy,
    ),
    Format(
        'Prodigy\'s {"text": ..., "spans": [{"start": ..., "end": ..., "label": ...}]}',
        json_texts.is_prodigy,
        json_texts.read_prodigy,
    ),
)

#: Said where a file is of none of the formats.
_WANTED = (
    "JSON of doccano, Label Studio, spaCy, Prodigy, CLUENER or CMeEE, or a folder of BRAT, as "
    "docs/files_we_read.md shows them"
)

#: Files that are not read, and the remedy.
_REFUSED = {
    ".spacy": "is a DocBin of spaCy, which is binary. Write its documents as JSON: "
    '[[doc.text, {"entities": [(e.start_char, e.end_char, e.label_) for e in doc.ents]}] for doc '
    "in docs]",
    ".xmi": "is of INCEpTION or UIMA. Export it as CoNLL 2002, and read that with read_conll",
    ".xml": "is XML. Export it from INCEpTION as CoNLL 2002, and read that with read_conll",
    ".zip": "is an archive. Unpack it, and read the files in it",
    ".csv": "is a table. Export the annotations as JSON",
    ".tsv": "is a table. Export the annotations as JSON, from INCEpTION as CoNLL 2002 for "
    "read_conll",
    ".py": "is Python. Write its list of texts and entities with json.dump",
}


def read_marked_file(path, encoding):
    """Reads a file of an annotation tool.

    Returns:
        `(file, offsets)`: `MarkedFile`, and `Format.offsets` of its format.

    Raises:
        ValueError: if it is of no format that is read, or of several, or has parts of another form.
        OSError: if a file cannot be read.
    """
    suffix = Path(path).suffix.lower()
    if suffix in _REFUSED:
        raise ValueError(f"{path} {_REFUSED[suffix]}.")
    if brat.is_brat(path):
        file = MarkedFile(str(path), brat.FORM)
        brat.read_brat(path, encoding, file)
        return file, brat.OFFSETS
    records = _read_json(path, read_text(path, encoding))
    found = _find_format(path, records)
    file = MarkedFile(str(path), found.form)
    found.read(records, file)
    return file, found.offsets


def _read_json(path, text):
    """The parts of a JSON text, or of JSON lines: list of at least one `Record`."""
    try:
        parts = json.loads(text)
    except (ValueError, RecursionError) as error:
        lines = list_lines(text)
        if len(lines) < 2 or lines[0][1].lstrip()[:1] not in ("{", "["):
            raise ValueError(
                f"{path} is not JSON: {error}. Wanted {_WANTED}. A word and a tag in each line "
                "are read by read_conll."
            ) from None
        records = []
        for number, (line, content) in enumerate(lines):
            try:
                records.append(Record(json.loads(content), line, number))
            except (ValueError, RecursionError) as error:
                raise ValueError(
                    f"{path}, line {line}: {error}. Wanted JSON in each line."
                ) from None
        return records
    if (
        isinstance(parts, dict)
        and isinstance(parts.get("annotations"), list)
        and "classes" in parts
    ):
        parts = [part for part in parts["annotations"] if part is not None]  # Of "NER Annotator".
    is_one = isinstance(parts, dict) or json_texts.is_spacy(parts)
    is_line = is_one and "\n" not in text.strip()
    parts = [parts] if is_one else parts
    if not isinstance(parts, list) or not parts:
        raise ValueError(f"{path} has no texts. Wanted {_WANTED}.")
    return [Record(part, 1 if is_line else None, number) for number, part in enumerate(parts)]


def _find_format(path, records):
    """The `Format` of the records. A record with a text and no spans may be of any."""
    fitting, first = list(FORMATS), None
    for record in records:
        content = record.content
        now = [found for found in FORMATS if found.recognizes(content)]
        if not now and isinstance(content, dict) and _is_unlabelled(content):
            continue
        both = [found for found in fitting if found in now]
        if not both:
            raise ValueError(
                f"{path}, {record.describe()}: got {_describe(content)}. Wanted "
                + (fitting[0].form if first else _WANTED)
                + (f", as in {first.describe()}." if first else ".")
                + _advise(content)
            )
        fitting, first = both, first or record
    if first is None:
        raise ValueError(
            f"{path} has no annotations: got {_describe(records[0].content)}. Wanted "
            f"{_WANTED}. Texts alone are read by read_table, from a .jsonl file."
        )
    return fitting[0]


def _is_unlabelled(content):
    keys = ("label", "labels", "entities", "ents", "spans")
    return isinstance(content.get("text"), str) and all(content.get(key) is None for key in keys)


def _describe(content):
    if isinstance(content, dict):
        keys = [f"{key!r} ({type(value).__name__})" for key, value in content.items()]
        return f"the keys {', '.join(keys)}"[:300]
    return f"{content!r:.80}"


def _advise(content):
    if isinstance(content, dict) and "%FEATURE_STRUCTURES" in content:
        return " It is of INCEpTION or UIMA. Export it as CoNLL 2002 for read_conll."
    if isinstance(content, dict) and {"tokens", "ner_tags"} <= content.keys():
        return " It has words and tags already: pass both to `fit` of a TokenClassifier."
    labels = [content.get(key) for key in ("label", "labels")] if isinstance(content, dict) else []
    if any(isinstance(label, str) for label in labels) or any(
        isinstance(label, list) and label and all(isinstance(name, str) for name in label)
        for label in labels
    ):
        return " Labels of whole texts are read by read_table, from a .jsonl file."
    return ""
