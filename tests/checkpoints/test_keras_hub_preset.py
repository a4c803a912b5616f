"""Presets that KerasHub's BERT wrote give KerasHub's own outputs."""

import keras_hub
import numpy as np
import pytest
from checkpoints.small_model import PIECES
from checkpoints.wild_files import TOLERANCE
from peer_weights import random_array, randomize, to_numpy

from keras_bert_suite.checkpoints import head_arguments, open_checkpoint
from keras_bert_suite.heads import TextClassifier
from keras_bert_suite.models import BertBackbone


@pytest.fixture
def keras_hub_backbone():
    return randomize(
        keras_hub.models.BertBackbone(
            vocabulary_size=24,
            num_layers=2,
            num_heads=2,
            hidden_dim=8,
            intermediate_dim=16,
            dropout=0.2,
            max_sequence_length=12,
            num_segments=3,
        )
    )


def check_same_as_keras_hub(backbone, peer, inputs):
    expected = peer(inputs)
    for name, value in backbone(inputs).items():
        np.testing.assert_allclose(to_numpy(value), to_numpy(expected[name]), atol=TOLERANCE)


def test_backbone(keras_hub_backbone, tmp_path, inputs):
    keras_hub_backbone.save_to_preset(str(tmp_path))
    backbone = BertBackbone.from_preset(tmp_path)
    assert type(backbone) is BertBackbone
    assert (backbone.dropout, backbone.attention_dropout) == (0.2, 0.2)
    check_same_as_keras_hub(backbone, keras_hub_backbone, inputs)


def test_a_file_of_an_older_keras(keras_hub_backbone, tmp_path, inputs):
    """Its attention has the layers `_query_dense`, `_key_dense` and so on."""
    import h5py

    keras_hub_backbone.save_to_preset(str(tmp_path))
    with h5py.File(tmp_path / "model.weights.h5", "a") as file:
        for block in file["layers"]:
            if block.startswith("transformer_encoder"):
                attention = file[f"layers/{block}/_self_attention_layer"]
                for layer in ("query_dense", "key_dense", "value_dense", "output_dense"):
                    attention.move(layer, f"_{layer}")
    check_same_as_keras_hub(BertBackbone.from_preset(tmp_path), keras_hub_backbone, inputs)


@pytest.mark.parametrize("activation", [None, "softmax"])
def test_classifier(keras_hub_backbone, tmp_path, inputs, activation):
    tokenizer = keras_hub.models.BertTokenizer(PIECES, lowercase=True)
    peer = keras_hub.models.BertTextClassifier(
        keras_hub_backbone,
        num_classes=3,
        activation=activation,
        dropout=0.3,
        preprocessor=keras_hub.models.BertTextClassifierPreprocessor(tokenizer, sequence_length=10),
    )
    for weight in (peer.output_dense.kernel, peer.output_dense.bias):
        rng = np.random.default_rng(1)
        weight.assign(random_array(rng, weight.path, tuple(weight.shape)))
    peer.save_to_preset(str(tmp_path))
    checkpoint = open_checkpoint(tmp_path)
    assert checkpoint.label_names == ["0", "1", "2"]
    assert checkpoint.sequence_length == 10
    classifier = TextClassifier.from_preset(tmp_path)
    assert classifier.dropout == 0.3
    np.testing.assert_allclose(to_numpy(classifier(inputs)), to_numpy(peer(inputs)), atol=TOLERANCE)
    packer = classifier.preprocessor
    # KerasHub's `lowercase` does not strip accents, ours is told so.
    assert packer.tokenizer.strip_accents is False
    texts = ["a b C d", "s r ab"]
    expected = peer.preprocessor(texts)
    for name, value in packer(texts).items():
        length = value.shape[1]
        np.testing.assert_array_equal(value, to_numpy(expected[name])[:, :length])


def test_other_head_is_named(keras_hub_backbone, tmp_path, inputs):
    peer = keras_hub.models.BertMaskedLM(keras_hub_backbone, preprocessor=None)
    peer.save_to_preset(str(tmp_path))
    assert open_checkpoint(tmp_path).label_names is None
    with pytest.warns(UserWarning, match="does not have: BertMaskedLM/.* They") as warned:
        backbone = BertBackbone.from_preset(tmp_path)
    assert len(warned) == 1
    check_same_as_keras_hub(backbone, keras_hub_backbone, inputs)


def test_other_activation_is_refused(keras_hub_backbone, tmp_path):
    peer = keras_hub.models.BertTextClassifier(
        keras_hub_backbone, num_classes=3, activation="sigmoid"
    )
    peer.save_to_preset(str(tmp_path))
    with pytest.raises(ValueError, match="no classification layer for texts"):
        head_arguments(open_checkpoint(tmp_path), "classifier")


def test_task_of_ours_on_it_is_left_to_keras_hub(keras_hub_backbone, tmp_path):
    TextClassifier(keras_hub_backbone, num_classes=2).save_to_preset(str(tmp_path))
    assert open_checkpoint(tmp_path) is None


def test_wrong_files_are_named(keras_hub_backbone, tmp_path):
    keras_hub_backbone.save_to_preset(str(tmp_path))
    file = tmp_path / "config.json"
    written = file.read_text()
    for text, message in (
        (written.replace('"vocabulary_size": 24', '"vocabulary_size": -1'), "positive integer"),
        ('{"registered_name": "keras_hub>BertBackbone"}', "'config' .* must be a JSON object"),
    ):
        file.write_text(text)
        with pytest.raises(ValueError, match=message):
            open_checkpoint(tmp_path)
    file.write_text(written)
    with pytest.raises(FileNotFoundError, match=r"no tokenizer.json\. Save .* of your own"):
        open_checkpoint(tmp_path).tokenizer_config  # noqa: B018
    weights = tmp_path / "model.weights.h5"
    weights.write_bytes(weights.read_bytes()[:1000])
    with pytest.raises(ValueError, match="model.weights.h5 cannot be read"):
        open_checkpoint(tmp_path)
    weights.unlink()
    with pytest.raises(ValueError, match="model.weights.h5 cannot be read: .*No such file"):
        open_checkpoint(tmp_path)


@pytest.mark.parametrize("kind", ["external", "virtual"])
def test_weights_in_another_file_are_refused(keras_hub_backbone, tmp_path, kind):
    import h5py

    keras_hub_backbone.save_to_preset(str(tmp_path))
    secret = str(tmp_path / "secret")
    with h5py.File(secret, "w") as file:
        file["0"] = np.zeros((3, 8), "float32")
    with h5py.File(tmp_path / "model.weights.h5", "a") as file:
        del file["layers/embedding/vars/0"]
        variables = file["layers/embedding/vars"]
        if kind == "external":
            variables.create_dataset("0", (3, 8), "float32", external=[(secret, 0, 96)])
        else:
            layout = h5py.VirtualLayout((3, 8), "float32")
            layout[:] = h5py.VirtualSource(secret, "0", (3, 8))
            variables.create_virtual_dataset("0", layout)
    with pytest.raises(ValueError, match="embedding/vars/0 lies in another file"):
        open_checkpoint(tmp_path)
