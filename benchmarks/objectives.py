"""What tiny models learn from the same text by each objective of pretraining.

    keras-bert vocab --input 'enwiki_small/*.jsonl' --output vocab.txt --size 2000
    keras-bert prepare --input 'enwiki_small/*.jsonl' --vocab vocab.txt --output shards
    python benchmarks/objectives.py --corpus shards --data data --seeds 0 1 2 --at_once 2
    python benchmarks/objectives.py --corpus shards --data data --seeds 0 1 2 --minutes 20 \\
        --sides none mlm 'left to right' elmo --figure directions.png

Every side pretrains BERT-tiny (two layers, 128 wide) on as many tokens: `--steps` batches of 32
rows of 64 tokens, AdamW with linear warm-up over a tenth of the steps and linear decay. So small a
model learns most from few steps with few pieces in its vocabulary, without dropout, and with larger
initial weights (0.05) than BERT's (`results/pretraining_run.md`). "none" is not pretrained. "mlm,
as long as rtd" takes as many steps as fit into the time of replaced-token detection; the time of a
step of both is measured in the same process. With `--minutes` every side takes as many steps as fit
into so much time of the processor. "elmo" is a bidirectional language model of LSTMs, two in each
direction with 256 units, whose states are 128 wide. Times are seconds of the processor, so that
runs side by side do not lengthen them. Then each encoder is fine-tuned on three tasks, with new
heads: SST-2, STS-B and CoNLL-2003, the first `--num_rows` rows of each, dev files. `TextClassifier`
has the mean of all tokens as its vector on every side, since few objectives train the pooler, and
[CLS] sees nothing from left to right. `--data` is a folder with glue/SST-2, glue/STS-B and
ner/conll2003_en.
"""

import argparse
import dataclasses
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.result_tables import describe_run, describe_seeds, format_figures, format_table
from harness.side_flags import list_pairs
from harness.side_runs import report, run_in_turn

DATA = Path("data")
LENGTH, BATCH_SIZE, PREDICTIONS, LEARNING_RATE = 64, 32, 10, 1e-3
#: Probe -> its title in a figure.
TASKS = {"sst2": "SST-2, accuracy", "stsb": "STS-B, Pearson", "conll2003": "CoNLL, F1"}
#: Of sides in a figure. Paul Tol chose them so that the colour-blind tell them apart.
COLORS = ["#777777", "#4477aa", "#cc3311", "#ddaa33", "#009988"]
#: Steps whose time is measured, after as many that are not.
TIMED_STEPS = 10


def mask_tokens(tokenizer, **arguments):
    import keras_bert_suite as kbs

    return kbs.TokenMasker(tokenizer, max_predictions=PREDICTIONS, **arguments)


def mask_spans(tokenizer):
    return mask_tokens(tokenizer, unit="span")


def replace_tokens(tokenizer):
    return mask_tokens(tokenizer, mask_token_rate=0.85, random_token_rate=0.0)


def predict_next(tokenizer):
    import keras_bert_suite as kbs

    return kbs.NextTokenTargets(tokenizer)


def predict_both_neighbors(tokenizer):
    import keras_bert_suite as kbs

    return kbs.BidirectionalTargets(tokenizer)


def mix_language_models(tokenizer):
    import keras_bert_suite as kbs

    return kbs.LanguageModelMixture(mask_tokens(tokenizer))


@dataclasses.dataclass(frozen=True)
class Objective:
    """How a side is pretrained.

    Attributes:
        mode: str, as for `PretrainingBatches`.
        make_masker: function, tokenizer -> masker of the batches.
        task: str, the class of the task.
        arguments: dict, of the task.
        backbone: str, the class of the backbone.
        backbone_arguments: dict.
    """

    mode: str = "doc_sentences"
    make_masker: Callable = mask_tokens
    task: str = "Pretrainer"
    arguments: dict[str, Any] = dataclasses.field(default_factory=lambda: {"next_sentence": False})
    backbone: str = "BertBackbone"
    backbone_arguments: dict[str, Any] = dataclasses.field(default_factory=dict)


PAIRS: dict[str, Any] = {"arguments": {}}
RTD = Objective(
    make_masker=replace_tokens,
    task="ElectraPretrainer",
    arguments={"generator_width": 0.5},
    backbone="ElectraBackbone",
)
OBJECTIVES = {
    "none": None,
    "mlm": Objective(),
    "mlm + nsp": Objective("pairs", **PAIRS),
    "mlm + sop": Objective("sop", **PAIRS),
    "span + sbo": Objective(
        make_masker=mask_spans, arguments={"next_sentence": False, "span_boundary": True}
    ),
    "rtd": RTD,
    "left to right": Objective(
        make_masker=predict_next, backbone_arguments={"attention_pattern": "left_to_right"}
    ),
    "elmo": Objective(
        make_masker=predict_both_neighbors,
        task="ElmoPretrainer",
        arguments={},
        backbone="ElmoBackbone",
    ),
    "unilm": Objective(
        "pairs",
        mix_language_models,
        backbone_arguments={"attention_pattern": "unilm", "num_segments": 6},
        **PAIRS,
    ),
    "mlm, as long as rtd": Objective(),
}


def make_pretraining(objective, corpus, seed, steps):
    """The compiled task of an objective, and its batches."""
    import keras

    import keras_bert_suite as kbs
    from keras_bert_suite.corpus import open_corpus, read_tokenizer
    from keras_bert_suite.pretraining import PretrainingBatches

    keras.utils.set_random_seed(seed)
    tokenizer = read_tokenizer(corpus)
    backbone = getattr(kbs, objective.backbone).from_size(
        "tiny",
        vocabulary_size=tokenizer.vocabulary_size(),
        dropout=0.0,
        initializer_range=0.05,
        **objective.backbone_arguments,
    )
    task = getattr(kbs, objective.task)(backbone, **objective.arguments)
    schedule = kbs.LinearWarmupDecay(LEARNING_RATE, total_steps=steps, warmup_ratio=0.1)
    task.compile(kbs.AdamW(schedule))
    batches = PretrainingBatches(
        open_corpus(corpus),
        objective.make_masker(tokenizer),
        LENGTH,
        BATCH_SIZE,
        mode=objective.mode,
        seed=seed,
    )
    return task, batches


def time_step(objective, corpus):
    """Seconds of the processor for a step, the least of three: other work makes them longer."""
    task, batches = make_pretraining(objective, corpus, seed=0, steps=1000)
    fit = dict(steps_per_epoch=TIMED_STEPS, verbose=0)
    task.fit(batches, epochs=1, **fit)
    seconds = []
    for _ in range(3):
        started = time.process_time()
        task.fit(batches, epochs=1, **fit)
        seconds.append(time.process_time() - started)
    return min(seconds) / TIMED_STEPS


def pretrain(name, corpus, seed, steps, minutes=None):
    """The encoder of a side, and what its pretraining took.

    Args:
        name: str, a key of `OBJECTIVES`.
        corpus: str, the folder.
        seed: int.
        steps: int, the steps without `minutes`.
        minutes: float, the time of the processor instead, or None.

    Returns:
        (backbone, dict of steps, seconds and the last loss).
    """
    objective = OBJECTIVES[name]
    if objective is None:
        task, _ = make_pretraining(OBJECTIVES["mlm"], corpus, seed, steps)
        return task.backbone, {"steps": 0, "seconds": 0.0, "loss": None}
    if name == "mlm, as long as rtd":
        steps = round(steps * time_step(RTD, corpus) / time_step(objective, corpus))
    if minutes is not None:
        steps = max(10, round(60 * minutes / time_step(objective, corpus)))
    task, batches = make_pretraining(objective, corpus, seed, steps)
    started = time.process_time()
    history = task.fit(batches, epochs=10, steps_per_epoch=steps // 10, verbose=0).history
    seconds = time.process_time() - started
    loss = history.get("mlm_loss", history["loss"])[-1]
    return task.backbone, {"steps": steps, "seconds": seconds, "loss": loss}


def probe(backbone, corpus, data, num_rows, seed):
    """dict, task -> its score on the dev file, of the encoder fine-tuned on it."""
    import keras

    import keras_bert_suite as kbs
    from keras_bert_suite.corpus import read_tokenizer
    from keras_bert_suite.data.readers.glue import GLUE_TASKS

    packer = kbs.SegmentPacker(read_tokenizer(corpus), LENGTH)
    weights = backbone.get_weights()

    def train(task_class, rows, labels, **arguments):
        keras.utils.set_random_seed(seed)
        encoder = type(backbone).from_config(backbone.get_config())
        encoder.set_weights(weights)
        task = task_class(encoder, preprocessor=packer, **arguments)
        task.compile(kbs.AdamW(kbs.LinearWarmupDecay(5e-4, warmup_ratio=0.1)))
        task.fit(rows, labels, batch_size=32, epochs=3, verbose=0)
        return task

    scores = {}
    for name, metric in (("sst2", "accuracy"), ("stsb", "pearson")):
        training, dev = (
            kbs.read_glue(data / "glue", name, f"{part}.tsv") for part in ("train", "dev")
        )
        training = training.take(num_rows)
        classifier = train(
            kbs.TextClassifier,
            training.x,
            training.y,
            label_names=training.label_names,
            problem_type=GLUE_TASKS[name].problem_type,
            pooling=kbs.MeanPooling(),
        )
        scores[name] = classifier.score(dev.x, dev.y)[metric]
    folder = data / "ner" / "conll2003_en"
    training, dev = (kbs.read_conll(folder / file) for file in ("eng.train", "eng.testa"))
    training = training.take(num_rows)
    names = {"label_names": training.label_names}
    tagger = train(kbs.TokenClassifier, training.x, training.y, **names)
    scores["conll2003"] = tagger.score(dev.x, dev.y)["f1"]
    return {name: float(score) for name, score in scores.items()}


def draw_scores(measured, path):
    """Draws the score of each seed as a dot, and their mean as a line, a panel for each task.

    Args:
        measured: dict from `side_runs.run_in_turn`.
        path: of the PNG.
    """
    from keras_bert_suite.pictures import Picture

    figure = Picture(figsize=(6, 3), layout="constrained")
    names = [side for side, _ in measured]
    for axes, (task, title) in zip(figure.subplots(1, len(TASKS)), TASKS.items(), strict=True):
        for place, figures in enumerate(measured.values()):
            scores, color = figures[task], COLORS[place % len(COLORS)]
            mean = sum(scores) / len(scores)
            axes.plot([place - 0.35, place + 0.35], [mean, mean], linewidth=3, color=color)
            axes.scatter([place] * len(scores), scores, s=30, color=color, zorder=3)
        axes.set_xticks(range(len(names)), names, rotation=45, ha="right")
        axes.set_title(title, fontsize="medium")
        axes.set_xlim(-0.6, len(names) - 0.4)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", color="#dddddd")
        axes.set_axisbelow(True)
    figure.write(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--corpus", required=True, help="folder that keras-bert prepare wrote")
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--backend", default="tensorflow")
    parser.add_argument("--sides", nargs="+", default=list(OBJECTIVES), choices=list(OBJECTIVES))
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--minutes", type=float, help="of the processor, instead of --steps")
    parser.add_argument("--num_rows", type=int, default=4000)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--at_once", type=int, default=1, help="processes side by side")
    parser.add_argument("--finished", help="file of finished runs, which are not repeated")
    parser.add_argument("--figure", help="PNG of the scores, to be written")
    parser.add_argument("--seed", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        asked = (options.corpus, options.seed, options.steps, options.minutes)
        backbone, cost = pretrain(options.child, *asked)
        scores = probe(backbone, options.corpus, options.data, options.num_rows, options.seed)
        report({**cost, **scores})
        return

    sides = list_pairs(options.sides, [options.backend], peers=[])
    # A finished run is known by all that decides its figures.
    sizes = ["--steps", options.steps, "--num_rows", options.num_rows]
    if options.minutes is not None:
        sizes += ["--minutes", options.minutes]
    rounds = [["--seed", seed, *sizes] for seed in options.seeds]
    measured = run_in_turn(sys.argv, sides, rounds, options.at_once, options.finished)
    print(describe_run(measured, 1))
    print(f"\n{BATCH_SIZE} x {LENGTH} tokens in a step.\n")
    costs = {"steps": "{:.0f}", "seconds": "{:.0f}", "loss": "{:.3f}"}
    rows = [
        [side, *(format_figures(figures[name], form) for name, form in costs.items())]
        for (side, _), figures in measured.items()
    ]
    print(format_table(["objective", *costs], rows) + "\n")
    rows = [
        [side, *(" ± ".join(filter(None, describe_seeds(figures[t], 3)[1:])) for t in TASKS)]
        for (side, _), figures in measured.items()
    ]
    print(format_table(["objective", *TASKS], rows))
    if options.figure:
        draw_scores(measured, options.figure)


if __name__ == "__main__":
    main()
