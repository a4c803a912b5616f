"""BART's backbone where the table of the family does not look: mBART, and two texts."""

import keras
import numpy as np
import pytest
import torch
import transformers
from checkers import check_backbone
from family import MBART, MEMBERS, run_peer
from family_differences import compare_encoder, find_difference
from peer_weights import randomize, to_numpy
from tables import everywhere_for

from keras_bert_suite import BartBackbone, TextClassifier, encode_with_attention
from keras_bert_suite.checkpoints import save_hugging_face
from keras_bert_suite.models.bart_backbone import shift_right

SIZES = {"num_layers": 2, "num_heads": 2, "hidden_dim": 8, "intermediate_dim": 16}


def test_basics_of_mbart():
    arguments = {"vocabulary_size": MBART.vocabulary_size, **SIZES, **MBART.arguments}
    outputs = {"sequence_output": (3, 10, 8), "pooled_output": (3, 8)}
    check_backbone(BartBackbone, arguments, MBART.make_inputs(), outputs, may_stay=["key/bias"])


def test_mbart_equals_transformers(tmp_path):
    """Outputs, gradients of every weight, and the files that are written back."""
    outputs, gradients = compare_encoder(MBART, tmp_path)
    for name, difference in {**outputs, **gradients}.items():
        assert difference <= 1e-5, name
    assert transformers.AutoConfig.from_pretrained(tmp_path / "again").model_type == "mbart"


def test_a_classifier_of_mbart(tmp_path):
    peer = MBART.save_peer(tmp_path / "peer", "ForSequenceClassification")
    task = TextClassifier.from_preset(tmp_path / "peer", preprocessor=None)
    inputs = MBART.make_inputs()
    assert find_difference(task(inputs), run_peer(peer, inputs).logits) <= 1e-5
    save_hugging_face(task, tmp_path / "again")
    again = transformers.MBartForSequenceClassification.from_pretrained(tmp_path / "again")
    assert find_difference(task(inputs), run_peer(again, inputs).logits) <= 1e-5


@pytest.mark.every_backend
def test_the_graph_of_pairs():
    """With the text as its own target, it is the backbone."""
    backbone = randomize(BartBackbone(MEMBERS["bart"].vocabulary_size, **SIZES))
    inputs = MEMBERS["bart"].make_inputs()
    expected = to_numpy(backbone(inputs)["sequence_output"])
    ids, mask = inputs["token_ids"], inputs["padding_mask"]
    pairs = keras.Model(*backbone.connect_pairs())
    target = {"decoder_token_ids": to_numpy(shift_right(ids, mask)), "decoder_padding_mask": mask}
    np.testing.assert_allclose(to_numpy(pairs({**inputs, **target})), expected, atol=1e-5)
    assert target["decoder_token_ids"][0, :7].tolist() == [2, *ids[0, :6].tolist()]
    # The target reaches the output, and so does the source.
    for name in ("token_ids", "decoder_token_ids"):
        other = {**inputs, **target}
        other[name] = np.where(mask, 7, other[name])
        assert np.abs(to_numpy(pairs(other)) - expected)[mask == 1].max() > 1e-3


@pytest.mark.parametrize("pre_norm", everywhere_for([False, True], True))
def test_the_last_block_computes_the_tokens_that_are_read(pre_norm):
    size = MEMBERS["bart"].vocabulary_size
    backbone = randomize(BartBackbone(size, **SIZES, pre_norm=pre_norm))
    inputs = MEMBERS["bart"].make_inputs()
    expected = backbone(inputs)
    summaries = keras.Model(backbone.input, backbone.encode_summary(backbone.input))
    pooled = to_numpy(expected["pooled_output"])
    np.testing.assert_allclose(to_numpy(summaries(inputs)), pooled, atol=1e-6)
    mask, positions = inputs["padding_mask"], np.array([[2, 0], [0, 1], [1, 3]], "int32")
    ids = shift_right(inputs["token_ids"], mask)
    encoded = backbone.encode_sources(inputs)
    *_, read = backbone.decoder(ids, mask, encoded, mask, read_positions=positions)
    states = to_numpy(expected["sequence_output"])[np.arange(3)[:, None], positions]
    np.testing.assert_allclose(to_numpy(read), states, atol=1e-6)


def test_errors():
    sizes = {**SIZES, "vocabulary_size": 20}
    for arguments in ({"num_decoder_layers": 0}, {"num_decoder_heads": 3}, {"num_heads": 5}):
        with pytest.raises(ValueError, match="num_decoder_layers must be|must divide hidden_dim"):
            BartBackbone(**{**sizes, **arguments})
    backbone = BartBackbone(**sizes)
    with pytest.raises(ValueError, match="BartBlock of a BartBackbone does not give its attention"):
        encode_with_attention(backbone, MEMBERS["bart"].make_inputs())


@pytest.mark.backend("torch")
@pytest.mark.parametrize(("size", "millions"), [("base", 139.4), ("large", 406.3)])
def test_named_sizes_have_the_published_parameters(size, millions):
    """140 and 400 million. Nothing is allocated."""
    sizes = BartBackbone.sizes[size]
    names = {"num_layers": "layers", "num_heads": "attention_heads", "intermediate_dim": "ffn_dim"}
    config = {
        f"{side}_{theirs}": sizes[ours]
        for side in ("encoder", "decoder")
        for ours, theirs in names.items()
    }
    with torch.device("meta"):
        peer = transformers.BartModel(
            transformers.BartConfig(d_model=sizes["hidden_dim"], **config)
        )
    # By linearity, from one block and two blocks: the rest would take seconds.
    with keras.device("meta"):
        one, two = (
            BartBackbone(50265, **{**sizes, "num_layers": number, "num_decoder_layers": number})
            for number in (1, 2)
        )
    blocks = two.count_params() - one.count_params()
    count = one.count_params() + (sizes["num_layers"] - 1) * blocks - one.pooler.count_params()
    assert count == sum(p.numel() for p in peer.parameters())
    assert round(count / 1e6, 1) == millions
