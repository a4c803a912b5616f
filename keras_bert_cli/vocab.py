"""Learn the vocabulary of a new model from plain-text files.

What each --kind is:

  word_piece  the vocab.txt of a BERT, in the order of Google's vocabularies
  byte_pair   a folder with the vocab.json and the merges.txt of a RoBERTa
  unigram     the spiece.model of an ALBERT, learned by SentencePiece
  xlnet       the spiece.model of an XLNet, likewise, with its special tokens

keras-bert prepare takes each, and so do the tokenizers of transformers. Reads the same files as
keras-bert prepare, once. Of word pieces and byte pairs only the different words are kept in memory,
of unigrams up to ten million sentences. For word pieces, it prints how well they cover the texts.

Example:
  keras-bert vocab --input 'corpus/*.txt' --output vocab.txt
  keras-bert vocab --input wiki.jsonl --output vocab.txt --nolowercase --size 8000
  keras-bert vocab --kind byte_pair --input wiki.jsonl --output roberta_vocabulary
  keras-bert vocab --kind unigram --input wiki.jsonl --output spiece.model
  keras-bert vocab --kind xlnet --input wiki.jsonl --output spiece.model --size 32000
"""

from .command_flags import REQUIRED, UsageError
from .corpus_input import define_input_flags, describe_left_out, make_progress
from .outputs import check_output, write_output

#: Bytes of input from one update of the progress to the next.
SLICE_BYTES = 1 << 20

#: The kinds that SentencePiece learns -> their models.
UNIGRAMS = {"unigram": "albert", "xlnet": "xlnet"}

#: The flags that are for some kinds.
KINDS_OF_FLAGS = {
    **dict.fromkeys(("num_unused", "limit_alphabet"), ("word_piece",)),
    **dict.fromkeys(("lowercase", "strip_accents"), ("word_piece", *UNIGRAMS)),
    "min_frequency": ("word_piece", "byte_pair"),
    "character_coverage": tuple(UNIGRAMS),
}


def define_flags(flags):
    """Defines the flags of this command."""
    define_input_flags(flags)
    flags.choice("kind", "word_piece", tuple(LEARNERS), "Kind of the vocabulary.")
    flags.path("output", REQUIRED, "File to write, or a folder for --kind byte_pair.")
    flags.switch("overwrite", False, "Replace the file.")
    flags.integer("size", 30522, "Maximum size of the vocabulary, in tokens.")
    explanation = "Lowercase the texts, or --nolowercase. Default: yes, as for an uncased BERT; no "
    flags.switch("lowercase", None, explanation + "for xlnet.")
    explanation = "Strip accents, or --nostrip_accents. Default: as --lowercase; yes for unigrams."
    flags.switch("strip_accents", None, explanation)
    flags.integer("min_frequency", 2, "Minimum number of times that a token occurs.")
    flags.integer("num_unused", 99, "Number of tokens to reserve, [unused0] and so on.", at_least=0)
    explanation = (
        "How many different characters to keep, the most frequent ones. Default: all. About 1000 "
        "are enough for English from the web, 6000 to 8000 for Chinese."
    )
    flags.integer("limit_alphabet", None, explanation)
    explanation = "Share of the texts' characters that have tokens, with --kind unigram or xlnet."
    flags.number("character_coverage", 0.9995, explanation, at_least=0.98, at_most=1)


def run(values):
    """Reads, learns, writes."""
    check_kind(values)
    check_output(values.output, values.overwrite, folder=values.kind == "byte_pair")

    from keras_bert_suite.corpus.faults import Faults
    from keras_bert_suite.corpus.input_files import InputOptions, find_files, plan_slices

    folder, names = find_files(values.input)
    options = InputOptions(
        values.format, values.text_key, values.encoding, values.errors, values.on_error
    )
    slices = plan_slices(folder, names, options.format, SLICE_BYTES, options.encoding)
    faults = Faults()

    def check_faults():
        if faults and options.on_error == "stop":
            raise faults.error(folder)

    texts = read_texts(slices, options, faults)
    write, summary = LEARNERS[values.kind](values, texts, check_faults)
    print(f"{len(names):,} files: {summary}")
    left_out = faults.documents, faults.replaced_texts, faults.describe(folder)
    for line in describe_left_out(*left_out):
        print(line)
    path = write_output(values.output, write, values.overwrite, values.kind == "byte_pair")
    print(f"wrote {path}")


def check_kind(values):
    """Raises a `UsageError` if a flag is for other kinds, or the output has another name."""
    for name in sorted(values.given & KINDS_OF_FLAGS.keys()):
        if values.kind not in KINDS_OF_FLAGS[name]:
            wanted = " or ".join(KINDS_OF_FLAGS[name])
            raise UsageError(f"--{name} is for --kind {wanted}, not for --kind {values.kind}")
    if values.kind in UNIGRAMS and not values.output.endswith(".model"):
        raise UsageError(
            f"--output={values.output} must end in .model, as spiece.model, so that the kind of "
            "the tokenizer is known"
        )


def learn_word_pieces(values, texts, check_faults):
    """Learns the vocabulary.

    Args:
        values: the flags.
        texts: iterable of str.
        check_faults: function to call when all texts are read.

    Returns:
        (function that writes it to a path, str that describes it).
    """
    from keras_bert_suite.tokenizers.word_piece.vocabulary import Vocabulary
    from keras_bert_suite.tokenizers.word_piece.vocabulary_training import learn_pieces
    from keras_bert_suite.tokenizers.word_piece.word_counts import (
        count_characters,
        count_words,
        measure_coverage,
    )

    word_counts = count_words(texts, values.lowercase is not False, values.strip_accents)
    check_faults()
    pieces = learn_pieces(
        word_counts,
        size=values.size,
        min_frequency=values.min_frequency,
        num_unused=values.num_unused,
        limit_alphabet=values.limit_alphabet,
    )
    coverage = measure_coverage(pieces, word_counts)
    return Vocabulary(pieces).write, (
        f"{word_counts.total():,} words, {len(word_counts):,} different ones of "
        f"{len(count_characters(word_counts)):,} different characters\n"
        f"{describe_size(len(pieces), values)}, {coverage.pieces_per_word:.3f} to a word; "
        f"{coverage.single:.2%} of the words are one piece, {coverage.unknown:.2%} are unknown"
    )


def learn_byte_pairs(values, texts, check_faults):
    """As `learn_word_pieces`."""
    from keras_bert_suite.tokenizers import BytePairTokenizer, train_byte_pairs

    vocabulary, merges = train_byte_pairs(texts, values.size, values.min_frequency)
    check_faults()

    def write(folder):
        folder.mkdir()
        for name, content in BytePairTokenizer(vocabulary, merges).asset_contents().items():
            (folder / name).write_bytes(content)

    return write, describe_size(len(vocabulary), values)


def learn_unigrams(values, texts, check_faults):
    """As `learn_word_pieces`."""
    from keras_bert_suite import tokenizers

    rules = values.lowercase, values.strip_accents is not False, values.character_coverage
    model_type = UNIGRAMS[values.kind]
    try:
        model = tokenizers.train_sentence_pieces(texts, values.size, *rules, model_type)
    finally:
        check_faults()  # Without the texts that cannot be read, there may be too few.
    tokenizer = {"albert": tokenizers.AlbertTokenizer, "xlnet": tokenizers.XLNetTokenizer}
    size = tokenizer[model_type](model).vocabulary_size()
    return lambda path: path.write_bytes(model), describe_size(size, values)


#: The values of --kind.
LEARNERS = {
    "word_piece": learn_word_pieces,
    "byte_pair": learn_byte_pairs,
    **dict.fromkeys(UNIGRAMS, learn_unigrams),
}


def describe_size(size, values):
    """How many tokens there are, str."""
    fewer = f" (the texts give no more, of {values.size:,})" if size < values.size else ""
    return f"{size:,} pieces{fewer}"


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
