"""The score with few labels, before and after an adaptation to movie reviews.

    python benchmarks/adaptation.py --output adaptation           # MiniLM, half of the reviews
    python benchmarks/adaptation.py --output adaptation --checkpoint DIR --reviews 2000 --seeds 5

The texts are reviews of about 690 words, without their labels. The labelled rows are sentences from
IMDb: the first --rows of them are learned, and the last --test_rows are the test. All else is
`keras-bert adapt`, whose output shows the scores.
"""

import argparse
import json
import time
import zipfile
from pathlib import Path

from harness.machine_figures import describe_processor
from peer_recipes import find_minilm

from keras_bert_cli import main as run_command


def write_rows(path, rows):
    """Writes dicts as JSON lines."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")


def write_files(data, folder, num_reviews, num_rows, num_test_rows):
    """Writes the texts, the training rows and the test rows, in the formats of the command."""
    with zipfile.ZipFile(data / "long" / "movie_reviews.zip") as archive:
        names = sorted(name for name in archive.namelist() if name.endswith(".txt"))
        # As many of each folder.
        names = names[:: len(names) // num_reviews]
        reviews = [archive.read(name).decode("latin-1") for name in names]
    lines = (data / "sentences" / "imdb_labelled.txt").read_text("utf-8").splitlines()
    pairs = (line.rsplit("\t", 1) for line in lines if "\t" in line)
    rows = [{"text": text.strip(), "label": label} for text, label in pairs]
    write_rows(folder / "reviews.jsonl", ({"text": " ".join(text.split())} for text in reviews))
    write_rows(folder / "train.jsonl", rows[:num_rows])
    write_rows(folder / "test.jsonl", rows[-num_test_rows:])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", required=True)
    parser.add_argument("--checkpoint", default="", help="Default: MiniLM.")
    parser.add_argument("--data", type=Path, default=Path("data"))
    parser.add_argument("--reviews", type=int, default=1000)
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
    write_files(options.data, folder, options.reviews, options.rows, options.test_rows)
    begin = time.process_time()
    recipe = f"--train {folder / 'train.jsonl'} --test {folder / 'test.jsonl'} {options.recipe}"
    run_command(
        [
            *("adapt", "--checkpoint", options.checkpoint or find_minilm()),
            *("--texts", str(folder / "reviews.jsonl"), "--output", str(folder / "run")),
            *("--epochs", options.epochs, "--learning_rate", options.learning_rate),
            *("--batch_size", options.batch_size),
            *("--text", "The acting was [MASK].", "--text", "This is the worst [MASK] ever made."),
            *("--finetune", recipe, "--seeds", options.seeds),
        ]
    )
    minutes = (time.process_time() - begin) / 60
    print(f"{describe_processor()}, {minutes:.1f} minutes of processor time")


if __name__ == "__main__":
    main()
