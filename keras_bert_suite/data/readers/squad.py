"""Reads questions and their contexts from files of SQuAD's form.

Source: Rajpurkar et al., 2016 (https://arxiv.org/abs/1606.05250) for version 1.1; Rajpurkar et al.,
2018 (https://arxiv.org/abs/1806.03822) for version 2.0, which has questions without an answer.
"""

import json
import os
from pathlib import Path

from keras_bert_suite.data.readers.examples import Examples


def read_squad(path: str | os.PathLike[str], labelled: bool = True) -> Examples:
    """Reads a JSON file of SQuAD 1.1 or 2.0.

    >>> dev = read_squad("dev-v1.1.json")
    >>> questions, contexts = dev.x
    >>> questions[0], dev.y[0]["text"][0]
    ('Which NFL team represented the AFC at Super Bowl 50?', 'Denver Broncos')

    Args:
        path: str or path.
        labelled: bool, whether every question needs its answers. False does not read answers.

    Returns:
        `Examples` of at least one question, for `QuestionAnswerer`. `x`: (questions, contexts).
        The questions of a paragraph share one str. `y`: the accepted answers to each question, a
        dict `{"text": [...], "answer_start": [...]}`. `answer_start` is the character of the
        context at which an answer begins. The lists are empty for a question without an answer.
        `ids`: the ids of the questions.

    Raises:
        OSError: if the file cannot be read.
        ValueError: if the file is not JSON of this form, if an answer is not in its context at its
            `answer_start`, or a question has no answers, naming the question; if two questions have
            the same id; or if there is no question.
    """
    id = None
    try:
        content = json.loads(Path(path).read_text("utf-8-sig"))
        paragraphs = [part for article in content["data"] for part in article["paragraphs"]]
        questions, contexts, ids, answers = [], [], [], []
        entries = [(part["context"], entry) for part in paragraphs for entry in part["qas"]]
        for context, entry in entries:
            id, question = entry["id"], entry["question"]
            if not all(isinstance(text, str) for text in (id, question, context)):
                raise TypeError("id, question and context must be strings")
            if labelled:
                answers.append(_read_answers(entry, context, f"{path}, question {id}"))
            contexts.append(context)
            ids.append(id)
            questions.append(question)
    except _Misplaced:
        raise
    # The text is not UTF-8 or not JSON, has brackets in brackets, or other keys or types.
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError) as error:
        after = "" if id is None else f" at or after question {str(id)[:40]}"
        raise ValueError(
            f"{path} is not JSON of SQuAD's form{after}: {type(error).__name__}: "
            f"{str(error)[:200]}. The form is data > paragraphs > context and qas > id, question "
            "and answers > text and answer_start."
        ) from None
    if not ids:
        raise ValueError(f"{path} holds no questions.")
    if len(set(ids)) < len(ids):
        raise ValueError(f"{path}: two questions have the same id. Give each an id of its own.")
    return Examples(str(path), (questions, contexts), answers if labelled else None, ids=ids)


class _Misplaced(ValueError):
    """An answer that does not fit its question."""


def _read_answers(entry, context, where):
    answers = entry["answers"]
    if bool(answers) == bool(entry.get("is_impossible", False)):
        raise _Misplaced(
            f"{where} has {len(answers)} answers. Wanted at least one, or none and "
            '"is_impossible": true.'
        )
    for answer in answers:
        if problem := describe_misplaced(answer["text"], answer["answer_start"], context):
            raise _Misplaced(f"{where}: {problem}")
    return {name: [answer[name] for answer in answers] for name in ("text", "answer_start")}


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
    return (
        f"the answer {text[:40]!r} is not at character {start} of the context, but at "
        f"{context.find(text)} (-1 is nowhere). Correct answer_start or the text."
    )
