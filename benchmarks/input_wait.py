"""Measures how long a pretraining step waits for its batch, for tiny at length 128.

    python benchmarks/input_wait.py --corpus shards --backend jax

`fit` takes batches that `PretrainingBatches` cuts and masks while it runs, and the same batches
from memory, in turn. The difference is time in which a step waits, or time that the input takes
from the cores of the step. The table also has the time to make a batch, alone on one thread.
"""

import argparse
import os
import time

from harness.result_tables import describe_run, format_figures, format_ratios, format_table
from harness.side_flags import BACKENDS

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
    parser.add_argument("--backend", default="tensorflow", choices=BACKENDS)
    parser.add_argument("--steps", type=int, default=50, help="steps that are counted")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    os.environ["KERAS_BACKEND"] = options.backend

    import grain

    import keras_bert_suite as kbs
    from keras_bert_suite.corpus import open_corpus, read_tokenizer
    from keras_bert_suite.pretraining import PretrainingBatches

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
    milliseconds = {"memory": [], "corpus": []}
    for _ in range(options.rounds):
        for name, dataset in (("memory", in_memory), ("corpus", streamed)):
            seconds = time_steps(pretrainer, dataset, options.steps)
            milliseconds[name].append(1000 * seconds / options.steps)
    memory, corpus = milliseconds.values()
    cells = [format_figures(memory), format_figures(corpus), format_ratios(corpus, memory)]
    cells += [f"{1000 * making:.2f}"]
    print(f"{describe_run({}, options.rounds, [options.backend])}\n")
    print(f"Milliseconds a step of {BATCH_SIZE} sequences.\n")
    headings = ["from memory", "from the corpus", "corpus / memory", "making a batch, alone"]
    print(format_table(["backend", *headings], [[options.backend, *cells]]))


if __name__ == "__main__":
    main()
