"""Files of Google's form that Google's own code did not write."""

import json
import re

import numpy as np
import pytest
import torch
import transformers
from checkpoints.small_model import PIECES
from checkpoints.wild_files import TOLERANCE, build_classifier, check_encoder
from peer_weights import randomize, run_transformers, to_numpy, transformers_peer

from keras_bert_suite.checkpoints import load_weights, open_checkpoint, save_google_tf1
from keras_bert_suite.heads import Pretrainer, TextClassifier
from keras_bert_suite.models import BertBackbone

#: Names of an ELECTRA of transformers -> those of bert4keras in a TensorFlow 1 checkpoint.
#: ELECTRA's generator is the one BERT in transformers with embeddings of another width.
BERT4KERAS_NAMES = (
    (r"^electra.embeddings_project", "bert/encoder/embedding_hidden_mapping_in"),
    (r"^electra", "bert"),
    (r"^generator_predictions.dense", "cls/predictions/transform/dense"),
    (r"^generator_predictions.LayerNorm", "cls/predictions/transform/LayerNorm"),
    (r"^generator_lm_head.bias", "cls/predictions/output_bias"),
    (r"\.layer\.", ".layer_"),
    (r"_embeddings.weight$", "_embeddings"),
    (r"LayerNorm.weight$", "LayerNorm.gamma"),
    (r"LayerNorm.bias$", "LayerNorm.beta"),
    (r"weight$", "kernel"),
    (r"\.", "/"),
)


@pytest.fixture
def save_narrow(tmp_path):
    tf = pytest.importorskip("tensorflow")
    config = transformers.ElectraConfig(
        vocab_size=24,
        embedding_size=4,
        hidden_size=8,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=12,
        hidden_act="gelu_new",
    )
    peer = transformers_peer(transformers.ElectraForMaskedLM, config)
    # Its head has the exact GELU whatever `hidden_act` says.
    peer.generator_predictions.activation = transformers.activations.ACT2FN["gelu_new"]
    values = {}
    for name, parameter in peer.named_parameters():
        value = parameter.detach().numpy()
        for pattern, replacement in BERT4KERAS_NAMES:
            name = re.sub(pattern, replacement, name)
        values[name] = value.T if name.endswith("kernel") else value
    # bert4keras' files have a pooler.
    values["bert/pooler/dense/kernel"] = np.eye(8, dtype="float32")
    values["bert/pooler/dense/bias"] = np.zeros(8, "float32")
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        variables = {name: tf.Variable(value, name=name) for name, value in values.items()}
        session.run(tf.compat.v1.global_variables_initializer())
        saver = tf.compat.v1.train.Saver(variables)
        saver.save(session, str(tmp_path / "bert_model.ckpt"), write_meta_graph=False)
    fields = ("vocab_size", "embedding_size", "hidden_size", "num_hidden_layers")
    fields += ("num_attention_heads", "intermediate_size", "max_position_embeddings")
    fields += ("hidden_dropout_prob", "attention_probs_dropout_prob", "type_vocab_size")
    written = {name: getattr(config, name) for name in fields} | {"hidden_act": "gelu"}
    (tmp_path / "bert_config.json").write_text(json.dumps(written))
    (tmp_path / "vocab.txt").write_text("\n".join(PIECES) + "\n")
    return peer, tmp_path


def test_encoder_and_head(save_narrow, inputs):
    peer, path = save_narrow
    inputs = {**inputs, "segment_ids": np.minimum(inputs["segment_ids"], 1)}
    checkpoint = open_checkpoint(path)
    assert checkpoint.backbone_config["embedding_dim"] == 4
    pretrainer = Pretrainer(BertBackbone(**checkpoint.backbone_config), next_sentence=False)
    load_weights(pretrainer, checkpoint)
    check_encoder(pretrainer.backbone, peer.electra, inputs)
    assert pretrainer.masked_lm.transform.kernel.shape == (8, 4)
    positions = np.int32([[1, 3], [2, 5], [4, 0]])
    got = to_numpy(pretrainer({**inputs, "mask_positions": positions})["mlm"])
    with torch.no_grad():
        logits = run_transformers(peer, inputs).logits.numpy()
    expected = np.take_along_axis(logits, positions[:, :, None], axis=1)
    np.testing.assert_allclose(got, expected, atol=TOLERANCE)

    save_google_tf1(pretrainer, path / "again")
    again = open_checkpoint(path / "again")
    assert again.backbone_config == checkpoint.backbone_config
    assert again.tensor_shapes() == checkpoint.tensor_shapes()
    for name in again.tensor_shapes():
        np.testing.assert_array_equal(again.tensor(name), checkpoint.tensor(name))


@pytest.mark.parametrize(
    "field, value, message",
    [
        ("embedding_size", "4", "positive integer"),
        ("num_hidden_groups", 1, "'num_hidden_groups' in .* no such model can be read"),
        ("ln_type", "preln", "'ln_type' .* only 'postln'"),
    ],
)
def test_other_configurations_are_refused(save_narrow, field, value, message):
    _, path = save_narrow
    file = path / "bert_config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), field: value}))
    with pytest.raises(ValueError, match=message):
        open_checkpoint(path)


def test_classifier_of_run_classifier_is_a_classifier(tmp_path, toy, inputs):
    model = randomize(TextClassifier(BertBackbone.from_preset(toy), num_classes=3))
    save_google_tf1(model, tmp_path / "saved")
    checkpoint = open_checkpoint(tmp_path / "saved")
    assert checkpoint.label_names == ["0", "1", "2"]
    inputs = {name: value[:, :10] for name, value in inputs.items()}
    got = to_numpy(build_classifier(checkpoint)(inputs))
    np.testing.assert_array_equal(got, to_numpy(model(inputs)))


@pytest.mark.parametrize("name", ["gelu", "gelu_erf"])
def test_exact_gelu(tmp_path, toy, inputs, name):
    """Transformers' converter, bert4keras and `open_checkpoint` compute the exact one."""
    backbone = randomize(
        BertBackbone(**{**open_checkpoint(toy).backbone_config, "activation": "gelu_erf"})
    )
    with pytest.warns(UserWarning, match="Google's own code computes the tanh"):
        save_google_tf1(backbone, tmp_path / "saved")
    file = tmp_path / "saved" / "bert_config.json"
    written = json.loads(file.read_text())
    assert (written["hidden_act"], written["gelu_approximate"]) == ("gelu", False)
    assert transformers.BertConfig.from_json_file(file).hidden_act == "gelu"
    if name == "gelu_erf":  # bert4keras' name
        del written["gelu_approximate"]
        file.write_text(json.dumps({**written, "hidden_act": name}))
    again = BertBackbone.from_preset(tmp_path / "saved")
    expected = backbone(inputs)
    for output, value in again(inputs).items():
        np.testing.assert_array_equal(to_numpy(value), to_numpy(expected[output]))
