"""Reads a text in segments, each with the memory of the segments before."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import keras
import numpy as np


def predict_segments(
    model: keras.Model, segments: Iterable[Mapping[str, np.ndarray]]
) -> Iterator[dict[str, Any]]:
    """Predicts the segments of texts one after the other, each with the memory of those before.

    The first segment has no memory. With a `memory_length` of all tokens before, a left-to-right
    model answers as for the whole text at once.

    ```python
    backbone = XLNetBackbone(*sizes, attention_pattern="left_to_right", memory_length=512)
    for outputs in predict_segments(backbone, segments):
        outputs["sequence_output"]
    ```

    Args:
        model: an `XLNetBackbone` with `memory_length`, or a `Pretrainer` on one.
        segments: iterable of dicts of arrays by name, each without `memory`. Row i of a segment
            continues row i of the segment before.

    Yields:
        dict of the outputs of each segment, with the `memory` that it leaves, float (B, num_layers,
        M, H).

    Raises:
        ValueError: if the model has no memory, or a segment has another number of rows.
    """
    if "memory" not in model.input:
        raise ValueError(
            f"This {type(model).__name__} has no input `memory`. Build its XLNetBackbone with "
            "memory_length."
        )
    backbone = getattr(model, "backbone", model)
    memory = None
    for segment in segments:
        rows = len(segment["padding_mask"])
        if memory is None:
            memory = np.zeros((rows, backbone.num_layers, 0, backbone.hidden_dim), "float32")
        if len(memory) != rows:
            raise ValueError(
                f"A segment has {rows} rows, and the segment before it has {len(memory)}. Pad the "
                "texts that end earlier, with padding_mask 0."
            )
        arrays = {name: array for name, array in segment.items() if name in model.input}
        outputs = model.predict_on_batch({**arrays, "memory": memory})
        memory = np.asarray(outputs["memory"], "float32")
        yield outputs
