"""What the pieces of a vocabulary say of upper and lower case."""

import warnings

from keras_bert_suite.files.messages import list_names


def is_lowercase(pieces):
    """Whether a vocabulary is that of lowercased text: no piece has an uppercase letter."""
    # isalpha is false for special tokens, also for <S> and <T> of the Chinese vocabulary.
    return not any(map(_has_upper_case, pieces))


def _has_upper_case(piece):
    word = piece.removeprefix("##")
    return word.isalpha() and word != word.lower()


def warn_of_upper_case(directory, pieces):
    """Warns of pieces that lowercased text never becomes."""
    lost = sorted(filter(_has_upper_case, pieces))
    if lost:
        warnings.warn(
            f"The tokenizer in {directory} lowercases text, but {len(lost)} pieces of its "
            f"vocabulary have upper case, such as {list_names(map(repr, lost[:3]))}. No text "
            "becomes them.",
            stacklevel=4,
        )
