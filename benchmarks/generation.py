"""Tokens a second that a `Seq2Seq` writes, with its cache and without.

    python benchmarks/generation.py                        # MiniLM's shape, three backends
    python benchmarks/generation.py --backends torch --num_beams 1 4 --rounds 5

Random weights of the shape of MiniLM (6 layers, 384 wide). Each batch has 16 sources of 100 tokens,
and every target has 32 tokens. Without a cache, the whole model reads source and target again for
each token, as bert4keras does. Each side runs in a process of its own, in turn. The first batch,
in which graphs are compiled, is not counted.
"""

import argparse
import sys
import time

from harness.result_tables import describe_run, format_columns, format_comparison
from harness.side_flags import BACKENDS, list_pairs, parse_flags
from harness.side_runs import report, run_in_turn

BATCH_SIZE, SOURCE_LENGTH, TARGET_LENGTH = 16, 100, 32
SIDES = ["ours", "ours without a cache"]
COLUMNS = {"tokens/s": "{:.0f}"}


def make_writer(num_beams):
    import keras_hub
    import numpy as np

    import keras_bert_suite as kbs

    words = [f"word{number}" for number in range(30_000)]
    tokenizer = kbs.WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words])
    backbone = kbs.BertBackbone(
        vocabulary_size=tokenizer.vocabulary_size(),
        num_layers=6,
        num_heads=12,
        hidden_dim=384,
        intermediate_dim=1536,
        attention_pattern="seq2seq",
    )
    packer = kbs.SegmentPacker(tokenizer, SOURCE_LENGTH + TARGET_LENGTH)
    sampler = keras_hub.samplers.BeamSampler(num_beams=num_beams) if num_beams > 1 else "greedy"
    writer = kbs.Seq2Seq(
        backbone, preprocessor=packer, max_target_length=TARGET_LENGTH, sampler=sampler
    )
    # No target ends before its last token.
    writer.masked_lm.bias.assign(-1e4 * (np.arange(tokenizer.vocabulary_size()) == 3))
    return writer, words


def write_without_cache(writer, sources):
    """Greedy targets, a pass of the whole model for each token."""
    import numpy as np

    place_holders = [" ".join(["word1"] * TARGET_LENGTH)] * len(sources)
    inputs, _, _ = writer.data.pack(writer.data.read(sources, place_holders), labelled=True)
    inputs = {name: np.array(array) for name, array in inputs.items()}
    first = inputs["mask_positions"][:, 0]
    for place in range(TARGET_LENGTH):
        step = {**inputs, "mask_positions": (first + place)[:, None].astype("int32")}
        logits = writer.predict_on_batch(step)
        following = np.minimum(first + place + 1, inputs["token_ids"].shape[1] - 1)
        newest = np.asarray(logits)[:, 0].argmax(axis=-1)
        inputs["token_ids"][np.arange(len(sources)), following] = newest


def measure(side, options):
    import numpy as np

    writer, words = make_writer(options.num_beams)
    rng = np.random.default_rng(0)
    sources = [" ".join(rng.choice(words, SOURCE_LENGTH)) for _ in range(BATCH_SIZE)]
    write = writer.predict if side == "ours" else lambda rows: write_without_cache(writer, rows)
    write(sources)
    begin = time.perf_counter()
    for _ in range(options.batches):
        write(sources)
    seconds = (time.perf_counter() - begin) / options.batches
    return {"tokens/s": BATCH_SIZE * TARGET_LENGTH / seconds}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--backends", nargs="+", default=BACKENDS)
    parser.add_argument("--sides", nargs="+", default=SIDES, choices=SIDES)
    parser.add_argument("--num_beams", type=int, default=1)
    parser.add_argument("--batches", type=int, default=2)
    options = parse_flags(parser)
    if options.child:
        report(measure(options.child, options))
        return
    pairs = list_pairs(options.sides, options.backends, peers=[])
    measured = run_in_turn(sys.argv, pairs, [[]] * options.rounds)
    print(f"{describe_run(measured, options.rounds)}\n")
    print(f"{format_columns(measured, COLUMNS)}\n\n{format_comparison(measured, COLUMNS, [])}")


if __name__ == "__main__":
    main()
