"""A reranker on lists of different lengths: our losses, transformers' loop, and the search alone.

    python benchmarks/ranking.py --num_questions 300 --dev_questions 300 --seeds 0 1 2

A query is a question of SQuAD, its candidates are the sentences of its paragraph, and the relevant
sentence has the answer. Each paragraph has one question. Every side but the search starts from
MiniLM, with the same new layer for a seed, and takes the same batches of 8 lists for one epoch,
with AdamW, bias correction, and linear warm-up and decay. "transformers" has the listwise loss in a
plain PyTorch loop. Our `rank` scores all of them. "search" compares the vectors of MiniLM, which
sentence-transformers has trained on a billion pairs. Dropout is 0 unless `--dropout` says
otherwise, so that ours and the loop can be compared.
"""

import argparse
import os
import re
import tempfile
import time
from pathlib import Path

os.environ["KERAS_BACKEND"] = "torch"

import numpy as np
from harness.result_tables import describe_run, format_table
from peer_recipes import find_minilm, make_adamw, take_step
from same_batches import save_peer

import keras_bert_suite as kbs
from keras_bert_suite.training import RankingLoss

BATCH_SIZE = 8
KINDS = ("listwise", "pairwise", "pointwise")


def read_lists(path, number):
    """((questions, lists of sentences), lists of relevances), a question of each paragraph."""
    read, seen = kbs.read_squad(path), set()
    queries, lists, labels = [], [], []
    for question, context, answer in zip(*read.x, read.y, strict=True):
        sentences = list(re.finditer(r"\S.*?(?:[.!?](?=\s|$)|$)", context, re.S))
        begin = answer["answer_start"][0]
        if len(sentences) > 1 and context not in seen:
            seen.add(context)
            queries.append(question)
            lists.append([sentence[0] for sentence in sentences])
            labels.append([float(m.start() <= begin < m.end()) for m in sentences])
    return (queries[:number], lists[:number]), labels[:number]


def make_peer(seed, options, folder):
    import torch
    import transformers

    torch.manual_seed(seed)
    rates = dict.fromkeys(("hidden_dropout_prob", "attention_probs_dropout_prob"), options.dropout)
    peer = transformers.AutoModelForSequenceClassification.from_pretrained(
        find_minilm(), num_labels=1, num_hidden_layers=options.num_layers, **rates
    )
    save_peer(peer, folder)
    return peer


def train_ours(folder, kind, train, options):
    """(a trained ranker, the batches that it saw, processor seconds)."""
    import keras

    keras.utils.set_random_seed(0)
    ranker = kbs.TextRanker.from_preset(
        folder, sequence_length=options.sequence_length, dropout=options.dropout
    )
    batches, train_step = [], ranker.train_step

    def keep_batch(data):
        inputs, labels = data[:2]
        batches.append(({name: a.clone() for name, a in inputs.items()}, labels.clone()))
        return train_step(data)

    ranker.train_step = keep_batch
    optimizer = kbs.AdamW(kbs.LinearWarmupDecay(options.learning_rate), bias_correction=True)
    ranker.compile(optimizer, loss=RankingLoss(kind))
    begin = time.process_time()
    ranker.fit(*train, batch_size=BATCH_SIZE, verbose=0)
    return ranker, batches, time.process_time() - begin


def train_peer(peer, batches, options):
    """Processor seconds of a loop over the batches of ours."""
    import torch

    begin = time.process_time()
    adamw = make_adamw(peer, options.learning_rate, len(batches))
    peer.train()
    for inputs, labels in batches:
        logits = peer(
            input_ids=inputs["token_ids"],
            token_type_ids=inputs["segment_ids"],
            attention_mask=inputs["padding_mask"],
        ).logits.reshape(labels.shape)
        scores = torch.where(labels >= 0, logits, -torch.inf)
        take_step(peer, torch.nn.functional.cross_entropy(scores, labels.argmax(dim=1)), *adamw)
    return time.process_time() - begin


def score_search(dev):
    from keras_bert_suite.heads.vectors.scores import score_rankings

    embedder = kbs.TextEmbedder.from_preset(find_minilm())
    queries, lists = dev[0]
    vectors = np.split(
        embedder.predict([text for row in lists for text in row], verbose=0),
        np.cumsum(list(map(len, lists)))[:-1],
    )
    asked = embedder.predict(queries, verbose=0)
    hits = [embedder.search(q[None], v, len(v))[0] for q, v in zip(asked, vectors, strict=True)]
    relevant = [dict(enumerate(row)) for row in dev[1]]
    return score_rankings([[hit.id for hit in row] for row in hits], relevant)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default=str(Path("data") / "qa"))
    parser.add_argument("--num_questions", type=int, default=300)
    parser.add_argument("--dev_questions", type=int, default=300)
    parser.add_argument("--num_layers", type=int, default=6, help="of MiniLM that are kept")
    parser.add_argument("--sequence_length", type=int, default=96)
    parser.add_argument("--learning_rate", type=float, default=5e-5)
    parser.add_argument("--dropout", type=float, default=0.0)
    parser.add_argument("--kinds", nargs="+", default=list(KINDS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    options = parser.parse_args()
    train = read_lists(Path(options.data) / "train_partial_combined.json", options.num_questions)
    dev = read_lists(Path(options.data) / "squad_v1.1" / "dev-v1.1.json", options.dev_questions)
    sizes = [len(row) for row in train[1]]
    print(f"{len(sizes)} lists of {min(sizes)} to {max(sizes)} candidates, {sum(sizes)} pairs\n")
    results = [("search", "", score_search(dev), None)]
    for seed in options.seeds:
        for kind in options.kinds:
            with tempfile.TemporaryDirectory() as folder:
                peer = make_peer(seed, options, folder)
                ranker, batches, seconds = train_ours(folder, kind, train, options)
                results.append((kind, str(seed), ranker.score(*dev), seconds))
                if kind == "listwise":
                    seconds = train_peer(peer, batches, options)
                    save_peer(peer, folder)
                    twin = kbs.TextRanker.from_preset(
                        folder, sequence_length=options.sequence_length
                    )
                    results.append(("transformers", str(seed), twin.score(*dev), seconds))
            print(*results[-2:], flush=True)
    names = ("mrr", "recall@1", "ndcg@10")
    rows = [
        [side, seed, *(f"{scores[name]:.4f}" for name in names), f"{np.rint(seconds or 0):.0f}"]
        for side, seed, scores, seconds in results
    ]
    print(f"\n{describe_run({}, 1, ['torch', 'transformers'])}\n")
    print(format_table(["side", "seed", *names, "processor seconds"], rows))


if __name__ == "__main__":
    main()
