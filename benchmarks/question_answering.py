"""Questions: exact match and F1 of our QuestionAnswerer and of transformers, same recipe.

    python benchmarks/question_answering.py --num_rows 64 --dev_rows 32      # to see that it runs
    python benchmarks/question_answering.py --epochs 2 --seeds 0 1 2

Every side fine-tunes the same MiniLM (six layers, 384 wide, uncased) on the same first questions of
a part of SQuAD 1.1's training set, and answers the first questions of its dev set. Rows of 384
tokens, windows with a stride of 128, batches of `--batch_size` windows of similar length, AdamW
with bias correction, weight decay 0.01, gradients clipped to norm 1, linear warm-up over a tenth of
the steps and Google's linear decay. The peer packs, labels and decodes as the script run_qa.py of
transformers does: its stride of 128 is the overlap of windows, and it takes the best of 20 first
and 20 last tokens of each window. Each side runs in a process of its own. The count of the official
script scores them all. The data is the folder `--data`, with train_partial_combined.json and
squad_v1.1/dev-v1.1.json.
"""

import argparse
import sys
import time
from pathlib import Path

from harness.result_tables import (
    COST,
    describe_run,
    describe_seeds,
    format_cells,
    format_table,
)
from harness.side_flags import BACKENDS, list_pairs, parse_training_flags
from harness.side_runs import report, run_in_turn
from peer_recipes import find_minilm, find_torch_device, make_adamw, take_step

DATA = Path("data") / "qa"
SEQUENCE_LENGTH, STRIDE = 384, 128
NUM_BEST, MAX_ANSWER_LENGTH = 20, 30


def run_ours(train, dev, options):
    import keras

    import keras_bert_suite as kbs

    keras.utils.set_random_seed(options.seed)
    answerer = kbs.QuestionAnswerer.from_preset(
        find_minilm(), sequence_length=SEQUENCE_LENGTH, stride=STRIDE, skip="span_labeler/.*"
    )
    answerer.compile(kbs.AdamW(kbs.LinearWarmupDecay(options.learning_rate), bias_correction=True))
    begin = time.perf_counter()
    answerer.fit(train.x, train.y, batch_size=options.batch_size, epochs=options.epochs, verbose=0)
    seconds = time.perf_counter() - begin
    answers = answerer.predict(dev.x, batch_size=options.batch_size, verbose=0)
    return seconds, [answer.text for answer in answers]


def run_transformers(train, dev, options):
    import numpy as np
    import torch
    from transformers import AutoModelForQuestionAnswering, AutoTokenizer

    from keras_bert_suite.data.row_orders import shuffled_by_length

    torch.manual_seed(options.seed)
    size = options.batch_size
    tokenizer = AutoTokenizer.from_pretrained(find_minilm())
    model = AutoModelForQuestionAnswering.from_pretrained(find_minilm())
    device = find_torch_device()
    model.to(device)

    def cut_windows(rows):
        """The windows of rows, and the row of each."""
        encoded = tokenizer(
            *rows.x,
            truncation="only_second",
            max_length=SEQUENCE_LENGTH,
            stride=STRIDE,
            return_overflowing_tokens=True,
            return_offsets_mapping=True,
        )
        return encoded, encoded["overflow_to_sample_mapping"]

    def pad(encoded, places):
        names = ("input_ids", "token_type_ids", "attention_mask")
        windows = [{name: encoded[name][place] for name in names} for place in places]
        return tokenizer.pad(windows, return_tensors="pt").to(device)

    def place_answer(encoded, window, answers):
        """The first and last token of the first answer, or 0 and 0."""
        start = answers["answer_start"][0]
        end = start + len(answers["text"][0])
        tokens = [
            place
            for place, (segment, (first, last)) in enumerate(
                zip(encoded.sequence_ids(window), encoded["offset_mapping"][window], strict=True)
            )
            if segment == 1 and first < end and last > start
        ]
        of_context = [p for p, s in enumerate(encoded.sequence_ids(window)) if s == 1]
        offsets = encoded["offset_mapping"][window]
        if not tokens or offsets[of_context[0]][0] > start or offsets[of_context[-1]][1] < end:
            return 0, 0
        return tokens[0], tokens[-1]

    begin = time.perf_counter()
    encoded, rows = cut_windows(train)
    labels = [place_answer(encoded, w, train.y[row]) for w, row in enumerate(rows)]
    lengths = [len(ids) for ids in encoded["input_ids"]]
    adamw = make_adamw(model, options.learning_rate, -(-len(lengths) // size) * options.epochs)
    # Rows of similar length share a batch, as on our side.
    order = shuffled_by_length(lengths, size, seed=options.seed)
    model.train()
    for epoch in range(options.epochs):
        for batch in np.array_split(order(epoch), range(size, len(lengths), size)):
            starts, ends = torch.tensor([labels[place] for place in batch], device=device).T
            inputs = pad(encoded, batch)
            loss = model(**inputs, start_positions=starts, end_positions=ends).loss
            take_step(model, loss, *adamw)
    seconds = time.perf_counter() - begin

    model.eval()
    encoded, rows = cut_windows(dev)
    best = [(-np.inf, "")] * len(dev)
    order = sorted(range(len(rows)), key=lambda place: len(encoded["input_ids"][place]))
    with torch.inference_mode():
        for begin_of_batch in range(0, len(order), size):
            places = order[begin_of_batch : begin_of_batch + size]
            outputs = model(**pad(encoded, places))
            starts, ends = (x.cpu().numpy() for x in (outputs.start_logits, outputs.end_logits))
            for i, place in enumerate(places):
                scores = starts[i], ends[i]
                firsts, lasts = (np.argsort(-column)[:NUM_BEST] for column in scores)
                segments, offsets = encoded.sequence_ids(place), encoded["offset_mapping"][place]
                for first in firsts:
                    for last in lasts:
                        if not first <= last < min(first + MAX_ANSWER_LENGTH, len(segments)):
                            continue
                        if segments[first] != 1 or segments[last] != 1:
                            continue
                        text = dev.x[1][rows[place]][offsets[first][0] : offsets[last][1]]
                        found = (scores[0][first] + scores[1][last], text)
                        best[rows[place]] = max(best[rows[place]], found, key=lambda x: x[0])
    return seconds, [text for _, text in best]


SIDES = {"ours": run_ours, "transformers": run_transformers}


def run_side(side, options):
    """Measures one side in this process and prints the figures as JSON."""
    import keras_bert_suite as kbs
    from keras_bert_suite.heads.questions.scores import score_answers

    folder = Path(options.data)
    train = kbs.read_squad(folder / "train_partial_combined.json").take(options.num_rows)
    dev = kbs.read_squad(folder / "squad_v1.1" / "dev-v1.1.json").take(options.dev_rows)
    seconds, answers = SIDES[side](train, dev, options)
    scores = score_answers([row["text"] for row in dev.y], answers)
    figures = {name: scores[name] for name in ("exact_match", "f1")}
    report({"seconds": seconds, **figures})


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default=str(DATA))
    parser.add_argument("--num_rows", type=int, default=8478)
    parser.add_argument("--dev_rows", type=int, default=10570)
    parser.add_argument("--batch_size", type=int, default=12)
    options = parse_training_flags(parser, SIDES, BACKENDS, 2, 1e-4)
    if options.child:
        run_side(options.child, options)
        return

    pairs = list_pairs(options.sides, options.backends, peers=["transformers"])
    measured = run_in_turn(sys.argv, pairs, [["--seed", seed] for seed in options.seeds])
    scores = ("exact_match", "f1")
    rows = [
        [
            *pair,
            *(cell for score in scores for cell in describe_seeds(figures[score], 2)),
            *format_cells(figures, COST),
        ]
        for pair, figures in measured.items()
    ]
    print(f"{describe_run(measured, len(options.seeds), ['transformers'])}\n")
    print("Answers to the dev questions; seconds of the training.\n")
    spread = ("mean", "spread")
    headings = ["side", "backend", "exact match of each seed", *spread, "F1 of each seed", *spread]
    print(format_table([*headings, *COST], rows))


if __name__ == "__main__":
    main()
