"""Static vectors: texts/s of one core, and Spearman on STS-B, beside the teacher and the peer.

    python benchmarks/static_vectors.py --folder static_minilm
    python benchmarks/static_vectors.py --folder small_minilm --keep_tokens   # a fifth of the time
    python benchmarks/static_vectors.py --folder small_minilm --teacher_texts 20 --pairs 20 \\
        --rounds 1                                                  # to see that it runs

If the folder is not there, `distill_static` makes it of MiniLM, 256 wide, and writes it as a
directory of sentence-transformers, which its StaticEmbedding opens, too. With `--keep_tokens` the
teacher first loses the tokens that no development pair has. All sides run in this process, in turn,
with one thread, on the sentences of the development pairs. The seconds are those of the
processor, so other work on the machine matters little. The first pass of each side is in a column
of its own: it fills the cache of our tokenizer. The last row is the part of our time that the
tokenizer takes. The scores are Spearman's correlations on the development pairs.
"""

import argparse
import os
import time
from pathlib import Path

import numpy as np
from harness.result_tables import format_figures, format_table
from peer_recipes import find_minilm
from scipy import stats
from sentence_embeddings import DATA, read_pairs

DIMENSIONS = 256
#: How often the texts are encoded in one measurement, since one pass takes a tenth of a second.
REPEATS = 4


def open_static(options, texts):
    """Our embedder of a directory of static vectors, which is made if it is not there."""
    import keras_bert_suite as kbs

    if not Path(options.folder).exists():
        begin, teacher = time.process_time(), open_teacher()
        if options.keep_tokens:
            tokens = kbs.trim_vocabulary(teacher.preprocessor.tokenizer, texts)
            teacher = teacher.keep_tokens(tokens)
        embedder = kbs.distill_static(teacher, DIMENSIONS, verbose=0)
        kbs.checkpoints.save_sentence_transformers(embedder, options.folder)
        print(f"Distilled in {time.process_time() - begin:.0f} s of the processor.\n")
    return kbs.TextEmbedder.from_preset(options.folder)


def open_teacher():
    import keras_bert_suite as kbs

    return kbs.TextEmbedder.from_preset(find_minilm(), sequence_length=128)


def open_peer(folder):
    """The function of sentence-transformers from texts to vectors."""
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(folder), device="cpu")
    return lambda texts: model.encode(texts, batch_size=1024, show_progress_bar=False)


def measure(encode, texts):
    """Texts in a second of the processor."""
    begin = time.process_time()
    encode(texts)
    return len(texts) / (time.process_time() - begin)


def score(encode, pairs, scores):
    a, b = (np.asarray(encode(column), "float64") for column in pairs)
    cosines = (a * b).sum(axis=1) / np.maximum(
        np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1), 1e-12
    )
    return float(stats.spearmanr(cosines, scores).statistic)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", required=True, help="of the static vectors")
    parser.add_argument("--data", default=str(DATA))
    parser.add_argument("--keep_tokens", action="store_true", help="only those of the texts")
    parser.add_argument("--teacher_texts", type=int, default=256)
    parser.add_argument("--pairs", type=int, default=1500, help="that are scored")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    os.environ.update(OMP_NUM_THREADS="1", RAYON_NUM_THREADS="1", TOKENIZERS_PARALLELISM="false")
    os.environ.setdefault("KERAS_BACKEND", "torch")

    import torch

    torch.set_num_threads(1)
    pairs, scores = read_pairs(Path(options.data) / "dev.tsv", (7, 8, 9), True)
    texts = [*pairs[0], *pairs[1]]
    pairs, scores = tuple(column[: options.pairs] for column in pairs), scores[: options.pairs]
    ours, teacher, peer = open_static(options, texts), open_teacher(), open_peer(options.folder)
    tokenizer = ours.preprocessor.tokenizer
    sides = {
        "ours": lambda x: ours.predict(x, verbose=0),
        "sentence-transformers": peer,
        "the teacher, ours": lambda x: teacher.predict(x, verbose=0),
        "our tokenizer alone": tokenizer.tokenize_flat,
    }
    begin = {name: measure(encode, texts) for name, encode in [*sides.items()][:2]}
    speeds = {name: [] for name in sides}
    for _ in range(options.rounds):
        for name, encode in sides.items():
            part = texts[: options.teacher_texts] if "teacher" in name else texts * REPEATS
            speeds[name].append(measure(encode, part))
    rows = []
    for name, encode in sides.items():
        is_encoder = "tokenizer" not in name
        times = np.divide(speeds[name], speeds["the teacher, ours"])
        rows.append(
            [
                name,
                format_figures(speeds[name], "{:,.0f}"),
                f"{begin[name]:,.0f}" if name in begin else "",
                format_figures([*times], "{:,.0f}"),
                f"{score(encode, pairs, scores):.4f}" if is_encoder else "",
            ]
        )
    differences = abs(ours.predict(texts, verbose=0) - peer(texts)).max()
    print(f"{len(texts)} texts, {options.teacher_texts} for the teacher; {options.rounds} rounds.")
    print(f"The largest difference from sentence-transformers is {differences:.1e}.\n")
    headings = ["side", "texts/s", "first pass", "times the teacher", "Spearman, dev"]
    print(format_table(headings, rows))


if __name__ == "__main__":
    main()
