"""Writes emotions_train.tsv, emotions_dev.tsv and emotions_test.tsv from GoEmotions.

python make_emotions.py FOLDER   # with train.tsv, dev.tsv and labels.txt
"""

import random
import re
import sys
from pathlib import Path

OUTPUT = Path(__file__).parent
LABELS = "admiration amusement anger curiosity gratitude love sadness surprise".split()
SIZES = {"train": 2400, "dev": 600, "test": 600}
#: Comments with these words are left out.
LEFT_OUT = re.compile(
    r"fuck|shit|bitch|cunt|dick|cock|porn|sex|rape|nazi|whore|slut|fag|retard|nigg|bastard|piss|"
    r"damn|\bass|crap|kill|suicid|puss|hitler|idiot|moron|\[religion\]|http|\t|\"",
    re.IGNORECASE,
)


def read_comments(path, names):
    """(text, names of its labels among `LABELS`) of the comments that are kept."""
    for line in path.read_text(encoding="utf-8").splitlines():
        text, ids, _ = line.rsplit("\t", 2)
        wanted = [names[int(i)] for i in ids.split(",")]
        kept = [name for name in wanted if name in LABELS]
        if not LEFT_OUT.search(text) and (kept or wanted == ["neutral"]):
            yield text.strip(), kept


def main():
    folder = Path(sys.argv[1])
    names = (folder / "labels.txt").read_text(encoding="utf-8").split()
    # The rows of dev.tsv are shared between two parts.
    sources = {"train": "train.tsv", "dev": "dev.tsv", "test": "dev.tsv"}
    used = set()
    for part, source in sources.items():
        rows = sorted({row[0]: row for row in read_comments(folder / source, names)}.values())
        rows = [row for row in rows if row[0] not in used]
        random.Random(0).shuffle(rows)
        # A fifth of the comments has none of the labels.
        size = SIZES[part]
        chosen = [row for row in rows if row[1]][: size * 4 // 5]
        chosen += [row for row in rows if not row[1]][: size - len(chosen)]
        random.Random(1).shuffle(chosen)
        used.update(text for text, _ in chosen)
        lines = ["text\tlabels", *(f"{text}\t{','.join(labels)}" for text, labels in chosen)]
        path = OUTPUT / f"emotions_{part}.tsv"
        path.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
