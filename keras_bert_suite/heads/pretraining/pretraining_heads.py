"""Makes the heads of pretraining on a backbone. Several tasks have the head for masked tokens."""

import warnings
from collections.abc import Sequence

import keras
import keras_hub

from keras_bert_suite.annotations import PathLike
from keras_bert_suite.layers import SpanBoundaryHead
from keras_bert_suite.models.encoder import Encoder

#: The arguments of a `Pretrainer` that say which heads it has.
HEAD_ARGUMENTS = ("next_sentence", "sentence_relations", "span_boundary")

#: The layers of the heads beside the masked LM's, and their purpose.
HEAD_PURPOSES = {
    "next_sentence": "pairs of texts",
    "span_boundary": "the boundaries of spans",
}


def make_next_sentence_head(
    backbone: keras_hub.models.Backbone, sentence_relations: int
) -> keras.layers.Dense:
    """The head for pairs of texts, which tells `sentence_relations` relations apart."""
    initializer_range = Encoder.of(backbone).initializer_range
    return keras.layers.Dense(
        sentence_relations,
        kernel_initializer=keras.initializers.TruncatedNormal(stddev=initializer_range),
        dtype=backbone.dtype_policy,
        name="next_sentence",
    )


def make_span_boundary_head(backbone: keras_hub.models.Backbone) -> SpanBoundaryHead:
    """The head that guesses the tokens of a span from the two tokens beside it."""
    encoder = Encoder.of(backbone)
    return SpanBoundaryHead(
        encoder.token_embedding,
        activation=encoder.activation,
        layer_norm_epsilon=encoder.layer_norm_epsilon,
        initializer_range=encoder.initializer_range,
        dtype=backbone.dtype_policy,
        name="span_boundary",
    )


def copy_pretrainer(task, backbone, **heads):
    """A copy of a `Pretrainer` on another backbone or with other heads, which is not compiled.

    Heads of both keep their weights. It returns (the copy; the names of the heads that are new).
    """
    own = {name: getattr(task, name) for name in HEAD_ARGUMENTS}
    copy = type(task)(
        backbone,
        preprocessor=task.preprocessor,
        name=task.name,
        compile=False,
        **{**own, **heads},
    )
    new_parts = []
    for name in ("masked_lm", "next_sentence_head", "span_boundary_head"):
        ours, theirs = getattr(task, name), getattr(copy, name)
        if ours is not None and theirs is not None and _has_same_shapes(ours, theirs):
            theirs.set_weights(ours.get_weights())
        elif theirs is not None:
            new_parts.append(theirs.name)
    return copy, new_parts


def _has_same_shapes(layer, other):
    return [w.shape for w in layer.weights] == [w.shape for w in other.weights]


def warn_of_new_heads(path: PathLike, names: Sequence[str]) -> None:
    """Warns of the heads that a preset or a checkpoint does not have in the wanted shape."""
    if names:
        purposes = " and ".join(HEAD_PURPOSES[name] for name in names)
        warnings.warn(
            f"{path} has no head for {purposes} as it is wanted here; this head of the pretrainer "
            "is new and random. Train it before you use its output.",
            stacklevel=4,
        )
