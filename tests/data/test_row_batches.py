import numpy as np
import pytest

from keras_bert_suite.data import RowBatches
from keras_bert_suite.data.input_dataset import gather_columns, is_dataset, num_batches, split_rows
from keras_bert_suite.data.row_batches import as_array, text_lengths
from keras_bert_suite.data.row_orders import shuffled

pytestmark = pytest.mark.backend_free


def test_a_batch_is_a_function_of_its_index():
    batches = RowBatches((np.arange(10), {"y": np.arange(10) * 2}), 4, shuffled(10, seed=0))
    assert len(batches) == 3
    epochs = [np.concatenate([batches[3 * e + i][0] for i in range(3)]) for e in range(2)]
    assert not np.array_equal(*epochs)
    assert all(sorted(epoch) == list(range(10)) for epoch in epochs)
    x, y = batches[5]
    assert (y["y"] == 2 * x).all() and len(x) == 2
    assert len(list(batches.repeat(2).to_iter_dataset())) == 6
    np.testing.assert_array_equal(batches.repeat(2)[5][0], x)


def test_strings_are_kept_as_objects():
    array = as_array(["a", "b" * 100_000])
    assert array.dtype == object and array.nbytes < 100
    assert text_lengths((array, as_array(["cc", "d"]))).tolist() == [3, 100_001]
    assert text_lengths({"token_ids": np.ones((2, 3))}) is None


@pytest.mark.parametrize(
    ("columns", "error"),
    [
        (("text", [1]), "list of strings, got the string 'text'"),
        (([("a", "b")], [1]), "tuple of two lists"),
        ((["a", None], [1, 0]), "got None at row 1"),
        ((["a", "b"], [1]), "got 2 and 1 rows"),
        (([], []), "at least one row"),
    ],
)
def test_bad_columns(columns, error):
    with pytest.raises(ValueError, match=error):
        gather_columns(*columns)


def test_split_rows():
    first, last = split_rows((np.arange(10), np.arange(10)), 0.2)
    assert first[0].tolist() == list(range(8)) and last[1].tolist() == [8, 9]
    with pytest.raises(ValueError, match="leaves 0 of 1 rows"):
        split_rows(np.arange(1), 0.5)


def test_what_is_a_dataset():
    tf = pytest.importorskip("tensorflow")
    dataset = tf.data.Dataset.range(6).batch(4)
    assert (
        is_dataset(dataset) and num_batches(dataset) == 2 and num_batches(dataset.repeat()) is None
    )
    assert not any(map(is_dataset, (["a"], ("a", "b"), {}, "a", np.ones(1), tf.ones(1))))
