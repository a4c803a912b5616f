"""Encoders whose norms depend on a condition, as `layer_norm_cond` of bert4keras."""

import keras
import numpy as np
import pytest
import torch
import transformers
from gradients import compute_gradients
from peer_weights import randomize, to_numpy
from tables import short_for

import keras_bert_suite as kbs
from keras_bert_suite.checkpoints import save_hugging_face

SIZES = {"num_layers": 2, "num_heads": 2, "hidden_dim": 8, "intermediate_dim": 12}
SHORT = {**SIZES, "max_sequence_length": 16, "dropout": 0.0}
RNG = np.random.default_rng(0)
IDS = RNG.integers(5, 30, (3, 7)).astype("int32")
MASK = (np.arange(7) < np.array([[7], [4], [6]])).astype("int32")
INPUTS = {"token_ids": IDS * MASK, "segment_ids": 0 * IDS, "padding_mask": MASK}
CONDITION = RNG.standard_normal((3, 3)).astype("float32")
FAMILY = [
    *(kbs.BertBackbone, kbs.RobertaBackbone, kbs.AlbertBackbone, kbs.DistilBertBackbone),
    *(kbs.ElectraBackbone, kbs.ErnieBackbone, kbs.RoFormerBackbone, kbs.NezhaBackbone),
    kbs.LongformerBackbone,
]


def select(backbone):
    inputs = {**INPUTS, "condition": CONDITION}
    return {name: inputs[name] for name in backbone.input}


class TorchNorm(torch.nn.Module):
    """The rule of bert4keras in the place of a norm of transformers. All share `condition`."""

    condition = torch.tensor(CONDITION)

    def __init__(self, norm, size):
        super().__init__()
        self.norm = norm
        self.scale = torch.nn.Linear(size, len(norm.weight), bias=False)
        self.offset = torch.nn.Linear(size, len(norm.weight), bias=False)

    def forward(self, x):
        scale, offset = (dense(self.condition)[:, None] for dense in (self.scale, self.offset))
        x = torch.nn.functional.layer_norm(x, x.shape[-1:], eps=self.norm.eps)
        return x * (self.norm.weight + scale) + self.norm.bias + offset


def condition_peer(path):
    """transformers' BERT of a folder with conditional norms; dict of our path -> its norm."""
    peer = transformers.BertModel.from_pretrained(path, attn_implementation="eager").eval()
    places = {"embeddings/layer_norm": peer.embeddings}
    for i, layer in enumerate(peer.encoder.layer):
        places[f"transformer_layer_{i}/self_attention_norm"] = layer.attention.output
        places[f"transformer_layer_{i}/feedforward_norm"] = layer.output
    for module in places.values():
        module.LayerNorm = TorchNorm(module.LayerNorm, 3)
    return peer, {path: module.LayerNorm for path, module in places.items()}


@pytest.mark.every_backend
def test_it_is_bert_with_the_norms_of_bert4keras(tmp_path):
    """In outputs, and in the gradients of the new matrices and of the scales."""
    plain = randomize(kbs.BertBackbone(30, **SHORT))
    save_hugging_face(plain, tmp_path / "bert")
    backbone = kbs.BertBackbone.from_preset(
        tmp_path / "bert", norm_condition=kbs.NormCondition(3), activation="gelu_tanh", dropout=0.0
    )
    peer, norms = condition_peer(tmp_path / "bert")
    weights = {weight.path: weight for weight in backbone.weights}
    for path, norm in norms.items():
        for name, dense in (("scale_kernel", norm.scale), ("offset_kernel", norm.offset)):
            kernel = RNG.normal(0, 0.3, (3, 8)).astype("float32")
            weights[f"{path}/{name}"].assign(kernel)
            dense.weight.data = torch.tensor(kernel.T.copy())
    tensors = {"input_ids": IDS * MASK, "token_type_ids": 0 * IDS, "attention_mask": MASK}
    tensors = {name: torch.tensor(array).long() for name, array in tensors.items()}
    wanted = peer(**tensors).last_hidden_state
    got = to_numpy(backbone(select(backbone))["sequence_output"])
    is_token = MASK[:, :, None]
    np.testing.assert_allclose(got * is_token, wanted.detach() * is_token, rtol=0, atol=1e-5)

    weighting = RNG.standard_normal(got.shape).astype("float32") * is_token
    (wanted * torch.tensor(weighting)).sum().backward()
    found = compute_gradients(backbone, select(backbone), {"sequence_output": weighting})
    for path, norm in norms.items():
        for name, tensor in (
            ("scale_kernel", norm.scale.weight.grad.T),
            ("offset_kernel", norm.offset.weight.grad.T),
            ("gamma", norm.norm.weight.grad),
        ):
            np.testing.assert_allclose(found[f"{path}/{name}"], tensor, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    "cls",
    short_for(
        FAMILY,
        *(kbs.BertBackbone, kbs.AlbertBackbone, kbs.RoFormerBackbone, kbs.LongformerBackbone),
        part="combinations",
    ),
    ids=lambda cls: cls.__name__,
)
def test_it_begins_with_the_outputs_that_it_had(cls, tmp_path):
    """And then depends on the condition, also from a preset and in the last block alone."""
    plain = randomize(cls(30, **SHORT))
    backbone = plain.add_condition(kbs.NormCondition(3, 4, "tanh"))
    for name, array in plain(select(plain)).items():
        got = backbone(select(backbone))[name]
        np.testing.assert_allclose(to_numpy(got), to_numpy(array), rtol=0, atol=1e-5)
    randomize(backbone)
    states = to_numpy(backbone(select(backbone))["sequence_output"])
    others = {**select(backbone), "condition": CONDITION[::-1].copy()}
    assert np.abs(to_numpy(backbone(others)["sequence_output"]) - states).max() > 0.01
    backbone.save_to_preset(tmp_path / "preset")
    again = cls.from_preset(tmp_path / "preset")
    assert again.norm_condition == backbone.norm_condition
    got = again(select(backbone))
    np.testing.assert_allclose(to_numpy(got["sequence_output"]), states, rtol=0, atol=1e-6)
    last = keras.Model(again.input, again.trace_summary())
    np.testing.assert_allclose(
        to_numpy(last(select(backbone))), to_numpy(got["pooled_output"]), rtol=0, atol=1e-5
    )


@pytest.mark.backend("torch")
def test_blocks_that_are_computed_twice_have_the_gradients_of_others():
    found = []
    for remat in (False, True):
        arguments = {**SHORT, "remat": remat, "norm_condition": kbs.NormCondition(3, 4)}
        backbone = randomize(kbs.BertBackbone(30, **arguments))
        keras.ops.sum(backbone(select(backbone), training=True)["sequence_output"] ** 2).backward()
        found.append([w.value.grad for w in backbone.trainable_weights if w.value.grad is not None])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)


def test_copies_keep_the_condition():
    backbone = randomize(kbs.BertBackbone(30, **SHORT, norm_condition=kbs.NormCondition(3)))
    is_token = MASK == 1
    wanted = to_numpy(backbone(select(backbone))["sequence_output"])[is_token]
    for copy in (
        kbs.change_pattern(backbone, "bidirectional"),
        backbone.resize_vocabulary(31, seed=0),
        backbone.keep_layers([0, 1]),
        kbs.LongformerBackbone.from_encoder(backbone, 2, 16, attention_window=16),
    ):
        found = to_numpy(copy(select(copy))["sequence_output"])[is_token]
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-6)


def adapt(backbone):
    backbone.add_adapter(kbs.LoRA(2))
    return backbone


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda c: kbs.XLNetBackbone(30, **SIZES, norm_condition=c), "XLNetBackbone take no norm"),
        (lambda c: kbs.ModernBertBackbone(30, **SIZES).add_condition(c), "takes no norm_condition"),
        (
            lambda c: kbs.RoFormerBackbone(30, **SIZES, norm_type="rms_norm", norm_condition=c),
            "a scale and an offset, got norm_type='rms_norm'",
        ),
        (lambda c: kbs.BertBackbone(30, **SIZES, norm_condition=3), "must be a NormCondition"),
        (
            lambda c: kbs.BertBackbone(30, **SIZES, norm_condition=c).add_condition(c),
            "BertBackbone has a condition, NormCondition",
        ),
        (
            lambda c: kbs.BertEncoderDecoder.from_backbones(
                kbs.BertBackbone(30, **SIZES, norm_condition=c)
            ),
            "got one with norm_condition",
        ),
        (
            lambda c: adapt(kbs.BertBackbone(30, **SIZES)).add_condition(c),
            "adapters default of this BertBackbone .* `add_condition` before `adapt`",
        ),
    ],
    ids=["xlnet", "modern_bert", "rms_norm", "number", "twice", "decoder", "adapted"],
)
def test_encoders_without_such_norms_refuse_it(make, message):
    with pytest.raises(ValueError, match=message):
        make(kbs.NormCondition(3))


def test_other_formats_refuse_it(tmp_path):
    backbone = kbs.BertBackbone(30, **SIZES, norm_condition=kbs.NormCondition(3))
    with pytest.raises(ValueError, match="no place for norm_condition of an encoder"):
        save_hugging_face(backbone, tmp_path / "bert")
