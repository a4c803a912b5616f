"""Files of labelled rows of which a model of seconds learns something."""

import csv
import json

import numpy as np
from small_questions import NO_ANSWER, make_questions
from small_texts import make_reviews

ATTRIBUTES = {"tone": ["good", "bad"], "what": ["film", "plot", "acting"]}
RELATIONS = ["Other", "Same(e1,e2)", "Same(e2,e1)"]


def write_attributes(path, repeats, seed):
    """In every other row a label is missing."""
    texts = [f"{a} {b}" for a in ATTRIBUTES["tone"] for b in ATTRIBUTES["what"]] * repeats
    lines = [
        f"{text}\t{tone if row % 2 else ''}\t{what if row % 3 else ''}"
        for row, text in enumerate(texts)
        for tone, what in [text.split()]
    ]
    path.write_text("text\ttone\twhat\n" + "\n".join(lines) + "\n")


def write_swag(path, num_rows, seed):
    """The right ending is the one with "good"."""
    texts = [text.replace("good", "bad") for text in make_reviews(4 * num_rows, seed)[0]]
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["sent1", "sent2", *(f"ending{i}" for i in range(4)), "label"])
        for row in range(num_rows):
            endings, label = texts[4 * row : 4 * row + 4], (seed + row) % 4
            endings[label] = f"good good {endings[label]}"
            writer.writerow(["the film", "it was", *endings, label])


def write_squad(path, num_rows, seed, answerable=0.7):
    """A file of SQuAD's form with an article for each question."""
    articles = []
    for row, (question, context, span) in enumerate(
        zip(*make_questions(num_rows, seed, answerable=answerable), strict=True)
    ):
        answers = [{"text": context[slice(*span)], "answer_start": span[0]}]
        entry = {"id": f"{seed}-{row}", "question": question, "answers": answers}
        if span == NO_ANSWER:
            entry.update(answers=[], is_impossible=True)
        articles.append({"paragraphs": [{"context": context, "qas": [entry]}]})
    path.write_text(json.dumps({"version": "v2.0", "data": articles}))


def write_clicks(path, num_queries, seed):
    """Three candidates of each query, all first ones first. The relevant one has "good"."""
    texts = [text.replace("good", "bad") for text in make_reviews(3 * num_queries, seed)[0]]
    rows = [
        (f"the film {'very ' * (query % 7)}{query}", f"{'good ' * clicked}{texts.pop()}", clicked)
        for place in range(3)
        for query in range(num_queries)
        for clicked in [int((query + seed) % 3 == place)]
    ]
    lines = ("\t".join(map(str, row)) for row in [("asked", "title", "clicked"), *rows])
    path.write_text("\n".join(lines) + "\n")


def write_semeval(path, num_rows, seed):
    """The label says which entity is "good"."""
    rng = np.random.default_rng(seed)
    with open(path, "w") as file:
        for row in range(num_rows):
            first, between, second = rng.choice(["bad", "plot", "film", "good"], 3)
            label = RELATIONS[1 if first == "good" else 2 if second == "good" else 0]
            text = f"the <e1>{first}</e1> {between} <e2>{second}</e2>."
            file.write(f'{row}\t"{text}"\n{label}\nComment:\n\n')


def write_titles(path, num_rows, seed):
    """Reviews, and their first words as titles."""
    texts = make_reviews(num_rows, seed)[0]
    rows = [("review", "title"), *((text, text.split()[0]) for text in texts)]
    path.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
