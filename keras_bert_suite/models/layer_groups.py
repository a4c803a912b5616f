"""Which layers of an encoder are its blocks, and which are below them."""

import collections
from typing import NamedTuple

import keras

from keras_bert_suite.argument_checks import with_article
from keras_bert_suite.models.encoder import Encoder


class LayerGroups(NamedTuple):
    """Layers of an encoder that have weights. The others, such as a pooler, are above the blocks.

    Attributes:
        below: list of layers before the first block, such as the embeddings.
        blocks: list of blocks, from the first on.
    """

    below: list[keras.layers.Layer]
    blocks: list[keras.layers.Layer]


def find_layer_groups(encoder: Encoder, needed_by: str) -> LayerGroups:
    """The groups of the layers of an encoder.

    Args:
        encoder: `Encoder`.
        needed_by: str, the argument that needs them, for errors.

    Raises:
        ValueError: if the encoder has no blocks, calls a block several times as ALBERT does, or has
            blocks of an encoder and of a decoder.
    """
    model = encoder.as_model()
    name = with_article(model, "A")
    remedy = "Take an encoder such as BertBackbone, or name weights by `rate_multipliers`."
    if hasattr(model, "connect_pairs"):
        raise ValueError(
            f"{needed_by} numbers the layers of one encoder from below. {name} has layers of an "
            f"encoder and of a decoder, which read it. {remedy}"
        )
    if not encoder.transformer_layers:
        raise ValueError(
            f"{needed_by} numbers transformer layers, and {name[0].lower()}{name[1:]} names none. "
            f"{remedy}"
        )
    blocks = encoder.list_calls()
    if len(set(map(id, blocks))) < len(blocks):
        raise ValueError(
            f"{needed_by} gives each layer its own number. {name} has {len(blocks)} layers with "
            f"the weights of {len(set(map(id, blocks)))}, so one weight would have several. "
            f"{remedy}"
        )
    states = encoder.hidden_states or encoder._follow_blocks()[1]
    below = keras.Model(model.input, states[0], name="below_the_blocks").layers
    return LayerGroups([layer for layer in below if layer.weights], blocks)


def number_weights(encoder: Encoder, needed_by: str) -> tuple[dict[str, int], int]:
    """The numbers of the weights of an encoder, by path, and how many blocks there are.

    The weights below the first block have 0, those of block i have i + 1, and those above the last
    block have the number of blocks plus 1. So have weights that several blocks share, such as a
    table of relative positions.

    Args: as for `find_layer_groups`.
    """
    below, blocks = find_layer_groups(encoder, needed_by)
    above = len(blocks) + 1
    numbers = {variable.path: above for variable in encoder.as_model().weights}
    counts = collections.Counter(v.path for block in blocks for v in block.weights)
    for number, block in enumerate(blocks, start=1):
        numbers.update((v.path, number) for v in block.weights if counts[v.path] == 1)
    numbers.update((variable.path, 0) for layer in below for variable in layer.weights)
    return numbers, len(blocks)
