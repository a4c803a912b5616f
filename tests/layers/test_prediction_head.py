import numpy as np
import pytest
from checkers import check_layer

from keras_bert_suite.layers import PredictionHead, TokenEmbeddings


@pytest.mark.parametrize("has_biases", [False, True])
def test_prediction_head(has_biases):
    hidden = np.random.default_rng(0).standard_normal((3, 5, 8)).astype("float32")
    arguments = {"use_bias": has_biases, "norm_bias": has_biases}
    check_layer(PredictionHead, arguments, {"hidden": hidden}, (3, 5, 8))


def test_token_embeddings():
    ids = np.random.default_rng(0).integers(0, 9, (3, 20)).astype("int32")
    arguments = {"vocabulary_size": 9, "hidden_dim": 8, "max_sequence_length": 20}
    check_layer(TokenEmbeddings, arguments, {"token_ids": ids}, (3, 20, 8))
    with pytest.raises(ValueError, match="length 20, but this model has positions for 19"):
        TokenEmbeddings(**{**arguments, "max_sequence_length": 19})(ids)
