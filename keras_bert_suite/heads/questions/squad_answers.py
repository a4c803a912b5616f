"""Reads the answers to a question, and finds them in their context."""

from keras_bert_suite.data.readers.json_values import as_list, read_flag, read_integer
from keras_bert_suite.data.readers.text_places import find_nearest

#: The faults of an answer or a question.
MOVED = "an answer that is elsewhere in its context"
NOWHERE = "an answer that is nowhere in its context"
UNANSWERED = "a question without an answer that is in its context"
CONTRADICTION = "answers, or none, against is_impossible"


def read_answers(entry, context):
    """The accepted answers to a question, list of `(text, start)`.

    They are a list of dicts, as in SQuAD; a dict of two lists, as in the `datasets` of Hugging
    Face; a dict of a text and a number; or a list of texts, each taken where `context` has it
    first. A single dict or text is a list of one, null is an empty list. An empty text before the
    context is no answer.

    Raises:
        LookupError, TypeError, ValueError: if they have another form.
    """
    answers = entry["answers"]
    if isinstance(answers, dict):
        columns = as_list(answers["text"]), as_list(answers["answer_start"])
        answers = [
            {"text": text, "answer_start": start} for text, start in zip(*columns, strict=True)
        ]
    read = [_read_answer(answer, context) for answer in as_list(answers)]
    return [(text, start) for text, start in read if text or start >= 0]


def _read_answer(answer, context):
    if isinstance(answer, str):
        return answer, context.find(answer)
    text, start = answer["text"], answer["answer_start"]
    if isinstance(text, int) and not isinstance(text, bool):
        text = str(text)
    if not text and start is None:
        return "", -1
    if not isinstance(text, str):
        raise TypeError(f"the text of an answer must be a string, got {text!r:.40}")
    return text, read_integer(f"answer_start of {text!r:.40}", start)


def contradicts(entry, answers):
    """Whether a question has answers and is impossible, or has none and is not.

    A question of the flat form without `is_impossible` may have no answers.
    """
    is_impossible = read_flag("is_impossible", entry.get("is_impossible"))
    if is_impossible is None and isinstance(entry["answers"], dict):
        return False
    return bool(answers) == bool(is_impossible)


def place_answer(text, start, context, errors):
    """Finds an answer in its context.

    Args:
        text, start, context: as for `describe_misplaced`.
        errors: "fix" or "skip".

    Returns:
        `(text, start, problem)`. `start` is -1 for an answer that is nowhere, or elsewhere if
        `errors` is "skip". `problem` is `MOVED`, `NOWHERE` or None.
    """
    if describe_misplaced(text, start, context) is None:
        return text, start, None
    nearest = find_nearest(text, start, context)
    if nearest < 0:
        return text, -1, NOWHERE
    return text, nearest if errors == "fix" else -1, MOVED


def describe_misplaced(text, start, context):
    """Says the fault and the remedy if a context does not have an answer at its position.

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
        f"{find_nearest(text, start, context)} (-1 is nowhere). Correct answer_start or the text."
    )
