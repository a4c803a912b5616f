import pytest
from small_tasks import make_parts

import keras_bert_suite as kbs
from keras_bert_cli.command_flags import UsageError
from keras_bert_cli.head_layers import read_head_layers


def test_the_layers_of_the_flag():
    backbone, packer = make_parts("SegmentPacker", {})
    layers = read_head_layers(["last:1", "bilstm:5", "convolution:3"])
    tagger = kbs.TokenClassifier(backbone, 2, preprocessor=packer, head_layers=layers)
    shapes = [layer.output.shape for layer in tagger.head_layers]
    assert shapes == [(None, None, 16), (None, None, 10), (None, None, 3)]
    layers = read_head_layers(["mix"])
    tagger = kbs.TokenClassifier(backbone, 2, preprocessor=packer, head_layers=layers)
    assert isinstance(tagger.head_layers[0], kbs.ScalarMix)
    assert read_head_layers(None) is None


@pytest.mark.parametrize(
    ("names", "error"),
    [
        (["lstm:4"], "got 'lstm:4'"),
        (["bilstm"], "bilstm:N"),
        (["bilstm:0"], "at least 1"),
        (["bilstm:4", "mix"], "mix takes all layers of the encoder: put it first"),
    ],
)
def test_wrong_layers(names, error):
    with pytest.raises(UsageError, match=error):
        read_head_layers(names)
