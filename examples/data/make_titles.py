"""Writes titles_train.tsv and titles_test.tsv from articles of Wikipedia.

    python make_titles.py enwiki.jsonl

Each line of the original file is an object of JSON with `title` and `text`.
"""

import json
import random
import sys
from pathlib import Path

from keras_bert_suite.corpus.sentence_splitter import split_sentences

OUTPUT = Path(__file__).parent
SIZES = {"train": 700, "test": 100}
SHORTEST, LONGEST = 80, 220


def cut_article(article):
    """(title, the first sentences up to `LONGEST` characters), or None for lists of articles."""
    title = article["title"].partition(" (")[0]
    if title.startswith(("List of", "Index of", "Outline of", "Glossary of")):
        return None
    text = ""
    for sentence in split_sentences(article["text"].strip().split("\n")[0]):
        longer = f"{text} {sentence}".strip()
        if len(longer) > LONGEST:
            break
        text = longer
    return (title, " ".join(text.split())) if len(text) >= SHORTEST else None


def main():
    lines = Path(sys.argv[1]).read_text(encoding="utf-8").splitlines()
    rows = sorted(set(filter(None, map(cut_article, map(json.loads, lines)))))
    random.Random(0).shuffle(rows)
    begin = 0
    for part, size in SIZES.items():
        text = "".join("\t".join(row) + "\n" for row in rows[begin : begin + size])
        (OUTPUT / f"titles_{part}.tsv").write_text(text, encoding="utf-8", newline="\n")
        begin += size
    print(f"{len(rows)} rows, of which {begin} are written")


if __name__ == "__main__":
    main()
