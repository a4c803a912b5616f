"""The perplexity of Transformer-XLs by how many tokens they remember.

    keras-bert vocab --input 'enwiki_small/*.jsonl' --output vocab.txt --size 2000
    keras-bert prepare --input 'enwiki_small/*.jsonl' --vocab vocab.txt --output shards
    python benchmarks/memory_length.py --corpus shards --minutes 8

Each side trains a small left-to-right model (three layers, 128 wide, WordPieces) for `--minutes` of
the time of the processor, on `LaneBatches` of rows of 64 tokens. "with memory" carries
the states of the 128 tokens before (`CarriedMemory`). "without memory" sees the tokens of its row
alone, so that it takes more steps in this time. Then both read the same held-out documents in
segments of 64 tokens (`predict_segments`), once for each of `--lengths`: the states that the model
remembers. Length 0 is no memory. The weights do not depend on the length. A model may remember more
than it was trained with, because its positions are relative.

One run of both sides takes some `2 * minutes + 2` minutes of one core.
"""

import argparse
import math
import sys
import time

import numpy as np
from harness.result_tables import describe_run, format_figures, format_table
from harness.side_flags import list_pairs
from harness.side_runs import report, run_in_turn

SEGMENT, BATCH_SIZE, MEMORY, LEARNING_RATE = 64, 16, 128, 1e-3
SIZES = {"num_layers": 3, "num_heads": 4, "hidden_dim": 128, "intermediate_dim": 512}
#: Lanes of the held-out documents: the documents of a lane follow each other.
HELD_OUT_LANES = 8
#: Steps whose time is measured, after as many that are not.
TIMED_STEPS = 10
SIDES = {"with memory": MEMORY, "without memory": None}


def make_task(tokenizer, memory_length):
    """A language model in the form of Transformer-XL, not compiled."""
    import keras_bert_suite as kbs

    backbone = kbs.XLNetBackbone(
        tokenizer.vocabulary_size(),
        **SIZES,
        attention_pattern="left_to_right",
        num_segments=0,
        share_biases=True,
        activation="relu",
        memory_length=memory_length,
        dropout=0.0,
        initializer_range=0.05,
    )
    return kbs.Pretrainer(backbone, next_sentence=False)


def train(tokenizer, corpus, memory_length, seed, minutes):
    """A trained task, and dict of the steps and seconds that it took."""
    import keras

    import keras_bert_suite as kbs
    from keras_bert_suite.pretraining import LaneBatches

    batches = LaneBatches(corpus, tokenizer, SEGMENT, BATCH_SIZE, seed=seed)

    def fit(steps, epochs=1):
        keras.utils.set_random_seed(seed)
        task = make_task(tokenizer, memory_length)
        schedule = kbs.LinearWarmupDecay(LEARNING_RATE, total_steps=steps, warmup_ratio=0.1)
        technique = None if memory_length is None else kbs.CarriedMemory(lanes=BATCH_SIZE)
        task.compile(kbs.AdamW(schedule), technique=technique)
        started = time.process_time()
        task.fit(batches, epochs=epochs, steps_per_epoch=steps // epochs, verbose=0)
        return task, time.process_time() - started

    _, first = fit(TIMED_STEPS)
    _, both = fit(2 * TIMED_STEPS)
    steps = max(10, round(60 * minutes * TIMED_STEPS / (both - first)))
    task, seconds = fit(steps)
    return task, {"steps": steps, "seconds": seconds}


def measure_perplexity(task, tokenizer, corpus, memory_length):
    """The perplexity of documents that are read in segments with a memory of this length."""
    from keras_bert_suite.models import predict_segments
    from keras_bert_suite.pretraining import LaneBatches

    batches = LaneBatches(corpus, tokenizer, SEGMENT, HELD_OUT_LANES)
    reader = make_task(tokenizer, memory_length or None)
    reader.set_weights(task.get_weights())
    inputs = [batches[i][0] for i in range(len(batches))]
    if memory_length:
        outputs = predict_segments(reader, inputs)
    else:
        outputs = (
            reader.predict_on_batch({name: x[name] for name in reader.input}) for x in inputs
        )
    losses = []
    for i, each in enumerate(outputs):
        logits = np.asarray(each["mlm"], "float32")
        of_labels = np.take_along_axis(logits, batches[i][1]["mlm"][:, :, None], axis=-1)[:, :, 0]
        highest = logits.max(axis=-1)
        sums = np.exp(logits - highest[:, :, None]).sum(axis=-1)
        losses.append((np.log(sums) + highest - of_labels).mean())
    return math.exp(np.mean(losses))


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--corpus", required=True, help="folder that keras-bert prepare wrote")
    parser.add_argument("--backend", default="torch")
    parser.add_argument("--sides", nargs="+", default=list(SIDES), choices=list(SIDES))
    parser.add_argument("--minutes", type=float, default=8, help="of the processor, for a side")
    parser.add_argument("--lengths", nargs="+", type=int, default=[0, 64, 128, 256, 512])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--at_once", type=int, default=1, help="processes side by side")
    parser.add_argument("--finished", help="file of finished runs, which are not repeated")
    parser.add_argument("--seed", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        from keras_bert_suite.corpus import hold_out, open_corpus, read_tokenizer

        tokenizer = read_tokenizer(options.corpus)
        training, held_out = hold_out(open_corpus(options.corpus), 0.02)
        memory_length = SIDES[options.child]
        task, cost = train(tokenizer, training, memory_length, options.seed, options.minutes)
        read = (task, tokenizer, held_out)
        scores = {str(n): measure_perplexity(*read, n) for n in options.lengths}
        report({**cost, **scores})
        return

    sides = list_pairs(options.sides, [options.backend], peers=[])
    asked = ["--minutes", options.minutes, "--lengths", *options.lengths]
    rounds = [["--seed", seed, *asked] for seed in options.seeds]
    measured = run_in_turn(sys.argv, sides, rounds, options.at_once, options.finished)
    print(describe_run(measured, len(rounds)))
    print(f"\n{BATCH_SIZE} x {SEGMENT} tokens in a step. Perplexity by the length of the memory:\n")
    columns = {"steps": "{:.0f}", "seconds": "{:.0f}"}
    columns |= {str(n): "{:.2f}" for n in options.lengths}
    rows = [
        [side, *(format_figures(figures[name], form) for name, form in columns.items())]
        for (side, _), figures in measured.items()
    ]
    print(format_table(["trained", *columns], rows))


if __name__ == "__main__":
    main()
