"""Ours and transformers from the same weights on the same batches, with or without dropout.

    python benchmarks/same_batches.py --task stsb --dropout 0
    python benchmarks/same_batches.py --task stsb --dropout 0.1 --seeds 0 1 2
    python benchmarks/same_batches.py --task stsb --dropout 0.1 --same_masks
    python benchmarks/same_batches.py --task squad --num_rows 3000 --dev_rows 1000 --dropout 0
    python benchmarks/same_batches.py --task conll --num_rows 3000 --dev_rows 1000 --dropout 0

The other benchmarks of accuracy compare two recipes: each side draws its new layer and its dropout,
and so a score moves with the seed. Here transformers draws the new layer for both, and takes the
batches that our `fit` has made. So without dropout, or with `--same_masks`, the two trainings are
one, and their scores tell whether anything else differs. With `--same_masks` both draw the masks of
dropout by the same function, from the same seed in each step. One epoch of MiniLM under PyTorch;
both answer by our `predict`.
"""

import argparse
import dataclasses
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

os.environ["KERAS_BACKEND"] = "torch"

from harness.result_tables import describe_run, format_table
from peer_recipes import find_minilm, make_adamw, take_step

DATA = Path("data")


@dataclasses.dataclass(frozen=True)
class Task:
    """How both sides learn and answer the rows of a task.

    Attributes:
        metric: str, the name of the score.
        batch_size: int.
        read: function(options) to (rows to train on, labels, function from a task to its score).
        cls: str, the class of our task.
        arguments: dict, for its `from_preset`.
        peer_cls: str, a class of transformers.
        peer_arguments: dict, for its `from_pretrained`.
        make_labels: function(labels, sample weights or None) to the labels of `peer_cls`, a dict.
    """

    metric: str
    batch_size: int
    read: Callable
    cls: str
    arguments: dict
    peer_cls: str
    peer_arguments: dict
    make_labels: Callable


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

    folder = Path(options.data) / "qa"
    train = kbs.read_squad(folder / "train_partial_combined.json").take(options.num_rows)
    dev = kbs.read_squad(folder / "squad_v1.1" / "dev-v1.1.json").take(options.dev_rows)

    def score(answerer):
        return answerer.score(dev.x, dev.y, batch_size=12)["f1"]

    return train.x, train.y, score


def read_sentences(options):
    """(sentences to train on, tags, function from a task to the F1 of its entities)."""
    import keras_bert_suite as kbs

    folder = Path(options.data) / "ner" / "conll2003_en"
    train = kbs.read_conll(folder / "eng.train", scheme="BIO").take(options.num_rows)
    dev = kbs.read_conll(folder / "eng.testa", scheme="BIO").take(options.dev_rows)

    def score(tagger):
        return tagger.score(dev.x, dev.y)["f1"]

    return train.x, train.y, score


def make_score_labels(labels, weights):
    return {"labels": labels.float().reshape(-1)}


def make_answer_labels(labels, weights):
    starts, ends = labels.long().T
    return {"start_positions": starts, "end_positions": ends}


def make_tag_labels(labels, weights):
    return {"labels": labels.long().masked_fill(weights == 0, -100)}


CONLL_TAGS = ("O", *(f"{part}-{kind}" for kind in ("LOC", "MISC", "ORG", "PER") for part in "BI"))
TASKS = {
    "stsb": Task(
        metric="Pearson",
        batch_size=16,
        read=read_pairs,
        cls="TextClassifier",
        arguments={"sequence_length": 128},
        peer_cls="AutoModelForSequenceClassification",
        peer_arguments={"num_labels": 1, "problem_type": "regression"},
        make_labels=make_score_labels,
    ),
    "squad": Task(
        metric="F1",
        batch_size=12,
        read=read_questions,
        cls="QuestionAnswerer",
        arguments={"sequence_length": 384, "stride": 128},
        peer_cls="AutoModelForQuestionAnswering",
        peer_arguments={},
        make_labels=make_answer_labels,
    ),
    "conll": Task(
        metric="entity F1",
        batch_size=32,
        read=read_sentences,
        cls="TokenClassifier",
        arguments={"sequence_length": 128},
        peer_cls="AutoModelForTokenClassification",
        peer_arguments={
            "id2label": dict(enumerate(CONLL_TAGS)),
            "label2id": {tag: i for i, tag in enumerate(CONLL_TAGS)},
        },
        make_labels=make_tag_labels,
    ),
}


def make_peer(options, folder):
    """A model of transformers with a new layer, which it also saves to a folder."""
    import transformers

    task = TASKS[options.task]
    rates = dict.fromkeys(("hidden_dropout_prob", "attention_probs_dropout_prob"), options.dropout)
    peer = getattr(transformers, task.peer_cls).from_pretrained(
        find_minilm(),
        # The eager formula drops probabilities by `torch.nn.functional.dropout`.
        attn_implementation="eager",
        **task.peer_arguments,
        **rates,
    )
    save_peer(peer, folder)
    return peer


def save_peer(peer, folder):
    import transformers

    peer.save_pretrained(folder)
    transformers.AutoTokenizer.from_pretrained(find_minilm()).save_pretrained(folder)


def open_ours(options, folder):
    """Our task with the weights of a folder of transformers, whose config.json has the dropout."""
    import keras_bert_suite as kbs

    task = TASKS[options.task]
    return getattr(kbs, task.cls).from_preset(folder, **task.arguments)


def train_ours(options, ours, x, y):
    """Trains ours; returns the batches that it saw, as (inputs, labels of the peer)."""
    import keras
    import torch

    import keras_bert_suite as kbs

    batches, train_step = [], ours.train_step

    def keep_batch(data):
        inputs, labels, weights = keras.utils.unpack_x_y_sample_weight(data)
        if options.same_masks:
            torch.manual_seed(len(batches))
        inputs = {name: a.clone() for name, a in inputs.items()}
        batches.append((inputs, TASKS[options.task].make_labels(labels.clone(), weights)))
        return train_step(data)

    ours.train_step = keep_batch
    ours.compile(kbs.AdamW(kbs.LinearWarmupDecay(options.learning_rate), bias_correction=True))
    ours.fit(x, y, batch_size=TASKS[options.task].batch_size, verbose=0)
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
    parser.add_argument("--task", choices=list(TASKS), default="stsb")
    parser.add_argument("--data", default=str(DATA))
    parser.add_argument("--num_rows", type=int, default=10000)
    parser.add_argument("--dev_rows", type=int, default=10000)
    parser.add_argument("--dropout", type=float, default=0.0)
    parser.add_argument("--same_masks", action="store_true")
    parser.add_argument("--learning_rate", type=float, default=1e-4)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    options = parser.parse_args()

    import keras

    task = TASKS[options.task]
    x, y, score = task.read(options)
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
    print(format_table(["seed", f"ours, {task.metric}", f"transformers, {task.metric}"], rows))


if __name__ == "__main__":
    main()
