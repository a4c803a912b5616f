"""The generator that ELECTRA's discriminator is trained with, on the embeddings of both."""

from typing import Any

import keras

from keras_bert_suite.annotations import Config, Shape, Tensor
from keras_bert_suite.layers import BertEmbeddings
from keras_bert_suite.layers.attention.sequence_layout import Layout
from keras_bert_suite.layers.companions import CompanionReader
from keras_bert_suite.layers.configured_layer import read_arguments
from keras_bert_suite.models.electra_backbone import ElectraBackbone
from keras_bert_suite.models.trainability import read_trainability, restore_trainability
from keras_bert_suite.models.weight_copies import copy_weight, list_by_path


class SharedEmbeddings(CompanionReader):
    """The embeddings of another model, projected to the width `hidden_dim`.

    Token, position and segment embeddings and their norm are shared. The other model is built.
    """

    companions = BertEmbeddings.companions

    def __init__(self, embeddings: BertEmbeddings, hidden_dim: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.embeddings = embeddings
        self.hidden_dim = hidden_dim
        self.projection: keras.layers.Dense | None = None
        if embeddings.embedding_dim != hidden_dim:
            self.projection = keras.layers.Dense(
                hidden_dim,
                kernel_initializer=keras.initializers.TruncatedNormal(
                    stddev=embeddings.initializer_range
                ),
                dtype=self.dtype_policy,
                name="projection",
            )

    @property
    def token_embedding(self) -> keras.layers.ReversibleEmbedding:
        """The token embedding (V, E) of both models."""
        return self.embeddings.token_embedding

    def build(self, token_ids_shape: Shape, *_: Any, **__: Any) -> None:
        if self.projection is not None:
            self.projection.build((*token_ids_shape, self.embeddings.embedding_dim))

    def call(
        self,
        token_ids: Tensor,
        segment_ids: Tensor | None = None,
        positions: Tensor | None = None,
        training: bool | None = None,
        sequence_layout: Layout | None = None,
        embedding_shift: Tensor | None = None,
    ) -> Tensor:
        """Embeds a batch; see `BertEmbeddings.call`."""
        x = self.embeddings.embed_tokens(
            token_ids, segment_ids, positions, training, sequence_layout, embedding_shift
        )
        return x if self.projection is None else self.projection(x)

    def compute_output_shape(self, token_ids_shape: Shape, *_: Any, **__: Any) -> Shape:
        return (*token_ids_shape, self.hidden_dim)


class ElectraGenerator(ElectraBackbone):
    """A generator for a discriminator, with the discriminator's embeddings.

    It has as many layers as the discriminator, of the same settings, and a share `width` of its
    attention heads and of its widths. The heads stay as wide as they are. `to_backbone` makes a
    model that can be saved.

    The paths of the generator's own weights begin with "generator/".

    Source: google-research/electra, run_pretraining.py, `get_generator_config`.
    """

    def __init__(self, discriminator: ElectraBackbone, width: float) -> None:
        # Within its constructor the base class calls `make_embeddings`.
        self.shared_embeddings = discriminator.embeddings
        num_heads = max(1, round(width * discriminator.num_heads))
        head_dim = discriminator.hidden_dim // discriminator.num_heads
        config = discriminator.get_config()
        config.pop("trainability", None)
        activation = keras.activations.deserialize(config.pop("activation"))
        hidden_dim = num_heads * head_dim
        ratio = discriminator.intermediate_dim / discriminator.hidden_dim
        sizes = {
            "num_heads": num_heads,
            "hidden_dim": hidden_dim,
            "intermediate_dim": round(ratio * hidden_dim),
            "heads_by_layer": None,
            "intermediate_by_layer": None,
            "output_hidden_states": False,
            "part_embeddings": discriminator.part_embeddings,
            "dtype": discriminator.dtype_policy,
            "name": "generator",
        }
        trainability = read_trainability(discriminator)
        with keras.name_scope("generator"):
            super().__init__(**{**config, **sizes}, activation=activation)
        # A new model hands its `trainable` down, also to the embeddings of the discriminator.
        restore_trainability(discriminator, trainability)

    def make_embeddings(self, **arguments: Any) -> keras.layers.Layer:
        """Makes the layer of embeddings from the arguments of `BertEmbeddings`."""
        return SharedEmbeddings(
            self.shared_embeddings,
            arguments["hidden_dim"],
            dtype=arguments["dtype"],
            name=arguments["name"],
        )

    def to_backbone(self) -> ElectraBackbone:
        """A copy of the generator and its embeddings, which can be saved."""
        backbone = ElectraBackbone.from_config(self.get_config())
        weights = list_by_path(self)
        for weight in backbone.weights:
            own = weights.get(f"generator/{weight.path}")
            copy_weight(weight, weights[weight.path] if own is None else own)
        return backbone

    def get_config(self) -> Config:
        """The configuration of the `ElectraBackbone` that has the sizes of the generator."""
        dtype = keras.dtype_policies.serialize(self.dtype_policy)
        return {"name": self.name, "dtype": dtype, **read_arguments(self, ElectraBackbone)}
