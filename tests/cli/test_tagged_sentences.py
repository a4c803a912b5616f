"""Files of sentences that look like other files."""

import warnings

import pytest

from keras_bert_cli.tagged_sentences import Sentences, warn_of_tables


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            ["text label", "a fine film yes", "a dull film no"],
            "2 of 3 words hold spaces, the first",
        ),
        (["word tag", "Ada B-PER", "wrote O"], "the tag 'tag' of the first word, 'word', is not"),
        (["Ada B-PER", "New York B-LOC", "is O"], None),
        (["Ada PROPN", "wrote VERB"], None),
        (["word tag", "the O"], None),
        (["Ada B-PER"], None),
    ],
)
def test_tables_and_names_of_columns(rows, message):
    words, tags = zip(*(row.rsplit(" ", 1) for row in rows), strict=True)
    sentences = Sentences("train.txt", [list(words)], [list(tags)])
    if message is None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warn_of_tables(sentences)
        return
    with pytest.warns(UserWarning, match=message):
        warn_of_tables(sentences)
