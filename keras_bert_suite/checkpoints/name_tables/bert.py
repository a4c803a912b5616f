"""Tables of the names of our weights in the checkpoints of other libraries.

A row is (our path, their name, transform). `{i}` and `{j}` stand for the numbers of a layer. Every
transform is its own inverse, so a row serves both loading and saving.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np


def same(tensor):
    """The transform of tensors that are stored as in Keras."""
    return tensor


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
        optional: tuple of patterns of our paths. A file may lack the tensors of all paths that
            match one pattern, but not some of them.
        heads: tuple of patterns of our paths of heads. A file may have heads that a model lacks.
        copies: tuple of (their name, their name of the tensor that it must equal, pattern of our
            paths). Our model has one weight for both tensors. They must be equal if the model has
            a path that matches the pattern.
    """

    rows: tuple
    aliases: tuple = ()
    ignored: tuple = ()
    optional: tuple = ()
    heads: tuple = ()
    copies: tuple = ()

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


def matches_any(name, patterns):
    """Whether one of the regular expressions matches the whole name."""
    return any(re.fullmatch(pattern, name) for pattern in patterns)


def _translate(name, rows):
    for source, target, transform in rows:
        pattern = re.sub(r"\\{([ij])\\}", r"(?P<\1>\\d+)", re.escape(source))
        match = re.fullmatch(pattern, name)
        if match:
            return target.format(**match.groupdict()), transform
    return None


@dataclass(frozen=True)
class Spelling:
    """What a library calls the weights of a layer: how their names end after that of the layer.

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
        """The rows of the weights of layers.

        Args:
            *layers: (our path of a layer, their name of it). Our name says what the layer is: a
                norm ends with "norm", an embedding with "embedding", and all others are dense.
        """
        return tuple(row for ours, theirs in layers for row in self._rows_of(ours, theirs))

    def block(self, theirs, names, ours="transformer_layer_{i}/"):
        """The rows of a transformer layer.

        Args:
            theirs: str, what their names begin with.
            names: tuple of str, their names of the layers in `BLOCK`, in this order.
            ours: str, what our paths begin with.
        """
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


GOOGLE = Spelling("/kernel", "/bias", "/gamma", "/beta", "")
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

#: Parts that a file may lack. A model that has such a part keeps its values.
OPTIONAL = (
    *(r"pooler/.*", r"masked_lm/.*", r"next_sentence/.*"),
    *(r"span_labeler/.*", r"choice_scorer/.*", r"replaced_tokens/.*"),
)

#: Parts that a model may lack.
HEADS = (
    *(r"classifier/.*", r"token_classifier/.*", r"span_labeler/.*", r"choice_scorer/.*"),
    *(r"masked_lm/.*", r"next_sentence/.*", r"replaced_tokens/.*"),
)

GOOGLE_TF1 = NameTable(
    rows=(
        *GOOGLE.rows(
            ("embeddings/token_embedding", "bert/embeddings/word_embeddings"),
            ("embeddings/position_embedding", "bert/embeddings/position_embeddings"),
            ("embeddings/segment_embedding", "bert/embeddings/token_type_embeddings"),
            ("embeddings/layer_norm", "bert/embeddings/LayerNorm"),
            # bert4keras has this layer if embeddings and hidden states differ in width.
            ("embeddings/projection", "bert/encoder/embedding_hidden_mapping_in"),
            ("pooler", "bert/pooler/dense"),
            ("masked_lm/transform", "cls/predictions/transform/dense"),
            ("masked_lm/layer_norm", "cls/predictions/transform/LayerNorm"),
        ),
        *GOOGLE.block(
            "bert/encoder/layer_{i}/",
            (
                "attention/self/query",
                "attention/self/key",
                "attention/self/value",
                "attention/output/dense",
                "attention/output/LayerNorm",
                "intermediate/dense",
                "output/dense",
                "output/LayerNorm",
            ),
        ),
        ("masked_lm/bias", "cls/predictions/output_bias", same),
        ("next_sentence/kernel", "cls/seq_relationship/output_weights", transposed),
        ("next_sentence/bias", "cls/seq_relationship/output_bias", same),
        ("span_labeler/kernel", "cls/squad/output_weights", transposed),
        ("span_labeler/bias", "cls/squad/output_bias", same),
        # run_classifier.py writes its head at the root.
        ("classifier/kernel", "output_weights", transposed),
        ("classifier/bias", "output_bias", same),
    ),
    ignored=(  # states of optimizers
        r"(.*/)?((adam|lamb)_[mv]|(Adam|LAMB)(_1)?)",
        r"global_step|beta[12]_power|loss_scale|good_steps",
    ),
    optional=OPTIONAL,
    heads=HEADS,
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


def hugging_face_aliases(model):
    """The aliases of the names of an encoder that Hugging Face calls `model`."""
    return (
        # PyTorch's DataParallel puts a prefix before all names. The names of an encoder that was
        # saved by itself have no prefix. Files of 2018 name norms as Google did.
        (r"^module\.", ""),
        (r"^(embeddings|encoder|pooler)\.", rf"{model}.\1."),
        (r"LayerNorm\.gamma$", "LayerNorm.weight"),
        (r"LayerNorm\.beta$", "LayerNorm.bias"),
    )


HUGGING_FACE = NameTable(
    rows=(
        *hugging_face_encoder("bert"),
        ("masked_lm/bias", "cls.predictions.bias", same),
        *PYTORCH.rows(
            ("masked_lm/transform", "cls.predictions.transform.dense"),
            ("masked_lm/layer_norm", "cls.predictions.transform.LayerNorm"),
            ("next_sentence", "cls.seq_relationship"),
            ("classifier", "classifier"),
            # The heads for texts, tokens and choices have one name. A checkpoint has one of them.
            ("token_classifier", "classifier"),
            ("choice_scorer", "classifier"),
            ("span_labeler", "qa_outputs"),
        ),
    ),
    aliases=hugging_face_aliases("bert"),
    ignored=(r"bert\.embeddings\.(position_ids|token_type_ids)",),
    optional=OPTIONAL,
    heads=HEADS,
    copies=(
        (
            "cls.predictions.decoder.weight",
            "bert.embeddings.word_embeddings.weight",
            r"masked_lm/.*",
        ),
        ("cls.predictions.decoder.bias", "cls.predictions.bias", r"masked_lm/.*"),
    ),
)

#: The names in RobertaModel, RobertaForMaskedLM, RobertaForTokenClassification,
#: RobertaForQuestionAnswering and RobertaForMultipleChoice.
ROBERTA = NameTable(
    rows=(
        *hugging_face_encoder("roberta"),
        ("masked_lm/bias", "lm_head.bias", same),
        *PYTORCH.rows(
            ("masked_lm/transform", "lm_head.dense"),
            ("masked_lm/layer_norm", "lm_head.layer_norm"),
            ("token_classifier", "classifier"),
            ("choice_scorer", "classifier"),
            ("span_labeler", "qa_outputs"),
        ),
    ),
    aliases=hugging_face_aliases("roberta"),
    ignored=(r"roberta\.embeddings\.(position_ids|token_type_ids)",),
    optional=tuple(pattern for pattern in OPTIONAL if pattern != r"next_sentence/.*"),
    heads=HEADS,
    copies=(
        ("lm_head.decoder.weight", "roberta.embeddings.word_embeddings.weight", r"masked_lm/.*"),
        ("lm_head.decoder.bias", "lm_head.bias", r"masked_lm/.*"),
    ),
)


def of_two_layers(table):
    """The names in a class that classifies texts by two layers. The first is our pooler."""
    others = ("pooler/", "token_classifier/", "choice_scorer/")
    return replace(
        table,
        rows=(
            *(row for row in table.rows if not row[0].startswith(others)),
            *PYTORCH.rows(("pooler", "classifier.dense"), ("classifier", "classifier.out_proj")),
        ),
    )


#: The names in RobertaForSequenceClassification.
ROBERTA_CLASSIFIER = of_two_layers(ROBERTA)
