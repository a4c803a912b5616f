import pickle

import numpy as np
import pytest

from keras_bert_suite.corpus.held_out import draw_documents, hold_out
from keras_bert_suite.corpus.token_corpus import TokenCorpus


def make_corpus(num_documents):
    """Document d has d % 3 + 1 sentences, each of the tokens d, d."""
    return TokenCorpus.from_documents(
        [[[d, d] for _ in range(d % 3 + 1)] for d in range(num_documents)]
    )


def numbers(corpus):
    return [int(corpus.tokens(d)[0]) for d in range(corpus.num_documents)]


def test_every_document_is_in_one_part():
    train, held = hold_out(make_corpus(1000), 0.1, seed=3)
    assert sorted(numbers(train) + numbers(held)) == list(range(1000))
    assert 70 < held.num_documents < 130
    for part in train, pickle.loads(pickle.dumps(held)):
        for document, number in enumerate(numbers(part)):
            assert part.sentences(document).tolist() == [2] * (number % 3 + 1)
            assert len(part.tokens(document)) == 2 * (number % 3 + 1)
        assert part.num_sentences == sum(number % 3 + 1 for number in numbers(part))


def test_the_division_depends_on_the_seed_alone_and_outlasts_growth():
    _, held = hold_out(make_corpus(500), 0.1, seed=3)
    _, again = hold_out(make_corpus(1000), 0.1, seed=3)
    assert numbers(held) == [number for number in numbers(again) if number < 500]
    assert numbers(held) != numbers(hold_out(make_corpus(500), 0.1, seed=4)[1])


def test_shards_do_not_change_the_division():
    whole = draw_documents(0, 100, 0.3, 3, held=True)
    shards = ((0, 7), (7, 60), (60, 100))
    parts = [first + draw_documents(first, end, 0.3, 3, held=True) for first, end in shards]
    assert np.concatenate(parts).tolist() == whole.tolist()


@pytest.mark.parametrize("vocabulary_size", [8, 100])
def test_tokens_are_counted(vocabulary_size):
    rows = [[[1, 2, 2]], [[7] * 90, [3]], [[2]], [[0, 0]]]
    corpus = TokenCorpus.from_documents(rows * 3)
    wanted = np.zeros(vocabulary_size, int)
    wanted[[0, 1, 2, 3, 7]] = 6, 3, 9, 3, 270
    assert corpus.count_tokens(vocabulary_size).tolist() == wanted.tolist()


def test_parts_without_a_document_are_refused():
    with pytest.raises(ValueError, match="holds 0 of 2 documents out"):
        hold_out(make_corpus(2), 1e-9)
    with pytest.raises(ValueError, match="holds 2 of 2"):
        hold_out(make_corpus(2), 1.0)
    with pytest.raises(ValueError, match="share must be over 0 and at most 1, got 5"):
        hold_out(make_corpus(2), 5)
