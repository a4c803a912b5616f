import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_byte_pairs import MERGES, make_vocabulary
from small_texts import VOCABULARY

from keras_bert_suite import BytePairTokenizer, WordPieceTokenizer
from keras_bert_suite.masking.token_sequences import TokenSequences, tokenize_in_text

ids = st.integers(0, 3)


def find_longest(sequences, token_ids, start, limit, may_end):
    """(number, length), one sequence after the other."""
    best = -1, 0
    for number, sequence in enumerate(sequences):
        end = start + len(sequence)
        fits = len(sequence) <= limit and token_ids[start:end] == sequence
        if fits and may_end[end - 1] and len(sequence) > best[1]:
            best = number, len(sequence)
    return best


@settings(max_examples=300, deadline=None)
@given(
    sequences=st.lists(st.lists(ids, min_size=1, max_size=5), max_size=12),
    token_ids=st.lists(ids, min_size=1, max_size=30),
    data=st.data(),
)
def test_the_longest_equals_a_loop(sequences, token_ids, data):
    size = len(token_ids)
    may_end = data.draw(st.lists(st.booleans(), min_size=size, max_size=size))
    limits = [data.draw(st.integers(1, size - start)) for start in range(size)]
    found = TokenSequences(sequences, 4).match(
        np.array(token_ids), np.arange(size), np.array(limits), np.array(may_end)
    )
    wanted = [
        find_longest(sequences, token_ids, start, limit, may_end)
        for start, limit in enumerate(limits)
    ]
    assert list(zip(*map(np.ndarray.tolist, found), strict=True)) == wanted


def test_units_are_matched_as_a_whole():
    token_ids = np.array([[1, 2, 3, 1], [2, 1, 2, 1]])
    begins = np.array([[True, False, True, True], [True, True, False, True]])
    numbers = TokenSequences([[1], [1, 2], [3, 1], [2]], 4).match_units(token_ids, begins)
    assert numbers.tolist() == [[1, -1, -1, 0], [3, 1, -1, 0]]


def test_texts_at_the_beginning_and_after_a_space():
    tokenizer = BytePairTokenizer(make_vocabulary(), MERGES)
    after, first, within = tokenize_in_text(tokenizer, ["good", "low bad"], "words")
    assert first == tokenizer.tokenize(["good", "low bad"])
    assert after == tokenizer.tokenize([" good", " low bad"])
    assert first[0] != after[0]
    assert within == first  # A comma is a word by itself.


def test_texts_that_no_text_can_match():
    tokenizer = WordPieceTokenizer(VOCABULARY)
    known = [VOCABULARY.index("good")]
    assert tokenize_in_text(tokenizer, ["good", "", "龥"], "words") == [[known, [], []]] * 3
    with pytest.raises(ValueError, match="None of the 2 texts in phrases .* '龥', ''"):
        tokenize_in_text(tokenizer, ["龥", ""], "phrases")
    with pytest.raises(ValueError, match="phrases must hold strings, got int 3"):
        tokenize_in_text(tokenizer, ["good", 3], "phrases")
