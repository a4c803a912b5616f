import keras
import numpy as np
import pytest
from peer_weights import to_numpy

from keras_bert_suite.layers import WindowSampler

NUMBERS = (5, 2, 1)
#: The numbers of the windows of three documents, -1 on padding.
NUMBERED = np.array([[*range(n), *[-1] * (5 - n)] for n in NUMBERS], "int32")
INPUTS = {
    "token_ids": np.repeat(NUMBERED[:, :, None], 3, axis=2),
    "padding_mask": np.repeat((NUMBERED >= 0)[:, :, None], 3, axis=2).astype("int32"),
}


def draw(sampler):
    drawn = {name: to_numpy(x) for name, x in sampler(INPUTS, training=True).items()}
    assert {x.shape for x in drawn.values()} == {(3, sampler.num_windows, 3)}
    np.testing.assert_array_equal(drawn["padding_mask"], drawn["token_ids"] >= 0)
    return drawn["token_ids"][:, :, 0]


@pytest.mark.every_backend
def test_samples_of_windows():
    sampler = WindowSampler(2, seed=1)
    samples = np.stack([draw(sampler) for _ in range(30)])
    first, short, single = samples.swapaxes(0, 1)
    assert (first[:, 0] < first[:, 1]).all()  # Windows keep their order.
    assert len(np.unique(first, axis=0)) > 5 and set(first.ravel()) == set(range(5))
    assert (short == [0, 1]).all() and (single == [0, -1]).all()
    again = WindowSampler.from_config(sampler.get_config())
    np.testing.assert_array_equal(draw(again), samples[0])
    keras.tree.map_structure(np.testing.assert_array_equal, sampler(INPUTS), INPUTS)
