"""RoFormer, NEZHA and ELECTRA in Google's format, with the models of transformers as the oracle.

The names are those of ZhuiyiTechnology/roformer (written by bert4keras), huawei-noah's
NEZHA-TensorFlow and google-research/electra, as the converters of transformers read them.
"""

import json
import logging
import re

import numpy as np
import pytest
import torch
import transformers
from checkpoints.small_model import PIECES, THEIR_SIZES
from checkpoints.wild_files import check_encoder
from family import MEMBERS
from peer_weights import run_transformers, to_numpy, transformers_peer
from safetensors.numpy import load_file

import keras_bert_suite as kbs
from keras_bert_suite.checkpoints import open_checkpoint
from keras_bert_suite.checkpoints.google_tf1.tensor_bundle import write_bundle

pytestmark = pytest.mark.filterwarnings("ignore:.*has no weights for.*pooler")

SIZES = {
    **THEIR_SIZES,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1,
}

#: Names of transformers -> names of Google's format.
COMMON = (
    (r"\.layer\.", ".layer_"),
    (r"_embeddings\.weight$", "_embeddings"),
    (r"LayerNorm\.weight$", "LayerNorm.gamma"),
    (r"LayerNorm\.bias$", "LayerNorm.beta"),
    (r"seq_relationship\.weight$", "seq_relationship.output_weights"),
    (r"seq_relationship\.bias$", "seq_relationship.output_bias"),
    (r"weight$", "kernel"),
    (r"cls\.predictions\.bias$", "cls.predictions.output_bias"),
    (r"\.", "/"),
)
ROFORMER = ((r"^roformer\.embeddings_project", "bert.encoder.embedding_hidden_mapping_in"),)
ROFORMER += ((r"^roformer", "bert"), *COMMON)
NEZHA = ((r"^nezha", "bert"), *COMMON)
DISCRIMINATOR = ((r"dense_prediction", "dense_1"), *COMMON)
GENERATOR = ((r"^generator_lm_head\.bias", "generator_predictions.output_bias"),)
GENERATOR += ((r"^electra\.(?!embeddings\.)", "generator."), *COMMON)


def rename(tensors, names):
    """dict of Google's name -> array, of tensors by the names of transformers."""
    renamed = {}
    for name, value in tensors.items():
        for pattern, replacement in names:
            name = re.sub(pattern, replacement, name)
        renamed[name] = value.T if name.endswith("kernel") else value
    return renamed


def parameters_of(peer):
    # Of a RoFormer, transformers saves the sines and cosines of positions.
    return {n: p.detach().numpy() for n, p in peer.named_parameters() if "embed_pos" not in n}


def write(path, tensors, config, name="bert_config.json"):
    path.mkdir(exist_ok=True)
    (path / name).write_text(json.dumps(config))
    (path / "vocab.txt").write_text("\n".join(PIECES) + "\n")
    write_bundle(path / "bert_model.ckpt", sorted(tensors.items()))
    return path


@pytest.fixture
def rows(inputs):
    return {**inputs, "segment_ids": np.minimum(inputs["segment_ids"], 1)}


def check_guesses(path, peer, rows):
    task = kbs.Pretrainer.from_preset(path, next_sentence=False, preprocessor=None)
    positions = np.int32([[1, 3], [2, 5], [4, 0]])
    with torch.no_grad():
        logits = run_transformers(peer, rows).logits.numpy()
    wanted = np.take_along_axis(logits, positions[:, :, None], axis=1)
    got = to_numpy(task({**rows, "mask_positions": positions})["mlm"])
    np.testing.assert_allclose(got, wanted, atol=1e-5)


def make_roformer(**more):
    config = transformers.RoFormerConfig(**SIZES, **more)
    return transformers_peer(transformers.RoFormerForMaskedLM, config)


@pytest.mark.parametrize("more", [{}, {"embedding_size": 4, "rotary_value": True}])
def test_roformer(tmp_path, rows, more):
    peer = make_roformer(**more)
    tensors = rename(parameters_of(peer), ROFORMER)
    path = write(tmp_path / "roformer", tensors, {**SIZES, **more, "model_type": "roformer"})
    check_encoder(kbs.RoFormerBackbone.from_preset(path), peer.roformer, rows)
    check_guesses(path, peer, rows)
    assert type(kbs.TextClassifier.from_preset(path, num_classes=2).backbone).__name__ == (
        "RoFormerBackbone"
    )


def test_a_model_without_positions_is_named(tmp_path):
    peer = make_roformer()
    path = write(tmp_path / "unnamed", rename(parameters_of(peer), ROFORMER), SIZES)
    for cls in (kbs.BertBackbone, kbs.RoFormerBackbone):
        with pytest.raises(
            ValueError, match='probably a RoFormer. Add "model_type": "roformer" to'
        ):
            cls.from_preset(path)
    (path / "bert_config.json").write_text(json.dumps({**SIZES, "model_type": "roformer"}))
    with pytest.raises(ValueError, match="weights of RoFormer.* Use RoFormerBackbone"):
        kbs.NezhaBackbone.from_preset(path)


def test_a_pooler_of_roformer_sim_is_named(tmp_path):
    """SimBERTv2: its pooler has no activation, and that of our class has the encoder's."""
    tensors = rename(parameters_of(make_roformer()), ROFORMER)
    tensors["bert/pooler/dense/kernel"] = np.eye(8, dtype="float32")
    tensors["bert/pooler/dense/bias"] = np.zeros(8, "float32")
    path = write(tmp_path / "sim", tensors, {**SIZES, "model_type": "roformer"})
    with pytest.warns(UserWarning, match="not have: bert/pooler/dense/bias, bert/pooler/dense/k"):
        kbs.TextEmbedder.from_preset(path)


def test_second_version(tmp_path):
    """RoFormerV2: no biases, and norms without weights."""
    tensors = rename(parameters_of(make_roformer()), ROFORMER)
    parts = ("gamma", "beta", "bias")
    kept = {n: x for n, x in tensors.items() if not n.endswith(parts) and "cls/" not in n}
    path = write(tmp_path / "v2", kept, {**SIZES, "hidden_act": "relu", "model_type": "roformer"})
    backbone = kbs.RoFormerBackbone.from_preset(path)
    assert (backbone.use_bias, backbone.norm_type) == (False, "rms_norm")
    query = backbone.get_layer("transformer_layer_0").self_attention.query.kernel
    wanted = kept["bert/encoder/layer_0/attention/self/query/kernel"]
    np.testing.assert_array_equal(to_numpy(query), wanted)


@pytest.mark.parametrize("says", [{"use_relative_position": True}, {"model_type": "nezha"}])
def test_nezha(tmp_path, says):
    """Every weight is where the file of transformers has it. Other tests compare the outputs."""
    folder = MEMBERS["nezha"].folder / "ForPreTraining"
    MEMBERS["nezha"].save_peer(tmp_path / "peer", "ForPreTraining")
    config = json.loads((tmp_path / "peer" / "config.json").read_text())
    fields = (*SIZES, "max_relative_position")
    config = {name: config[name] for name in fields} | {"hidden_act": "gelu"} | says
    tensors = load_file(next(folder.glob("model.safetensors")))
    tensors = {n: x for n, x in tensors.items() if "positions_encoding" not in n}
    tensors = {n: x for n, x in tensors.items() if "decoder" not in n and "position_ids" not in n}
    path = write(tmp_path / "nezha", rename(tensors, NEZHA), config)
    ours = kbs.Pretrainer.from_preset(path, preprocessor=None)
    theirs = kbs.Pretrainer.from_preset(tmp_path / "peer", preprocessor=None)
    assert type(ours.backbone) is kbs.NezhaBackbone
    assert open_checkpoint(path).backbone_config["activation"] == "gelu_tanh"
    assert ours.backbone.max_relative_position == 3
    values = {w.path: to_numpy(w) for w in theirs.weights}
    assert {w.path for w in ours.weights} == {*values}
    for weight in ours.weights:
        np.testing.assert_array_equal(to_numpy(weight), values[weight.path], err_msg=weight.path)


def make_electra(cls, width):
    sizes = {**SIZES, "hidden_size": width, "intermediate_size": 2 * width, "embedding_size": 6}
    return transformers_peer(cls, transformers.ElectraConfig(**sizes)), sizes


def write_electra(path, config_name="bert_config.json", untied=False):
    """A file of a pretraining, with both models; (discriminator, generator, their sizes)."""
    discriminator, sizes = make_electra(transformers.ElectraForPreTraining, 8)
    generator, small = make_electra(transformers.ElectraForMaskedLM, 4)
    tensors = rename(parameters_of(discriminator), DISCRIMINATOR)
    theirs = rename(parameters_of(generator), GENERATOR)
    if untied:
        theirs = {n.replace("electra/emb", "generator/emb"): x for n, x in theirs.items()}
    else:
        generator.electra.embeddings.load_state_dict(discriminator.electra.embeddings.state_dict())
    tensors = {**theirs, **tensors, "global_step": np.zeros((), "float32")}
    write(path, tensors, sizes, config_name)
    return discriminator, generator, small


@pytest.mark.parametrize("config_name", ["bert_config.json", "electra_config_small.json"])
def test_discriminator(tmp_path, rows, caplog, config_name):
    peer, _, _ = write_electra(tmp_path / "electra", config_name)
    path = tmp_path / "electra"
    with caplog.at_level(logging.INFO):
        backbone = kbs.ElectraBackbone.from_preset(path)
    # The others are no surprise.
    assert [r.getMessage().partition(": ")[2] for r in caplog.records] == [
        "left out the head discriminator_predictions, generator, generator_predictions."
    ]
    check_encoder(backbone, peer.electra, rows)
    with pytest.warns(UserWarning, match="The generator is new"):
        task = kbs.ElectraPretrainer.from_preset(path)
    with torch.no_grad():
        wanted = run_transformers(peer, rows).logits.numpy()
    np.testing.assert_allclose(to_numpy(task.discriminator(rows)), wanted, atol=1e-5)
    classifier = kbs.TextClassifier.from_preset(path, num_classes=2)
    assert classifier.predict(["a b", "c"], verbose=0).shape == (2, 2)
    assert kbs.SegmentPacker.from_preset(path)(["a b"])["token_ids"].shape[0] == 1


@pytest.mark.parametrize("untied", [False, True])
def test_generator(tmp_path, rows, untied):
    """The configuration of the generator opens the generator."""
    path = tmp_path / "electra"
    _, peer, sizes = write_electra(path, untied=untied)
    (path / "bert_config.json").write_text(json.dumps(sizes))
    check_encoder(kbs.ElectraBackbone.from_preset(path), peer.electra, rows)
    check_guesses(path, peer, rows)
