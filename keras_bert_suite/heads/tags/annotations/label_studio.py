"""Reads the files of Label Studio: its JSON, and its JSON-MIN.

Source: https://labelstud.io/guide/task_format and https://labelstud.io/guide/export.
"""

import collections
import dataclasses
import re

from keras_bert_suite.heads.tags.annotations.json_texts import UNLABELLED
from keras_bert_suite.heads.tags.annotations.marked_texts import read_spans
from keras_bert_suite.heads.tags.annotations.offsets import Ruler, is_same

CANCELLED = "an annotation that was cancelled"
PREDICTED = "a prediction of a model"
ELSEWHERE = "a text all of whose spans are places in HTML or in a dialogue"

#: The types of such spans.
_SPANS_ELSEWHERE = ("hypertextlabels", "paragraphlabels")

#: The place of a text that is not in the file.
_ADDRESS = re.compile(r"(\w+://|/data/)\S+")


def is_tasks(content):
    """Whether a record is a task with its data and its annotations."""
    return (
        isinstance(content, dict)
        and isinstance(content.get("data"), dict)
        and isinstance(content.get("annotations", content.get("completions")), list)
    )


def is_min(content):
    """Whether a record is a row of JSON-MIN."""
    return isinstance(content, dict) and (
        {"annotation_id", "annotator"} <= content.keys() or any(map(_is_regions, content.values()))
    )


def read_tasks(records, file):
    """Reads tasks into a `MarkedFile`. Each annotation is a text; all of a task have its id.

    If annotations of a task are marked as ground truth, the others are not read. The last is the
    newest.
    """
    found = []
    for record in records:
        with file.reading(record):
            task = record.content
            id = task.get("id", record.number)
            if task.get("predictions"):
                file.leave_out(PREDICTED, str(id))
            annotations = task.get("annotations", task.get("completions"))
            for _ in filter(_is_cancelled, annotations):
                file.leave_out(CANCELLED, str(id))
            annotations = [part for part in annotations if not _is_cancelled(part)]
            annotations = [part for part in annotations if part.get("ground_truth")] or annotations
            if not annotations:
                file.leave_out(UNLABELLED, str(id))
            annotations.sort(key=lambda part: str(part.get("updated_at", "")))
            for annotation in annotations:
                results = annotation["result"]
                regions = _keep_regions(results, str(id), file)
                if not regions and any(r.get("type") in _SPANS_ELSEWHERE for r in results):
                    file.leave_out(ELSEWHERE, str(id))  # It is no text without entities.
                    continue
                found.append((record, id, task["data"], regions))
    _add_texts(found, file)


def read_min(records, file):
    """Reads rows of JSON-MIN, one for each annotation of a task, into a `MarkedFile`."""
    found = []
    for record in records:
        with file.reading(record):
            row = record.content
            regions = [part for value in row.values() if _is_regions(value) for part in value]
            dates = ("created_at", "updated_at")
            data = {key: value for key, value in row.items() if key not in dates}
            found.append((record, row.get("id", record.number), data, regions))
    _add_texts(found, file)


def _add_texts(found, file):
    rows = []
    for record, id, data, regions in found:
        with file.reading(record):
            spans = [span for region in regions for span in _read_region(region)]
            rows.append((record, id, {k: v for k, v in data.items() if _is_text(v)}, spans))
    if rows:
        key = _choose_key(rows, file.path)
    for record, id, data, spans in rows:
        with file.reading(record):
            text = data[key]
            if _ADDRESS.fullmatch(text) and any(span.end > len(text) for span in spans):
                raise ValueError(f"the file has the address of a text, {text[:60]}, and not it")
            file.texts.append(record.mark(text, [_unescape(s, text) for s in spans], id, id))


def _is_cancelled(annotation):
    return bool(annotation.get("was_cancelled") or annotation.get("skipped"))


def _keep_regions(results, id, file):
    regions = []
    for result in results:
        value = result.get("value", {})
        if {"start", "end", "labels"} <= value.keys():
            regions.append(value)
        else:
            file.leave_out(f"a result of the type {result.get('type')}", id)
    return regions


def _is_regions(value):
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(v, dict) and {"start", "end", "labels"} <= v.keys() for v in value)
    )


def _is_text(value):
    return isinstance(value, str)


def _read_region(region):
    labels = region["labels"]
    return read_spans(region["start"], region["end"], labels, region.get("text"))


def _unescape(span, text):
    """A span whose line ends Label Studio wrote as a backslash and an n, with spaces there."""
    if span.text and "\\n" in span.text and "\\n" not in text:
        return dataclasses.replace(span, text=span.text.replace("\\n", " "))
    return span


def _choose_key(rows, path):
    """The key of the texts: the column whose texts have the spans, as the file says."""
    keys = list(dict.fromkeys(key for _, _, data, _ in rows for key in data))
    votes = collections.Counter()
    for _, _, data, spans in rows:
        for key, text in data.items():
            rulers = [Ruler(text, offsets) for offsets in ("characters", "utf16")]
            votes[key] += sum(_is_at(span, text, rulers) for span in spans if span.text)
    best = max(keys, key=votes.__getitem__, default=None)
    if best is not None and votes[best]:
        return best
    if "text" in keys or len(keys) == 1:
        return "text" if "text" in keys else keys[0]
    raise ValueError(
        f"{path}: wanted one text in the data of each task, and got the texts "
        f"{', '.join(map(repr, keys)) or 'of no key'}. Call the texts that are marked 'text'."
    )


def _is_at(span, text, rulers):
    places = [ruler.find(span.start, span.end) for ruler in rulers]
    return any(place and is_same(text[slice(*place)], span.text) for place in places)
