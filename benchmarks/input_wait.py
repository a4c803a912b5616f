"""Measures how long a pretraining step waits for its batch, for tiny at length 128.

    python benchmarks/input_wait.py --corpus shards --backend jax

`fit` takes batches that `PretrainingBatches` cuts and masks while it runs, and the same batches
from memory, in turn. The difference is time in which a step waits, or time that the input takes
from the cores of the step. The table also has the time to make a batch, alone on one thread.
"""

import argparse
import os
import statistics
import time

from side_processes import describe_run

BATCH_SIZE, LENGTH, PREDICTIONS = 32, 128, 20


def time_steps(pretrainer, dataset, num_steps):
    """Seconds of `num_steps` steps, after as many that are not counted."""
    import keras

    ends = []
    clock = keras.callbacks.LambdaCallback(on_epoch_end=lambda *_: ends.append(time.perf_counter()))
    pretrainer.fit(dataset, steps_per_epoch=num_steps, epochs=2, callbacks=[clock], verbose=0)
    return ends[1] - ends[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--corpus", required=True, help="folder that keras-bert prepare wrote")
    parser.add_argument("--backend", default="tensorflow", choices=["tensorflow", "jax", "torch"])
    parser.add_argument("--steps", type=int, default=50, help="steps that are counted")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    os.environ["KERAS_BACKEND"] = options.backend

    import grain

    import keras_bert_suite as kbs
    from keras_bert_suite.corpus import open_corpus, read_tokenizer
    from keras_bert_suite.instances import PretrainingBatches

    tokenizer = read_tokenizer(options.corpus)
    masker = kbs.TokenMasker(tokenizer, max_predictions=PREDICTIONS)
    streamed = PretrainingBatches(open_corpus(options.corpus), masker, LENGTH, BATCH_SIZE)
    begin = time.perf_counter()
    in_memory = grain.MapDataset.source([streamed[i] for i in range(2 * options.steps)])
    making = (time.perf_counter() - begin) / (2 * options.steps)

    backbone = kbs.BertBackbone.from_size("tiny", vocabulary_size=tokenizer.vocabulary_size())
    pretrainer = kbs.Pretrainer(backbone)
    pretrainer.compile()
    time_steps(pretrainer, in_memory, 3)
    seconds = {"memory": [], "corpus": []}
    for _ in range(options.rounds):
        seconds["memory"].append(time_steps(pretrainer, in_memory, options.steps))
        seconds["corpus"].append(time_steps(pretrainer, streamed, options.steps))
    memory, corpus = (statistics.median(taken) / options.steps for taken in seconds.values())
    print(f"{describe_run(options.rounds)} Milliseconds a step of {BATCH_SIZE} sequences.\n")
    print("| backend | from memory | from the corpus | longer by | making a batch, alone |")
    print("| --- | --- | --- | --- | --- |")
    print(
        f"| {options.backend} | {memory * 1e3:.1f} | {corpus * 1e3:.1f} | "
        f"{corpus / memory - 1:.1%} | {making * 1e3:.2f} ({making / memory:.1%}) |"
    )


if __name__ == "__main__":
    main()
