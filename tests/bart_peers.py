"""BARTs of transformers that write, with random weights."""

import numpy as np
import torch
import transformers
from family import MBART, MEMBERS
from peer_weights import transformers_peer

START, END = 0, 2

#: Inputs of a `Seq2Seq`, and those of transformers.
_NAMES = {
    "token_ids": "input_ids",
    "frames": "inputs_embeds",
    "padding_mask": "attention_mask",
    "decoder_token_ids": "decoder_input_ids",
}


def save_peer(path, kind="bart", seed=0, end_bias=0.0, **config):
    """Saves a random model that writes. Its logits are far apart, and it has a bias."""
    member = MBART if kind == "mbart" else MEMBERS[kind]
    config = {**member.config, "vocab_size": member.vocabulary_size, "d_model": 16, **config}
    config = getattr(transformers, f"{member.prefix}Config")(**config)
    cls = getattr(transformers, f"{member.prefix}ForConditionalGeneration")
    peer = transformers_peer(cls, config, seed=seed)
    for name, parameter in peer.named_parameters():
        if name.endswith(("encoder_attn.v_proj.weight", "encoder_attn.out_proj.weight")):
            parameter.data *= 3.0  # Targets depend on their sources.
    peer.model.shared.weight.data *= 6.0
    bias = np.random.default_rng(seed).standard_normal((1, config.vocab_size)) + end_bias * (
        np.arange(config.vocab_size) == config.eos_token_id
    )
    peer.final_logits_bias.copy_(torch.from_numpy(bias))
    peer.save_pretrained(path)
    member.write_tokenizer(path)
    return peer


def run_writer(peer, inputs):
    """The logits of transformers for inputs of a `Seq2Seq`."""
    with torch.no_grad():
        return peer(**_make_tensors(inputs)).logits.numpy()


def generate(peer, packed, length, **settings):
    """int (B, T), the ids of transformers' `generate` behind the first one."""
    peer.generation_config.forced_eos_token_id = None
    rows = peer.generate(
        **{"forced_bos_token_id": START, "do_sample": False, "num_beams": 1, **settings},
        **_make_tensors(packed),
        max_length=1 + length,
    )
    ids = np.full((len(rows), length), peer.config.pad_token_id)
    ids[:, : rows.shape[1] - 1] = rows[:, 1:].numpy()
    # With padding of id 0 the beams of transformers have end tokens behind the end.
    ends = ids == peer.config.eos_token_id
    return np.where(np.cumsum(ends, axis=1) - ends > 0, peer.config.pad_token_id, ids)


def _make_tensors(inputs):
    return {
        theirs: torch.from_numpy(inputs[name] if name == "frames" else inputs[name].astype("int64"))
        for name, theirs in _NAMES.items()
        if name in inputs
    }
