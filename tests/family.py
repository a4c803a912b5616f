"""The family: every kind of model, with transformers' model of that kind as its oracle.

A new kind of model is a `Member` here. `tests/models/test_family.py` is what each must do.
"""

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import keras
import numpy as np
import transformers
from peer_weights import transformers_peer
from small_byte_pairs import MERGES, make_vocabulary
from small_sentence_pieces import make_xlnet

import keras_bert_suite
from keras_bert_suite import (
    AlbertBackbone,
    BartBackbone,
    BertBackbone,
    BytePairTokenizer,
    DistilBertBackbone,
    ElectraBackbone,
    ErnieBackbone,
    LongformerBackbone,
    ModernBertBackbone,
    ModernBertTokenizer,
    NezhaBackbone,
    RobertaBackbone,
    RoFormerBackbone,
    XLNetBackbone,
    XLNetTokenizer,
)
from keras_bert_suite.argument_checks import list_arguments
from keras_bert_suite.checkpoints.head_types.records import HEAD_TYPES
from keras_bert_suite.checkpoints.tokenizer_files.word_piece import write_tokenizer

#: The end of the name of a class of transformers -> our task with this head, the first one.
TASKS = {
    head.ending: getattr(keras_bert_suite, head.task)
    for head in reversed(HEAD_TYPES)
    if head.ending
}

#: The heads of a model that was not pretrained on pairs of texts.
ONE_TEXT = tuple(head for head in TASKS if head != "ForPreTraining")

#: The length of the rows of `make_inputs`.
LENGTH = 10

#: A small encoder, by the names that most configurations of transformers have for its sizes.
SIZES = {
    "hidden_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "max_position_embeddings": 16,
    "hidden_dropout_prob": 0.2,
    "attention_probs_dropout_prob": 0.3,
}

PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghijklmnopqrs"]


def write_pieces(path: Path) -> None:
    """Writes the vocabulary of a WordPiece tokenizer."""
    (path / "vocab.txt").write_text("\n".join(PIECES) + "\n")


def write_byte_pairs(path: Path) -> None:
    """Writes the files of a byte-level BPE tokenizer."""
    BytePairTokenizer(make_vocabulary(), MERGES).save_assets(path)


#: ModernBERT's special tokens. Padding is first, as in the arrays of `Member.make_inputs`.
BERT_SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def write_modern_bert(path: Path) -> None:
    """Writes the files of a tokenizer of ModernBERT."""
    spaces = ["  ", "   "]
    vocabulary = make_vocabulary(special=[*BERT_SPECIAL, *spaces])
    tokenizer = ModernBertTokenizer(vocabulary, MERGES, added_tokens=spaces)
    write_tokenizer(tokenizer, 16, path)


def write_xlnet(path: Path) -> None:
    """Writes the files of a tokenizer of XLNet."""
    write_tokenizer(XLNetTokenizer(make_xlnet()), 16, path)


def choose_sizes(cls: type, **sizes: int) -> dict[str, int]:
    """The sizes that a class has. An encoder without attention has no heads."""
    return {name: size for name, size in sizes.items() if name in list_arguments(cls)}


@dataclass(frozen=True)
class Member:
    """A kind of model.

    Args:
        backbone: class of ours.
        prefix: str, what the names of the classes of transformers begin with, such as "Bert".
        config: dict of arguments of the configuration class of transformers.
        write_tokenizer: function that writes the files of a tokenizer into a directory.
        heads: tuple of keys of `TASKS`.
        has_pooler: bool, whether the encoder of transformers has a pooled output.
        vocabulary_size: int.
        arguments: dict of arguments of our backbone for `check_backbone`.
        may_stay: endings of the paths of weights that one step of training need not move.
        constants: names of tensors that transformers saves, and that are no weights.
        endings: dict of a key of `TASKS` -> the end of the name of its class in transformers, where
            this is another.
        padding_side: str, the side of the padding in `make_inputs`.
        packs: whether several rows may lie in one row of the encoder.
        matrices: the number of matrices of a block that are split by columns, and by rows, over
            devices.
    """

    backbone: type
    prefix: str
    config: dict[str, Any]
    write_tokenizer: Callable[[Path], None] = write_pieces
    heads: tuple[str, ...] = tuple(TASKS)
    has_pooler: bool = True
    vocabulary_size: int = len(PIECES)
    arguments: dict[str, Any] = field(default_factory=dict)
    may_stay: tuple[str, ...] = ("key/bias",)
    constants: tuple[str, ...] = ()
    endings: dict[str, str] = field(default_factory=dict)
    padding_side: str = "right"
    packs: bool = True
    matrices: tuple[int, int] = (4, 2)

    def save_peer(self, path: Path, model: str = "Model", **config: Any) -> Any:
        """Saves a random model of transformers, with its tokenizer, and returns the model.

        Args:
            path: directory, which is made.
            model: the name of its class, without the prefix.
            **config: arguments of the configuration class.
        """
        labels = {"num_labels": 2 if model in ("ForQuestionAnswering", "ForPreTraining") else 3}
        config = {**self.config, **labels, "vocab_size": self.vocabulary_size, **config}
        config = getattr(transformers, f"{self.prefix}Config")(**config)
        ending = self.endings.get(model, model)
        peer = transformers_peer(getattr(transformers, f"{self.prefix}{ending}"), config)
        peer.save_pretrained(path)
        self.write_tokenizer(path)
        return peer

    def make_inputs(self) -> dict[str, np.ndarray]:
        """The packed arrays of three rows, int32 (3, LENGTH): with padding, full, and short."""
        rng = np.random.default_rng(0)
        mask = np.ones((3, LENGTH), "int32")
        mask[0, 6:] = mask[2, 3:] = 0
        if self.padding_side == "left":
            mask = np.fliplr(mask).copy()
        # The first ids are those of special tokens. Padding has the id that transformers expects.
        ids = np.where(mask, rng.integers(5, self.vocabulary_size, mask.shape), self.pad_token_id)
        arrays = {
            "token_ids": ids.astype("int32"),
            "segment_ids": rng.integers(0, 2, mask.shape).astype("int32") * mask,
            "padding_mask": mask,
        }
        return {name: arrays[name] for name in self.backbone.input_names}

    def make_choices(self, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Packed arrays (B, 2, L) of two choices, of which the second has other tokens."""
        inputs = {name: array[:, None].repeat(2, axis=1) for name, array in inputs.items()}
        inputs["token_ids"][:, 1, 1:3] = 7
        return inputs

    @property
    def sizes(self) -> dict[str, int]:
        """The arguments of our backbone for a small encoder, as far as it has them."""
        return choose_sizes(
            self.backbone, num_layers=2, num_heads=2, hidden_dim=8, intermediate_dim=16
        )

    def make(self, **arguments: Any) -> Any:
        """A small encoder of ours."""
        return self.backbone(
            **{"vocabulary_size": self.vocabulary_size, **self.sizes, **self.arguments, **arguments}
        )

    @property
    def pad_token_id(self) -> int:
        """int, the id of padding in the tokenizer of this kind."""
        return max(self.backbone.position_offset - 1, 0)


@dataclass(frozen=True)
class RecordedMember(Member):
    """A kind of model that transformers no longer has.

    Its oracle is a folder that an older version wrote. It has a checkpoint for each class, and
    beside each checkpoint what the model computes, in recorded.safetensors.
    """

    folder: Path = Path()

    def save_peer(self, path: Path, model: str = "Model", **config: Any) -> None:
        """Copies the checkpoint of a class, with its tokenizer. There is no model to return."""
        if config:
            raise ValueError(f"The recorded models have no other configuration, got {config}.")
        shutil.copytree(self.folder / model, path)
        self.write_tokenizer(path)


class BartMember(Member):
    """An encoder-decoder. Each row ends with the token with which its decoder begins."""

    def make_inputs(self) -> dict[str, np.ndarray]:
        """As `Member.make_inputs`, with `</s>` at the end of each row."""
        inputs = super().make_inputs()
        last = inputs["padding_mask"].sum(axis=1) - 1
        inputs["token_ids"][np.arange(3), last] = 2
        return inputs


class LongMember(Member):
    """A kind of model with global tokens, which are at other places in each row."""

    def make_inputs(self) -> dict[str, np.ndarray]:
        """As `Member.make_inputs`, and `global_attention_mask`: two tokens, one, and padding."""
        mask = np.zeros((3, LENGTH), "int32")
        mask[0, [0, 3]] = mask[1, 8] = mask[2, 7] = 1
        return {**super().make_inputs(), "global_attention_mask": mask}


def run_peer(peer: Any, inputs: dict[str, np.ndarray]) -> Any:
    """Calls a model of transformers on packed arrays of ours."""
    import torch

    names = {"token_ids": "input_ids", "segment_ids": "token_type_ids"}
    names["padding_mask"] = "attention_mask"
    tensors = {names.get(n, n): torch.from_numpy(array).long() for n, array in inputs.items()}
    return peer(**tensors)


def open_task(head: str, path: Path) -> keras.Model:
    """Opens a checkpoint as our task for a head of transformers."""
    return TASKS[head].from_preset(path)


#: An encoder and a decoder of other sizes.
BART_SIZES = {
    "d_model": 8,
    "encoder_layers": 2,
    "encoder_attention_heads": 2,
    "encoder_ffn_dim": 16,
    "decoder_layers": 3,
    "decoder_attention_heads": 4,
    "decoder_ffn_dim": 12,
    "max_position_embeddings": 16,
    "dropout": 0.2,
    "attention_dropout": 0.3,
    "activation_dropout": 0.1,
}

#: Each kind by the `model_type` of transformers.
MEMBERS = {
    "bert": Member(
        BertBackbone,
        "Bert",
        {**SIZES, "type_vocab_size": 3, "layer_norm_eps": 1e-3},
        arguments={"num_segments": 3, "embedding_dim": 4, "activation": "gelu_erf"},
    ),
    "roberta": Member(
        RobertaBackbone,
        "Roberta",
        {**SIZES, "type_vocab_size": 1, "layer_norm_eps": 1e-3, "max_position_embeddings": 18},
        write_tokenizer=write_byte_pairs,
        heads=ONE_TEXT,
        vocabulary_size=len(make_vocabulary()),
    ),
    "distilbert": Member(
        DistilBertBackbone,
        "DistilBert",
        {
            "dim": 8,
            "n_layers": 2,
            "n_heads": 2,
            "hidden_dim": 16,
            "max_position_embeddings": 16,
            "dropout": 0.2,
            "attention_dropout": 0.3,
            "activation": "relu",  # Of the head for masked tokens, too.
        },
        heads=ONE_TEXT,
        has_pooler=False,
    ),
    "electra": Member(
        ElectraBackbone,
        "Electra",
        {
            **SIZES,
            "embedding_size": 4,
            "layer_norm_eps": 1e-3,
            "hidden_act": "relu",  # Of the encoder alone.
        },
        heads=ONE_TEXT,
        has_pooler=False,
        arguments={"embedding_dim": 4},
    ),
    "ernie": Member(
        ErnieBackbone,
        "Ernie",
        {**SIZES, "layer_norm_eps": 1e-3, "use_task_id": True, "task_type_vocab_size": 3},
        arguments={"num_task_types": 3, "task_id": 1},
    ),
    "albert": Member(
        AlbertBackbone,
        "Albert",
        {
            **SIZES,
            "embedding_size": 4,
            "num_hidden_layers": 3,
            "num_hidden_groups": 2,
            "inner_group_num": 2,
            "layer_norm_eps": 1e-3,
        },
        arguments={"embedding_dim": 8, "num_groups": 2},
    ),
    "roformer": Member(
        RoFormerBackbone,
        "RoFormer",
        {
            **SIZES,
            "embedding_size": 4,
            "rotary_value": True,
            "layer_norm_eps": 1e-3,
        },
        # Its head for choices scores another token than ours.
        heads=tuple(head for head in ONE_TEXT if head != "ForMultipleChoice"),
        has_pooler=False,
        arguments={"embedding_dim": 4},
        constants=("roformer.encoder.embed_positions.weight",),
    ),
    "nezha": RecordedMember(
        NezhaBackbone,
        "Nezha",
        {**SIZES, "max_relative_position": 3, "layer_norm_eps": 1e-3},
        arguments={"max_relative_position": 3},
        folder=Path(__file__).parent / "nezha_golden",
    ),
    "modernbert": Member(
        ModernBertBackbone,
        "ModernBert",
        {
            **{name: size for name, size in SIZES.items() if not name.endswith("_prob")},
            "local_attention": 4,
            "num_hidden_layers": 3,
            "layer_types": ["full_attention", "sliding_attention", "sliding_attention"],
            "rope_parameters": {
                "full_attention": {"rope_theta": 500.0, "rope_type": "default"},
                "sliding_attention": {"rope_theta": 10.0, "rope_type": "default"},
            },
            "norm_eps": 1e-3,
            "embedding_dropout": 0.2,
            "attention_dropout": 0.3,
            "mlp_dropout": 0.1,
            "pad_token_id": 0,
        },
        write_tokenizer=write_modern_bert,
        heads=ONE_TEXT,
        has_pooler=False,
        vocabulary_size=len(make_vocabulary()) + 2,
        arguments={"local_attention": 4, "attention_bias": True, "norm_bias": True},
        may_stay=(),
        matrices=(2, 2),
    ),
    "longformer": LongMember(
        LongformerBackbone,
        "Longformer",
        {
            **SIZES,
            "attention_window": [4, 8],
            "type_vocab_size": 1,
            "layer_norm_eps": 1e-3,
            "max_position_embeddings": 18,
        },
        write_tokenizer=write_byte_pairs,
        heads=ONE_TEXT,
        vocabulary_size=len(make_vocabulary()),
        arguments={"attention_window": [4, 8], "max_sequence_length": 16},
        matrices=(7, 2),
    ),
    "xlnet": Member(
        XLNetBackbone,
        "XLNet",
        {
            "d_model": 8,
            "n_layer": 2,
            "n_head": 2,
            "d_inner": 16,
            "dropout": 0.2,
            "layer_norm_eps": 1e-3,
            "clamp_len": 5,
        },
        write_tokenizer=write_xlnet,
        heads=ONE_TEXT,
        has_pooler=False,
        vocabulary_size=XLNetTokenizer(make_xlnet()).vocabulary_size(),
        arguments={"clamp_length": 5},
        may_stay=("mask_embedding",),
        endings={
            "ForMaskedLM": "LMHeadModel",
            "ForQuestionAnswering": "ForQuestionAnsweringSimple",
        },
        padding_side="left",
        matrices=(5, 2),
    ),
    "bart": BartMember(
        BartBackbone,
        "Bart",
        {**BART_SIZES, "init_std": 0.03},
        write_tokenizer=write_byte_pairs,
        heads=("ForSequenceClassification", "ForQuestionAnswering"),
        has_pooler=False,
        vocabulary_size=len(make_vocabulary()),
        arguments={"num_decoder_layers": 1, "num_decoder_heads": 4, "max_sequence_length": 16},
        packs=False,
    ),
}

#: Without a tokenizer of ours, so `MEMBERS` does not have it.
MBART = BartMember(
    BartBackbone,
    "MBart",
    {**BART_SIZES, "scale_embedding": True},
    has_pooler=False,
    arguments={"pre_norm": True, "scale_embeddings": True, "decoder_intermediate_dim": 6},
)
