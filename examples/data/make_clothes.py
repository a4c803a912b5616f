"""Writes clothes_train.csv.gz and clothes_test.csv.gz from the reviews of clothes.

python make_clothes.py FOLDER   # with val.csv and test.csv of the Multimodal-Toolkit
"""

import csv
import gzip
import io
import random
import sys
from pathlib import Path

OUTPUT = Path(__file__).parent
#: The parts of the original that are read, and how many rows are kept of each.
SOURCES = {"train": ("val.csv", 1000), "test": ("test.csv", 500)}
COLUMNS = {
    "review": "Review Text",
    "rating": "Rating",
    "age": "Age",
    "helpful": "Positive Feedback Count",
    "department": "Department Name",
    "recommended": "Recommended IND",
}


def main():
    for part, (name, size) in SOURCES.items():
        with open(Path(sys.argv[1]) / name, encoding="utf-8", newline="") as file:
            rows = [row for row in csv.DictReader(file) if row["Review Text"].strip()]
        rows = random.Random(0).sample(rows, size)
        table = io.StringIO()
        writer = csv.writer(table, lineterminator="\n")
        writer.writerow(COLUMNS)
        for row in rows:
            values = {name: " ".join(row[column].split()) for name, column in COLUMNS.items()}
            values["recommended"] = "no yes".split()[int(values["recommended"])]
            writer.writerow(values.values())
        packed = gzip.compress(table.getvalue().encode("utf-8"), mtime=0)
        (OUTPUT / f"clothes_{part}.csv.gz").write_bytes(packed)


if __name__ == "__main__":
    main()
