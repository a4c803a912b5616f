"""Tokenize a corpus of plain text once, for pretraining.

Reads a sentence a line with blank lines between documents, a document a file, or a JSON
object a line, and splits the sentences of the last two, English and Chinese. What is
written is the same for any number of workers. A run that was stopped is continued by the
same command, which also repairs damaged shards.

Example:
  keras-bert prepare --input 'corpus/*.jsonl' --vocab vocab.txt --output shards --workers 8
"""

import os
import sys
import time

from absl import flags

REQUIRED = ("input", "vocab", "output")

SECONDS_BETWEEN_LINES = 10


def define_flags(values):
    """Defines the flags of this command."""

    def text(name, default, explanation):
        flags.DEFINE_string(name, default, explanation, flag_values=values)

    def switch(name, default, explanation):
        flags.DEFINE_boolean(name, default, explanation, flag_values=values)

    explanation = "Files, folders, or patterns in quotes, separated by commas; .gz is unpacked."
    flags.DEFINE_list("input", None, explanation, flag_values=values)
    text("vocab", None, "vocab.txt of the tokenizer.")
    text("output", None, "Folder to write, or to go on with.")
    explanation = "Processes that tokenize. Default: one for each core."
    flags.DEFINE_integer("workers", None, explanation, 1, flag_values=values)
    explanation = (
        "How files hold documents: a sentence a line and blank lines between documents, a document "
        "a file, or a JSON object a line. auto takes the first, and the last for .jsonl."
    )
    formats = ("auto", "sentences", "files", "jsonl")
    flags.DEFINE_enum("format", "auto", formats, explanation, flag_values=values)
    text("text_key", "text", "Key of the text in a JSON object.")
    switch("lowercase", True, "Lower case, as for an uncased BERT.")
    switch("strip_accents", None, "Drop accents, or --nostrip_accents. Default: as --lowercase.")
    explanation = "Megabytes of input in a shard."
    flags.DEFINE_float("slice_mb", 32.0, explanation, 1e-6, flag_values=values)


def run(values):
    """Tokenizes, shows how far it is, sums up."""
    import keras_bert_suite as kbs
    from keras_bert_suite.data.corpus_preparation import prepare_corpus

    tokenizer = kbs.WordPieceTokenizer(
        values.vocab, lowercase=values.lowercase, strip_accents=values.strip_accents
    )
    with make_progress(sys.stdout.isatty()) as progress:
        manifest = prepare_corpus(
            values.input,
            tokenizer,
            values.output,
            workers=values.workers or count_cores(),
            slice_bytes=max(1, round(values.slice_mb * (1 << 20))),
            format=values.format,
            text_key=values.text_key,
            progress=progress.show,
        )
    print(summarize(manifest, progress))
    print(f"wrote {values.output}")


def count_cores():
    """int, the cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def summarize(manifest, progress):
    """Two lines: what came out, and how fast."""
    tokens, shards = manifest["tokens"], manifest["shards"]
    stored = sum(file["bytes"] for shard in shards for file in shard["files"].values())
    there = f" ({progress.kept / 1e6:,.1f} MB were done before)" if progress.kept else ""
    return (
        f"{manifest['documents']:,} documents, {manifest['sentences']:,} sentences, {tokens:,} "
        f"tokens, {manifest['unknown_tokens'] / tokens:.2%} of them unknown\n"
        f"{len(shards):,} shards, {stored / tokens:.2f} bytes a token; {progress.done / 1e6:,.1f} "
        f"MB{there} in {progress.seconds:,.1f} s, {progress.rate / 1e6:,.1f} MB/s"
    )


def make_progress(on_terminal):
    """The way to show progress: a context manager with a method `show`."""
    return Bar() if on_terminal else Lines()


class Lines:
    """A line now and then, for logs.

    Attributes:
        done, kept, total: int, bytes of input done, those of them by an earlier run, and all.
    """

    def __init__(self):
        self.done = self.kept = self.total = 0
        self._start = self._last_line = time.monotonic()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self._end = time.monotonic()

    @property
    def seconds(self):
        """float, from the start until now or the end."""
        return getattr(self, "_end", time.monotonic()) - self._start

    @property
    def rate(self):
        """float, bytes of input a second that this run has done."""
        return (self.done - self.kept) / max(self.seconds, 1e-9)

    def show(self, done, kept, total):
        """Takes the latest figures."""
        self.done, self.kept, self.total = done, kept, total
        now = time.monotonic()
        if now - self._last_line >= SECONDS_BETWEEN_LINES:
            self._last_line = now
            left = f", {(total - done) / self.rate:,.0f} s left" if done > kept else ""
            print(
                f"{done / 1e6:,.1f} of {total / 1e6:,.1f} MB, {self.rate / 1e6:,.1f} MB/s{left}",
                flush=True,
            )


class Bar(Lines):
    """A bar, for a terminal."""

    def __enter__(self):
        from rich import progress

        columns = [
            progress.BarColumn(),
            progress.DownloadColumn(),
            progress.TransferSpeedColumn(),
            progress.TimeRemainingColumn(),
        ]
        # On standard output: `hide_log_noise` reads standard error along.
        self._bar = progress.Progress(*columns, transient=True)
        self._bar.start()
        self._task = self._bar.add_task("", total=None)
        return self

    def __exit__(self, *exception):
        self._bar.stop()
        super().__exit__(*exception)

    def show(self, done, kept, total):
        self.done, self.kept, self.total = done, kept, total
        self._bar.update(self._task, completed=done, total=total)
