"""Learn the vocabulary of a new BERT from plain-text files.

The file written is the vocab.txt of WordPieceTokenizer, laid out as Google's. The texts
are read once, a line at a time; memory holds their different words. How well the pieces
cover the texts is printed.

Example:
  keras-bert vocab --input 'corpus/*.txt' --output vocab.txt
  keras-bert vocab --input 'corpus/**' --output vocab.txt --nolowercase --size 8000
"""

import glob
import os
import sys

from absl import flags

from .outputs import check_output, write_output

REQUIRED = ("input", "output")


def define_flags(values):
    """Defines the flags of this command."""

    def integer(name, default, explanation, lower_bound):
        flags.DEFINE_integer(name, default, explanation, lower_bound, flag_values=values)

    def switch(name, default, explanation):
        flags.DEFINE_boolean(name, default, explanation, flag_values=values)

    explanation = "Files to learn from: paths, or patterns in quotes, separated by commas."
    flags.DEFINE_list("input", None, explanation, flag_values=values)
    flags.DEFINE_string("output", None, "File to write.", flag_values=values)
    switch("overwrite", False, "Replace the file.")
    flags.DEFINE_string("encoding", "utf-8", "Encoding of the texts.", flag_values=values)
    integer("size", 30522, "Most pieces.", 1)
    switch("lowercase", True, "Lower case, as for an uncased BERT.")
    switch("strip_accents", None, "Drop accents, or --nostrip_accents. Default: as --lowercase.")
    integer("min_frequency", 2, "How often at least the texts have a piece.", 1)
    integer("num_unused", 99, "Pieces to set aside, [unused0] and so on.", 0)
    explanation = (
        "Keep so many different characters, the most frequent. Default: all. About 1000 are enough "
        "for English from the web, 6000 to 8000 for Chinese."
    )
    integer("limit_alphabet", None, explanation, 1)


def run(values):
    """Counts, learns, writes, measures."""
    check_output(values.output, values.overwrite)
    paths = find_files(values.input)

    from keras_bert_suite.preprocessing.vocabulary import Vocabulary
    from keras_bert_suite.preprocessing.vocabulary_training import learn_pieces
    from keras_bert_suite.preprocessing.word_counts import (
        count_characters,
        count_words,
        measure_coverage,
    )

    lines = read_corpus(paths, values.encoding)
    word_counts = count_words(lines, values.lowercase, values.strip_accents)
    num_bytes = sum(map(os.path.getsize, paths))
    num_characters = len(count_characters(word_counts))
    print(
        f"{num_bytes / 1e6:,.1f} MB in {len(paths):,} files: {word_counts.total():,} words, "
        f"{len(word_counts):,} different ones of {num_characters:,} different characters"
    )
    pieces = learn_pieces(
        word_counts,
        size=values.size,
        min_frequency=values.min_frequency,
        num_unused=values.num_unused,
        limit_alphabet=values.limit_alphabet,
    )
    path = write_output(values.output, Vocabulary(pieces).write, values.overwrite)
    coverage = measure_coverage(pieces, word_counts)
    fewer = f" (the texts give no more, of {values.size:,})" if len(pieces) < values.size else ""
    print(
        f"{len(pieces):,} pieces{fewer}, {coverage.pieces_per_word:.3f} to a word; "
        f"{coverage.single:.2%} of the words are one piece, {coverage.unknown:.2%} are unknown"
    )
    print(f"wrote {path}")


def find_files(patterns):
    """The files that any of the patterns matches, sorted.

    Raises:
        FileNotFoundError: if a pattern matches none.
    """
    paths = set()
    for pattern in patterns:
        pattern = os.path.expanduser(pattern)
        found = [pattern] if os.path.isfile(pattern) else glob.glob(pattern, recursive=True)
        found = list(filter(os.path.isfile, found))
        if not found:
            raise FileNotFoundError(
                f"--input={pattern} matches no file. Wanted a path, or a pattern such as "
                "'corpus/*.txt' in quotes."
            )
        paths.update(found)
    return sorted(paths)


def read_corpus(paths, encoding):
    """Yields the lines of all files, with a bar on a terminal."""
    from rich import progress

    from keras_bert_suite.data.decoding import stream_lines

    columns = [
        progress.BarColumn(),
        progress.DownloadColumn(),
        progress.TransferSpeedColumn(),
        progress.TimeRemainingColumn(),
    ]
    # Not on standard error, which `hide_log_noise` reads along.
    with progress.Progress(*columns, transient=True, disable=not sys.stdout.isatty()) as bar:
        task = bar.add_task("", total=sum(map(os.path.getsize, paths)))
        for path in paths:
            with bar.open(path, "rb", task_id=task) as file:
                yield from stream_lines(file, encoding)
