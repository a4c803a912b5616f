"""Layers between the encoder and a CRF, and the learning rate of what is new: entity F1.

    python benchmarks/head_layers.py --checkpoint CHINESE_BERT --data data/ner/resume_zh \\
        --files train.char.bmes dev.char.bmes --scheme BMES --seeds 0 1 2
    python benchmarks/head_layers.py --frozen --epochs 20         # fit_on_features

Every side trains a `CrfTokenClassifier` on the same first sentences, in batches of 16, with AdamW,
bias correction, linear warm-up over a tenth of the steps and linear decay. The transitions have 100
times the rate of the encoder. A side is `layers@rate`, the rate being that of all other weights
outside of the encoder, or `layers` for the rate of the encoder. With `--frozen` the encoder is not
trained: its states are computed once, and the rate is that of all weights. All sides run in one
process. The time is processor time of the training, so that other work on the machine counts
little.
"""

import argparse
import statistics
import time
from pathlib import Path

import keras
from harness.machine_figures import describe_processor
from harness.result_tables import describe_seeds, format_table
from peer_recipes import find_minilm

import keras_bert_suite as kbs
from keras_bert_suite.heads.spans.labels import tags_to_spans
from keras_bert_suite.heads.tags.scores import score_spans

BATCH_SIZE, SEQUENCE_LENGTH, FROZEN_RATE = 16, 128, 1e-3
LSTM_UNITS, FILTERS = 128, 256


def make_lstm():
    lstm = keras.layers.LSTM(LSTM_UNITS, return_sequences=True)
    return keras.layers.Bidirectional(lstm, name="lstm")


def make_convolution():
    return keras.layers.Conv1D(FILTERS, 3, padding="same", activation="relu", name="convolution")


#: The name of a side, and its `head_layers`.
LAYERS = {
    "none": lambda: [],
    "lstm": lambda: [make_lstm()],
    "convolution": lambda: [make_convolution()],
    "mix": lambda: [kbs.ScalarMix(pooling=None, name="mix")],
    "last4": lambda: [kbs.LastLayers(4, pooling=None, name="last4")],
    "mix+lstm": lambda: [kbs.ScalarMix(pooling=None, name="mix"), make_lstm()],
}


def train(side, train, seed, options):
    """(a trained tagger, processor seconds of its training)."""
    layers, _, rate = side.partition("@")
    keras.utils.set_random_seed(seed)
    tagger = kbs.CrfTokenClassifier.from_preset(
        options.checkpoint or find_minilm(),
        label_names=train.label_names,
        head_layers=LAYERS[layers](),
        sequence_length=SEQUENCE_LENGTH,
    )
    peak = FROZEN_RATE if options.frozen else options.learning_rate
    optimizer = kbs.AdamW(
        kbs.LinearWarmupDecay(float(rate) if options.frozen and rate else peak),
        bias_correction=True,
        rate_multipliers=[] if options.frozen else [("(^|/)crf/", 100.0)],
    )
    arguments = {"batch_size": BATCH_SIZE, "epochs": options.epochs, "verbose": 0}
    begin = time.process_time()
    if options.frozen:
        tagger.fit_on_features(train.x, train.y, optimizer=optimizer, **arguments)
    else:
        tagger.compile(optimizer, head_learning_rate=float(rate) if rate else None)
        tagger.fit(train.x, train.y, **arguments)
    return tagger, time.process_time() - begin


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sides", nargs="+", default=["none", "lstm", "lstm@1e-3", "mix@1e-3"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--frozen", action="store_true", help="train on features computed once")
    parser.add_argument("--checkpoint", default="", help="Default: MiniLM.")
    parser.add_argument("--data", default=str(Path("data") / "ner" / "conll2003_en"))
    parser.add_argument("--files", nargs=2, default=["eng.train", "eng.testa"])
    parser.add_argument("--scheme", default="BIO", help="of the tags that are learned")
    parser.add_argument("--num_sentences", type=int, default=500)
    parser.add_argument("--dev_sentences", type=int, default=300)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--learning_rate", type=float, default=5e-5)
    options = parser.parse_args()
    examples, dev = (
        kbs.read_conll(Path(options.data) / file, scheme=options.scheme).take(number)
        for file, number in zip(
            options.files, (options.num_sentences, options.dev_sentences), strict=True
        )
    )
    wanted = list(map(tags_to_spans, dev.y))
    scores = {side: [] for side in options.sides}
    seconds = {side: [] for side in options.sides}
    for seed in options.seeds:
        for side in options.sides:
            tagger, duration = train(side, examples, seed, options)
            found = tagger.predict(dev.x, batch_size=64, verbose=0)
            found = [[(e.start, e.end, e.label) for e in row] for row in found]
            scores[side].append(score_spans(wanted, found)["f1"])
            seconds[side].append(duration)
            print(f"seed {seed}, {side}: {scores[side][-1]:.4f}, {duration:.0f} s", flush=True)
    print(f"\n{describe_processor()}, {keras.config.backend()}.\n")
    rows = []
    for side in options.sides:
        each, mean, _ = describe_seeds(scores[side])
        rows.append([side, each, mean, f"{statistics.median(seconds[side]):.0f}"])
    headings = ["layers@rate", "entity F1 of each seed", "mean", "processor seconds"]
    print(format_table(headings, rows))


if __name__ == "__main__":
    main()
