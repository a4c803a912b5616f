"""Ours and transformers from the same weights on the same batches, with or without dropout.

    python benchmarks/same_batches.py --task stsb --dropout 0
    python benchmarks/same_batches.py --task stsb --dropout 0.1 --seeds 0 1 2
    python benchmarks/same_batches.py --task stsb --dropout 0.1 --same_masks
    python benchmarks/same_batches.py --task squad --num_rows 3000 --dev_rows 1000 --dropout 0

The other benchmarks of accuracy compare two recipes: each side draws its new layer and its dropout,
and so a score moves with the seed. Here transformers draws the new layer for both, and takes the
batches that our `fit` has made. So without dropout, or with `--same_masks`, the two trainings are
one, and their scores tell whether anything else differs. With `--same_masks` both draw the masks of
dropout by the same function, from the same seed in each step. One epoch of MiniLM under PyTorch;
both answer by our `predict`.
"""

import argparse
import os
import tempfile
from pathlib import Path

os.environ["KERAS_BACKEND"] = "torch"

from harness.result_tables import describe_run, format_table
from peer_recipes import find_minilm, make_adamw, take_step

DATA = Path("data")
BATCH_SIZE = {"stsb": 16, "squad": 12}


def read_pairs(options):
    """(rows to train on, labels, function from a task to its Pearson correlation)."""
    import numpy as np

    import keras_bert_suite as kbs

    folder = Path(options.data) / "glue"
    train = kbs.read_glue(folder, "stsb").take(options.num_rows)
    dev = kbs.read_glue(folder, "stsb", "dev.tsv").take(options.dev_rows)

    def score(classifier):
        answers = classifier.predict(dev.x, verbose=0)[:, 0]
        return float(np.corrcoef(answers, np.array(dev.y, "float64"))[0, 1])

    return train.x, train.y, score


def read_questions(options):
    """(rows to train on, labels, function from a task to its F1)."""
    import keras_bert_suite as kbs
    from keras_bert_suite.data.squad_scores import score_answers

    folder = Path(options.data) / "qa"
    train = kbs.read_squad(folder / "train_partial_combined.json").take(options.num_rows)
    dev = kbs.read_squad(folder / "squad_v1.1" / "dev-v1.1.json").take(options.dev_rows)

    def score(answerer):
        answers = answerer.predict(dev.x, batch_size=12, verbose=0)
        texts = [answer.text for answer in answers]
        return score_answers([row["text"] for row in dev.y], texts)["f1"]

    return train.x, train.y, score


def make_peer(options, folder):
    """A model of transformers with a new layer, which it also saves to a folder."""
    import transformers

    if options.task == "stsb":
        kind, arguments = transformers.AutoModelForSequenceClassification, {"num_labels": 1}
        arguments["problem_type"] = "regression"
    else:
        kind, arguments = transformers.AutoModelForQuestionAnswering, {}
    rates = dict.fromkeys(("hidden_dropout_prob", "attention_probs_dropout_prob"), options.dropout)
    # The eager formula drops probabilities by `torch.nn.functional.dropout`.
    arguments["attn_implementation"] = "eager"
    peer = kind.from_pretrained(find_minilm(), **arguments, **rates)
    save_peer(peer, folder)
    return peer


def save_peer(peer, folder):
    import transformers

    peer.save_pretrained(folder)
    transformers.AutoTokenizer.from_pretrained(find_minilm()).save_pretrained(folder)


def open_ours(options, folder):
    import keras_bert_suite as kbs

    if options.task == "stsb":
        return kbs.TextClassifier.from_preset(folder, sequence_length=128, dropout=options.dropout)
    return kbs.QuestionAnswerer.from_preset(folder, sequence_length=384, stride=128)


def train_ours(options, ours, x, y):
    """Trains ours; returns the batches that it saw, as (inputs, labels)."""
    import keras
    import torch

    import keras_bert_suite as kbs

    batches, train_step = [], ours.train_step

    def keep_batch(data):
        inputs, labels, _ = keras.utils.unpack_x_y_sample_weight(data)
        if options.same_masks:
            torch.manual_seed(len(batches))
        batches.append(({name: a.clone() for name, a in inputs.items()}, labels.clone()))
        return train_step(data)

    ours.train_step = keep_batch
    ours.compile(kbs.AdamW(kbs.LinearWarmupDecay(options.learning_rate), bias_correction=True))
    ours.fit(x, y, batch_size=BATCH_SIZE[options.task], verbose=0)
    return batches


def train_peer(options, peer, batches):
    import torch

    if options.same_masks:
        use_our_dropout()
    adamw = make_adamw(peer, options.learning_rate, len(batches))
    peer.train()
    for step, (inputs, labels) in enumerate(batches):
        if options.same_masks:
            torch.manual_seed(step)
        if options.task == "stsb":
            labels = {"labels": labels.float().reshape(-1)}
        else:
            starts, ends = labels.long().T
            labels = {"start_positions": starts, "end_positions": ends}
        outputs = peer(
            input_ids=inputs["token_ids"],
            token_type_ids=inputs["segment_ids"],
            attention_mask=inputs["padding_mask"],
            **labels,
        )
        take_step(peer, outputs.loss, *adamw)


def use_our_dropout():
    """Has PyTorch draw the masks of dropout as our layers do."""
    import torch

    from keras_bert_suite.layers import Dropout

    layers = {}

    def drop(x, p=0.5, training=True, inplace=False):
        layer = layers.setdefault(p, Dropout(p))
        return layer.call(x, training=True) if training and p else x

    torch.nn.functional.dropout = drop


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--task", choices=list(BATCH_SIZE), default="stsb")
    parser.add_argument("--data", default=str(DATA))
    parser.add_argument("--num_rows", type=int, default=10000)
    parser.add_argument("--dev_rows", type=int, default=10000)
    parser.add_argument("--dropout", type=float, default=0.0)
    parser.add_argument("--same_masks", action="store_true")
    parser.add_argument("--learning_rate", type=float, default=1e-4)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    options = parser.parse_args()

    import keras

    x, y, score = {"stsb": read_pairs, "squad": read_questions}[options.task](options)
    metric = {"stsb": "Pearson", "squad": "F1"}[options.task]
    rows = []
    for seed in options.seeds:
        with tempfile.TemporaryDirectory() as folder:
            keras.utils.set_random_seed(seed)
            peer = make_peer(options, folder)
            ours = open_ours(options, folder)
            batches = train_ours(options, ours, x, y)
            train_peer(options, peer, batches)
            save_peer(peer, folder)
            scores = score(ours), score(open_ours(options, folder))
        rows.append([str(seed), *(f"{part:.4f}" for part in scores)])
    print(f"{describe_run({}, 1, ['torch', 'transformers'])}\n")
    print(format_table(["seed", f"ours, {metric}", f"transformers, {metric}"], rows))


if __name__ == "__main__":
    main()
