"""Compares the loss of pretraining in bfloat16 and float16 with float32, and with its noise.

    python benchmarks/precision.py --corpus shards --backends tensorflow torch

A tiny BERT is trained on the same batches with each policy, and in float32 with AdamW's momentum in
bfloat16. Another seed of weights and dropout changes the loss in float32, too. This noise is the
bound for the others. The losses are those of the masked tokens in held-out text, at each tenth of
the run.
"""

import argparse
import sys

import numpy as np
from harness.result_tables import describe_run, format_table
from harness.side_flags import BACKENDS, list_pairs
from harness.side_runs import report, run_in_turn

#: name -> (policy, seed, dtype of the momentum)
SIDES = {
    "float32": ("float32", 0, None),
    "float32, other seed": ("float32", 1, None),
    "float32, momentum in bfloat16": ("float32", 0, "bfloat16"),
    "mixed_bfloat16": ("mixed_bfloat16", 0, None),
    "mixed_float16": ("mixed_float16", 0, None),
}
BATCH_SIZE, LENGTH, PREDICTIONS, POINTS = 32, 128, 20, 10


def train(side, corpus, steps):
    """Held-out losses, list of floats."""
    import keras

    import keras_bert_suite as kbs
    from keras_bert_suite.corpus import hold_out, open_corpus, read_tokenizer
    from keras_bert_suite.pretraining import PretrainingBatches

    dtype, seed, momentum_dtype = SIDES[side]
    keras.utils.set_random_seed(seed)
    tokenizer = read_tokenizer(corpus)
    masker = kbs.TokenMasker(tokenizer, max_predictions=PREDICTIONS)
    training, held_out = (
        PretrainingBatches(part, masker, LENGTH, BATCH_SIZE)
        for part in hold_out(open_corpus(corpus), 0.05, seed=0)
    )
    vocabulary_size = tokenizer.vocabulary_size()
    backbone = kbs.BertBackbone.from_size("tiny", vocabulary_size=vocabulary_size, dtype=dtype)
    pretrainer = kbs.Pretrainer(backbone)
    schedule = kbs.LinearWarmupDecay(5e-4, total_steps=steps, warmup_ratio=0.1)
    pretrainer.compile(kbs.AdamW(schedule, momentum_dtype=momentum_dtype))
    history = pretrainer.fit(
        training,
        steps_per_epoch=steps // POINTS,
        epochs=POINTS,
        validation_data=held_out[:20],
        verbose=0,
    ).history
    return history["val_mlm_loss"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--corpus", required=True, help="folder that keras-bert prepare wrote")
    parser.add_argument("--backends", nargs="+", default=BACKENDS)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        report({"losses": train(options.child, options.corpus, options.steps)})
        return

    sides = list_pairs(SIDES, options.backends, peers=[])
    measured = run_in_turn(sys.argv, sides, [[]])
    rows = []
    for (side, backend), figures in measured.items():
        (losses,), (reference,) = figures["losses"], measured["float32", backend]["losses"]
        distance = np.abs(np.subtract(losses, reference))
        cells = [f"{figure:.4f}" for figure in (losses[-1], distance.mean(), distance.max())]
        rows.append([backend, side, *cells])
    print(f"{describe_run(measured, 1)}\n\n{options.steps} steps of {BATCH_SIZE} x {LENGTH}.\n")
    headings = ["backend", "policy", "last loss", "mean difference to float32", "largest"]
    print(format_table(headings, rows))


if __name__ == "__main__":
    main()
