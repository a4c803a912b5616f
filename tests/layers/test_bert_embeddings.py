import numpy as np
import pytest
from checkers import check_layer
from keras import ops
from peer_weights import randomize, to_numpy

from keras_bert_suite.layers import BertEmbeddings
from keras_bert_suite.layers.attention.sequence_layout import SequenceLayout
from keras_bert_suite.preprocessing.sequence_packing import lay_out_sequences

B, L, H, V = 3, 5, 12, 30
KWARGS = dict(vocabulary_size=V, hidden_dim=H, max_sequence_length=10)


def random_inputs(batch=B, length=L, num_segments=2, seed=0):
    rng = np.random.default_rng(seed)
    return {
        "token_ids": rng.integers(0, V, (batch, length)).astype("int32"),
        "segment_ids": rng.integers(0, num_segments, (batch, length)).astype("int32"),
    }


def test_basics():
    check_layer(
        BertEmbeddings,
        dict(
            **KWARGS,
            embedding_dim=8,
            num_segments=3,
            dropout=0.2,
            layer_norm_epsilon=1e-3,
            initializer_range=0.05,
        ),
        random_inputs(num_segments=3),
        (B, L, H),
    )


@pytest.mark.parametrize("embedding_dim", [None, 8])
@pytest.mark.parametrize("epsilon", [1e-12, 0.5])
def test_is_the_formula(embedding_dim, epsilon):
    layer = BertEmbeddings(
        **KWARGS, embedding_dim=embedding_dim, num_segments=3, layer_norm_epsilon=epsilon
    )
    inputs = random_inputs(num_segments=3)
    layer(**inputs)
    randomize(layer)
    w = {v.path.split("/", 1)[1]: to_numpy(v).astype("float64") for v in layer.weights}
    x = (
        w["token_embedding/embeddings"][inputs["token_ids"]]
        + w["segment_embedding/embeddings"][inputs["segment_ids"]]
        + w["position_embedding/embeddings"][:L]
    )
    centred = x - x.mean(-1, keepdims=True)
    x = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + epsilon)
    x = x * w["layer_norm/gamma"] + w["layer_norm/beta"]
    if embedding_dim:
        x = x @ w["projection/kernel"] + w["projection/bias"]
    np.testing.assert_allclose(to_numpy(layer(**inputs)), x, atol=1e-5)


def test_packed_rows_have_the_positions_of_their_own_tokens():
    layer = BertEmbeddings(**KWARGS, position_offset=2)
    inputs = {name: ops.convert_to_tensor(ids) for name, ids in random_inputs().items()}
    expected = layer(**inputs)
    is_token = np.arange(L) < np.array([[2], [5], [3]])
    mask = ops.convert_to_tensor(is_token.astype("int32"))
    layout = lay_out_sequences(is_token)
    assert layout.size < is_token.size
    layout = SequenceLayout.read(ops.convert_to_tensor(layout), mask)
    got = layout.unpack(layer(**inputs, sequence_layout=layout), mask)
    np.testing.assert_allclose(to_numpy(got)[is_token], to_numpy(expected)[is_token], atol=1e-6)


def test_no_projection_where_the_widths_agree():
    assert BertEmbeddings(**KWARGS).projection is None
    assert BertEmbeddings(**KWARGS, embedding_dim=H).projection is None


def test_dropout_drops_its_rate_in_training_only():
    layer = BertEmbeddings(**KWARGS, dropout=0.1)
    inputs = random_inputs()
    kept = to_numpy(layer(**inputs))
    np.testing.assert_array_equal(to_numpy(layer(**inputs, training=False)), kept)
    trained = np.stack([to_numpy(layer(**inputs, training=True)) for _ in range(40)])
    dropped = trained == 0
    assert abs(dropped.mean() - 0.1) < 0.015
    assert len(np.unique(dropped, axis=0)) > 30
    np.testing.assert_allclose(trained, np.where(dropped, 0, kept / 0.9), rtol=1e-4, atol=1e-5)


def test_a_sequence_too_long_is_an_error():
    layer = BertEmbeddings(**KWARGS)
    layer(**random_inputs(length=10))
    with pytest.raises(ValueError, match="length 11.*positions for 10.*sequence_length"):
        layer(**random_inputs(length=11))


def test_initial_tables_differ_and_are_small():
    layer = BertEmbeddings(vocabulary_size=2000, hidden_dim=32, initializer_range=0.03)
    layer.build((B, L))
    tables = [
        to_numpy(t.embeddings)
        for t in (layer.token_embedding, layer.position_embedding, layer.segment_embedding)
    ]
    # A normal distribution cut at two standard deviations keeps 0.88 of its own.
    assert abs(tables[0].std() / (0.88 * 0.03) - 1) < 0.02
    # (Keras' draw under PyTorch lets about four in a million through.)
    assert max((np.abs(table) > 0.0601).mean() for table in tables) < 1e-4
    assert not np.allclose(tables[0][:2], tables[2])
    assert not np.allclose(tables[0][:512], tables[1])
