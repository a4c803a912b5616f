"""Whether our sentence pairs are distributed as those of Google's script, by chi-square.

    python benchmarks/pretraining_distributions.py --corpus=FILE --vocabulary=vocab.txt \\
        --google=google128.tfrecord

FILE has a sentence a line and an empty line between documents. The other side is made by
the script itself, on the same file with the same vocabulary:

    git clone https://github.com/google-research/bert && cd bert
    python run.py --input_file=FILE --output_file=google128.tfrecord \\
        --vocab_file=vocab.txt --max_seq_length=128 --max_predictions_per_seq=20 --dupe_factor=1

It is written for TensorFlow 1; under TensorFlow 2 `run.py` is these four lines:

    import runpy, sys
    import tensorflow.compat.v1 as tensorflow
    sys.modules["tensorflow"] = tensorflow
    runpy.run_path("create_pretraining_data.py", run_name="__main__")

Length and predictions are read from the TFRecords.

The instances of a document aim at one length, so they are not independent, and chi-square
tables do not apply. The measure is our own epochs instead: each is compared with all the
others as Google's pass is compared with ours, and p is the share of epochs, Google's
included, that differ by as much as Google's does.
"""

import sys

import numpy as np
from absl import app, flags
from scipy import stats

import keras_bert_suite as kbs
from keras_bert_suite.corpus.token_corpus import TokenCorpus
from keras_bert_suite.pretraining.google_examples import GoogleExamples
from keras_bert_suite.pretraining.instance_planner import InstancePlanner
from keras_bert_suite.pretraining.pretraining_batches import PretrainingBatches

flags.DEFINE_string("google", None, "TFRecord file of Google's script.", required=True)
flags.DEFINE_string("corpus", None, "The text it was made from.", required=True)
flags.DEFINE_string("vocabulary", None, "vocab.txt it was made with.", required=True)
flags.DEFINE_bool("lowercase", True, "Its --do_lower_case.")
flags.DEFINE_float("short_seq_prob", 0.1, "Its --short_seq_prob.")
flags.DEFINE_integer("epochs", 40, "How many of our epochs to count.", 2)
FLAGS = flags.FLAGS

BATCH_SIZE = 64


def main(_):
    theirs = GoogleExamples(FLAGS.google, 1)
    x, y, _ = theirs[0]
    length, predictions = x["token_ids"].shape[1], y["mlm"].shape[1]
    tokenizer = kbs.WordPieceTokenizer(FLAGS.vocabulary, lowercase=FLAGS.lowercase)
    # Google's script draws random tokens from the whole vocabulary.
    masker = kbs.TokenMasker(tokenizer, max_predictions=predictions, random_tokens="vocabulary")
    corpus = read_corpus(tokenizer)
    ours = PretrainingBatches(
        corpus, masker, length, BATCH_SIZE, short_seq_prob=FLAGS.short_seq_prob
    )
    google = count(theirs, tokenizer.mask_token_id)
    steps = range(FLAGS.epochs * len(ours))
    epochs = [
        count(
            (ours[i] for i in steps[e * len(ours) : (e + 1) * len(ours)]), tokenizer.mask_token_id
        )
        for e in range(FLAGS.epochs)
    ]
    planner = InstancePlanner(corpus, length, short_seq_prob=FLAGS.short_seq_prob)
    sizes = [len(planner.plan(epoch)) for epoch in range(FLAGS.epochs)]

    print("# Sentence pairs: ours against those of create_pretraining_data.py\n")
    print(f"    $ python {' '.join(['benchmarks/pretraining_distributions.py', *sys.argv[1:]])}\n")
    print(f"Length {length}, at most {predictions} predictions. Instances: in Google's file")
    print(f"{len(theirs):,}; of ours {np.mean(sizes):,.0f} on average of {FLAGS.epochs} epochs,")
    print(f"from {min(sizes):,} to {max(sizes):,}, standard deviation {np.std(sizes):,.0f}.\n")
    print("| | Google's mean | ours | chi-square | of our epochs, median | p |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name, values in google.items():
        ours_of_epoch = [epoch[name] for epoch in epochs]
        chi2, nulls = compare(values, ours_of_epoch)
        p = (1 + np.count_nonzero(nulls >= chi2)) / (1 + len(nulls))
        print(
            f"| {name} | {values.mean():.4f} | {np.concatenate(ours_of_epoch).mean():.4f} "
            f"| {chi2:.1f} | {np.median(nulls):.1f} | {p:.2f} |"
        )


def read_corpus(tokenizer):
    with open(FLAGS.corpus, encoding="utf-8") as file:
        documents = [document.split("\n") for document in file.read().split("\n\n")]
    return TokenCorpus.from_documents([tokenizer.tokenize(lines) for lines in documents])


def count(batches, mask_token_id):
    """What there is to compare of each row, or of each prediction: dict of 1-D arrays."""
    counted = {}
    for x, y, weights in batches:
        chosen = weights["mlm"] > 0
        rows = np.nonzero(chosen)[0]
        positions = x["mask_positions"][chosen]
        tokens = x["token_ids"][rows, positions]
        size = x["padding_mask"].sum(axis=1)
        size_b = (x["segment_ids"] * x["padding_mask"]).sum(axis=1) - 1
        size_a = size - size_b - 3
        random_next = y["nsp"] == 1
        values = {
            "label 1": y["nsp"],
            "tokens of A, label 0": size_a[~random_next],
            "tokens of B, label 0": size_b[~random_next],
            "tokens of A, label 1": size_a[random_next],
            "tokens of B, label 1": size_b[random_next],
            "tokens of a row": size,
            "predictions of a row": chosen.sum(axis=1),
            "position of a prediction": positions,
            "predictions of [MASK]": tokens == mask_token_id,
            "predictions of the token there": tokens == y["mlm"][chosen],
        }
        for name, value in values.items():
            counted.setdefault(name, []).append(value.astype(float))
    return {name: np.concatenate(values) for name, values in counted.items()}


def compare(google, epochs):
    """Chi-square in up to 20 bins of about equally many of Google's.

    Returns:
        of Google's against all our epochs, and of each of those against the others, (E,).
    """
    edges = np.unique(np.quantile(google, np.linspace(0, 1, 21)[1:-1], method="lower"))
    table = [np.bincount(np.searchsorted(edges, v), minlength=20) for v in (google, *epochs)]
    table = np.array(table)[:, np.sum(table, axis=0) > 0]
    ours = table[1:].sum(axis=0)
    chi2 = stats.chi2_contingency([table[0], ours], correction=False).statistic
    nulls = [stats.chi2_contingency([row, ours - row], correction=False) for row in table[1:]]
    return chi2, np.array([null.statistic for null in nulls])


if __name__ == "__main__":
    app.run(main)
