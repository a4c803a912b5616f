"""Checkpoints of other names that are a BERT: whole words, SpanBERT, StructBERT, MacBERT.

The fields and the names of tensors are those of the released files. The sizes are small.
"""

import json
import re

import pytest
import torch
import transformers
from checkpoints.small_model import PIECES, THEIR_SIZES
from checkpoints.wild_files import check_encoder
from peer_weights import transformers_peer

from keras_bert_suite import BertBackbone, Pretrainer
from keras_bert_suite.checkpoints import open_checkpoint, save_hugging_face

#: Fields that Google's converter writes. No encoder reads them.
POOLER = {
    "directionality": "bidi",
    "pooler_fc_size": 768,
    "pooler_num_attention_heads": 12,
    "pooler_num_fc_layers": 3,
    "pooler_size_per_head": 128,
    "pooler_type": "first_token_transform",
}
DROPOUTS = {"hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1}
COMMON = {**DROPOUTS, "hidden_act": "gelu", "initializer_range": 0.02}

#: hfl/chinese-bert-wwm-ext, hfl/chinese-roberta-wwm-ext and hfl/chinese-macbert-base.
WHOLE_WORDS = {
    **COMMON,
    **POOLER,
    "architectures": ["BertForMaskedLM"],
    "bos_token_id": 0,
    "eos_token_id": 2,
    "layer_norm_eps": 1e-12,
    "model_type": "bert",
    "output_past": True,
    "pad_token_id": 0,
}
#: SpanBERT/spanbert-base-cased, which has no `model_type`.
SPAN_BERT = {**COMMON, **POOLER}
#: The files of alibaba/AliceMind, and those of ModelScope.
STRUCT_BERT = {**COMMON, "attention_type": "self"}
MODEL_SCOPE = {
    **COMMON,
    "model_type": "structbert",
    "adv_grad_factor": 5e-5,
    "adv_bound": 1e-5,
    "sigma": 5e-6,
    "layer_norm_eps": 1e-12,
    "position_embedding_type": "absolute",
}


@pytest.fixture
def write_checkpoint(tmp_path):
    """Function: writes a random BERT in a pytorch_model.bin, returns (peer, directory)."""

    def write(fields, drop=r"$^", old_norms=False, more=()):
        config = transformers.BertConfig(**{**THEIR_SIZES, "layer_norm_eps": 1e-12})
        peer = transformers_peer(transformers.BertForPreTraining, config)
        tensors = {k: v for k, v in peer.state_dict().items() if not re.match(drop, k)}
        if old_norms:
            endings = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}
            for new, old in endings.items():
                tensors = {k.replace(new, old): v for k, v in tensors.items()}
        torch.save({**tensors, **dict(more)}, tmp_path / "pytorch_model.bin")
        (tmp_path / "config.json").write_text(json.dumps({**THEIR_SIZES, **fields}))
        (tmp_path / "vocab.txt").write_text("\n".join(PIECES) + "\n")
        return peer, tmp_path

    return write


@pytest.mark.parametrize("fields", [WHOLE_WORDS, {**WHOLE_WORDS, "gradient_checkpointing": False}])
def test_whole_words(fields, write_checkpoint, inputs):
    position_ids = {"bert.embeddings.position_ids": torch.arange(12)[None]}
    peer, path = write_checkpoint(fields, more=position_ids)
    pretrainer = Pretrainer.from_preset(path)
    assert type(pretrainer.backbone) is BertBackbone and pretrainer.next_sentence
    check_encoder(pretrainer.backbone, peer.bert, inputs)


@pytest.mark.filterwarnings("ignore:.*no weights for pooler")
@pytest.mark.parametrize("drop", [r"cls\.", r"cls\.|bert\.pooler"])
def test_span_bert(drop, write_checkpoint, inputs):
    peer, path = write_checkpoint(SPAN_BERT, drop, old_norms=True)
    check_encoder(BertBackbone.from_preset(path), peer.bert, inputs)


def test_the_head_of_span_bert_is_left_out_with_a_warning(write_checkpoint, inputs):
    head = "cls.pair_target_predictions."
    more = {
        f"{head}bias": torch.zeros(24),
        f"{head}decoder.weight": torch.zeros(24, 8),
        f"{head}position_embeddings.weight": torch.zeros(20, 200),
        f"{head}mlp_layer_norm.linear1.weight": torch.zeros(8, 216),
        f"{head}mlp_layer_norm.layer_norm1.gamma": torch.zeros(8),
    }
    peer, path = write_checkpoint(SPAN_BERT, r"cls\.seq", old_norms=True, more=more)
    with pytest.warns(
        UserWarning, match="not have: cls.pair_target_predictions.*They are left out"
    ):
        backbone = BertBackbone.from_preset(path)
    check_encoder(backbone, peer.bert, inputs)


@pytest.mark.parametrize(
    "fields", [STRUCT_BERT, {**STRUCT_BERT, "model_type": "bert"}, MODEL_SCOPE]
)
def test_struct_bert(fields, write_checkpoint, inputs, tmp_path):
    peer, path = write_checkpoint(fields, old_norms=True)
    pretrainer = Pretrainer.from_preset(path)
    assert type(pretrainer.backbone) is BertBackbone
    check_encoder(pretrainer.backbone, peer.bert, inputs)
    save_hugging_face(pretrainer, tmp_path / "again")
    again = transformers.AutoModelForPreTraining.from_pretrained(tmp_path / "again")
    assert type(again) is transformers.BertForPreTraining
    check_encoder(pretrainer.backbone, again.bert, inputs)


@pytest.mark.parametrize(
    ("field", "value"), [("attention_type", "factorized"), ("pre_ln", True), ("emb_size", 4)]
)
def test_other_layers_of_struct_bert_are_refused(field, value, write_checkpoint):
    _, path = write_checkpoint({**STRUCT_BERT, "model_type": "bert", field: value})
    with pytest.raises(ValueError, match=f"'{field}' in .* is {value!r}; only"):
        open_checkpoint(path)
