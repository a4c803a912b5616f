"""Writes questions_train.json and questions_test.json from SQuAD: the context is one sentence.

python make_questions.py dev-v1.1.json
"""

import json
import random
import sys
from pathlib import Path

from keras_bert_suite.corpus.sentence_splitter import split_sentences

OUTPUT = Path(__file__).parent
TRAIN = (
    "Warsaw Nikola_Tesla Steam_engine Oxygen Apollo_program Amazon_rainforest Packet_switching "
    "Geology Newcastle_upon_Tyne Victoria_and_Albert_Museum Harvard_University Chloroplast Rhine "
    "Jacksonville,_Florida Doctor_Who University_of_Chicago Immune_system Ctenophora Pharmacy "
    "Construction American_Broadcasting_Company Teacher"
)
TEST = "Super_Bowl_50 Fresno,_California Prime_number Kenya"
SIZES = {"train": 1500, "test": 300}
SHORTEST, LONGEST = 60, 220


def cut_questions(article):
    """(sentence, question) for the questions whose answers are in one sentence."""
    for paragraph in article["paragraphs"]:
        text = paragraph["context"]
        starts = []
        for sentence in split_sentences(text):
            starts.append(text.index(sentence, starts[-1] + 1 if starts else 0))
        places = list(zip(starts, split_sentences(text), strict=True))
        for question in paragraph["qas"]:
            spans = {(answer["answer_start"], answer["text"]) for answer in question["answers"]}
            for start, sentence in places:
                inside = all(
                    start <= first and first + len(answer) <= start + len(sentence)
                    for first, answer in spans
                )
                if inside and SHORTEST <= len(sentence) <= LONGEST:
                    answers = [
                        {"text": answer, "answer_start": first - start}
                        for first, answer in sorted(spans, key=lambda span: (len(span[1]), span))
                    ]
                    cut = {"id": question["id"], "question": question["question"].strip()}
                    yield sentence, {**cut, "answers": answers}


def main():
    articles = {a["title"]: a for a in json.loads(Path(sys.argv[1]).read_text())["data"]}
    for part, titles in (("train", TRAIN), ("test", TEST)):
        rows = [(title, *row) for title in titles.split() for row in cut_questions(articles[title])]
        chosen = sorted(random.Random(0).sample(range(len(rows)), SIZES[part]))
        found = {}
        for title, sentence, question in (rows[i] for i in chosen):
            found.setdefault(title, {}).setdefault(sentence, []).append(question)
        data = [
            {"title": title, "paragraphs": [{"context": c, "qas": q} for c, q in pages.items()]}
            for title, pages in found.items()
        ]
        articles_text = ",\n".join(json.dumps(article, ensure_ascii=False) for article in data)
        text = f'{{"version": "1.1", "data": [\n{articles_text}\n]}}\n'
        (OUTPUT / f"questions_{part}.json").write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
