"""Learned keys and values for each attention layer."""

from typing import Any

import keras

from keras_bert_suite.argument_checks import check_integer, with_article
from keras_bert_suite.layers.adapters.adaptable import name_layer, scope_of
from keras_bert_suite.layers.adapters.attention_prefix import AttentionPrefix, PrefixVectors
from keras_bert_suite.layers.attention.self_attention import PREFIX, SelfAttention
from keras_bert_suite.models.adaptations.adaptation import Adaptation, Made, list_layers, refuse


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class PrefixTuning(Adaptation):
    """Adds learned keys and values before those of each self-attention layer.

    Tokens keep their positions: a prefix has none, and no query. Each token of a row sees the whole
    prefix, also in packed rows. The defaults are those of the library adapters.

    It needs attention without positions of its own: BERT, RoBERTa, ELECTRA, DistilBERT, ALBERT,
    ERNIE and BART's encoder alone.

    Args:
        length: int, keys in each layer.
        bottleneck_dim: int, inner width of the network that makes the keys and values while they
            are trained; None for keys and values that are weights themselves.

    Source: Li and Liang, 2021 (https://arxiv.org/abs/2101.00190).
    """

    learning_rate = 1e-3

    def __init__(self, length: int = 30, bottleneck_dim: int | None = 512) -> None:
        check_integer("length", length, at_least=1)
        if bottleneck_dim is not None:
            check_integer("bottleneck_dim", bottleneck_dim, at_least=1)
        self.length = length
        self.bottleneck_dim = bottleneck_dim

    def make_layers(self, encoder: Any, name: str) -> list[Made]:
        layers = list_layers(encoder, SelfAttention)
        others = [layer for layer in layers if type(layer) is not SelfAttention]
        if others or not layers:
            kind = f"It has {with_article(others[0])}" if others else "It has no SelfAttention"
            raise refuse(
                self,
                encoder,
                f"{kind}, where a prefix has no place among the positions. Take LoRA.",
            )
        if hasattr(encoder, "encode_sources"):
            raise refuse(self, encoder, "An encoder-decoder keeps the keys of a text. Take LoRA.")
        if any(layer.head_dim is not None for layer in layers):
            reason = (
                "Its layers have lost heads, and a prefix is as wide as all of them. Take LoRA."
            )
            raise refuse(self, encoder, reason)
        vectors = PrefixVectors(
            self.length,
            len(layers),
            encoder.hidden_dim,
            self.bottleneck_dim,
            dtype="float32",
            name=name_layer("prefix_vectors", name),
        )
        with scope_of(layers[0]):
            vectors.build()
        own_name = name_layer(PREFIX, name)
        return [
            (layer, PREFIX, AttentionPrefix(vectors, index, dtype="float32", name=own_name))
            for index, layer in enumerate(layers)
        ]
