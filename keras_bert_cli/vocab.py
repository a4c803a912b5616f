"""Learn the vocabulary of a new BERT from plain-text files.

Reads the same files as keras-bert prepare, once, a document at a time. Only their different words
are kept in memory. Writes a vocab.txt for WordPieceTokenizer, in the order of Google's
vocabularies, and prints how well its tokens cover the texts.

Example:
  keras-bert vocab --input 'corpus/*.txt' --output vocab.txt
  keras-bert vocab --input wiki.jsonl --output vocab.txt --nolowercase --size 8000
"""

from .command_flags import REQUIRED
from .corpus_input import define_input_flags, describe_left_out, make_progress
from .outputs import check_output, write_output

#: Bytes of input from one update of the progress to the next.
SLICE_BYTES = 1 << 20


def define_flags(flags):
    """Defines the flags of this command."""
    define_input_flags(flags)
    flags.path("output", REQUIRED, "File to write.")
    flags.switch("overwrite", False, "Replace the file.")
    flags.integer("size", 30522, "Maximum size of the vocabulary, in tokens.")
    flags.switch("lowercase", True, "Lowercase the texts, as for an uncased BERT.")
    explanation = "Strip accents, or --nostrip_accents. Default: as --lowercase."
    flags.switch("strip_accents", None, explanation)
    flags.integer("min_frequency", 2, "Minimum number of times that a token occurs.")
    flags.integer("num_unused", 99, "Number of tokens to reserve, [unused0] and so on.", at_least=0)
    explanation = (
        "How many different characters to keep, the most frequent ones. Default: all. About 1000 "
        "are enough for English from the web, 6000 to 8000 for Chinese."
    )
    flags.integer("limit_alphabet", None, explanation)


def run(values):
    """Counts, learns, writes, measures."""
    check_output(values.output, values.overwrite)

    from keras_bert_suite.corpus.faults import Faults
    from keras_bert_suite.corpus.input_files import InputOptions, find_files, plan_slices
    from keras_bert_suite.tokenizers.word_piece.vocabulary import Vocabulary
    from keras_bert_suite.tokenizers.word_piece.vocabulary_training import learn_pieces
    from keras_bert_suite.tokenizers.word_piece.word_counts import (
        count_characters,
        count_words,
        measure_coverage,
    )

    folder, names = find_files(values.input)
    options = InputOptions(
        values.format, values.text_key, values.encoding, values.errors, values.on_error
    )
    slices = plan_slices(folder, names, options.format, SLICE_BYTES, options.encoding)
    faults = Faults()
    texts = read_texts(slices, options, faults)
    word_counts = count_words(texts, values.lowercase, values.strip_accents)
    if faults and options.on_error == "stop":
        raise faults.error(folder)
    num_characters = len(count_characters(word_counts))
    print(
        f"{len(names):,} files: {word_counts.total():,} words, {len(word_counts):,} different ones "
        f"of {num_characters:,} different characters"
    )
    left_out = faults.documents, faults.replaced_texts, faults.describe(folder)
    for line in describe_left_out(*left_out):
        print(line)
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


def read_texts(slices, options, faults):
    """Yields the sentences of a corpus, and shows the progress.

    After a fault that stops the command, it only looks for further faults.
    """
    from keras_bert_suite.corpus.documents import find_faults, read_documents

    done, total, show_progress = 0, sum(piece.num_bytes for piece in slices), make_progress()
    for piece in slices:
        if faults and options.on_error == "stop":
            faults.update(find_faults(piece, options))
        else:
            for sentences in read_documents(piece, options, faults):
                yield from sentences
        done += piece.num_bytes
        show_progress(done, 0, total)
