"""Training with the memory of the batch before."""

from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from keras_bert_suite.annotations import Tensor
from keras_bert_suite.argument_checks import check_integer, with_article
from keras_bert_suite.replicas import count_replicas
from keras_bert_suite.training.techniques.technique import Batch, Technique


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class CarriedMemory(Technique):
    """Gives each batch the memory that the batch before has left.

    The batches are those of `LaneBatches` or `ContextLaneBatches`, or have as these an array
    `continues`, int (B, 1): 1 if row i continues row i of the batch before. Where it is 0, the
    memory is zeros, as in the first batch. The memory is a part of the checkpoints of a run, so a
    training that was killed goes on with it. No gradient flows into it.

    An evaluation knows no batch before. `predict_segments` is for segments with a memory.

    Args:
        lanes: int, the rows of a batch.

    Source: Dai et al., 2019, Transformer-XL (https://arxiv.org/abs/1901.02860), section 3.2.
    """

    reads = ("continues",)

    def __init__(self, lanes: int) -> None:
        check_integer("lanes", lanes, at_least=1)
        self.lanes = lanes

    def build(self, model: keras.Model) -> None:
        """Makes the memory of a model.

        Raises:
            ValueError: if the model has none, or replicas share its batches.
        """
        backbone, outputs = model.backbone, model.output
        length = getattr(backbone, "memory_length", None)
        if length is None or not isinstance(outputs, dict) or "memory" not in outputs:
            raise ValueError(
                f"CarriedMemory needs a task that has an output `memory`, and this "
                f"{type(model).__name__} on {with_article(backbone)} has none. Use a Pretrainer "
                "on an XLNetBackbone with memory_length."
            )
        if count_replicas() > 1:
            raise ValueError(
                "CarriedMemory keeps the memory of whole batches, and replicas would share each "
                "batch. Train on one device."
            )
        shape = (self.lanes, backbone.num_layers, length, backbone.hidden_dim)
        self.memory = keras.Variable(ops.zeros(shape), trainable=False, name="memory")

    def loss(
        self,
        forward: Callable[[Batch], tuple[Tensor, Any]],
        batch: Batch,
        rng: keras.random.SeedGenerator,
    ) -> Any:
        x = dict(batch.x)
        rows = x["padding_mask"].shape[0]
        if rows not in (None, self.lanes):
            raise ValueError(
                f"CarriedMemory(lanes={self.lanes}) got a batch of {rows} rows. Pass the "
                "batch_size of the batches as `lanes`."
            )
        if "continues" not in x:
            raise ValueError(
                "CarriedMemory needs batches whose rows continue those of the batch before, and "
                "these have no array `continues`. Train on LaneBatches or ContextLaneBatches, or "
                "leave the technique out."
            )
        memory = ops.convert_to_tensor(self.memory)
        memory = memory * ops.cast(x.pop("continues"), memory.dtype)[:, :, None, None]
        loss, outputs = forward(batch._replace(x={**x, "memory": memory}))
        self.memory.assign(ops.cast(outputs["memory"], "float32"))
        return loss, outputs
