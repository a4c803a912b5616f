"""Reads sentences with a tag on each word, and checks the tags."""

import dataclasses
import warnings

from .labelled_tables import list_labels
from .standalone import conll, tag_schemes


@dataclasses.dataclass(frozen=True)
class Sentences:
    """The words of sentences and their tags, and the path of their file."""

    path: str
    words: list
    tags: list

    def __len__(self):
        return len(self.words)


def read_sentences(values, path):
    """Reads a file of tagged sentences, as the flags say.

    Returns:
        `Sentences`.

    Raises:
        ValueError: as `read_conll`.
    """
    words, tags = conll.read_conll(path, values.word_column, values.tag_column, values.encoding)
    if values.tag_scheme:
        tags = [tag_schemes.convert_tags(row, values.tag_scheme) for row in tags]
    return Sentences(path, words, tags)


def warn_of_tables(sentences):
    """Warns of a file that looks like a table of texts, or begins with names of columns.

    Both are legal files of sentences, so they are not refused.
    """
    words = [word for row in sentences.words for word in row]
    (first, *others) = [tag for row in sentences.tags for tag in row]
    spaced = [word for word in words if " " in word]
    if 2 * len(spaced) > len(words):
        warnings.warn(
            f"{sentences.path}: {len(spaced)} of {len(words)} words hold spaces, the first one is "
            f"{spaced[0][:40]!r}. --task ner wants a word and its tag in each line. For labels of "
            "whole texts use --task classify.",
            stacklevel=2,
        )
    elif others and _is_prefixed({first}) is False and _is_prefixed(set(others)):
        warnings.warn(
            f"{sentences.path}: the tag {first!r} of the first word, {words[0]!r}, is not of the "
            "scheme of the other tags. If the line has the names of columns, delete it.",
            stacklevel=2,
        )


def _is_prefixed(tags):
    """Whether tags other than O have prefixes, as B-PER has; None if all are O."""
    kinds = tags - {tag_schemes.OUTSIDE}
    return all(tag[1:2] == "-" for tag in kinds) if kinds else None


def check_tags(sentences, label_names, source, spans=False):
    """Raises a `ValueError` unless the model knows all tags, naming sentence and word.

    Args:
        sentences: `Sentences`.
        label_names: list of str, the tags of the model; or the types of its spans.
        source: str, the source of `label_names`: the training file, or the model.
        spans: bool, whether the model knows types of spans.
    """
    noun = "type" if spans else "tag"
    for row, tags in enumerate(sentences.tags):
        labels = enumerate(tags)
        if spans:
            labels = ((first, kind) for kind, first, _ in tag_schemes.find_entities(tags))
        for place, label in labels:
            if label not in label_names:
                raise ValueError(
                    f"{sentences.path}, sentence {row + 1}, word {place + 1} "
                    f"({sentences.words[row][place]!r}): the {noun} {label!r} does not occur in "
                    f"{source}, whose {noun}s are {list_labels(label_names)}. Correct it, or train "
                    "with sentences that have it."
                )


def find_types(sentences):
    """The types of the entities of `Sentences`, sorted.

    Raises:
        ValueError: if there are no entities.
    """
    types = {kind for tags in sentences.tags for kind, _, _ in tag_schemes.find_entities(tags)}
    if not types:
        raise ValueError(
            f"{sentences.path} has no entities: every tag is O. --tag_column names the column of "
            "the tags."
        )
    return sorted(types)
