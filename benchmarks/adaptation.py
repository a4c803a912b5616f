"""The score with few labels, before and after an adaptation to the texts of a domain.

    python benchmarks/adaptation.py --output adaptation           # MiniLM, half of the reviews
    python benchmarks/adaptation.py --domain comments --texts 8000 --output adaptation
    python benchmarks/adaptation.py --domain chinese_reviews --checkpoint DIR --output adaptation

The domains have texts without labels, and other rows with labels to learn and to test:

- reviews: of movies, about 690 words each; the rows are sentences of reviews, good or bad.
- chinese_reviews: of ChnSentiCorp; the rows are other reviews of it, good or bad.
- comments: of Reddit (GoEmotions); the rows are other comments, with one of six emotions.

All else is `keras-bert adapt`, whose output shows the scores.
"""

import argparse
import json
import time
import zipfile
from pathlib import Path

from harness.machine_figures import describe_processor
from peer_recipes import find_minilm

from keras_bert_cli import main as run_command

PARTS = ("train", "dev")
EMOTIONS = ("admiration", "amusement", "anger", "curiosity", "gratitude", "love")


def read_lines(path):
    """The fields of the lines of a file with tabs."""
    return [line.split("\t") for line in path.read_text("utf-8").split("\n") if "\t" in line]


def read_reviews(data, count):
    """(texts, rows to learn, rows to test); a row is a text and its label."""
    with zipfile.ZipFile(data / "long" / "movie_reviews.zip") as archive:
        names = sorted(name for name in archive.namelist() if name.endswith(".txt"))
        # As many of each folder.
        names = names[:: len(names) // count]
        texts = [" ".join(archive.read(name).decode("latin-1").split()) for name in names]
    rows = read_lines(data / "sentences" / "imdb_labelled.txt")
    return texts, rows[:500], rows[500:]


def read_chinese_reviews(data, count):
    train, dev = (read_lines(data / "zh" / "ChnSentiCorp" / f"{part}.tsv") for part in PARTS)
    return [text for text, _ in train[-count:]], train, dev


def read_comments(data, count):
    folder = data / "multilabel" / "GoEmotions"
    names = (folder / "labels.txt").read_text("utf-8").split()

    def name_labels(part):
        for text, numbers, _ in read_lines(folder / f"{part}.tsv"):
            if "," not in numbers and names[int(numbers)] in EMOTIONS:
                yield text, names[int(numbers)]

    texts = [text for text, *_ in read_lines(folder / "train.tsv")[-count:]]
    return texts, *map(list, map(name_labels, PARTS))


DOMAINS = {
    "reviews": read_reviews,
    "chinese_reviews": read_chinese_reviews,
    "comments": read_comments,
}


#: A text whose guesses are shown before and after.
MASKED = {
    "reviews": "This is the worst [MASK] ever made.",
    "chinese_reviews": "酒店的[MASK]务很好。",
    "comments": "Thanks, that made my [MASK].",
}


def write_rows(path, keys, rows):
    """Writes rows as JSON lines."""
    lines = (json.dumps(dict(zip(keys, row, strict=True)), ensure_ascii=False) for row in rows)
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", required=True)
    parser.add_argument("--checkpoint", default="", help="Default: MiniLM.")
    parser.add_argument("--data", type=Path, default=Path("data"))
    parser.add_argument("--domain", choices=DOMAINS, default="reviews")
    parser.add_argument("--texts", type=int, default=1000)
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--test_rows", type=int, default=500)
    parser.add_argument("--epochs", default="1", help="of the adaptation")
    parser.add_argument("--learning_rate", default="1e-4", help="of the adaptation")
    parser.add_argument("--batch_size", default="32", help="of the adaptation, sequences of 128")
    parser.add_argument("--seeds", default="5")
    parser.add_argument(
        "--recipe", default="--epochs 10 --batch_size 16 --bias_correction --learning_rate 1e-4"
    )
    options = parser.parse_args()
    folder = Path(options.output)
    folder.mkdir(parents=True, exist_ok=True)
    texts, train, test = DOMAINS[options.domain](options.data, options.texts)
    write_rows(folder / "texts.jsonl", ["text"], ([text] for text in texts))
    keys = ["text", "label"]
    write_rows(folder / "train.jsonl", keys, train[: options.rows])
    write_rows(folder / "test.jsonl", keys, test[-options.test_rows :])
    begin = time.process_time()
    recipe = f"--train {folder / 'train.jsonl'} --test {folder / 'test.jsonl'} {options.recipe}"
    run_command(
        [
            *("adapt", "--checkpoint", options.checkpoint or find_minilm()),
            *("--texts", str(folder / "texts.jsonl"), "--output", str(folder / "run")),
            *("--epochs", options.epochs, "--learning_rate", options.learning_rate),
            *("--batch_size", options.batch_size),
            *("--text", MASKED[options.domain]),
            *("--finetune", recipe, "--seeds", options.seeds),
        ]
    )
    minutes = (time.process_time() - begin) / 60
    print(f"{describe_processor()}, {minutes:.1f} minutes of processor time")


if __name__ == "__main__":
    main()
