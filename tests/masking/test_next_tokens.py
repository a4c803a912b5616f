"""`NextTokenTargets`, literally and beside the labels of transformers."""

import pickle

import keras
import numpy as np
import pytest
from small_texts import VOCABULARY, make_reviews

from keras_bert_suite import (
    BertBackbone,
    ElectraBackbone,
    ElectraPretrainer,
    MaskedLM,
    NextTokenTargets,
    Pretrainer,
    SegmentPacker,
    WordPieceTokenizer,
    XLNetBackbone,
)

TOKENIZER = WordPieceTokenizer(VOCABULARY)
OUTPUTS = ("mask_positions", "mask_ids", "mask_weights")


def test_literal_predictions():
    batch = {
        "token_ids": np.array([[2, 7, 8, 3], [2, 9, 3, 0]], "int32"),
        "padding_mask": np.array([[1, 1, 1, 1], [1, 1, 1, 0]], "int32"),
    }
    listed = NextTokenTargets(TOKENIZER)(batch, [0, 1], epoch=5)
    assert listed["token_ids"] is batch["token_ids"]
    assert listed["mask_positions"].tolist() == [[0, 1, 2], [0, 1, 0]]
    assert listed["mask_ids"].tolist() == [[7, 8, 3], [9, 3, 0]]
    assert listed["mask_weights"].tolist() == [[1, 1, 1], [1, 1, 0]]
    assert [listed[name].dtype.name for name in OUTPUTS] == ["int32", "int32", "float32"]
    single = NextTokenTargets(TOKENIZER)({name: array[1] for name, array in batch.items()}, 1)
    for name in OUTPUTS:
        np.testing.assert_array_equal(single[name], listed[name][1])


def test_tensorflow_equals_numpy():
    tf = pytest.importorskip("tensorflow")
    targets, packer = NextTokenTargets(TOKENIZER), SegmentPacker(TOKENIZER, 12)
    texts = make_reviews(4)[0]
    wanted = targets(packer(texts))
    dataset = tf.data.Dataset.from_tensor_slices(texts).batch(4)
    got = next(iter(dataset.map(lambda texts: targets(packer(texts)))))
    for name in OUTPUTS:
        np.testing.assert_array_equal(got[name], wanted[name])
        assert got[name].dtype == wanted[name].dtype


def test_copies_and_errors():
    targets = NextTokenTargets(TOKENIZER, dynamic=False)
    sent = pickle.loads(pickle.dumps(targets))
    assert sent.tokenizer.get_vocabulary() == VOCABULARY
    loaded = keras.layers.deserialize(keras.layers.serialize(targets))
    assert (sent.dynamic, loaded.dynamic) == (False, False)
    assert isinstance(loaded.tokenizer, WordPieceTokenizer)
    with pytest.raises(ValueError, match="keys token_ids and padding_mask, got .'token_ids'"):
        targets({"token_ids": np.zeros((1, 2), "int32")}, [0])
    sizes = {"num_layers": 1, "num_heads": 1, "hidden_dim": 4, "intermediate_dim": 4}
    for pattern in ("bidirectional", "right_to_left", "seq2seq"):
        backbone = BertBackbone(30, **sizes, attention_pattern=pattern)
        with pytest.raises(ValueError, match=f"'left_to_right', got '{pattern}'"):
            targets.check_task(Pretrainer(backbone, next_sentence=False))
    backbone = BertBackbone(30, **sizes, attention_pattern="left_to_right")
    memory = {"attention_pattern": "left_to_right", "num_segments": 0, "memory_length": 4}
    remembering = Pretrainer(XLNetBackbone(30, **sizes, **memory), next_sentence=False)
    for task in (Pretrainer(backbone, next_sentence=False), MaskedLM(backbone), remembering):
        targets.check_task(task)
    electra = ElectraBackbone(30, **sizes, attention_pattern="left_to_right")
    for task, names in (
        (Pretrainer(backbone), "this Pretrainer must not predict nsp"),
        (Pretrainer(backbone, next_sentence=False, span_boundary=True), "must not predict sbo"),
        (ElectraPretrainer(electra), "this ElectraPretrainer must not predict rtd, token_ids"),
    ):
        with pytest.raises(ValueError, match=names):
            targets.check_task(task)
