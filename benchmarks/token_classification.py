"""Named entities: the entity F1 of our heads and of transformers, same recipe.

    python benchmarks/token_classification.py                      # 3,000 sentences, 1 epoch
    python benchmarks/token_classification.py --num_sentences 14041 --dev_sentences 3453 \\
        --files eng.train eng.testa eng.testb --epochs 3 --seeds 0 1 2 \\
        --heads softmax crf global_pointer
    python benchmarks/token_classification.py --sides ours --heads softmax crf global_pointer \\
        --data data/ner/resume_zh --files train.char.bmes dev.char.bmes --scheme BMES \\
        --checkpoint CHINESE_BERT --num_sentences 3821 --dev_sentences 463 --epochs 3

Every side fine-tunes the same MiniLM (six layers, 384 wide, uncased) on the same first sentences of
CoNLL-2003 in English, whose IOB1 tags are turned into BIO. Batches of 32 sentences of random order,
at most 128 tokens, labels on the first token of a word, AdamW with bias correction, weight decay
0.01, gradients clipped to norm 1, linear warm-up over a tenth of the steps and Google's linear
decay. The CRF's own weights have 100 times the learning rate. The head global_pointer is
`EfficientGlobalPointer`. Each side runs in a process of its own; entities count as found if type,
start and end are right. The data is the folder of CoNLL's eng.train and eng.testa, `--data`.
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

DATA = Path("data") / "ner" / "conll2003_en"
BATCH_SIZE, SEQUENCE_LENGTH = 32, 128
SIDES, HEADS = ["ours", "transformers"], ["softmax", "crf", "global_pointer"]


def run_ours(head, train, rows, label_names, options):
    import keras

    import keras_bert_suite as kbs
    from keras_bert_suite.heads.spans.labels import tags_to_spans

    keras.utils.set_random_seed(options.seed)
    task_cls, labels, multipliers = kbs.TokenClassifier, train.y, []
    if head == "crf":
        task_cls, multipliers = kbs.CrfTokenClassifier, [("(^|/)crf/", 100.0)]
    elif head == "global_pointer":
        task_cls, labels = kbs.EntitySpanClassifier, list(map(tags_to_spans, train.y))
        label_names = sorted({kind for row in labels for _, _, kind in row})
    task = task_cls.from_preset(
        options.checkpoint or find_minilm(),
        label_names=label_names,
        sequence_length=SEQUENCE_LENGTH,
    )
    schedule = kbs.LinearWarmupDecay(options.learning_rate)
    task.compile(kbs.AdamW(schedule, bias_correction=True, rate_multipliers=multipliers))
    begin = time.perf_counter()
    task.fit(train.x, labels, batch_size=BATCH_SIZE, epochs=options.epochs, verbose=0)
    seconds = time.perf_counter() - begin
    found = task.predict(rows, batch_size=BATCH_SIZE, verbose=0)
    return seconds, [[(e.start, e.end, e.label) for e in row] for row in found]


def run_transformers(train, rows, label_names, options):
    import numpy as np
    import torch
    from transformers import AutoModelForTokenClassification, AutoTokenizer

    from keras_bert_suite.data.row_orders import shuffled_by_length
    from keras_bert_suite.heads.spans.labels import tags_to_spans

    checkpoint, epochs = options.checkpoint or find_minilm(), options.epochs

    torch.manual_seed(options.seed)
    tokenizer = AutoTokenizer.from_pretrained(checkpoint)
    model = AutoModelForTokenClassification.from_pretrained(checkpoint, num_labels=len(label_names))
    device = find_torch_device()
    model.to(device)
    steps = -(-len(train) // BATCH_SIZE) * epochs
    adamw = make_adamw(model, options.learning_rate, steps)

    def pack(rows):
        return tokenizer(
            rows,
            is_split_into_words=True,
            truncation=True,
            max_length=SEQUENCE_LENGTH,
            padding=True,
            return_tensors="pt",
        ).to(device)

    def find_first_tokens(packed, number):
        """For each row a dict, number of a word -> place of its first token."""
        rows = []
        for row in range(number):
            places = {}
            for place, word in enumerate(packed.word_ids(row)):
                if word is not None:
                    places.setdefault(word, place)
            rows.append(places)
        return rows

    lengths = [len(row) for row in tokenizer(train.x, is_split_into_words=True)["input_ids"]]
    # Rows of similar length share a batch, as on our side.
    order = shuffled_by_length(lengths, BATCH_SIZE, seed=options.seed)

    begin = time.perf_counter()
    model.train()
    for epoch in range(epochs):
        cuts = range(BATCH_SIZE, len(lengths), BATCH_SIZE)
        for batch in np.array_split(order(epoch), cuts):
            packed = pack([train.x[row] for row in batch])
            labels = torch.full(packed["input_ids"].shape, -100, device=device)
            for i, places in enumerate(find_first_tokens(packed, len(batch))):
                for word, place in places.items():
                    labels[i, place] = label_names.index(train.y[batch[i]][word])
            take_step(model, model(**packed, labels=labels).loss, *adamw)
    seconds = time.perf_counter() - begin

    model.eval()
    tags = [["O"] * len(row) for row in rows]
    order = sorted(range(len(rows)), key=lambda row: len(rows[row]))
    with torch.inference_mode():
        for start in range(0, len(order), BATCH_SIZE):
            batch = order[start : start + BATCH_SIZE]
            packed = pack([rows[row] for row in batch])
            answers = model(**packed).logits.argmax(-1).cpu().numpy()
            for i, places in enumerate(find_first_tokens(packed, len(batch))):
                for word, place in places.items():
                    tags[batch[i]][word] = label_names[answers[i, place]]
    return seconds, list(map(tags_to_spans, tags))


def run_side(side, options):
    """Measures one side in this process and prints the figures as JSON."""
    import keras_bert_suite as kbs
    from keras_bert_suite.heads.spans.labels import tags_to_spans
    from keras_bert_suite.heads.tags.scores import score_spans

    train, *parts = (
        kbs.read_conll(Path(options.data) / file, scheme=options.scheme).take(
            options.dev_sentences if number else options.num_sentences
        )
        for number, file in enumerate(options.files)
    )
    arguments = train, [row for part in parts for row in part.x], train.label_names, options
    if side == "transformers":
        seconds, found = run_transformers(*arguments)
    else:
        seconds, found = run_ours(side.removeprefix("ours, "), *arguments)
    figures = {"seconds": seconds}
    for file, part in zip(options.files[1:], parts, strict=True):
        spans, found = found[: len(part)], found[len(part) :]
        figures[f"F1, {file}"] = score_spans(map(tags_to_spans, part.y), spans)["f1"]
    report(figures)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--heads", nargs="+", default=["softmax"], choices=HEADS)
    parser.add_argument("--checkpoint", default="", help="Default: MiniLM.")
    parser.add_argument("--files", nargs="+", default=["eng.train", "eng.testa"])
    parser.add_argument("--scheme", default="BIO", help="of the tags that are learned")
    parser.add_argument("--data", default=str(DATA))
    parser.add_argument("--num_sentences", type=int, default=3000)
    parser.add_argument("--dev_sentences", type=int, default=1000)
    options = parse_training_flags(parser, SIDES, BACKENDS, 1, 1e-4)
    if len(options.files) < 2:
        parser.error("--files needs a file to train on and one or more to answer.")
    if options.child:
        run_side(options.child, options)
        return

    sides = [
        name
        for side in options.sides
        for name in ([f"ours, {head}" for head in options.heads] if side == "ours" else [side])
    ]
    pairs = list_pairs(sides, options.backends, peers=["transformers"])
    measured = run_in_turn(sys.argv, pairs, [["--seed", seed] for seed in options.seeds])
    rows = [
        [*pair, file, *describe_seeds(figures[f"F1, {file}"]), *format_cells(figures, COST)]
        for file in options.files[1:]
        for pair, figures in measured.items()
    ]
    print(f"{describe_run(measured, len(options.seeds), ['transformers'])}\n")
    print("Entities of the sentences of a file; seconds of the training.\n")
    headings = ["side", "backend", "file", "entity F1 of each seed", "mean", "spread"]
    print(format_table([*headings, *COST], rows))


if __name__ == "__main__":
    main()
