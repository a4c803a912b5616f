"""Reads sentences with a tag on each word, and checks the tags."""

import dataclasses

from keras_bert_suite.data import conll, tag_schemes

from .labelled_tables import list_labels


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
