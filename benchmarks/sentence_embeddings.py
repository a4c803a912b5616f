"""Sentence embeddings: Spearman on STS-B of our TextEmbedder and of sentence-transformers.

    python benchmarks/sentence_embeddings.py                       # MiniLM without training
    python benchmarks/sentence_embeddings.py --losses cosent infonce --num_pairs 16 \\
        --test_pairs 16                                            # to see that it runs
    python benchmarks/sentence_embeddings.py --losses untrained cosent infonce --epochs 4 \\
        --seeds 0 1 2
    python benchmarks/sentence_embeddings.py --sides ours --losses infonce --num_pairs 1024 \\
        --batch_size 1024 --cache_batch_size 32 --epochs 1         # memory of cached gradients

Both sides begin with the same MiniLM (six layers, 384 wide), and train on the training pairs of
STS-B: with CoSENT on the pairs and their scores, with in-batch negatives (temperature 0.05) on the
pairs with a score of at least 4. AdamW with bias correction, weight decay 0.01, gradients clipped
to norm 1, linear warm-up over a tenth of the steps. The fall of the rate is counted from step 0
by ours, and from the end of the warm-up by sentence-transformers. Its loop is `old_fit`, which
needs no further packages. Each side runs in a process of its own. The score is Spearman's
correlation on the test pairs; the memory is the most that the process had. The data is the folder
of STS-B, `--data`.
"""

import argparse
import csv
import sys
import time
from pathlib import Path

from harness.result_tables import (
    COST,
    describe_run,
    describe_seeds,
    format_cells,
    format_table,
)
from harness.side_flags import BACKENDS, list_pairs, parse_training_flags
from harness.side_runs import report, run_in_turn
from peer_recipes import find_minilm, find_torch_device

DATA = Path("data") / "glue" / "STS-B"
SEQUENCE_LENGTH = 128


def read_pairs(path, columns, header):
    """((first texts, second texts), scores), of the columns (first, second, score)."""
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))[int(header) :]
    first, second, scores = ([row[column] for row in rows] for column in columns)
    return (first, second), [float(score) for score in scores]


def read_training(options):
    """((first texts, second texts), scores or None)."""
    (first, second), scores = read_pairs(Path(options.data) / "train.tsv", (7, 8, 9), True)
    if options.loss == "infonce":
        rows = [i for i, score in enumerate(scores) if score >= 4][: options.num_pairs]
        return ([first[i] for i in rows], [second[i] for i in rows]), None
    number = options.num_pairs
    return (first[:number], second[:number]), scores[:number]


def run_ours(options, pairs):
    """(seconds of the training, cosine similarities of pairs)."""
    import keras

    import keras_bert_suite as kbs

    keras.utils.set_random_seed(options.seed)
    embedder = kbs.TextEmbedder.from_preset(find_minilm(), sequence_length=SEQUENCE_LENGTH)
    seconds = 0.0
    if options.loss != "untrained":
        loss = kbs.CoSENT() if options.loss == "cosent" else kbs.InBatchNegatives(0.05)
        embedder.compile(
            kbs.AdamW(kbs.LinearWarmupDecay(options.learning_rate), bias_correction=True),
            loss,
            cache_batch_size=options.cache_batch_size or None,
        )
        begin = time.perf_counter()
        embedder.fit(
            *read_training(options),
            batch_size=options.batch_size,
            epochs=options.epochs,
            verbose=0,
        )
        seconds = time.perf_counter() - begin
    return seconds, embedder.similarity_pairwise(*pairs)


def run_sentence_transformers(options, pairs):
    """(seconds of the training, cosine similarities of pairs)."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer import losses
    from sentence_transformers.sentence_transformer.readers import InputExample

    torch.manual_seed(options.seed)
    model = SentenceTransformer(find_minilm(), device=find_torch_device())
    model.max_seq_length = SEQUENCE_LENGTH
    seconds = 0.0
    if options.loss != "untrained":
        (first, second), scores = read_training(options)
        rows = [
            InputExample(texts=[a, b], label=score)
            for a, b, score in zip(first, second, scores or [1.0] * len(first), strict=True)
        ]
        generator = torch.Generator().manual_seed(options.seed)
        loader = torch.utils.data.DataLoader(
            rows, options.batch_size, shuffle=True, generator=generator
        )
        if options.loss == "cosent":
            loss = losses.CoSENTLoss(model)
        elif options.cache_batch_size:
            loss = losses.CachedMultipleNegativesRankingLoss(
                model, mini_batch_size=options.cache_batch_size
            )
        else:
            loss = losses.MultipleNegativesRankingLoss(model)
        begin = time.perf_counter()
        model.old_fit(
            [(loader, loss)],
            epochs=options.epochs,
            warmup_steps=len(loader) * options.epochs // 10,
            optimizer_params={"lr": options.learning_rate},
            show_progress_bar=False,
        )
        seconds = time.perf_counter() - begin
    a, b = (
        model.encode(column, normalize_embeddings=True, show_progress_bar=False) for column in pairs
    )
    return seconds, (a * b).sum(axis=1)


SIDES = {"ours": run_ours, "sentence-transformers": run_sentence_transformers}


def run_side(side, options):
    """Measures one side in this process and prints the figures as JSON."""
    from scipy import stats

    (first, second), scores = read_pairs(
        Path(options.data) / "original_sts-test.tsv", (5, 6, 4), False
    )
    number = options.test_pairs
    pairs, scores = (first[:number], second[:number]), scores[:number]
    seconds, cosines = SIDES[side](options, pairs)
    figures = {
        "seconds": seconds,
        "spearman": float(stats.spearmanr(cosines, scores).statistic),
    }
    report(figures)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    losses = ("untrained", "cosent", "infonce")
    parser.add_argument("--losses", nargs="+", default=["untrained"], choices=losses)
    parser.add_argument("--data", default=str(DATA))
    parser.add_argument("--num_pairs", type=int, default=10_000)
    parser.add_argument("--test_pairs", type=int, default=10_000)
    parser.add_argument("--batch_size", type=int, default=16)
    parser.add_argument("--cache_batch_size", type=int, default=0, help="0 for no cache")
    parser.add_argument("--loss", help=argparse.SUPPRESS)
    options = parse_training_flags(parser, SIDES, BACKENDS, 1, 2e-5)
    if options.child:
        run_side(options.child, options)
        return

    pairs = list_pairs(options.sides, options.backends, peers=["sentence-transformers"])
    rows, measured = [], {}
    for loss in options.losses:
        # Without training there is nothing random.
        seeds = options.seeds[:1] if loss == "untrained" else options.seeds
        rounds = [["--loss", loss, "--seed", seed] for seed in seeds]
        measured = run_in_turn(sys.argv, pairs, rounds)
        for pair, figures in measured.items():
            scores = describe_seeds(figures["spearman"])
            rows.append([loss, *pair, *scores, *format_cells(figures, COST)])
    print(f"{describe_run(measured, len(options.seeds), ['sentence-transformers'])}\n")
    print("Spearman on the test pairs; seconds of the training.\n")
    headings = ["loss", "side", "backend", "Spearman of each seed", "mean", "spread"]
    print(format_table([*headings, *COST], rows))


if __name__ == "__main__":
    main()
