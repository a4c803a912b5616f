import numpy as np
import pytest

from keras_bert_suite.preprocessing.text_rows import (
    interleave_packed,
    interleave_texts,
    number_texts,
    split_packed,
)


def test_texts_of_a_row_are_neighbours():
    import tensorflow as tf

    columns = (["a", "b"], np.array(["c", "d"], object), ["e", "f"])
    assert interleave_texts(columns) == ["a", "c", "e", "b", "d", "f"]
    tensors = tuple(tf.constant(list(column)) for column in columns)
    assert interleave_texts(tensors).numpy().tolist() == [b"a", b"c", b"e", b"b", b"d", b"f"]
    with pytest.raises(ValueError, match="argument 2 is shorter"):
        interleave_texts((["a", "b"], ["c"]))


def test_equal_texts_have_equal_numbers():
    import tensorflow as tf

    token_ids = np.array([[5, 6], [7, 8], [7, 8], [9, 0], [5, 6], [5, 7]], "int32")
    for ids in (token_ids, tf.constant(token_ids)):
        numbers = np.asarray(number_texts(ids, 2)).ravel()
        assert numbers.dtype == "int32" and len(set(numbers.tolist())) == 4
        for i, j in np.ndindex(6, 6):
            assert (numbers[i] == numbers[j]) == (token_ids[i] == token_ids[j]).all()


def test_packed_rows_become_packed_texts():
    ids = np.arange(24, dtype="int32").reshape(3, 2, 4)
    columns = split_packed({"token_ids": ids})
    np.testing.assert_array_equal(interleave_packed(columns)["token_ids"], ids.reshape(6, 4))
    assert split_packed({"token_ids": ids[0]})[0]["token_ids"].shape == (2, 4)
    with pytest.raises(ValueError, match=r"shape \(B, S, L\) or \(B, L\), got .*\(24,\)"):
        split_packed({"token_ids": ids.ravel()})
