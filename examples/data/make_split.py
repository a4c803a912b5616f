"""Writes sentences_train.tsv and sentences_test.tsv from the three original files.

    python make_split.py FOLDER_OF_ORIGINAL_FILES

The 3,000 lines, in the order of `SOURCES`, are shuffled by `random.Random(0)`; the first
2,400 are for training, the last 600 for the test.
"""

import random
import sys
from pathlib import Path

SOURCES = ("amazon_cells_labelled.txt", "imdb_labelled.txt", "yelp_labelled.txt")
LABELS = {"0": "negative", "1": "positive"}
LINES_PER_SOURCE = 1000
TRAINING_ROWS = 2400


def read_source(path):
    """Returns the (sentence, label name) pairs of one original file.

    A line ends at a line feed only: two sentences hold U+0085, which
    `str.splitlines` would cut at. Two blanks after every IMDb sentence are dropped.
    """
    pairs = []
    for number, line in enumerate(path.read_bytes().decode("utf-8").split("\n"), start=1):
        if not line:
            continue
        sentence, _, label = line.rpartition("\t")
        sentence = sentence.strip(" ")
        if label not in LABELS or not sentence or "\t" in sentence:
            raise ValueError(f"{path}, line {number}: want 'sentence TAB 0 or 1', got {line!r}.")
        pairs.append((sentence, LABELS[label]))
    if len(pairs) != LINES_PER_SOURCE:
        raise ValueError(f"{path}: want {LINES_PER_SOURCE} sentences, got {len(pairs)}.")
    return pairs


def write_tsv(path, pairs):
    rows = [("sentence", "label"), *pairs]
    path.write_bytes("".join(f"{a}\t{b}\n" for a, b in rows).encode("utf-8"))
    print(f"{path}: {len(pairs)} sentences")


def main(source_folder, target_folder):
    pairs = [pair for name in SOURCES for pair in read_source(source_folder / name)]
    random.Random(0).shuffle(pairs)
    write_tsv(target_folder / "sentences_train.tsv", pairs[:TRAINING_ROWS])
    write_tsv(target_folder / "sentences_test.tsv", pairs[TRAINING_ROWS:])


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]), Path(__file__).parent)
