"""Static vectors: a table, the mean of its rows, and what is saved of it."""

import json

import numpy as np
import pytest
from peer_weights import to_numpy
from small_texts import ONE_LAYER, VOCABULARY

import keras_bert_suite as kbs
from keras_bert_suite.argument_checks import list_arguments

TOKENIZER = kbs.WordPieceTokenizer(VOCABULARY)
PACKER = kbs.SegmentPacker(TOKENIZER, padding_lengths=(8,), add_special_tokens=False)


def test_states_are_rows_and_the_pooled_output_is_their_mean():
    backbone = kbs.StaticBackbone(len(VOCABULARY), 6)
    packed = PACKER.pack(["the good film", "", "un ##s xyz"])
    outputs = backbone({name: packed[name] for name in backbone.input_names})
    (table,) = map(to_numpy, backbone.weights)
    ids, mask = packed["token_ids"], packed["padding_mask"]
    np.testing.assert_array_equal(to_numpy(outputs["sequence_output"]), table[ids])
    wanted = [
        table[row[is_token == 1]].mean(axis=0) if is_token.any() else np.zeros(6)
        for row, is_token in zip(ids, mask, strict=True)
    ]
    np.testing.assert_allclose(to_numpy(outputs["pooled_output"]), wanted, atol=1e-7)


def test_every_argument_is_saved():
    changed = {"vocabulary_size": 400, "hidden_dim": 50, "initializer_range": 0.5}
    assert [*changed] == [name for name in list_arguments(kbs.StaticBackbone) if name != "dtype"]
    config = kbs.StaticBackbone(**changed, dtype="float16").get_config()
    twin = kbs.StaticBackbone.from_config(json.loads(json.dumps(config)))
    (table,) = map(to_numpy, twin.weights)
    assert (table.shape, twin.compute_dtype) == ((400, 50), "float16")
    # A normal distribution that is cut at two deviations.
    np.testing.assert_allclose(table.astype("float64").std(), 0.5, rtol=0.15)
    assert kbs.StaticBackbone.from_size("small", 9).output["pooled_output"].shape == (None, 256)


def test_other_rows_and_sizes_are_refused():
    with pytest.raises(ValueError, match="A BertBackbone reads the token that stands for a row, "):
        kbs.TextEmbedder(kbs.BertBackbone(**ONE_LAYER), preprocessor=PACKER)
    with pytest.raises(ValueError, match="hidden_dim"):
        kbs.StaticBackbone(9, 0)
    with pytest.raises(ValueError, match="this encoder has no such token"):
        kbs.TextEmbedder(kbs.StaticBackbone(len(VOCABULARY), 4), pooling="cls")
    with pytest.raises(ValueError, match="A StaticBackbone has no layers to choose from"):
        kbs.StaticBackbone(9, 4).keep_layers([0])
    with pytest.raises(ValueError, match="A StaticBackbone has no layers to choose from"):
        kbs.StaticBackbone(9, 4).resize(num_layers=1)
