"""Embedders of fewer layers, as they are cut and distilled on plain sentences: Spearman on STS-B.

    OMP_NUM_THREADS=1 KERAS_BACKEND=torch python benchmarks/embedder_distillation.py --seeds 0 1 2
    python benchmarks/embedder_distillation.py --num_texts 64 --layers 1  # to see that it runs

The teacher is MiniLM (six layers, 384 wide), an embedder. A student has evenly spaced layers of it
and learns its vectors (`VectorRegression`) on `--num_texts` sentences of the training pairs
of STS-B without their scores, drawn by the seed: one epoch in batches of 32, AdamW with bias
correction, linear warm-up over a tenth of the steps. Nothing reads a label. The score is Spearman's
correlation of the cosines on the 1,379 test pairs.

Published for the same procedure (sentence-transformers, `model_distillation.py`), from 12 layers
of stsb-roberta-base, on sentences of NLI and Wikipedia: 85.44 with 12 layers, 85.23 with 6, 84.39
with 3, 83.32 with 2 and 80.86 with 1.
"""

import argparse
import time
from pathlib import Path

import keras
import numpy as np
from harness.machine_figures import describe_processor
from harness.result_tables import describe_seeds, format_table
from peer_recipes import find_minilm
from scipy import stats
from sentence_embeddings import read_pairs

import keras_bert_suite as kbs


def measure(embedder, pairs, scores):
    return float(stats.spearmanr(embedder.similarity_pairwise(*pairs), scores).statistic)


def distil(student, teacher, texts, options):
    """Processor seconds of the training."""
    optimizer = kbs.AdamW(kbs.LinearWarmupDecay(options.learning_rate), bias_correction=True)
    student.compile(optimizer, kbs.VectorRegression())
    begin = time.process_time()
    student.fit(texts, teacher.predict(texts, verbose=0), batch_size=32, verbose=0)
    return time.process_time() - begin


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("data"))
    parser.add_argument("--layers", nargs="+", type=int, default=[3, 2, 1], help="of the students")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--num_texts", type=int, default=10000)
    parser.add_argument("--learning_rate", type=float, default=3e-4)
    options = parser.parse_args()
    folder = options.data / "glue" / "STS-B"
    (first, second), _ = read_pairs(folder / "train.tsv", (7, 8, 9), True)
    sentences = sorted({*first, *second})
    pairs, scores = read_pairs(folder / "original_sts-test.tsv", (5, 6, 4), False)
    teacher = kbs.TextEmbedder.from_preset(find_minilm(), sequence_length=128)
    every = teacher.backbone.num_layers
    table = [[str(every), "teacher", f"{measure(teacher, pairs, scores):.3f}", "", "", ""]]
    for number in options.layers:
        step = every // number
        found, seconds = [], []
        for seed in options.seeds:
            keras.utils.set_random_seed(seed)
            student = teacher.keep_layers(range(0, number * step, step))
            if not found:
                table.append(
                    [str(number), "cut", f"{measure(student, pairs, scores):.3f}", "", "", ""]
                )
            order = np.random.default_rng(seed).permutation(len(sentences))
            texts = [sentences[i] for i in order[: options.num_texts]]
            seconds.append(distil(student, teacher, texts, options))
            found.append(measure(student, pairs, scores))
            print(f"{number} layers, seed {seed}: {found[-1]:.4f}, {seconds[-1]:.0f} s", flush=True)
        table.append(
            [str(number), "distilled", *describe_seeds(found), f"{np.median(seconds):.0f}"]
        )
    print(f"\n{describe_processor()}, {keras.config.backend()}.\n")
    headings = ["layers", "side", "score of each seed", "mean", "deviation", "processor s"]
    print(format_table(headings, table))


if __name__ == "__main__":
    main()
