"""A callback that trains more layers of an encoder from epoch to epoch."""

from collections.abc import Sequence
from typing import Any, Literal

import keras

from keras_bert_suite.argument_checks import check_integer, with_article
from keras_bert_suite.models.encoder import Encoder
from keras_bert_suite.models.layer_groups import find_layer_groups


class GradualUnfreezing(keras.callbacks.Callback):
    """Trains the head first, and from epoch to epoch more layers of the encoder from above.

    The head, and what is above the last layer of the encoder, such as a pooler, are trained as they
    were. The callback alone says which layers of the encoder are trained: at the beginning of each
    epoch, by the number of the epoch. So a training that resumes trains the same layers, and so
    does a `fit` with `initial_epoch`. After the `fit` the layers stay as in its last epoch.

    It is for few rows, which would move all layers before the head has learned anything. The
    moments of layers that are thawed begin at 0.

    Args:
        layers: how many upper layers are trained in each epoch: ints from 0 on, or "all" for all
            layers and the embeddings. The last holds for the epochs after, too. It may also fall
            again, which freezes layers; `[4]` keeps the lower layers frozen for good. None is one
            layer more in each epoch, as in the paper: 0, 1, 2 and so on, at last "all".

    Raises:
        ValueError: if `layers` is no such list. In `fit`, if the encoder has fewer layers, if it
            has no transformer layers, or if it has LoRA or another adapter, which freezes weights
            within its layers.

    Example:
    ```python
    classifier.fit(texts, labels, epochs=3, callbacks=[GradualUnfreezing([0, 4, "all"])])
    ```

    Source: Howard and Ruder, 2018 (https://arxiv.org/abs/1801.06146), section 3.3.
    """

    def __init__(self, layers: Sequence[int | Literal["all"]] | None = None) -> None:
        super().__init__()
        if layers is not None:
            if isinstance(layers, str) or not isinstance(layers, Sequence) or not layers:
                raise ValueError(
                    "layers must be a list with the number of upper layers that each epoch "
                    f"trains, such as [0, 4, 'all'], or None; got {layers!r}."
                )
            for number in layers:
                if number != "all":
                    check_integer("Each of layers, if it is not 'all',", number)
        self.layers = None if layers is None else list(layers)

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        if not hasattr(self.model, "backbone"):
            raise ValueError(
                "GradualUnfreezing thaws the layers of the backbone of a task, and "
                f"{with_article(self.model)} has no backbone. Pass it to the `fit` of a task."
            )
        groups = find_layer_groups(Encoder.of(self.model.backbone), type(self).__name__)
        self._check_adapters()
        self._groups, num_layers = groups, len(groups.blocks)
        self._plan = self.layers or [*range(num_layers + 1), "all"]
        highest = max((number for number in self._plan if number != "all"), default=0)
        if highest > num_layers:
            raise ValueError(
                f"GradualUnfreezing is to train {highest} layers, and the "
                f"{type(self.model.backbone).__name__} has {num_layers}. Pass at most "
                f"{num_layers}, or 'all' for the embeddings as well."
            )

    def _check_adapters(self) -> None:
        """Raises a ValueError if only some weights of a layer train."""
        backbone: Any = self.model.backbone
        layers = backbone._flatten_layers()
        with_lora = [layer.path for layer in layers if getattr(layer, "lora_enabled", False)]
        found = f"{len(with_lora)} layers, such as {with_lora[0]}, have LoRA" if with_lora else None
        if getattr(backbone, "adapters", None):
            found = f"the encoder has the adapters {', '.join(backbone.adapters)}"
        if found is not None:
            raise ValueError(
                f"GradualUnfreezing thaws whole layers, and {found}, beside which the weights "
                "of the encoder stay frozen. Leave out one of both."
            )

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        below, blocks = self._groups
        number = self._plan[min(epoch, len(self._plan) - 1)]
        first = 0 if number == "all" else len(blocks) - int(number)
        # Layers may share weights with a layer above, which comes after them.
        for layer in below:
            layer.trainable = number == "all"
        for index, block in enumerate(blocks):
            block.trainable = index >= first
