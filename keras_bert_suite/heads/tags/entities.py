"""The entities that a task finds in a text."""

import dataclasses

import numpy as np

from keras_bert_suite.heads.tags.tag_schemes import find_entities, parse_tags
from keras_bert_suite.tokenizers.joining import join_words


@dataclasses.dataclass(frozen=True)
class Entity:
    """Consecutive words of one type.

    Attributes:
        label: str, the type, such as "PER".
        text: str. If the row is a text, its part that is the entity. If the row is a list of words,
            the words of the entity, with spaces as a reader writes them; if it is a list of
            characters, they have none.
        start, end: int, the position of the entity. In a text they count characters (code points,
            as Python counts), so that `text[start:end]` is the entity. In a list they count words,
            so that `words[start:end]` is the entity.
        score: float, the mean probability of the tags of its words. From an `EntitySpanClassifier`
            it is the sigmoid of the score of the span.
    """

    label: str
    text: str
    start: int
    end: int
    score: float

    def __repr__(self) -> str:
        """As of other data classes, with few digits of the score: lists of entities are printed."""
        place = f"start={self.start!r}, end={self.end!r}"
        return f"Entity(label={self.label!r}, text={self.text!r}, {place}, score={self.score:.4g})"


def read_entities(texts, tokenized, tags, scores, label_names):
    """Reads the entities of B rows from their tags, as B lists of `Entity`.

    `tags` has a list of str for each row, and `scores` float (words,), the probability of each tag,
    or NaN for a word without a token. `label_names` are the tags of the model.
    """
    parsed = parse_tags(label_names)
    return [
        [
            make_entity(text, words, spans, *entity, _average(row[entity[1] : entity[2]]))
            for entity in find_entities(row_tags, parsed)
        ]
        for text, words, spans, row_tags, row in zip(
            texts, tokenized.words, tokenized.characters, tags, scores, strict=True
        )
    ]


def _average(scores):
    known = scores[~np.isnan(scores)]
    return float(np.mean(known)) if len(known) else 0.0


def make_entity(text, words, spans, label, first, end, score):
    """Makes an `Entity` of the words from `first` up to, but not including, `end`.

    `spans` are the characters of each word in the text; None if the row is a list of words.
    """
    if spans is None:
        # A row of characters is a text without spaces.
        join = "".join if all(len(word) <= 1 for word in words) else join_words
        return Entity(label, join(words[first:end]), first, end, score)
    start, stop = spans[first][0], spans[end - 1][1]
    return Entity(label, text[start:stop], start, stop, score)
