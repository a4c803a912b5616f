"""Reads questions and their contexts from files of SQuAD's form, and writes files of answers.

This module needs only the standard library.

Source: Rajpurkar et al., 2016 (https://arxiv.org/abs/1606.05250) for version 1.1; Rajpurkar et al.,
2018 (https://arxiv.org/abs/1806.03822) for version 2.0, which has questions without an answer.
"""

import dataclasses
import json
from pathlib import Path


@dataclasses.dataclass(frozen=True)
class SquadQuestions:
    """The N questions of a file, in the order of the file.

    Attributes:
        path: str, the file.
        ids: list of N str.
        questions, contexts: lists of N str. The questions of a paragraph share one str.
        answers: list of N dicts `{"text": [...], "answer_start": [...]}`: the accepted answers, and
            the character of the context at which each begins. The lists are empty for a question
            without an answer. None if the file was read without answers.
    """

    path: str
    ids: list
    questions: list
    contexts: list
    answers: list | None

    def __len__(self):
        return len(self.ids)


def read_squad(path, labelled=True, limit=None):
    """Reads a JSON file of SQuAD 1.1 or 2.0.

    >>> dev = read_squad("dev-v1.1.json")
    >>> dev.questions[0], dev.answers[0]["text"][0]
    ('Which NFL team represented the AFC at Super Bowl 50?', 'Denver Broncos')

    Args:
        path: str or path.
        labelled: bool, whether every question needs its answers. False does not read answers.
        limit: int, reads only the first questions. None reads all.

    Returns:
        `SquadQuestions` of at least one question.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if the file is not JSON of this form, naming the file, and the
            article, paragraph and question; if an answer is not in its context at its
            `answer_start`; if two questions have the same id; or if there is no question.
    """
    reader = _Reader(path, labelled)
    for number, article in enumerate(reader.open(), 1):
        title = article.get("title", "") if isinstance(article, dict) else ""
        where = f"{path}, article {number}" + (f" ({title!r:.100})" if title else "")
        for place, paragraph in enumerate(reader.find(article, "paragraphs", list, where), 1):
            reader.read_paragraph(paragraph, f"{where}, paragraph {place}")
            if limit is not None and len(reader.places) >= limit:
                return reader.finish(limit)
    return reader.finish(limit)


def has_unanswerable(answers):
    """Whether one of the `answers` of `SquadQuestions` is empty."""
    return any(not row["text"] for row in answers)


def write_predictions(path, ids, answers):
    """Writes the answers to questions as the official scripts read them.

    Args:
        path: str or path of the file, such as "predictions.json".
        ids: list of N str, the ids of the questions.
        answers: list of N `Answer`, from `QuestionAnswerer.predict`, or of N str. The text of no
            answer is "".
    """
    texts = [answer if isinstance(answer, str) else answer.text for answer in answers]
    _write_by_id(path, ids, texts)


def write_null_odds(path, ids, answers):
    """Writes `null_odds` of each answer, the `--na-prob-file` of the script of SQuAD 2.0.

    Args:
        path, ids: as for `write_predictions`.
        answers: list of N `Answer`.
    """
    _write_by_id(path, ids, [answer.null_odds for answer in answers])


def _write_by_id(path, ids, values):
    content = dict(zip(ids, values, strict=True))
    if len(content) != len(values):
        raise ValueError(f"{len(values)} answers have {len(content)} different ids between them.")
    Path(path).write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", "utf-8")


class _Reader:
    """Collects the questions of a file, and checks them."""

    def __init__(self, path, labelled):
        self._path, self._labelled = path, labelled
        self.places = {}  # The id of a question -> its place, as text for a message.
        self._questions, self._contexts, self._answers = [], [], []

    def open(self):
        """list, the articles of the file."""
        try:
            content = json.loads(Path(self._path).read_text("utf-8-sig"))
        # Text that is not UTF-8 or not JSON, too many digits, or brackets in brackets.
        except (ValueError, RecursionError) as error:
            raise ValueError(
                f"{self._path} is not JSON of SQuAD's form: {error}. Pass another file."
            ) from None
        return self.find(content, "data", list, str(self._path))

    def read_paragraph(self, paragraph, where):
        context = self.find(paragraph, "context", str, where)
        for number, entry in enumerate(self.find(paragraph, "qas", list, where), 1):
            place = f"{where}, question {number}"
            question = self.find(entry, "question", str, place)
            id = self.find(entry, "id", str, place)
            place += f" ({id})"
            if id in self.places:
                raise ValueError(
                    f"{place} has the same id as {self.places[id]}. Give each question an id of "
                    "its own."
                )
            self.places[id] = place
            self._questions.append(question)
            self._contexts.append(context)
            if self._labelled:
                self._answers.append(self._read_answers(entry, context, place))

    def _read_answers(self, entry, context, where):
        answers = self.find(entry, "answers", list, where)
        impossible = entry.get("is_impossible", False)
        if impossible and answers:
            raise ValueError(
                f"{where} is marked is_impossible and has {len(answers)} answers. Remove the "
                "answers, or the mark."
            )
        if not answers and not impossible:
            raise ValueError(
                f"{where} has no answers. Add its answers, or mark a question without an answer "
                'with "is_impossible": true.'
            )
        texts, starts = [], []
        for answer in answers:
            text = self.find(answer, "text", str, where)
            start = self.find(answer, "answer_start", int, where)
            problem = describe_misplaced(text, start, context)
            if problem:
                raise ValueError(f"{where}: {problem}")
            texts.append(text)
            starts.append(start)
        return {"text": texts, "answer_start": starts}

    def find(self, record, key, wanted, where):
        """The value of `key` in a record. Raises ValueError if it is not of the type `wanted`."""
        value = record.get(key) if isinstance(record, dict) else None
        if not isinstance(value, wanted) or isinstance(value, bool):
            names = {list: "a list", str: "a string", int: "an integer"}
            got = f"got {str(value)[:40]!r}" if value is not None else "which is missing"
            raise ValueError(
                f"{where}: wanted {names[wanted]} at {key!r}, {got}. The form of SQuAD's files is "
                "data > paragraphs > context and qas > id, question and answers."
            )
        return value

    def finish(self, limit):
        if not self.places:
            raise ValueError(f"{self._path} holds no questions.")
        answers = self._answers[:limit] if self._labelled else None
        return SquadQuestions(
            str(self._path),
            list(self.places)[:limit],
            self._questions[:limit],
            self._contexts[:limit],
            answers,
        )


def describe_misplaced(text, start, context):
    """Says what is wrong if a context does not have an answer at its position, and what to do.

    Args:
        text: str, the answer.
        start: int, the character of the context at which the answer should begin.
        context: str.

    Returns:
        str, or None if the answer is at its position.
    """
    if text and start >= 0 and context.startswith(text, start):
        return None
    if not text:
        return f"an answer is the empty string, at answer_start {start}. Remove it, or correct it."
    there, place = context[max(start, 0) :][: len(text)], context.find(text)
    remedy = "It is nowhere in the context: correct its text"
    if place >= 0:
        remedy = f"The context has it at {place}: correct answer_start"
    return (
        f"the answer {text[:40]!r} is not at character {start}, where {there[:40]!r} stands. "
        f"{remedy}."
    )
