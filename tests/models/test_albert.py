"""What is special about ALBERT: one layer is called many times."""

import json

import numpy as np
import pytest
import torch
import transformers
from family import MEMBERS, run_peer
from peer_weights import to_numpy

from keras_bert_suite import AlbertBackbone, TextClassifier, encode_with_attention
from keras_bert_suite.models.albert_backbone import share_layers

MEMBER = MEMBERS["albert"]


def test_hidden_states_and_attention_equal_transformers(tmp_path):
    """They belong to calls, of which there are more than layers."""
    peer = MEMBER.save_peer(tmp_path / "peer")
    backbone = AlbertBackbone.from_preset(tmp_path / "peer", output_hidden_states=True)
    inputs = MEMBER.make_inputs()
    peer.config.output_hidden_states = peer.config.output_attentions = True
    with torch.no_grad():
        theirs = run_peer(peer, inputs)
    seen = inputs["padding_mask"] == 1
    got = encode_with_attention(backbone, inputs)
    assert len(got["attentions"]) == len(theirs.attentions) == 6
    for ours, wanted in zip(got["attentions"], theirs.attentions, strict=True):
        keep = np.broadcast_to(seen[:, None, :, None], ours.shape)
        np.testing.assert_allclose(ours[keep], wanted.numpy()[keep], rtol=0, atol=1e-5)
    states = [to_numpy(state) for state in backbone(inputs)["hidden_states"]]
    assert len(states) == len(got["hidden_states"]) == 7
    # transformers gives the embeddings before their projection in place of the first state.
    for found in (states, got["hidden_states"]):
        for ours, wanted in zip(found[1:], theirs.hidden_states[-6:], strict=True):
            np.testing.assert_allclose(ours[seen], wanted.numpy()[seen], rtol=0, atol=1e-5)


def test_groups_are_those_of_transformers():
    """Its division rounds: layer 9 of 18 belongs to group 6 of 14, and not to group 7."""
    config = transformers.AlbertConfig(
        hidden_size=2,
        num_attention_heads=1,
        intermediate_size=2,
        vocab_size=2,
        num_hidden_layers=18,
        num_hidden_groups=14,
    )
    encoder = transformers.AlbertModel(config).encoder
    called = []
    for number, group in enumerate(encoder.albert_layer_groups):
        group.register_forward_hook(lambda *_, number=number: called.append(number))
    encoder(torch.zeros((1, 1, config.embedding_size)))
    assert called[9] == 6
    assert share_layers(18, 14) == called


@pytest.mark.parametrize("field", ["num_hidden_groups", "inner_group_num"])
@pytest.mark.parametrize("value", [1, 3])
def test_a_configuration_of_other_layers_is_refused(field, value, tmp_path):
    MEMBER.save_peer(tmp_path / "peer")
    path = tmp_path / "peer" / "config.json"
    config = json.loads(path.read_text())
    assert config[field] == 2
    path.write_text(json.dumps({**config, field: value}))
    with pytest.raises(ValueError, match="do not fit the model"):
        AlbertBackbone.from_preset(tmp_path / "peer")


def test_more_groups_than_layers_are_refused():
    with pytest.raises(ValueError, match="num_groups must be between 1 and num_layers=2, got 3"):
        AlbertBackbone(10, 2, 2, 8, 16, num_groups=3)


def test_a_rate_for_the_head_is_written(tmp_path):
    """ALBERT's field for it has a default of its own, whatever dropout the encoder has."""
    MEMBER.save_peer(tmp_path / "peer", "ForSequenceClassification", classifier_dropout_prob=0.4)
    task = TextClassifier.from_preset(tmp_path / "peer")
    assert (task.dropout, task.backbone.dropout) == (0.4, 0.2)


def test_files_of_another_tokenizer_are_refused(tmp_path):
    """Packed arrays go without them."""
    MEMBER.save_peer(tmp_path / "peer", "ForSequenceClassification")
    (tmp_path / "peer" / "vocab.txt").rename(tmp_path / "peer" / "spiece.model")
    with pytest.raises(ValueError, match="spiece.model of .* is no SentencePiece model"):
        TextClassifier.from_preset(tmp_path / "peer")
    TextClassifier.from_preset(tmp_path / "peer", preprocessor=None)
