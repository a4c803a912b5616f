"""Lower learning rates for lower layers of an encoder."""

import numbers
from collections.abc import Mapping

from keras_bert_suite.argument_checks import check_choice

#: How many numbers the head is above the last layer, by the name of a numbering.
LAYER_NUMBERINGS = {"electra": 2, "beit": 1}


def read_layer_decay(
    layer_decay: float | None, layer_numbering: str | None
) -> tuple[float | None, str | None]:
    """(decay, numbering) of the arguments of an optimizer. The numbering is "electra" by default.

    Raises:
        ValueError: if the decay is not over 0 and at most 1, if the numbering is unknown, or if
            there is a numbering without a decay.
    """
    if layer_numbering is not None:
        check_choice("layer_numbering", layer_numbering, LAYER_NUMBERINGS)
    if layer_decay is None:
        if layer_numbering is not None:
            raise ValueError(
                f"layer_numbering={layer_numbering!r} numbers the layers for a layer_decay, got "
                "layer_decay=None. Pass layer_decay=0.8, or leave out the numbering."
            )
        return None, None
    is_number = isinstance(layer_decay, numbers.Real) and not isinstance(layer_decay, bool)
    if not is_number or not 0 < layer_decay <= 1:
        raise ValueError(
            "layer_decay must be over 0 and at most 1, such as 0.8: the factor from a layer to the "
            f"layer below it; got {layer_decay!r}."
        )
    return float(layer_decay), layer_numbering or "electra"


def list_layer_factors(
    layer_numbers: Mapping[str, int], num_layers: int, layer_decay: float, layer_numbering: str
) -> dict[str, float]:
    """The factors of the learning rates of the weights of an encoder, by path.

    The factor is `layer_decay` ** (top - number). The embeddings have the number 0, layer i of
    `num_layers` layers has i + 1, and the weights above the last layer have `num_layers` + 1. The
    top is the number of the head, whose factor is 1:

    - "electra": `num_layers` + 2. So the last layer has `layer_decay` ** 2. ELECTRA has no weights
      between the last layer and the head; a pooler or a last norm here has `layer_decay`.
    - "beit": `num_layers` + 1. So the last layer has `layer_decay`, and what is above it 1.

    >>> list_layer_factors({"embeddings/gamma": 0, "layer_0/bias": 1}, 1, 0.5, "electra")
    {'embeddings/gamma': 0.125, 'layer_0/bias': 0.25}

    Args:
        layer_numbers: dict of path -> number.
        num_layers: int.
        layer_decay: float.
        layer_numbering: "electra" or "beit".

    Source: `_get_layer_lrs` in model/optimization.py of google-research/electra, and
    `LayerDecayValueAssigner` in beit/optim_factory.py of microsoft/unilm.
    """
    top = num_layers + LAYER_NUMBERINGS[layer_numbering]
    return {path: layer_decay ** (top - number) for path, number in layer_numbers.items()}
