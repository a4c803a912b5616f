"""Three directions: ELMo, GPT and BERT on one corpus.

    python examples/compare_directions.py

`see_directions.py` shows what a token sees in each. Here each learns for as many seconds from
addresses of presidents: ELMo and GPT to guess the next token, BERT the masked tokens. Then small
heads are trained on their features, and the encoders stay as they are. So short a run is no
verdict, and one step more may change the order. `benchmarks/results/objectives.md` has 3,000 steps
of GPT's and BERT's objective, three seeds and encoders that are fine-tuned. A run takes about 4
minutes of CPU time with PyTorch.
"""

import gzip
import json
import time
from pathlib import Path

import keras

import keras_bert_suite as kbs
from keras_bert_cli.plots import plot_heat_map
from keras_bert_suite.corpus import open_corpus, prepare_corpus
from keras_bert_suite.pretraining import PretrainingBatches

keras.utils.set_random_seed(0)
data = Path(__file__).parent / "data"
with gzip.open(data / "inaugural.jsonl.gz", "rt", encoding="utf-8") as file:
    vocabulary = kbs.train_vocabulary([json.loads(line)["text"] for line in file], size=3000)
tokenizer = kbs.WordPieceTokenizer(vocabulary)
prepare_corpus(data / "inaugural.jsonl.gz", tokenizer, "directions_shards")
packer = kbs.SegmentPacker(tokenizer, 64)

size = {"vocabulary_size": len(vocabulary), "dropout": 0.0, "initializer_range": 0.05}
elmo = kbs.ElmoBackbone.from_size("tiny", **size)
gpt = kbs.BertBackbone.from_size("tiny", **size, attention_pattern="left_to_right")
bert, untrained = (kbs.BertBackbone.from_size("tiny", **size) for _ in range(2))


def pretrain(task, targets, seconds=8):
    """Trains the task for some seconds of the processor, its compilation left out."""
    task.compile(kbs.AdamW(1e-3))
    corpus = open_corpus("directions_shards")
    batches = PretrainingBatches(corpus, targets, 64, 32, mode="full_sentences")
    task.fit(batches, steps_per_epoch=5, verbose=0)
    begin = time.process_time()
    task.fit(batches, steps_per_epoch=5, verbose=0)
    steps = max(5, round(5 * seconds / (time.process_time() - begin)))
    history = task.fit(batches, steps_per_epoch=steps, verbose=0).history
    print(f"{type(task.backbone).__name__}: {steps} steps, loss {history['loss'][-1]:.2f}")


pretrain(kbs.ElmoPretrainer(elmo), kbs.BidirectionalTargets(tokenizer))
pretrain(kbs.Pretrainer(gpt, next_sentence=False), kbs.NextTokenTargets(tokenizer))
pretrain(kbs.Pretrainer(bert, next_sentence=False), kbs.TokenMasker(tokenizer, max_predictions=10))

parts = ("train", "test")
sets = {"problem_type": "multi_label_classification"}
sentences, emotions, entities = (
    [kbs.read_table(data / f"sentences_{part}.tsv", "sentence", "label") for part in parts],
    [kbs.read_table(data / f"emotions_{part}.tsv", "text", "labels", **sets) for part in parts],
    [kbs.read_conll(data / f"entities_{part}.txt", scheme="BIO") for part in parts],
)
probes = {
    "sentiment": (kbs.TextClassifier, sentences, "accuracy", {"pooling": "mean"}),
    "emotions": (kbs.TextClassifier, emotions, "macro_f1", {"pooling": "mean", **sets}),
    "entities": (kbs.TokenClassifier, entities, "f1", {}),
}
encoders = {"not trained": untrained, "ELMo": elmo, "GPT": gpt, "BERT": bert}
table = []
for name, backbone in encoders.items():
    table.append([])
    for head, (train, test), score, arguments in probes.values():
        train = train.take(800)
        names = {"label_names": train.label_names, "preprocessor": packer}
        task = head(backbone, **names, **arguments)
        task.fit_on_features(train.x, train.y, epochs=5, verbose=0)
        table[-1].append(task.score(test.x, test.y)[score])
    print(f"{name:11}", *(f"{p} {s:.3f}" for p, s in zip(probes, table[-1], strict=True)), sep="  ")

plot_heat_map(table, list(encoders), list(probes), "scores of the probes", "probes.png")
