"""The flags for the tokens that a pretraining masks, and for their replacements."""

from keras_bert_suite.data.readers.text_files import read_lines

from .command_flags import UsageError

MASKER_FLAGS = (
    *("masking_rate", "max_predictions", "mask_token_rate", "random_token_rate"),
    *("unit", "ngram_shares", "word_segmenter", "lexicon", "rarity", "similar_words", "dynamic"),
)

NOISE_FLAGS = ("noises", "span_length")

#: The flags that a `DenoisingCorruption` reads.
DENOISING_FLAGS = (*NOISE_FLAGS, "random_token_rate", "unit", "word_segmenter", "dynamic")

#: The noises of BART, each with its class in `keras_bert_suite.masking`.
NOISES = {
    "sentence_permutation": "SentencePermutation",
    "token_masking": "TokenMasking",
    "token_deletion": "TokenDeletion",
    "text_infilling": "TextInfilling",
    "token_insertion": "TokenInsertion",
    "document_rotation": "DocumentRotation",
}

#: Arguments that only some noises have -> the flags that have their values.
NOISE_ARGUMENTS = {"random_token_rate": "random_token_rate", "mean_length": "span_length"}

#: Arguments of a `TokenMasker` -> the flags that have their values.
PLAIN_ARGUMENTS = {
    "rate": "masking_rate",
    **{name: name for name in ("unit", "mask_token_rate", "random_token_rate")},
    **{name: name for name in ("max_predictions", "dynamic", "seed")},
}

UNITS = ("token", "word", "span", "ngram")

#: The value of --word_segmenter that leaves characters apart.
NO_SEGMENTER = "none"


def define_masker_flags(flags, unit="token"):
    """Defines the flags. `unit` is the default of --unit."""
    flags.number("masking_rate", 0.15, "Share of tokens to mask.", at_most=1)
    explanation = (
        "Maximum number of masked tokens in a sequence. Default: --masking_rate times "
        "--sequence_length."
    )
    flags.integer("max_predictions", None, explanation)
    explanation = "Share of the chosen tokens that become the mask token, or a similar word."
    flags.number("mask_token_rate", 0.8, explanation, at_most=1)
    explanation = "Share of the chosen tokens that become a random token. The rest stays."
    flags.number("random_token_rate", 0.1, explanation, at_most=1)
    flags.choice("unit", unit, UNITS, "The tokens that are masked together.")
    explanation = "Shares of the n-grams of one word, of two words and so on, with --unit=ngram."
    flags.list("ngram_shares", None, explanation, float)
    explanation = (
        "What joins single Chinese characters to words: jieba (pip install jieba), or none, which "
        "leaves each character a word."
    )
    flags.choice("word_segmenter", None, ("jieba", NO_SEGMENTER), explanation)
    explanation = "File of words and phrases, one a line, that are each masked as one word."
    flags.path("lexicon", None, explanation)
    explanation = (
        "Mask rare tokens more often: a token that is n times rarer than another gets n to the "
        "power of this number as its weight. 0.5 is a good value."
    )
    flags.number("rarity", None, explanation)
    explanation = (
        "File of words and similar words, two a line with a tab between them. They take the place "
        "of the mask token, as in MacBERT."
    )
    flags.path("similar_words", None, explanation)
    explanation = "Mask other tokens in each epoch, or --nodynamic, the same tokens."
    flags.switch("dynamic", True, explanation)


def define_noise_flags(flags):
    """Defines the flags of BART's noises."""
    explanation = (
        f"Noises of --objective=denoising, in their order, with their rates: {', '.join(NOISES)}. "
        "Default: those of BART, sentence_permutation=1,text_infilling=0.3."
    )
    flags.list("noises", None, explanation)
    explanation = "Mean length of the spans of text_infilling, the lambda of BART."
    flags.number("span_length", 3.5, explanation)


def list_masker_flags(objective):
    """The flags that the masker or the corruption of an `Objective` reads."""
    if objective.masking is None:
        return ()
    if objective.masker == "DenoisingCorruption":
        return DENOISING_FLAGS
    options = objective.masking_options
    if options is None:
        return MASKER_FLAGS
    return [PLAIN_ARGUMENTS.get(name, name) for name in options]


def read_masker(values, objective, corpus, tokenizer):
    """dict of the arguments of the masker of an `Objective` that the flags set.

    Args, Raises: as for `read_masking`.
    """
    if objective.masking is None:
        return {}
    if objective.masker == "DenoisingCorruption":
        return read_noises(values, corpus, tokenizer)
    masking = read_masking(values, corpus, tokenizer)
    options = objective.masking_options
    if options is None:
        return masking
    return {name: masking[name] if name in masking else getattr(values, name) for name in options}


def read_noises(values, corpus, tokenizer):
    """dict of the arguments of a `DenoisingCorruption` that the flags set.

    Args, Raises: as for `read_masking`, and a noise that has no name of `NOISES` or no rate, or a
        flag for noises that are not there.
    """
    from keras_bert_suite import masking

    noises = []
    for text in values.noises or ("sentence_permutation=1", "text_infilling=0.3"):
        name, _, rate = text.partition("=")
        try:
            arguments = {"rate": float(rate)}
            cls = getattr(masking, NOISES[name])
        except (KeyError, ValueError):
            raise UsageError(
                f"--noises must name noises with their rates, such as text_infilling=0.3, of "
                f"{', '.join(NOISES)}; got {text}"
            ) from None
        for argument, flag in NOISE_ARGUMENTS.items():
            if hasattr(cls, argument):
                arguments[argument] = getattr(values, flag)
        noises.append(cls(**arguments))
    for argument, flag in NOISE_ARGUMENTS.items():
        if flag in values.given and not any(hasattr(noise, argument) for noise in noises):
            raise UsageError(f"no noise of --noises has a use for --{flag}; leave it out")
    check_words(values, corpus, tokenizer)
    segmenter = None if values.word_segmenter == NO_SEGMENTER else values.word_segmenter
    common = {name: getattr(values, name) for name in ("unit", "dynamic", "seed")}
    return {**common, "noises": noises, "word_segmenter": segmenter}


def read_masking(values, corpus, tokenizer):
    """dict of the arguments of a `TokenMasker` that the flags set.

    Args:
        values: the flags of the command.
        corpus: `TokenCorpus`, in which --rarity counts the tokens.
        tokenizer: tokenizer of the corpus.

    Raises:
        UsageError: if flags do not go together, or whole words would be single characters.
    """
    import keras_bert_suite as kbs

    masking = {name: getattr(values, flag) for name, flag in PLAIN_ARGUMENTS.items()}
    if values.ngram_shares and values.unit != "ngram":
        raise UsageError("--ngram_shares needs --unit=ngram")
    if values.ngram_shares:
        masking["ngram_shares"] = values.ngram_shares
    if values.lexicon:
        masking["phrases"] = read_lexicon(values.lexicon)
    if values.word_segmenter not in (None, NO_SEGMENTER):
        masking["word_segmenter"] = values.word_segmenter
    if values.similar_words:
        masking["similar_words"] = read_similar_words(values.similar_words)
    if values.rarity is not None:
        counts = corpus.count_tokens(tokenizer.vocabulary_size())
        masking["unit_weights"] = kbs.rarity_weights(counts, values.rarity)
    check_words(values, corpus, tokenizer)
    return masking


def check_words(values, corpus, tokenizer):
    """Raises a `UsageError` if whole words would be single Chinese characters."""
    if values.unit != "word" or values.lexicon or values.word_segmenter:
        return
    if holds_characters(corpus, tokenizer):
        raise UsageError(
            "most tokens at the beginning of the corpus are Chinese characters, and --unit=word"
            " would mask each character alone. Name --word_segmenter=jieba, or a --lexicon of "
            "words; --word_segmenter=none masks characters"
        )


def holds_characters(corpus, tokenizer):
    """Whether most tokens are Chinese characters, which the tokenizer takes for words.

    Args:
        corpus, tokenizer: as for `read_masking`. The first documents of the corpus are read.
    """
    import numpy as np

    from keras_bert_suite.masking.maskable_units import MaskVocabulary

    if not tokenizer.has_cjk_pieces:
        return False
    documents = [corpus.tokens(number) for number in range(min(corpus.num_documents, 100))]
    is_character = MaskVocabulary(tokenizer, ordinary_only=False).cjk[np.concatenate(documents)]
    return bool(is_character.mean() > 0.5)


def read_lexicon(path):
    """The phrases of a lexicon, list of str. Blank lines are left out."""
    return [line.strip() for line in read_lines(path) if line.strip()]


def read_similar_words(path):
    """The pairs of a file, dict of str -> str. Of two lines with one word, the first counts."""
    similar = {}
    for number, line in enumerate(read_lines(path), start=1):
        word, tab, other = (part.strip() for part in line.partition("\t"))
        if not (word and other) or "\t" in other:
            raise ValueError(
                f"{path}, line {number}: wanted a word, a tab and a similar word, got {line!r}."
            )
        similar.setdefault(word, other)
    return similar
