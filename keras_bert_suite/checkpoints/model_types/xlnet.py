"""XLNet."""

import warnings
from dataclasses import replace

from keras_bert_suite.checkpoints.model_types.config_fields import Field
from keras_bert_suite.checkpoints.model_types.model_type import ModelType
from keras_bert_suite.checkpoints.model_types.name_table import (
    PYTORCH,
    NameTable,
    decoder_copies,
    hugging_face_heads,
    same,
)
from keras_bert_suite.checkpoints.tokenizer_files.sentence_piece import read_hugging_face_xlnet

#: Our layers of the attention, and their names in the files of both libraries. All kernels are
#: (H, heads, D) there, also the kernel of the output.
PROJECTIONS = (("query", "q"), ("key", "k"), ("value", "v"), ("relative_key", "r"))
#: Our biases of the attention, and their names.
BIASES = (("content_bias", "r_w_bias"), ("position_bias", "r_r_bias"), ("segment_bias", "r_s_bias"))

_ATTENTION = "transformer_layer_{i}/self_attention/"


def as_vector(tensor):
    """(H,) <-> (1, 1, H)."""
    return tensor.reshape(1, 1, -1) if tensor.ndim == 1 else tensor.reshape(-1)


def make_rows(spelling, layer, projection, norms, tensors):
    """The rows of the encoder of XLNet.

    Args:
        spelling: `Spelling` of the library.
        layer: str, the beginning of their names of a transformer layer.
        projection: str, with {} for a letter, their name of a projection within it.
        norms: tuple of their names of the two norms and the two layers of the feed-forward network.
        tensors: str, with {} for a name, their name of a bias or of the segments within a layer.
    """
    attention_norm, intermediate, output, feedforward_norm = norms
    return (
        *(
            (f"{_ATTENTION}{ours}/kernel", layer + projection.format(theirs), same)
            for ours, theirs in (*PROJECTIONS, ("output_projection", "o"))
        ),
        *(
            (f"{_ATTENTION}relative_biases/{ours}", layer + tensors.format(theirs), same)
            for ours, theirs in BIASES
        ),
        (f"{_ATTENTION}segment_embedding", layer + tensors.format("seg_embed"), same),
        *spelling.rows(
            ("transformer_layer_{i}/self_attention_norm", layer + attention_norm),
            ("transformer_layer_{i}/intermediate", layer + intermediate),
            ("transformer_layer_{i}/feedforward_output", layer + output),
            ("transformer_layer_{i}/feedforward_norm", layer + feedforward_norm),
        ),
    )


def split_heads(names, num_heads):
    """The `NameTable` of a model with `num_heads` heads, which the kernels of the files keep apart.

    Without the number, the rows say the names alone.
    """

    def split(tensor):
        """(H, heads D) <-> (H, heads, D)."""
        if tensor.ndim == 3:
            return tensor.reshape(len(tensor), -1)
        return tensor.reshape(len(tensor), num_heads, -1)

    def split_output(tensor):
        """(heads D, H) <-> (H, heads, D)."""
        return split(tensor.T) if tensor.ndim == 2 else split(tensor).T

    kernels = {f"{_ATTENTION}{ours}/kernel": split for ours, _ in PROJECTIONS}
    kernels[f"{_ATTENTION}output_projection/kernel"] = split_output
    rows = ((ours, theirs, kernels.get(ours, how)) for ours, theirs, how in names.rows)
    return replace(names, rows=tuple(rows))


NAMES = NameTable(
    rows=(
        *PYTORCH.rows(
            ("embeddings/token_embedding", "transformer.word_embedding"),
            ("pooler", "sequence_summary.summary"),
        ),
        ("embeddings/mask_embedding", "transformer.mask_emb", as_vector),
        *make_rows(
            PYTORCH,
            "transformer.layer.{i}.",
            "rel_attn.{}",
            ("rel_attn.layer_norm", "ff.layer_1", "ff.layer_2", "ff.layer_norm"),
            "rel_attn.{}",
        ),
        ("masked_lm/bias", "lm_loss.bias", same),
        *hugging_face_heads(classifier="logits_proj", choice_scorer="logits_proj"),
    ),
    aliases=(
        (r"^(word_embedding|layer)\.", r"transformer.\1."),
        ("^mask_emb$", "transformer.mask_emb"),
    ),
    copies=decoder_copies("lm_loss", "lm_loss.bias", "transformer.word_embedding"),
    # The search for answers of XLNetForQuestionAnswering.
    others=(r"(start_logits|end_logits|answer_class)\..*",),
)

FIELDS = (
    Field("vocabulary_size", "vocab_size", "size"),
    Field("num_layers", "n_layer", "size"),
    Field("num_heads", "n_head", "size"),
    Field("hidden_dim", "d_model", "size"),
    Field("intermediate_dim", "d_inner", "size"),
    Field("activation", "ff_activation", "activation"),
    Field("dropout", "dropout", "rate", 0.1),
    Field("layer_norm_epsilon", "layer_norm_eps", "positive", 1e-12),
    Field("initializer_range", "initializer_range", "positive", 0.02),
)


def read_xlnet(config):
    """Reads the arguments of the backbone that are not plain fields.

    A memory is used where it is asked for. So `mem_len` and `reuse_len` are not read: pass
    `memory_length`, and `reuse_length`, to `from_preset`. `same_length` is read, as it also says
    what tokens without a memory see: only themselves. In transformers it holds for "uni" alone.
    """
    arguments = {}
    same_length = config.read("flag", "same_length", False)
    if same_length and config.get("attn_type") == "uni":
        arguments["same_length"] = True
    clamp, width = config.get("clamp_len"), config.get("d_head")
    if clamp is not None and clamp not in (-1, 0):
        arguments["clamp_length"] = config.read("size", "clamp_len")
    if width is not None and width * config.read("size", "n_head") != config.read(
        "size", "d_model"
    ):
        arguments["head_dim"] = config.read("size", "d_head")
    return arguments


def write_xlnet(backbone):
    """The fields that `read_xlnet` reads, and the fields of the memory."""
    width = backbone.hidden_dim // backbone.num_heads
    if (backbone.head_dim or width) != width or not backbone.num_segments:
        raise ValueError(
            "Hugging Face's XLNet has segments, and heads of the width hidden_dim / num_heads, "
            f"here {width}; got head_dim={backbone.head_dim} and num_segments="
            f"{backbone.num_segments}. Use `model.save`."
        )
    if backbone.attention_dropout != backbone.dropout:
        warnings.warn(
            f"Hugging Face's XLNet has one dropout rate, {backbone.dropout}, got attention_dropout="
            f"{backbone.attention_dropout} too. Outputs without dropout are the same.",
            stacklevel=4,
        )
    return {
        "attn_type": "bi",
        "clamp_len": backbone.clamp_length or -1,
        "d_head": width,
        "mem_len": backbone.memory_length,
        "reuse_len": backbone.reuse_length,
        "same_length": backbone.same_length,
        "bos_token_id": 1,
        "eos_token_id": 2,
    }


def copy_shared_biases(backbone, weights):
    """The biases of all layers but the first, where the backbone has them once."""
    if not backbone.share_biases:
        return {}
    first = _ATTENTION.format(i=0) + "relative_biases/"
    biases = {path: weight for path, weight in weights.items() if path.startswith(first)}
    return {
        path.replace("layer_0", f"layer_{i}", 1): weight
        for i in range(1, backbone.num_layers)
        for path, weight in biases.items()
    }


XLNET = ModelType(
    name="xlnet",
    title="XLNet",
    backbone="XLNetBackbone",
    tokenizer="XLNetTokenizer",
    read_tokenizer=read_hugging_face_xlnet,
    names=NAMES,
    fit_names=split_heads,
    classes="XLNet",
    causal_class="LMHeadModel",
    # transformers takes no `attention_mask` of several rows with it.
    causal_fields={"attn_type": "uni"},
    endings={"masked_lm": "LMHeadModel", "span_labeler": "ForQuestionAnsweringSimple"},
    fields=FIELDS,
    head_dropout=("summary_last_dropout", 0.1),
    # transformers has no dropout before its head on tokens, and keeps this field unread.
    head_dropouts={"token_classifier": ("classifier_dropout", 0.0)},
    dials=(
        ("attn_type", ("bi", "uni")),
        ("bi_data", (False,)),
        ("summary_type", ("last",)),
        ("summary_use_proj", (True,)),
        ("summary_activation", ("tanh",)),
    ),
    read_more=read_xlnet,
    write_more=write_xlnet,
    copy_weights=copy_shared_biases,
)
