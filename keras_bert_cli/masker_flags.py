"""The flags for the tokens that a pretraining masks, and for their replacements."""

from keras_bert_suite.data.readers.text_files import read_lines

from .command_flags import UsageError

MASKER_FLAGS = (
    *("masking_rate", "max_predictions", "mask_token_rate", "random_token_rate"),
    *("unit", "ngram_shares", "word_segmenter", "lexicon", "rarity", "similar_words", "dynamic"),
)

NOISE_FLAGS = ("noises", "span_length")

CHARACTER_FLAGS = ("max_characters",)

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

#: Arguments of a masker that several flags make, or another flag than `PLAIN_ARGUMENTS` has. All
#: others are flags of their names.
MADE_ARGUMENTS = {
    "noises": (*NOISE_FLAGS, "random_token_rate"),
    "word_segmenter": ("word_segmenter",),
    "starts_with_end": (),  # The decoder of the task says it.
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
        "Default: as in BART, sentence_permutation=1,text_infilling=0.3."
    )
    flags.list("noises", None, explanation)
    explanation = "Mean length of the spans of text_infilling, the lambda of BART."
    flags.number("span_length", 3.5, explanation)


def define_character_flags(flags):
    """Defines the flag of an ELMo that reads characters."""
    explanation = (
        "Most characters of a token, bytes of UTF-8 and two marks, for an ELMo that reads them in "
        "place of a table of tokens. 50 in the released models. Default: a table of tokens."
    )
    # The widest filter of `CharacterEmbeddings` reads 7.
    flags.integer("max_characters", None, explanation, at_least=7)


def list_masker_flags(objective):
    """The flags that the masker or the corruption of an `Objective` reads."""
    if objective.masking is None:
        return ()
    options = objective.masking_options
    if options is None:
        return MASKER_FLAGS
    flags = {**{name: (flag,) for name, flag in PLAIN_ARGUMENTS.items()}, **MADE_ARGUMENTS}
    return list(dict.fromkeys(flag for name in options for flag in flags.get(name, (name,))))


def read_masker(values, objective, corpus, tokenizer, task=None):
    """dict of the arguments of the masker of an `Objective` that the flags set.

    Args, Raises: as for `read_masking`, `read_noises` and `check_words`. `task` is the task that
    is trained.
    """
    if objective.masking is None:
        return {}
    masking = read_masking(values, corpus, tokenizer)
    check_words(values, list_masker_flags(objective), corpus, tokenizer)
    options = objective.masking_options
    if options is None:
        return masking
    if "noises" in options:
        masking["noises"] = read_noises(values)
    if "starts_with_end" in options:
        masking["starts_with_end"] = task.decoder.starts_with_end
    names = [name for name in options if name not in (*PLAIN_ARGUMENTS, *MADE_ARGUMENTS)]
    masking |= {name: getattr(values, name) for name in names}
    return {name: masking[name] for name in options if name in masking}


def name_flag(error):
    """The message of an error of a masker, with the flag of an argument that has another name."""
    argument, space, rest = str(error).partition(" ")
    flag = PLAIN_ARGUMENTS.get(argument, argument)
    return f"{argument if flag == argument else f'--{flag}'}{space}{rest}"


def read_noises(values):
    """list of the noises that the flags name, by default BART's.

    Raises:
        UsageError: if a noise has no name of `NOISES` or no rate, a number is out of its range, or
            a flag is for noises that are not there.
    """
    import dataclasses

    from keras_bert_suite import masking

    if values.span_length <= 0:
        raise UsageError(f"--span_length must be above 0, got {values.span_length}")
    noises = list(masking.BART_NOISES)
    if values.noises:
        noises = [_read_noise(masking, text) for text in values.noises]
    for argument, flag in NOISE_ARGUMENTS.items():
        wanting = [i for i, noise in enumerate(noises) if hasattr(noise, argument)]
        if flag in values.given and not wanting:
            raise UsageError(f"no noise of --noises has a use for --{flag}; leave it out")
        for i in wanting:
            noises[i] = dataclasses.replace(noises[i], **{argument: getattr(values, flag)})
    return noises


def _read_noise(masking, text):
    name, _, rate = text.partition("=")
    try:
        return getattr(masking, NOISES[name])(rate=float(rate))
    except (KeyError, ValueError):
        raise UsageError(
            f"--noises must name noises with their rates from 0 to 1, such as text_infilling=0.3, "
            f"of {', '.join(NOISES)}; got {text}"
        ) from None


def read_masking(values, corpus, tokenizer):
    """dict of the arguments of a `TokenMasker` that the flags set.

    Args:
        values: the flags of the command.
        corpus: `TokenCorpus`, in which --rarity counts the tokens.
        tokenizer: tokenizer of the corpus.

    Raises:
        UsageError: if flags do not go together.
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
    return masking


def check_words(values, flags, corpus, tokenizer):
    """Raises a `UsageError` if whole words would be single Chinese characters.

    `flags` are the flags that the objective reads.
    """
    if values.unit != "word" or values.lexicon or values.word_segmenter:
        return
    if holds_characters(corpus, tokenizer):
        lexicon = ", or a --lexicon of words" if "lexicon" in flags else ""
        raise UsageError(
            "most tokens at the beginning of the corpus are Chinese characters, and --unit=word"
            f" would mask each character alone. Name --word_segmenter=jieba{lexicon}; "
            "--word_segmenter=none masks characters"
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
