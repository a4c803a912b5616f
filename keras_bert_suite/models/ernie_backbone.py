"""ERNIE, the encoder without a head."""

from typing import Any

import keras
from keras import ops

from keras_bert_suite.annotations import Activation, Shape, Tensor
from keras_bert_suite.argument_checks import check_integer
from keras_bert_suite.layers import BertEmbeddings
from keras_bert_suite.models.bert_backbone import BertBackbone


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class ErnieEmbeddings(BertEmbeddings):
    """BERT's embeddings, with the embedding of a task added to every token.

    The table has `num_task_types` rows, of which row `task_id` is added. With 0 there is no table.
    """

    def __init__(self, num_task_types: int = 0, task_id: int = 0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        check_integer("num_task_types", num_task_types)
        check_integer("task_id", task_id)
        if task_id >= max(num_task_types, 1):
            raise ValueError(
                f"task_id must be at least 0 and below num_task_types={num_task_types}, got "
                f"{task_id}."
            )
        self.num_task_types = num_task_types
        self.task_id = task_id
        self.task_type_embedding: keras.layers.Embedding | None = None
        if num_task_types:
            self.task_type_embedding = self.make_table(num_task_types, "task_type_embedding")

    def build(self, token_ids_shape: Shape, *_: Shape | None) -> None:
        super().build(token_ids_shape)
        if self.task_type_embedding is not None:
            self.task_type_embedding.build()

    def sum_tables(self, token_ids: Tensor, segment_ids: Tensor, positions: Tensor) -> Tensor:
        """The sum of the rows of all tables, float (B, L, E)."""
        x = super().sum_tables(token_ids, segment_ids, positions)
        if self.task_type_embedding is None:
            return x
        return x + self.task_type_embedding(ops.full((1, 1), self.task_id, "int32"))


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class ErnieBackbone(BertBackbone):
    """A functional ERNIE encoder: BERT's encoder, which may also embed the task.

    ERNIE 1.0 is a BERT with other pretraining. ERNIE 2.0 and 3.0 were pretrained on several tasks,
    and add the embedding of the task to every token. All rows of a batch have the same task.

    It has the inputs and outputs of `BertBackbone`.

    Args:
        vocabulary_size, num_layers, num_heads, hidden_dim, intermediate_dim: as for
            `BertBackbone`.
        activation: as for `BertBackbone`.
        num_task_types: int, rows of the task embedding; 0 for no such table, as in ERNIE 1.0.
        task_id: int, the task of the rows. Checkpoints are fine-tuned with task 0.
        **kwargs: other arguments of `BertBackbone`.

    Source: Sun et al., 2019 (https://arxiv.org/abs/1904.09223 and
    https://arxiv.org/abs/1907.12412), and 2021 (https://arxiv.org/abs/2107.02137).
    """

    def __init__(
        self,
        *sizes: int,
        activation: Activation = "gelu_erf",
        num_task_types: int = 0,
        task_id: int = 0,
        **kwargs: Any,
    ) -> None:
        # Within its constructor the base class calls `make_embeddings`.
        self.num_task_types = num_task_types
        self.task_id = task_id
        super().__init__(*sizes, activation=activation, **kwargs)

    def make_embeddings(self, **arguments: Any) -> keras.layers.Layer:
        """Makes the layer of embeddings from the arguments of `BertEmbeddings`."""
        return ErnieEmbeddings(self.num_task_types, self.task_id, **arguments)
