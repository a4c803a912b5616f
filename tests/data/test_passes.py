import itertools

import keras
import pytest

from keras_bert_suite.data.passes import Passes, read_batches


class Batches(keras.utils.PyDataset):
    """Three batches, and a record of what is asked of them."""

    def __init__(self, num_batches=3, **kwargs):
        super().__init__(**kwargs)
        self.asked, self._num_batches = [], num_batches

    @property
    def num_batches(self):
        return self._num_batches

    def __getitem__(self, index):
        self.asked.append(index)
        return index

    def on_epoch_end(self):
        self.asked.append("end")


def test_each_pass_begins_anew():
    passes = Passes(lambda: read_batches([1, 2, 3]))
    assert list(passes) == list(passes) == [1, 2, 3]
    assert list(passes.map(lambda batch: batch + 1)) == [2, 3, 4]


def test_passes_go_on():
    endless = read_batches([1, 2], repeat=True)
    assert list(itertools.islice(endless, 5)) == [1, 2, 1, 2, 1]


def test_a_py_dataset():
    dataset = Batches()
    assert list(read_batches(dataset)) == [0, 1, 2]
    assert dataset.asked == [0, 1, 2, "end"]
    assert sorted(read_batches(Batches(), shuffle=True)) == [0, 1, 2]
    endless = read_batches(Batches(num_batches=None))
    assert list(itertools.islice(endless, 4)) == [0, 1, 2, 3]


@pytest.mark.parametrize("repeat", [False, True])
def test_nothing_to_read(repeat):
    with pytest.raises(ValueError, match="no batches"):
        list(read_batches([], repeat))


def test_a_pass_cannot_be_entered():
    """A training that saves its place would go on at another one."""
    batches = iter(Passes(lambda: read_batches([1, 2, 3])))
    with pytest.raises(NotImplementedError, match="no place to save"):
        batches.get_state()
    with pytest.raises(NotImplementedError, match="cannot be entered"):
        batches.set_state({})
