"""Tables of the names of our weights in the checkpoints of other libraries.

A row is (our path, their name, transform). `{i}` and `{j}` stand for the numbers of a layer. Every
transform is also the inverse transform, so a row serves both loading and saving.
"""

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from keras_bert_suite.checkpoints.head_types.records import HEADS_BY_LAYER

#: Parts that a file may lack. A model that has such a part keeps its values.
OPTIONAL = (
    r"pooler/.*",
    *(f"{layer}/.*" for layer, head in HEADS_BY_LAYER.items() if head.ending and not head.labels),
)


def same(tensor):
    """The transform of tensors that are stored as in Keras."""
    return tensor


def as_row(tensor):
    """The transform of vectors that are stored as a matrix with one row."""
    return np.reshape(tensor, (-1,) if np.ndim(tensor) == 2 else (1, -1))


def transposed(tensor):
    """The transform of kernels that are stored as (output, input), as in PyTorch."""
    return np.transpose(tensor)


@dataclass(frozen=True)
class NameTable:
    """The names of one kind of checkpoint.

    Args:
        rows: tuple of (our path, their name, transform).
        aliases: tuple of (pattern, replacement). Each is applied in turn to the names in a file.
            Afterwards the names are spelled as in `rows`.
        ignored: tuple of patterns of names in a file that our models do not need.
        copies: tuple of (their name, their name of the tensor that it must equal). Our model has
            one weight for both tensors. They must be equal if the model has a head for masked
            tokens.
        tied: tuple as `copies`, of tensors that must be equal in any model.
        others: tuple of patterns of names in a file of other heads, which are left out and named.
    """

    rows: tuple
    aliases: tuple = ()
    ignored: tuple = ()
    copies: tuple = ()
    tied: tuple = ()
    others: tuple = ()

    def their_name(self, path):
        """Their (name, transform) for our weight at `path`, or None if it has no row."""
        return _translate(path, ((ours, theirs, how) for ours, theirs, how in self.rows))

    def our_path(self, name):
        """Our (path, transform) for their tensor `name`, or None if it has no row."""
        return _translate(name, ((theirs, ours, how) for ours, theirs, how in self.rows))

    def spell(self, name):
        """The spelling in `rows` of a name in a file."""
        for pattern, replacement in self.aliases:
            name = re.sub(pattern, replacement, name)
        return name


def part_of(name):
    """The part of a model that a tensor belongs to: its encoder, or one of its heads.

    >>> part_of("bert.encoder.layer.0.output.dense.bias"), part_of("cls/predictions/output_bias")
    ('bert', 'cls/predictions')
    """
    return re.match(r"cls[./][^./]*|[^./]*", name).group()


def is_of_head(path):
    """Whether a path of ours belongs to a head. A file may have heads that a model lacks."""
    return path.partition("/")[0] in HEADS_BY_LAYER


def matches_any(name, patterns):
    """Whether one of the regular expressions matches the whole name."""
    return any(re.fullmatch(pattern, name) for pattern in patterns)


def _translate(name, rows):
    for source, target, transform in rows:
        match = _compile(source).fullmatch(name)
        if match:
            return target.format(**match.groupdict()), transform
    return None


@functools.cache
def _compile(source):
    """The pattern of the names that a row stands for."""
    return re.compile(re.sub(r"\\{([ij])\\}", r"(?P<\1>\\d+)", re.escape(source)))


@dataclass(frozen=True)
class Spelling:
    """A library's names of the weights of a layer: their endings after the name of the layer.

    Args:
        kernel, bias: str, of a dense layer.
        gamma, beta: str, of a norm.
        embeddings: str, of an embedding.
        transform: the transform of kernels.
    """

    kernel: str
    bias: str
    gamma: str
    beta: str
    embeddings: str
    transform: Callable = same

    def rows(self, *layers):
        """The rows of the weights of layers, (our path, their name) each.

        Our name says what the layer is: a norm ends with "norm", an embedding with "embedding", and
        all others are dense.
        """
        return tuple(row for ours, theirs in layers for row in self._rows_of(ours, theirs))

    def block(self, theirs, names, ours="transformer_layer_{i}/"):
        """The rows of a transformer layer. `names` are their names of the layers in `BLOCK`."""
        pairs = zip(BLOCK, names, strict=True)
        return self.rows(*((ours + path, theirs + name) for path, name in pairs))

    def _rows_of(self, ours, theirs):
        if ours.endswith("norm"):
            return (
                (f"{ours}/gamma", theirs + self.gamma, same),
                (f"{ours}/beta", theirs + self.beta, same),
            )
        if ours.endswith("embedding"):
            return ((f"{ours}/embeddings", theirs + self.embeddings, same),)
        return (
            (f"{ours}/kernel", theirs + self.kernel, self.transform),
            (f"{ours}/bias", theirs + self.bias, same),
        )


PYTORCH = Spelling(".weight", ".bias", ".weight", ".bias", ".weight", transposed)

#: Our layers in a transformer layer.
BLOCK = (
    "self_attention/query",
    "self_attention/key",
    "self_attention/value",
    "self_attention/output_projection",
    "self_attention_norm",
    "intermediate",
    "feedforward_output",
    "feedforward_norm",
)


def hugging_face_encoder(model):
    """The rows of an encoder. Hugging Face puts the name of the model, such as "bert", first."""
    return (
        *PYTORCH.rows(
            ("embeddings/token_embedding", f"{model}.embeddings.word_embeddings"),
            ("embeddings/position_embedding", f"{model}.embeddings.position_embeddings"),
            ("embeddings/segment_embedding", f"{model}.embeddings.token_type_embeddings"),
            ("embeddings/layer_norm", f"{model}.embeddings.LayerNorm"),
        ),
        *PYTORCH.block(
            model + ".encoder.layer.{i}.",
            (
                "attention.self.query",
                "attention.self.key",
                "attention.self.value",
                "attention.output.dense",
                "attention.output.LayerNorm",
                "intermediate.dense",
                "output.dense",
                "output.LayerNorm",
            ),
        ),
        *PYTORCH.rows(("pooler", f"{model}.pooler.dense")),
    )


def hugging_face_aliases(model, *layers):
    """The aliases of the names of an encoder that Hugging Face calls `model`.

    `layers` are the layers of the encoder that a BERT does not have.
    """
    layers = "|".join(dict.fromkeys(("embeddings", "encoder", "pooler", *layers)))
    return (
        # The names of an encoder that was saved by itself have no prefix. Files of 2018 name norms
        # as Google did.
        (rf"^({layers})\.", rf"{model}.\1."),
        (r"LayerNorm\.gamma$", "LayerNorm.weight"),
        (r"LayerNorm\.beta$", "LayerNorm.bias"),
    )


def hugging_face_heads(**names):
    """The rows of the heads that transformers fine-tunes.

    Two heads may have the same name in files, because a file has one head only. `names` maps a
    layer of ours to its name in files of a kind of model, where this is not the name of the
    `HeadType`. The name is None if this kind of model has no such head.
    """
    usual = {layer: head.hugging_face for layer, head in HEADS_BY_LAYER.items()}
    return PYTORCH.rows(*((layer, name) for layer, name in {**usual, **names}.items() if name))


def masked_lm_head(transform, layer_norm, bias):
    """The rows of the head for masked tokens, from their names of its layers and of its bias."""
    return (
        *PYTORCH.rows(("masked_lm/transform", transform), ("masked_lm/layer_norm", layer_norm)),
        ("masked_lm/bias", bias, same),
    )


def decoder_copies(decoder, bias, table):
    """`NameTable.copies` of a head for masked tokens whose weights are shared.

    `decoder` is their layer that scores the vocabulary, `bias` the bias of the head, and `table`
    the token embedding.
    """
    bias_copies = () if bias == f"{decoder}.bias" else ((f"{decoder}.bias", bias),)
    return ((f"{decoder}.weight", f"{table}.weight"), *bias_copies)


def hugging_face_names(
    model, rows, *layers, decoder="cls.predictions.decoder", without=(), ignored=()
):
    """The `NameTable` of a kind of model whose encoder has the names of BERT's.

    Args:
        model: str, Hugging Face's prefix of the names of the encoder, such as "bert".
        rows: tuple of rows of the heads, and of other layers outside of BERT's encoder.
        *layers: (our path, their name after the prefix) of the layers of the encoder that a BERT
            does not have.
        decoder: str, their name of the layer that scores the vocabulary.
        without: tuple of str, the beginnings of our paths of BERT's layers that the model lacks.
    """
    encoder = [row for row in hugging_face_encoder(model) if not row[0].startswith(without)]
    more = PYTORCH.rows(*((ours, f"{model}.{name}") for ours, name in layers))
    bias = next(theirs for ours, theirs, _ in rows if ours == "masked_lm/bias")
    return NameTable(
        rows=(*encoder, *more, *rows),
        aliases=hugging_face_aliases(model, *(name.partition(".")[0] for _, name in layers)),
        ignored=(rf"{model}\.embeddings\.(position_ids|token_type_ids)", *ignored),
        copies=decoder_copies(decoder, bias, f"{model}.embeddings.word_embeddings"),
    )


def of_two_layers(table, name):
    """The names in a class that classifies texts by two layers. The first is our pooler.

    `name` is their name of the head.
    """
    kept = [row for row in table.rows if not row[0].startswith("pooler/")]
    kept = [row for row in kept if not row[1].startswith(f"{name}.")]
    layers = PYTORCH.rows(("pooler", f"{name}.dense"), ("classifier", f"{name}.out_proj"))
    return replace(table, rows=(*kept, *layers))
