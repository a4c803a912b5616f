"""Tokenize a corpus of plain text once, for pretraining.

There are four formats of input: files with a sentence in each line and blank lines between
documents, files with one document each, files with a JSON object in each line, and dumps of
Wikipedia. English and Chinese texts of the last three formats are split into sentences.

The output is the same for any number of workers. If a run was stopped, the same command resumes
it, and repairs damaged shards. Before anything is written, all files are read once, and all
documents that cannot be read are listed.

Example:
  keras-bert prepare --input 'corpus/*.jsonl' --vocab vocab.txt --output shards --workers 8

  # Each article is a document. Of the dumps, the multistream ones are read by several workers.
  keras-bert prepare --input enwiki-latest-pages-articles-multistream.xml.bz2 --vocab vocab.txt \\
      --output wikipedia --workers 8

  # On the machines of a cluster of Ray, with a file system that they share.
  keras-bert prepare --engine ray --ray_address auto --input '/shared/corpus/*.jsonl' \\
      --vocab /shared/vocab.txt --output /shared/shards
"""

import os

from .command_flags import REQUIRED, UsageError
from .corpus_input import define_input_flags, describe_left_out, make_progress


def define_flags(flags):
    """Defines the flags of this command."""
    define_input_flags(flags)
    explanation = (
        "The tokenizer: vocab.txt of a BERT, vocab.json of a RoBERTa beside its merges.txt, a "
        "tokenizer.json, a .model file of SentencePiece, or the folder of a checkpoint."
    )
    flags.path("vocab", REQUIRED, explanation)
    flags.path("output", REQUIRED, "Folder to write. An unfinished corpus in it is completed.")
    explanation = (
        "Processes that tokenize. Default: one for each core. With --engine ray: the most slices "
        "at one time; default: as many as the cluster runs."
    )
    flags.integer("workers", None, explanation)
    explanation = (
        "local: processes of this machine. ray: tasks of Ray, on this machine or the cluster of "
        "--ray_address, whose machines all see the input and the output under the same paths."
    )
    flags.choice("engine", "local", ("local", "ray"), explanation)
    flags.text("ray_address", None, "The cluster of --engine ray: auto, or HOST:6379.")
    explanation = (
        "Lowercase the texts, or --nolowercase. Default: as the tokenizer says; yes for a "
        "vocab.txt."
    )
    flags.switch("lowercase", None, explanation)
    explanation = "Strip accents, or --nostrip_accents. Default: as --lowercase for a vocab.txt."
    flags.switch("strip_accents", None, explanation)
    flags.number("slice_mb", 32.0, "Megabytes of input in a shard.", at_least=1e-6)


def run(values):
    """Tokenizes, shows the progress, prints a summary."""
    from keras_bert_suite.corpus.preparation import prepare_corpus
    from keras_bert_suite.corpus.preparation_plan import list_faults

    tokenizer = read_tokenizer_flags(values)
    manifest = prepare_corpus(
        values.input,
        tokenizer,
        values.output,
        workers=values.workers or (count_cores() if values.engine == "local" else None),
        slice_bytes=max(1, round(values.slice_mb * (1 << 20))),
        format=values.format,
        text_key=values.text_key,
        encoding=values.encoding,
        errors=values.errors,
        on_error=values.on_error,
        progress=make_progress(),
        engine=values.engine,
        ray_address=values.ray_address,
    )
    print(summarize(manifest))
    counts = manifest["skipped_documents"], manifest["replaced_texts"]
    for line in describe_left_out(*counts, list_faults(manifest, values.input)):
        print(line)
    print(f"wrote {values.output}")


def read_tokenizer_flags(values):
    """The tokenizer of --vocab."""
    import keras_bert_suite as kbs

    tokenizer = kbs.open_tokenizer(values.vocab)
    names = ("lowercase", "strip_accents")
    given = {name: getattr(values, name) for name in names if name in values.given}
    for name in given:
        if not hasattr(tokenizer, name):
            raise UsageError(
                f"--{name} is for a vocab.txt or an ALBERT. The tokenizer of {values.vocab} "
                "changes no letters."
            )
    return kbs.open_tokenizer(values.vocab, **given) if given else tokenizer


def count_cores():
    """int, the cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def summarize(manifest):
    """Two lines about the corpus."""
    tokens, shards = manifest["tokens"], manifest["shards"]
    stored = sum(file["bytes"] for shard in shards for file in shard["files"].values())
    return (
        f"{manifest['documents']:,} documents, {manifest['sentences']:,} sentences, {tokens:,} "
        f"tokens, {manifest['unknown_tokens'] / tokens:.2%} of them unknown\n"
        f"{len(shards):,} shards, {stored / tokens:.2f} bytes a token"
    )
