"""The vector that a classifier reads: poolings compared on short fine-tunings, several seeds.

    python benchmarks/poolings.py --seeds 0 1 2
    python benchmarks/poolings.py --tasks chnsenticorp --checkpoint CHINESE_BERT --seeds 0 1 2

Every side fine-tunes the same checkpoint on the same first rows, in the same batches of 16 rows of
similar length, with AdamW, bias correction, linear warm-up over a tenth of the steps and linear
decay. Poolings with weights learn them at `--head_learning_rate`. The score is that of the task in
`text_classification.py`, on the first rows of the dev file. Sides have equal steps. The time is
processor time of the training, which shows that their minutes are nearly equal too.
"""

import argparse
import statistics
import time
from pathlib import Path

import keras
from harness.machine_figures import describe_processor
from harness.result_tables import describe_seeds, format_table
from peer_recipes import find_minilm
from text_classification import read_task

import keras_bert_suite as kbs


@keras.saving.register_keras_serializable(package="poolings")
class RCNN(keras.layers.Layer):
    """The maximum over the text of each token's state joined with what two LSTMs have read.

    Source: Lai et al., 2015 (https://doi.org/10.1609/aaai.v29i1.9513), as it is put on a BERT.
    """

    def build(self, sequence_shape):
        width = sequence_shape[-1]
        lstm = keras.layers.LSTM(width // 2, return_sequences=True)
        self.context = keras.layers.Bidirectional(lstm)
        self.context.build(sequence_shape)
        self.project = keras.layers.Dense(width, activation="tanh")
        self.project.build((*sequence_shape[:-1], 2 * width))
        self.pooling = kbs.MaxPooling()

    def call(self, sequence_output, padding_mask, training=None):
        mask = keras.ops.cast(padding_mask, "bool")
        context = self.context(sequence_output, mask=mask, training=training)
        joined = keras.ops.concatenate([sequence_output, context], axis=-1)
        return self.pooling(self.project(joined), padding_mask)


#: The name of a side, and its `pooling`. "pooled" is what the checkpoint has: the pooler of a BERT.
POOLINGS = {
    "pooled": lambda: None,
    "cls": lambda: "cls",
    "mean": lambda: "mean",
    "max": lambda: "max",
    "attention": kbs.AttentionPooling,
    "convolution": kbs.ConvolutionPooling,
    "lstm": kbs.BiLSTMPooling,
    "rcnn": RCNN,
    "mix, mean": lambda: kbs.ScalarMix(pooling=kbs.MeanPooling()),
    "last 4, mean": lambda: kbs.LastLayers(4, pooling=kbs.MeanPooling()),
}


def train(side, task, seed, options):
    """(the score of a classifier, processor seconds of its training)."""
    keras.utils.set_random_seed(seed)
    classifier = kbs.TextClassifier.from_preset(
        options.checkpoint or find_minilm(),
        label_names=task.label_names,
        problem_type=task.problem_type,
        pooling=POOLINGS[side](),
        sequence_length=options.sequence_length,
    )
    classifier.compile(
        kbs.AdamW(kbs.LinearWarmupDecay(options.learning_rate), bias_correction=True),
        head_learning_rate=options.head_learning_rate,
    )
    train, dev = task.train.take(options.num_rows), task.dev.take(options.dev_rows)
    begin = time.process_time()
    classifier.fit(train.x, train.y, batch_size=16, epochs=options.epochs, verbose=0)
    duration = time.process_time() - begin
    answers = classifier.predict_labels(dev.x, batch_size=64, verbose=0)
    return next(iter(task.score(dev.y, answers).values())), duration


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("data"))
    parser.add_argument("--tasks", nargs="+", default=["sst2", "mrpc"])
    parser.add_argument("--sides", nargs="+", default=[*POOLINGS], choices=POOLINGS)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--checkpoint", default="", help="Default: MiniLM.")
    parser.add_argument("--num_rows", type=int, default=320)
    parser.add_argument("--dev_rows", type=int, default=300)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--sequence_length", type=int, default=64)
    parser.add_argument("--learning_rate", type=float, default=1e-4)
    parser.add_argument("--head_learning_rate", type=float, default=1e-3)
    options = parser.parse_args()
    tasks = {name: read_task(name, options.data) for name in options.tasks}
    scores = {(name, side): [] for name in tasks for side in options.sides}
    seconds = {key: [] for key in scores}
    for seed in options.seeds:
        for name, side in scores:
            score, duration = train(side, tasks[name], seed, options)
            scores[name, side].append(score)
            seconds[name, side].append(duration)
            print(f"seed {seed}, {name}, {side}: {score:.4f}, {duration:.0f} s", flush=True)
    print(f"\n{describe_processor()}, {keras.config.backend()}.\n")
    rows = []
    for (name, side), found in scores.items():
        each, mean, _ = describe_seeds(found, digits=3)
        rows.append([name, side, each, mean, f"{statistics.median(seconds[name, side]):.0f}"])
    print(format_table(["task", "pooling", "score of each seed", "mean", "processor s"], rows))


if __name__ == "__main__":
    main()
