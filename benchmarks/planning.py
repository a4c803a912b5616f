"""Memory and time to the first batch of corpora of 1, 10 and 100 billion tokens, and their mixing.

    python benchmarks/planning.py --rounds 3

The corpora are simulated. A few shards are written, with random lengths and random tokens, and the
folder of a corpus has many links to each of them. So every shard is opened, checked and read as in
a real corpus, but from the memory of the system. The documents of the first half of a corpus are
long, and those of its second half are short. A fiftieth of the documents is held out. "CPU" is the
time of the processor, for a machine that does other work, too: until the first batch, and for
batches that one thread makes.

Side "blocks" shuffles 8 blocks of a million sentences together, which is the default. Side "whole"
shuffles the whole corpus, as former versions did. It takes 1 billion tokens only, since its memory
grows with the corpus. Each side makes some batches, and then goes on to its next plan.

The tables of mixing look at batches of the first sections, and compare them with rows drawn from
the whole corpus.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from harness.machine_figures import find_memory
from harness.result_tables import describe_run, format_columns, format_table
from harness.side_flags import parse_flags
from harness.side_runs import report, run_in_turn

LENGTH, PREDICTIONS, BATCH_SIZE = 128, 20, 256
VOCABULARY_SIZE = 30522

#: Shards that are written. Half have long documents, and half have short ones.
SHARDS_WRITTEN = 8
SENTENCES_PER_SHARD = 300_000
#: Of the logarithm of the sentences of a document: its mean and its standard deviation.
LONG, SHORT = (3.3, 1.0), (1.2, 0.8)

BATCHES_TIMED = 100
STRETCHES_MIXED, ROWS_MIXED = 4, 200 * BATCH_SIZE

COLUMNS = {
    **dict.fromkeys(("open, s", "hold out, s", "plan, s", "first batch, s", "CPU, s"), "{:.1f}"),
    "batches/s of CPU": "{:.1f}",
    **dict.fromkeys(("memory, GB", "after imports"), "{:.2f}"),
}


def draw_lengths(rng, mean, deviation):
    """Draws a shard: the tokens of each sentence, and the sentences of each document."""
    lengths = np.clip(rng.gamma(2, 12, SENTENCES_PER_SHARD), 1, 250).astype("uint8")
    counts = np.maximum(1, rng.lognormal(mean, deviation, SENTENCES_PER_SHARD)).astype("int64")
    ends = np.cumsum(counts)
    ends = np.append(ends[ends < SENTENCES_PER_SHARD], SENTENCES_PER_SHARD)
    return lengths, np.diff(ends, prepend=0).astype("uint16")


def write_shard(folder, number, rng):
    """Writes a shard of random tokens, and returns its summary as `ShardWriter` makes it."""
    from array_record.python.array_record_module import ArrayRecordWriter

    from keras_bert_suite.corpus.token_shards import WRITER_OPTIONS, describe_file, shard_path

    lengths, counts = draw_lengths(rng, *(LONG if number < SHARDS_WRITTEN // 2 else SHORT))
    tokens = rng.integers(1000, VOCABULARY_SIZE, lengths.sum(dtype="int64"), "uint16")
    ends = np.cumsum(lengths, dtype="int64")[np.cumsum(counts, dtype="int64") - 1]
    paths = {kind: shard_path(folder, number, kind) for kind in ("tokens", "lengths")}
    writer = ArrayRecordWriter(str(paths["tokens"]), WRITER_OPTIONS)
    for document in np.split(tokens, ends[:-1]):
        writer.write(document.tobytes())
    writer.close()
    np.savez_compressed(paths["lengths"], sentence_lengths=lengths, document_sentences=counts)
    counted = {"documents": len(counts), "sentences": len(lengths), "tokens": len(tokens)}
    files = {kind: describe_file(path) for kind, path in paths.items()}
    return {**counted, "files": files}


def link_corpus(folder, written, summaries, num_tokens):
    """Makes the folder of a corpus of about `num_tokens` tokens."""
    from keras_bert_suite.corpus.preparation_plan import MANIFEST_FILE
    from keras_bert_suite.corpus.token_shards import shard_path

    folder.mkdir()
    num_shards = round(num_tokens / np.mean([summary["tokens"] for summary in summaries]))
    half = SHARDS_WRITTEN // 2
    sources = [(half if 2 * n >= num_shards else 0) + n % half for n in range(num_shards)]
    for number, source in enumerate(sources):
        for kind in ("tokens", "lengths"):
            os.link(shard_path(written, source, kind), shard_path(folder, number, kind))
    manifest = {"token_dtype": "uint16", "shards": [summaries[source] for source in sources]}
    (folder / MANIFEST_FILE).write_text(json.dumps(manifest))


def make_corpora(folder, billions):
    """Writes a corpus of each size to a folder of its own, named by its billions of tokens."""
    rng = np.random.default_rng(0)
    written = folder / "written"
    written.mkdir()
    summaries = [write_shard(written, number, rng) for number in range(SHARDS_WRITTEN)]
    for size in billions:
        link_corpus(folder / f"{size:g}", written, summaries, size * 1e9)


def measure(folder, shuffle_blocks):
    """dict, with a value for each of `COLUMNS`."""
    import keras_bert_suite as kbs
    from keras_bert_suite.corpus import hold_out, open_corpus
    from keras_bert_suite.pretraining import PretrainingBatches

    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokens += [f"w{number}" for number in range(VOCABULARY_SIZE - len(tokens))]
    masker = kbs.TokenMasker(kbs.WordPieceTokenizer(tokens), max_predictions=PREDICTIONS)
    imported, processor = find_memory(None), time.process_time()
    times = [time.perf_counter()]
    corpus = open_corpus(folder)
    times.append(time.perf_counter())
    training, _ = hold_out(corpus, 0.02)
    times.append(time.perf_counter())
    arguments = {"sequence_length": LENGTH, "batch_size": BATCH_SIZE}
    batches = PretrainingBatches(training, masker, **arguments, shuffle_blocks=shuffle_blocks)
    times.append(time.perf_counter())
    batches[0]
    times.append(time.perf_counter())
    processor = time.process_time() - processor
    begin = time.process_time()
    for index in range(1, 1 + BATCHES_TIMED):
        batches[index]
    rate = BATCHES_TIMED / (time.process_time() - begin)
    # The second half of a section makes the plan of the next section.
    sections = -(-training.num_blocks // (shuffle_blocks or training.num_blocks))
    for share in (0.6, 1.1):
        batches[int(share * len(batches) / sections)]
    *seconds, _ = np.diff(times)
    first = times[-1] - times[0]
    figures = *seconds, first, processor, rate, find_memory(None), imported
    return dict(zip(COLUMNS, figures, strict=True))


def measure_mixing(folder):
    """Compares batches of the first sections of an epoch with rows drawn from the whole corpus.

    Returns:
        list of rows of a table: the name of a side, the result of `describe_rows`, and the share of
        the instances of a section that is left out (above 0) or visited twice (below 0).
    """
    from keras_bert_suite.corpus import open_corpus
    from keras_bert_suite.pretraining.epoch_sections import count_instances, divide_blocks
    from keras_bert_suite.pretraining.instance_planner import InstancePlanner
    from keras_bert_suite.pretraining.pretraining_batches import SHUFFLE_BLOCKS

    corpus, rng = open_corpus(folder), np.random.default_rng(0)
    planner = InstancePlanner(corpus, LENGTH)
    counts = count_instances(planner, corpus.block_sentences)
    num_sections = -(-corpus.num_blocks // SHUFFLE_BLOCKS)
    rows = []
    for number, blocks in enumerate(divide_blocks(corpus.num_blocks, num_sections, 0, 0)):
        if number == STRETCHES_MIXED:
            break
        plan = planner.plan(0, blocks)
        documents = find_documents(plan, rng.permutation(len(plan))[:ROWS_MIXED])
        left_out = 1 - counts[blocks].sum() / len(plan)
        rows.append([f"section {number + 1}", *describe_rows(documents, corpus), f"{left_out:.2%}"])
    drawn = []
    for block, wanted in enumerate(rng.multinomial(ROWS_MIXED, counts / counts.sum())):
        plan = planner.plan(0, [block])
        drawn.append(find_documents(plan, rng.integers(0, len(plan), wanted)))
    documents = rng.permutation(np.concatenate(drawn))
    return [*rows, ["the whole corpus", *describe_rows(documents, corpus), ""]]


def find_documents(plan, rows):
    """int64, the documents that some instances of a plan begin in."""
    starts = plan.starts[rows, 0]
    return plan.documents[np.searchsorted(plan.document_begins, starts, side="right") - 1]


MIXING = (
    "distance of two rows, median",
    "of a tenth of the pairs at most",
    "documents in a batch",
    "rows of long documents",
)


def describe_rows(documents, corpus):
    """The cells of `MIXING`. Distances are shares of the documents of the corpus.

    Args:
        documents: int64, of the rows of consecutive batches.
        corpus: `TokenCorpus`.
    """
    batches = documents.reshape(-1, BATCH_SIZE)
    distances = np.abs(np.diff(batches, axis=1)) / corpus.num_documents
    different = np.mean([len(np.unique(batch)) for batch in batches])
    first_short, _ = corpus.documents_of((corpus.num_shards + 1) // 2)
    return [
        f"{np.median(distances):.3f}",
        f"{np.quantile(distances, 0.1):.3f}",
        f"{different:.2f} of {BATCH_SIZE}",
        f"{np.mean(documents < first_short):.1%}",
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--billions", type=float, nargs="+", default=[1, 10, 100])
    explanation = "file of finished runs, so that a benchmark that was killed goes on"
    parser.add_argument("--finished", type=Path, help=explanation)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parse_flags(parser)
    if options.child:
        side, size = options.child.split()
        if side == "mixing":
            report({"rows": measure_mixing(options.folder / size)})
        else:
            from keras_bert_suite.pretraining.pretraining_batches import SHUFFLE_BLOCKS

            blocks = {"blocks": SHUFFLE_BLOCKS, "whole": None}[side]
            report(measure(options.folder / size, blocks))
        return

    with tempfile.TemporaryDirectory() as folder:
        make_corpora(Path(folder), options.billions)
        command = [*sys.argv, "--folder", folder]
        sides = [(f"blocks {size:g}", "torch") for size in options.billions]
        sides.insert(1, (f"whole {options.billions[0]:g}", "torch"))
        keep = {"finished": options.finished}
        measured = run_in_turn(command, sides, [[]] * options.rounds, **keep)
        mixed_size = sorted(options.billions)[(len(options.billions) - 1) // 2]
        mixing = run_in_turn(command, [(f"mixing {mixed_size:g}", "torch")], [[]], **keep)
    print(f"# Plans of large corpora\n\n{describe_run(measured, options.rounds)}\n")
    print("The numbers of the sides are the billions of tokens of their corpora.\n")
    print(f"{format_columns(measured, COLUMNS)}\n")
    print(f"The mixing of {mixed_size:g} billion tokens, batches of {BATCH_SIZE}:\n")
    headings = ["rows of", *MIXING, "instances left out"]
    ((rows,),) = [figures["rows"] for figures in mixing.values()]
    print(format_table(headings, rows))


if __name__ == "__main__":
    main()
