"""Questions small enough to train on in a test: the answer is the part "very ... good"."""

import random

from small_texts import WORDS

NO_ANSWER = (-1, -1)
OTHERS = [word for word in WORDS if word not in ("very", "good")]


def make_questions(num_rows, seed=0, longest=24, answerable=0.7):
    """(questions, contexts, spans): contexts of up to `longest` words, some without an answer."""
    rng = random.Random(seed)
    questions, contexts, spans = [], [], []
    for _ in range(num_rows):
        before, after = (rng.choices(OTHERS, k=rng.randint(0, longest // 2)) for _ in range(2))
        answer = ["very", *rng.choices(OTHERS, k=rng.randint(0, 1)), "good"]
        if rng.random() >= answerable:
            answer = ["bad"]
        context = " ".join([*before, *answer, *after])
        start = len(" ".join([*before, ""])) if before else 0
        end = start + len(" ".join(answer))
        questions.append(rng.choice(["what was it", "was it"]))
        contexts.append(context)
        spans.append(NO_ANSWER if answer == ["bad"] else (start, end))
    return questions, contexts, spans
