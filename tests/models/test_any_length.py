"""Models without a table of positions may take rows of any length: `max_sequence_length=None`."""

import keras
import numpy as np
import pytest
from small_texts import ONE_LAYER, VOCABULARY, make_reviews

from keras_bert_suite import (
    BertBackbone,
    ModernBertBackbone,
    NezhaBackbone,
    RoFormerBackbone,
    SegmentPacker,
    TextClassifier,
    WordPieceTokenizer,
)
from keras_bert_suite.checkpoints import save_hugging_face
from keras_bert_suite.checkpoints.writing_steps import find_length

SIZES = {**ONE_LAYER, "max_sequence_length": None}


def make_inputs(backbone, length):
    return {name: np.ones((1, length), "int32") for name in backbone.input}


@pytest.mark.parametrize("cls", [RoFormerBackbone, NezhaBackbone, ModernBertBackbone])
def test_rows_of_any_length(cls, tmp_path):
    """With a number, the default of the class would be the longest row."""
    arguments = {n: v for n, v in SIZES.items() if n != "dropout" or cls is not ModernBertBackbone}
    backbone = cls(**arguments)
    inputs = make_inputs(backbone, 9000)
    backbone.save(tmp_path / "model.keras")
    copy = keras.saving.load_model(tmp_path / "model.keras")
    assert copy.max_sequence_length is None
    short = {name: array[:, :700] for name, array in inputs.items()}
    wanted, got = (m.predict_on_batch(short)["sequence_output"] for m in (backbone, copy))
    np.testing.assert_array_equal(got, wanted)
    # Only the embeddings look at the length.
    assert backbone.embeddings(inputs["token_ids"]).shape == (1, 9000, SIZES["hidden_dim"])


def test_a_table_of_positions_needs_a_number():
    with pytest.raises(ValueError, match="table of positions .* got max_sequence_length=None"):
        BertBackbone(**SIZES)
    with pytest.raises(ValueError, match="max_sequence_length"):
        RoFormerBackbone(**{**SIZES, "max_sequence_length": 0})


def test_texts_and_targets(tmp_path):
    """No packer is too long for such a model."""
    texts, labels = make_reviews(8)
    packer = SegmentPacker(WordPieceTokenizer(VOCABULARY), sequence_length=600)
    task = TextClassifier(RoFormerBackbone(**SIZES), label_names=["no", "yes"], preprocessor=packer)
    task.compile()
    task.fit(texts, labels, epochs=1, verbose=0)
    assert task.predict(texts).shape == (8, 2)
    backbone = NezhaBackbone(**SIZES)
    assert find_length(TextClassifier(backbone, 2, preprocessor=packer), None) == 600
    assert find_length(backbone, None) is None and find_length(backbone, 7000) == 7000
    with pytest.raises(ValueError, match="must be from 4, got 3"):
        find_length(backbone, 3)


def test_a_format_with_a_number_of_positions(tmp_path):
    with pytest.raises(ValueError, match="has a number of positions, got max_sequence_length=None"):
        save_hugging_face(RoFormerBackbone(**SIZES), tmp_path / "saved")
