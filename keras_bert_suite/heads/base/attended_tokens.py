"""Which tokens of a text the summary of an encoder attends to."""

from typing import Any

import numpy as np

from keras_bert_suite.annotations import Inputs
from keras_bert_suite.heads.base.attention_maps import encode_with_attention
from keras_bert_suite.heads.base.attributions import Attribution, describe_row, find_tokens
from keras_bert_suite.heads.base.integrated_gradients import read_entries
from keras_bert_suite.layers.adapters.adaptable import act_in
from keras_bert_suite.models.encoder import Encoder
from keras_bert_suite.runs.weight_lock import lock_weights


def attended_tokens(
    task: Any, texts: Inputs, layer: int | None = None, head: int | None = None
) -> list[Attribution]:
    """Says how much the token that stands for a row attends to each of its tokens.

    In an encoder without such a token it is the mean over all tokens. Attention says where a model
    looks, and not what its answer rests on; `integrated_gradients` says that.

    Args:
        task: a task with a `SegmentPacker`, on an encoder as `encode_with_attention` takes it.
        texts: rows in memory, as `predict` takes them.
        layer: int, the number of the layer, negative from the last. None rolls the attention of all
            layers out: the product over the layers of half of the map and half of the identity,
            for the residual connection.
        head: int, the head; None for the mean over the heads.

    Returns:
        list of `Attribution`, one for each row. Its scores sum to 1, or to less
        with `PrefixTuning`, whose prefix gets the rest.

    Raises:
        ValueError: as `encode_with_attention`; if a row has several windows; or if there is no such
            layer or head.

    Source: Abnar and Zuidema, 2020 (https://arxiv.org/abs/2005.00928), section 3, for the rollout.
    """
    found = []
    for packed, row in read_entries(task, texts):
        if packed["token_ids"].ndim != 2:
            raise ValueError(
                f"A row of {task.name} is several rows of tokens. Pass a task whose rows are texts "
                "or pairs."
            )
        with lock_weights(task), act_in(task, training=False):
            of_layers = encode_with_attention(task.backbone, packed)["attentions"]
        num_layers = len(of_layers)
        _check_place("layer", layer, num_layers)
        of_layers = of_layers if layer is None else [of_layers[layer]]
        num_heads = min(maps.shape[1] for maps in of_layers)  # Layers may have lost heads.
        _check_place("head", head, num_heads)
        maps = np.stack([m[0].mean(axis=0) if head is None else m[0, head] for m in of_layers])
        is_token = find_tokens(packed)
        maps = maps[:, is_token][:, :, is_token].astype("float64")
        attention = maps[0] if layer is not None else _roll_out(maps)
        summary = Encoder.of(task.backbone).summary_place
        scores = attention.mean(axis=0)
        if summary is not None:
            scores = attention[0 if summary == "first" else -1]
        of = "all layers" if layer is None else f"layer {layer % num_layers}"
        heads = "" if head is None else f", head {head % num_heads}"
        said = describe_row(task.data, packed, row)
        found.append(Attribution(scores=scores, target=f"attention of {of}{heads}", **said))
    return found


def _check_place(name: str, place: int | None, size: int) -> None:
    if place is not None and not -size <= place < size:
        raise ValueError(f"{name} must be in [-{size}, {size}), got {place}.")


def _roll_out(maps: np.ndarray) -> np.ndarray:
    """float64 (T, T), from the maps of all layers (N, T, T)."""
    rolled = np.eye(maps.shape[1])
    for attention in maps:
        rolled = (attention / 2 + np.eye(len(rolled)) / 2) @ rolled
    return rolled
