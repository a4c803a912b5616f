"""A backbone whose attention pattern is changed keeps what it has learned."""

import numpy as np
import pytest
from checkers import evaluate
from peer_weights import randomize, to_numpy
from small_texts import ONE_LAYER

from keras_bert_suite import BertBackbone, RobertaBackbone, change_pattern

SIZES = {**ONE_LAYER, "dropout": 0.0}
MASK = np.array([[1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 0, 0]], "int32")
IDS = (np.arange(5, 17).reshape(2, 6) * MASK).astype("int32")
PAIR = ((np.arange(6) >= 3) * MASK).astype("int32")


def encode(backbone, segment_ids):
    inputs = {"token_ids": IDS, "segment_ids": segment_ids, "padding_mask": MASK}
    outputs = to_numpy(evaluate(backbone, inputs)["sequence_output"])
    return outputs[MASK == 1]


@pytest.mark.parametrize(
    ("pattern", "segments"),
    [
        ("bidirectional", PAIR),
        ("left_to_right", 2 * MASK),
        ("right_to_left", 3 * MASK),
        ("seq2seq", 4 * MASK + PAIR),
    ],
)
def test_rows_of_a_mixture_are_rows_of_their_pattern(pattern, segments):
    mixture = randomize(BertBackbone(**SIZES, attention_pattern="unilm", num_segments=6))
    alone = change_pattern(mixture, pattern)
    assert (alone.attention_pattern, alone.num_segments) == (pattern, 2)
    np.testing.assert_allclose(encode(alone, PAIR), encode(mixture, segments), atol=1e-5)


def test_a_bert_becomes_a_mixture():
    """All kinds begin with the segments of the BERT, and its own rows stay as they were."""
    bert = randomize(BertBackbone(**SIZES))
    mixture = change_pattern(bert, "unilm")
    np.testing.assert_allclose(encode(mixture, PAIR), encode(bert, PAIR), atol=1e-5)
    for pattern, segments, own in (
        ("left_to_right", 2 * MASK, 0 * MASK),
        ("right_to_left", 3 * MASK, 0 * MASK),
        ("seq2seq", 4 * MASK + PAIR, PAIR),
    ):
        alone = BertBackbone(**SIZES, attention_pattern=pattern)
        alone.set_weights(bert.get_weights())
        np.testing.assert_allclose(encode(mixture, segments), encode(alone, own), atol=1e-5)
    again = change_pattern(mixture, "unilm")
    assert again.num_segments == 6
    np.testing.assert_array_equal(encode(again, PAIR), encode(mixture, PAIR))


def test_a_checkpoint_of_a_mixture_keeps_its_segments():
    """Files of other libraries have the six segments, and no pattern."""
    read = randomize(BertBackbone(**SIZES, num_segments=6))
    table = read.embeddings.segment_embedding.embeddings
    for pattern, rows in (("unilm", slice(0, 6)), ("seq2seq", slice(4, 6))):
        copy = change_pattern(read, pattern)
        learned = copy.embeddings.segment_embedding.embeddings
        np.testing.assert_array_equal(to_numpy(learned), to_numpy(table)[rows])


def test_errors():
    with pytest.raises(ValueError, match="must be one of bidirectional.*got 'causal'"):
        change_pattern(BertBackbone(**SIZES), "causal")
    with pytest.raises(ValueError, match="rows of two segments, and .* has num_segments=1"):
        change_pattern(RobertaBackbone(**SIZES), "unilm")
