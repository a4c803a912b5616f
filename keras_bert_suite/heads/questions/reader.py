"""Reads questions and their contexts from files of SQuAD's form.

Source: Rajpurkar et al., 2016 (https://arxiv.org/abs/1606.05250) for version 1.1; Rajpurkar et al.,
2018 (https://arxiv.org/abs/1806.03822) for version 2.0, which has questions without an answer.
"""

import json
import os
import warnings
from pathlib import Path

from keras_bert_suite.data.readers.examples import Examples
from keras_bert_suite.data.readers.json_values import read_integer
from keras_bert_suite.data.readers.text_files import split_lines
from keras_bert_suite.data.readers.text_places import ERRORS
from keras_bert_suite.heads.questions.squad_answers import (
    CONTRADICTION,
    MOVED,
    NOWHERE,
    UNANSWERED,
    contradicts,
    describe_misplaced,
    place_answer,
    read_answers,
)

#: The names of the first form of CMRC 2018 -> the names of SQuAD.
_NAMES = {"context_text": "context", "query_text": "question", "query_id": "id"}

_FORM = (
    "The form is data > paragraphs > context and qas > id, question and answers > text and "
    "answer_start; or rows of id, context, question and answers. A file without answers is read "
    "with labelled=False."
)


def read_squad(
    path: str | os.PathLike[str], labelled: bool = True, errors: str = "raise"
) -> Examples:
    """Reads a JSON file of SQuAD 1.1 or 2.0, or of the same data in rows.

    >>> dev = read_squad("dev-v1.1.json")
    >>> questions, contexts = dev.x
    >>> questions[0], dev.y[0]["text"][0]
    ('Which NFL team represented the AFC at Super Bowl 50?', 'Denver Broncos')

    A row has a question, its context, its id and its answers, as the `datasets` library of Hugging
    Face writes them: one row in each line, or all rows in a list or in `data`. A line, or a part of
    the list, may also be an article or a paragraph of SQuAD, or of the first form of CMRC 2018, in
    which an answer is a text alone: it is taken where its context has it first. Flags and numbers
    may be texts, as other programs write them: `"is_impossible": "false"`, `"answer_start": "16"`.

    Args:
        path: str or path.
        labelled: bool, whether every question needs its answers. False does not read answers.
        errors: the treatment of answers that are not in their context at their `answer_start`, as
            in CMRC 2018 and ARCD. "raise" is an error. "fix" moves an answer to its nearest place.
            "skip" does not. In both cases an answer without a place gets the `answer_start` -1:
            scores count it, and training takes another answer to its question. A question is left
            out if none of its answers has a place, or if its answers contradict `is_impossible`.
            One warning has the numbers.

    Returns:
        `Examples` of at least one question, for `QuestionAnswerer`. `x`: (questions, contexts).
        The questions of a paragraph share one str. `y`: the accepted answers to each question, a
        dict `{"text": [...], "answer_start": [...]}`. `answer_start` is the character of the
        context at which an answer begins. The lists are empty for a question without an answer.
        `ids`: the ids of the questions. `left_out`, `corrected`: ids by the reason.

    Raises:
        OSError: if the file cannot be read.
        ValueError: if the file is not JSON of this form, if an answer is not in its context at its
            `answer_start`, or a question has no answers, naming the question; if two questions have
            the same id; if there is no question; or if `errors` has another value.
    """
    if errors not in ERRORS:
        raise ValueError(f"errors must be one of {', '.join(ERRORS)}, got {errors!r}.")
    questions, contexts, ids, answers = _read_questions(path, labelled)
    if not ids:
        raise ValueError(f"{path} holds no questions.")
    if len(set(ids)) < len(ids):
        raise ValueError(f"{path}: two questions have the same id. Give each an id of its own.")
    examples = Examples(str(path), (questions, contexts), ids=ids)
    return _place_answers(examples, answers, errors) if labelled else examples


def _read_questions(path, labelled):
    """The columns questions, contexts, ids and answers.

    An entry of the answers is (list of `(text, start)`, whether they contradict `is_impossible`).
    """
    questions, contexts, ids, answers = [], [], [], []
    id = None
    try:
        for context, entry in _list_entries(_read_json(Path(path).read_text("utf-8-sig"))):
            id, question = entry["id"], entry["question"]
            if isinstance(id, (int, float)) and not isinstance(id, bool):
                id = str(read_integer("id", id))
            if not all(isinstance(text, str) for text in (id, question, context)):
                raise TypeError("question and context must be strings, and id a string or a number")
            if labelled:
                read = read_answers(entry, context)
                answers.append((read, contradicts(entry, read)))
            contexts.append(context)
            ids.append(id)
            questions.append(question)
    # The text is not UTF-8 or not JSON, has brackets in brackets, or other keys or types.
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError) as error:
        after = "" if id is None else f" at or after question {str(id)[:40]}"
        advice = "Convert it to UTF-8." if isinstance(error, UnicodeError) else _FORM
        raise ValueError(
            f"{path} is not JSON of SQuAD's form{after}: {type(error).__name__}: "
            f"{str(error)[:200]}. {advice}"
        ) from None
    return questions, contexts, ids, answers


def _read_json(text):
    """The parts of a JSON text, or of JSON lines."""
    try:
        content = json.loads(text)
    except json.JSONDecodeError:
        lines = [(number, line) for number, line in enumerate(split_lines(text), 1) if line.strip()]
        if len(lines) < 2 or not _is_json(lines[0][1]):
            raise
        return [_read_line(number, line) for number, line in lines]
    if isinstance(content, dict):
        return content["data"] if not {"qas", "question"} & {*content} else [content]
    return content


def _is_json(line):
    try:
        return isinstance(json.loads(line), dict)
    except json.JSONDecodeError:
        return False


def _read_line(number, line):
    try:
        return json.loads(line)
    except json.JSONDecodeError as error:
        raise ValueError(f"line {number}: {error}") from None


def _list_entries(parts):
    """Yields the context and the entry of each question."""
    for part in parts:
        for paragraph in map(_rename, part["paragraphs"] if "paragraphs" in part else [part]):
            for entry in map(_rename, paragraph["qas"] if "qas" in paragraph else [paragraph]):
                yield paragraph["context"], entry


def _rename(record):
    return {_NAMES.get(name, name): value for name, value in record.items()}


def _place_answers(examples, answers, errors):
    """`Examples` with the answers in their contexts."""
    found, kept, y = {}, [], []
    for row, (read, is_contradiction) in enumerate(answers):
        if is_contradiction:
            found.setdefault(CONTRADICTION, []).append(row)
            continue
        placed = [place_answer(*answer, examples.x[1][row], errors) for answer in read]
        for problem in {problem for _, _, problem in placed} - {None}:
            found.setdefault(problem, []).append(row)
        if placed and all(start < 0 for _, start, _ in placed):
            found.setdefault(UNANSWERED, []).append(row)
            continue
        kept.append(row)
        texts, starts, _ = zip(*placed, strict=True) if placed else ((), (), ())
        y.append({"text": list(texts), "answer_start": list(starts)})
    if found and errors == "raise":
        raise ValueError(_describe_first(examples, answers, found))
    if not kept:
        raise ValueError(f"{examples.path} has no question with an answer in its context.")
    named = {reason: [examples.ids[row] for row in rows] for reason, rows in found.items()}
    if found:
        _warn(examples, named, errors)
    return Examples(
        examples.path,
        tuple([column[row] for row in kept] for column in examples.x),
        y,
        ids=[examples.ids[row] for row in kept],
        left_out={key: ids for key, ids in named.items() if key in (CONTRADICTION, UNANSWERED)},
        corrected={key: ids for key, ids in named.items() if key in (MOVED, NOWHERE)},
    )


def _describe_first(examples, answers, found):
    """str, the first problem of a file, and the number of questions with one."""
    rows = {row for rows in found.values() for row in rows}
    row = min(rows)
    where = f"{examples.path}, question {examples.ids[row]}"
    read, is_contradiction = answers[row]
    others = f" {len(rows)} of {len(answers)} questions have such errors." if len(rows) > 1 else ""
    advice = (
        f'{others} errors="fix" or errors="skip", on the command line --answer_errors, reads the '
        "file, and counts them."
    )
    if is_contradiction:
        return (
            f"{where} has {len(read)} answers. Wanted at least one, or none and "
            f'"is_impossible": true.{advice}'
        )
    problems = (describe_misplaced(*answer, examples.x[1][row]) for answer in read)
    return f"{where}: {next(filter(None, problems))}{advice}"


def _warn(examples, named, errors):
    done = {
        MOVED: "moved to the nearest place" if errors == "fix" else "used for scores only",
        NOWHERE: "used for scores only",
        UNANSWERED: "left out",
        CONTRADICTION: "left out",
    }
    counts = (
        f"{len(named[reason])} with {reason}, {what}"
        for reason, what in done.items()
        if reason in named
    )
    warnings.warn(
        f"{examples.path}: of {len(examples)} questions {'; '.join(counts)}.", stacklevel=4
    )
