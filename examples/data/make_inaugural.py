"""Writes inaugural.jsonl.gz from the corpus as NLTK distributes it.

python make_inaugural.py inaugural.zip
"""

import gzip
import json
import sys
import zipfile
from pathlib import Path

OUTPUT = Path(__file__).parent / "inaugural.jsonl.gz"


def decode(data):
    """One of the files is Latin-1."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def main():
    with zipfile.ZipFile(sys.argv[1]) as archive, open(OUTPUT, "wb") as file:
        # Without the time of day, the same bytes each time.
        with gzip.GzipFile("", "wb", 9, file, mtime=0) as output:
            for name in sorted(n for n in archive.namelist() if n.endswith(".txt")):
                year, _, president = Path(name).stem.partition("-")
                document = {"year": int(year), "president": president}
                document["text"] = decode(archive.read(name)).strip()
                output.write(json.dumps(document, ensure_ascii=False).encode() + b"\n")


if __name__ == "__main__":
    main()
