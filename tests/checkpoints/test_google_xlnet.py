"""XLNet in the format of zihangdai/xlnet, with the models of transformers as the oracle."""

import json
import re

import numpy as np
import pytest
import torch
from family import MEMBERS
from models.test_xlnet import make_rows
from peer_weights import to_numpy
from small_sentence_pieces import make_xlnet

import keras_bert_suite as kbs
from keras_bert_suite.checkpoints.google_tf1.tensor_bundle import write_bundle

pytestmark = pytest.mark.filterwarnings("ignore:.*has no weights for.*pooler")

MEMBER = MEMBERS["xlnet"]

#: Names of transformers -> names of the original code.
NAMES = (
    (r"^transformer\.layer\.(\d+)\.", r"model/transformer/layer_\1/"),
    (r"^transformer\.word_embedding\.weight", "model/transformer/word_embedding/lookup_table"),
    (r"^transformer\.mask_emb", "model/transformer/mask_emb/mask_emb"),
    (r"rel_attn\.([qkvor])$", r"rel_attn/\1/kernel"),
    (r"\.layer_norm\.weight", "/LayerNorm/gamma"),
    (r"\.layer_norm\.bias", "/LayerNorm/beta"),
    (r"ff\.(layer_\d)\.weight", r"ff/\1/kernel"),
    (r"ff\.(layer_\d)\.bias", r"ff/\1/bias"),
    (r"ff/?\.?/LayerNorm", "ff/LayerNorm"),
    (r"^sequence_summary\.summary\.", "model/sequnece_summary/summary/"),
    (r"^logits_proj\.", "model/classification_mnli/logit/"),
    (r"^lm_loss\.", "model/lm_loss/"),
    (r"/weight$", "/kernel"),
)
STACKED = ("r_w_bias", "r_r_bias", "r_s_bias", "seg_embed")


def save(path, peer, untied=True):
    """Writes the weights of a model of transformers, whose layers share biases if not `untied`."""
    tensors, stacks = {}, {name: [] for name in STACKED}
    for name, parameter in peer.named_parameters():
        value = parameter.detach().numpy()
        if name.rpartition(".")[2] in STACKED:
            stacks[name.rpartition(".")[2]].append(value)
            continue
        for pattern, replacement in NAMES:
            name = re.sub(pattern, replacement, name)
        tensors[name] = value.T if re.search("(layer_\\d|summary|logit)/kernel$", name) else value
    for name, layers in stacks.items():
        is_stacked = untied or name == "seg_embed"
        tensors[f"model/transformer/{name}"] = np.stack(layers) if is_stacked else layers[0]
    tensors["global_step"] = np.zeros((), "int64")
    tensors["model/transformer/r_w_bias/Adam"] = np.zeros(3, "float32")
    path.mkdir()
    config = {"n_layer": 2, "d_model": 8, "n_head": 2, "d_head": 4, "d_inner": 16}
    config |= {"ff_activation": "gelu", "untie_r": untied, "n_token": MEMBER.vocabulary_size}
    (path / "xlnet_config.json").write_text(json.dumps(config))
    (path / "spiece.model").write_bytes(make_xlnet())
    write_bundle(path / "xlnet_model.ckpt", sorted(tensors.items()))


def run(peer, rows):
    names = {"token_ids": "input_ids", "segment_ids": "token_type_ids"}
    given = {theirs: torch.from_numpy(rows[ours]).long() for ours, theirs in names.items()}
    mask = torch.from_numpy(rows["padding_mask"]).float()
    with torch.no_grad():
        return peer(**given, attention_mask=mask).logits.numpy()


#: The original code has another GELU than transformers by default, and its own epsilon.
CONFIG = {"ff_activation": "gelu_new", "layer_norm_eps": 1e-12, "clamp_len": -1}


def test_a_pretrained_model(tmp_path):
    peer = MEMBER.save_peer(tmp_path / "theirs", "LMHeadModel", **CONFIG)
    save(tmp_path / "google", peer)
    rows = make_rows()
    backbone = kbs.XLNetBackbone.from_preset(tmp_path / "google")
    states = to_numpy(backbone({name: rows[name] for name in backbone.input})["sequence_output"])
    table, bias = (p.detach().numpy() for p in (peer.lm_loss.weight, peer.lm_loss.bias))
    seen = rows["padding_mask"] == 1
    wanted = run(peer, rows)
    np.testing.assert_allclose((states @ table.T + bias)[seen], wanted[seen], rtol=0, atol=1e-5)
    task = kbs.MaskedLM.from_preset(tmp_path / "google", preprocessor=None)
    positions = np.tile(np.arange(seen.shape[1], dtype="int32"), (len(seen), 1))
    got = task({**{name: rows[name] for name in backbone.input}, "mask_positions": positions})
    np.testing.assert_allclose(to_numpy(got)[seen], wanted[seen], rtol=0, atol=1e-5)
    vector = to_numpy(backbone.embeddings.mask_embedding)
    np.testing.assert_array_equal(vector, peer.transformer.mask_emb.detach().numpy()[0, 0])
    tokenizer = kbs.open_tokenizer(tmp_path / "google")
    assert type(tokenizer) is kbs.XLNetTokenizer and not tokenizer.lowercase


def test_a_classifier(tmp_path):
    peer = MEMBER.save_peer(tmp_path / "theirs", "ForSequenceClassification", **CONFIG)
    save(tmp_path / "google", peer)
    task = kbs.TextClassifier.from_preset(tmp_path / "google")
    assert task.label_names == ["0", "1", "2"]
    rows = make_rows()
    got = to_numpy(task({name: rows[name] for name in task.input}))
    np.testing.assert_allclose(got, run(peer, rows), rtol=0, atol=1e-5)


def test_shared_biases(tmp_path):
    peer = MEMBER.save_peer(tmp_path / "theirs", "LMHeadModel", **CONFIG)
    first, second = (layer.rel_attn for layer in peer.transformer.layer)
    with torch.no_grad():
        for name in STACKED[:3]:
            getattr(second, name).copy_(getattr(first, name))
    save(tmp_path / "google", peer, untied=False)
    backbone = kbs.XLNetBackbone.from_preset(tmp_path / "google")
    assert backbone.share_biases
    rows, seen = make_rows(), make_rows()["padding_mask"] == 1
    got = to_numpy(backbone({name: rows[name] for name in backbone.input})["sequence_output"])
    table, bias = (p.detach().numpy() for p in (peer.lm_loss.weight, peer.lm_loss.bias))
    np.testing.assert_allclose((got @ table.T + bias)[seen], run(peer, rows)[seen], atol=1e-5)
