"""BART and mBART, without a head."""

from typing import Any, ClassVar

import keras
from keras import ops

from keras_bert_suite.annotations import Activation, Config, Dtype, Tensor
from keras_bert_suite.argument_checks import (
    check_below_one,
    check_further_arguments,
    check_not_negative,
    check_sizes,
)
from keras_bert_suite.layers import BartBlock, BartEmbeddings
from keras_bert_suite.layers.norms import make_norm
from keras_bert_suite.layers.poolings.pooling import take_summary
from keras_bert_suite.models.activations import get_activation
from keras_bert_suite.models.cross_attention_decoder import CrossAttentionDecoder, DecoderLayers
from keras_bert_suite.models.decoder import Decoder
from keras_bert_suite.models.encoder import Encoder
from keras_bert_suite.models.frame_inputs import make_inputs, name_frame_inputs
from keras_bert_suite.models.text_encoder import TextEncoder

#: The inputs of a decoder, int32 (B, T).
TARGET_INPUTS = ("decoder_token_ids", "decoder_padding_mask")


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class BartBackbone(TextEncoder):
    """A functional BART: an encoder, and a decoder that attends to it.

    Its heads on texts and tokens give the same text to both sides. The decoder reads the text
    behind its last token: `</s> <s> a b` beside `<s> a b </s>`. So the state at the last `</s>` has
    read the whole text, and that of any other token the tokens before it, and all of the encoder. A
    `Seq2Seq` gives the source to the encoder and the target to the decoder.

    Inputs, a dictionary: `token_ids` and `padding_mask`, each int32 (B, L); the mask is 1 on
    tokens and 0 on padding, which stands on the right.

    Outputs, a dictionary: `sequence_output` (B, L, H), of the decoder; `pooled_output` (B, H), a
    tanh layer over the state of the last token, the first layer of BART's classification head; and
    with `output_hidden_states` also `hidden_states`, a list of the embeddings of the decoder and
    the outputs of its blocks. `connect_pairs` has the outputs for two texts.

    With `frame_dim` the encoder reads frames, and the decoder still writes tokens: a `Seq2Seq`
    writes the text of a recording or of an image. The inputs are then `frames`, float (B, L, D),
    and `padding_mask`, int32 (B, L), the source, and `decoder_token_ids` and
    `decoder_padding_mask`, int32 (B, T), what the decoder reads of the target. The outputs are
    `encoder_sequence_output` (B, L, H) and `decoder_sequence_output` (B, T, H). There is no pooler.

    Args:
        vocabulary_size: int V.
        num_layers: int, transformer blocks of the encoder.
        num_heads: int, attention heads per block; must divide `hidden_dim`.
        hidden_dim: int H.
        intermediate_dim: int, inner width of the feed-forward networks.
        num_decoder_layers, num_decoder_heads, decoder_intermediate_dim: the same for the decoder.
            None for the encoder's.
        activation: as for `BertBackbone`.
        dropout: float, dropout rate of embeddings and sublayer outputs.
        attention_dropout: float, dropout rate of the attention probabilities.
        activation_dropout: float, dropout rate within the feed-forward networks.
        max_sequence_length: int, the positions of each side.
        pre_norm: bool, whether norms come before the sublayers, and one more after the last block
            of each side, as in mBART.
        scale_embeddings: bool, whether token embeddings are multiplied by the square root of H, as
            in mBART.
        layer_norm_epsilon: float.
        initializer_range: float, standard deviation of the truncated normal.
        output_hidden_states: bool, whether to output `hidden_states`.
        frame_dim: int D, for an encoder of frames, as for `BertBackbone`. `vocabulary_size` is that
            of the decoder. `scale_embeddings` does not scale frames, as in transformers.
        remat: bool, as for `BertBackbone`.
        dtype: as for `BertBackbone`. Norms and softmax are computed in float32.

    Example:
    ```python
    backbone = BartBackbone.from_size("base", vocabulary_size=50265)
    ```

    Raises:
        ValueError: if a size is no positive integer, the heads of a side do not divide
            `hidden_dim`, a dropout rate is not in [0, 1), or `activation` is unknown.

    Source: Lewis et al., 2019 (https://arxiv.org/abs/1910.13461); Liu et al., 2020, mBART
    (https://arxiv.org/abs/2001.08210); and `modeling_bart.py` of transformers. Its layer drop is
    left out.
    """

    #: The released sizes. With the vocabulary of 50,265 they have 139 and 406 million parameters.
    sizes: ClassVar[dict[str, Config]] = {
        "base": {"num_layers": 6, "num_heads": 12, "hidden_dim": 768, "intermediate_dim": 3072},
        "large": {"num_layers": 12, "num_heads": 16, "hidden_dim": 1024, "intermediate_dim": 4096},
    }
    #: The names of the model's inputs.
    input_names: tuple[str, ...] = ("token_ids", "padding_mask")
    #: How many rows the position embedding has before the row of the first token.
    position_offset = 2

    def __init__(
        self,
        vocabulary_size: int,
        num_layers: int,
        num_heads: int,
        hidden_dim: int,
        intermediate_dim: int,
        *,
        num_decoder_layers: int | None = None,
        num_decoder_heads: int | None = None,
        decoder_intermediate_dim: int | None = None,
        activation: Activation = "gelu_erf",
        dropout: float = 0.1,
        attention_dropout: float = 0.0,
        activation_dropout: float = 0.0,
        max_sequence_length: int = 1024,
        pre_norm: bool = False,
        scale_embeddings: bool = False,
        layer_norm_epsilon: float = 1e-5,
        initializer_range: float = 0.02,
        output_hidden_states: bool = False,
        frame_dim: int | None = None,
        remat: bool = False,
        dtype: Dtype | None = None,
        **kwargs: Any,
    ) -> None:
        check_further_arguments(type(self), kwargs, ("name", "trainable"))
        if num_decoder_layers is None:
            num_decoder_layers = num_layers
        if num_decoder_heads is None:
            num_decoder_heads = num_heads
        if decoder_intermediate_dim is None:
            decoder_intermediate_dim = intermediate_dim
        for heads in (num_heads, num_decoder_heads):
            check_sizes(
                heads,
                hidden_dim,
                vocabulary_size=vocabulary_size,
                num_layers=num_layers,
                intermediate_dim=intermediate_dim,
                num_decoder_layers=num_decoder_layers,
                decoder_intermediate_dim=decoder_intermediate_dim,
                max_sequence_length=max_sequence_length,
            )
        check_below_one(
            dropout=dropout,
            attention_dropout=attention_dropout,
            activation_dropout=activation_dropout,
        )
        check_not_negative("initializer_range", initializer_range)

        # === Config ===
        self.vocabulary_size = vocabulary_size
        self.num_layers = num_layers
        self.num_heads = num_heads
        self.hidden_dim = hidden_dim
        self.intermediate_dim = intermediate_dim
        self.num_decoder_layers = num_decoder_layers
        self.num_decoder_heads = num_decoder_heads
        self.decoder_intermediate_dim = decoder_intermediate_dim
        self.activation = get_activation(activation)
        self.dropout = dropout
        self.attention_dropout = attention_dropout
        self.activation_dropout = activation_dropout
        self.max_sequence_length = max_sequence_length
        self.max_decoder_length = max_sequence_length
        self.pre_norm = pre_norm
        self.scale_embeddings = scale_embeddings
        self.layer_norm_epsilon = layer_norm_epsilon
        self.initializer_range = initializer_range
        self.output_hidden_states = output_hidden_states
        self.frame_dim = frame_dim
        if frame_dim is not None:
            self.input_names = name_frame_inputs(self.input_names)

        self._make_layers(remat, dtype)
        inputs = make_inputs(self.input_names, frame_dim)
        if frame_dim is None:
            outputs = self._connect_layers(inputs)
        else:
            inputs, outputs = self._connect_frames(inputs)
        super().__init__(inputs=inputs, outputs=outputs, dtype=dtype, **kwargs)

    def _make_layers(self, remat: bool, dtype: Dtype | None) -> None:
        """Makes the layers that own weights."""
        initializer = keras.initializers.TruncatedNormal(stddev=self.initializer_range)
        self.token_embedding = keras.layers.ReversibleEmbedding(
            self.vocabulary_size,
            self.hidden_dim,
            embeddings_initializer=initializer,
            dtype=dtype,
            name="token_embedding",
        )
        self.embeddings = self._make_embeddings(dtype, frame_dim=self.frame_dim)
        encoder_blocks = self._make_blocks(
            self.num_layers, self.num_heads, self.intermediate_dim, remat=remat, dtype=dtype
        )
        decoder_blocks = self._make_blocks(
            self.num_decoder_layers,
            self.num_decoder_heads,
            self.decoder_intermediate_dim,
            has_cross_attention=True,
            remat=remat,
            dtype=dtype,
        )
        self.final_norm = self._make_final_norm()
        self.decoder = DecoderLayers(
            self._make_embeddings(dtype),
            decoder_blocks,
            self._make_final_norm(),
            dtype=dtype,
            name="decoder",
        )
        self.encoder_layers = encoder_blocks
        self.transformer_layers = [*encoder_blocks, *decoder_blocks]
        if self.frame_dim is None:
            self.pooler = keras.layers.Dense(
                self.hidden_dim,
                activation="tanh",
                kernel_initializer=initializer.clone(),
                dtype=dtype,
                name="pooler",
            )
        # The head that scores the vocabulary has no layers before the product with the table.
        self.token_transform = keras.layers.Identity(dtype=dtype, name="token_transform")

    def _make_embeddings(self, dtype: Dtype | None, frame_dim: int | None = None) -> BartEmbeddings:
        return BartEmbeddings(
            self.token_embedding,
            self.max_sequence_length,
            dropout=self.dropout,
            layer_norm_epsilon=self.layer_norm_epsilon,
            initializer_range=self.initializer_range,
            scale_tokens=self.scale_embeddings,
            position_offset=self.position_offset,
            frame_dim=frame_dim,
            dtype=dtype,
            name="embeddings",
        )

    def _make_blocks(
        self, num_layers: int, num_heads: int, intermediate_dim: int, **arguments: Any
    ) -> list[BartBlock]:
        return [
            BartBlock(
                num_heads,
                intermediate_dim,
                activation=self.activation,
                dropout=self.dropout,
                attention_dropout=self.attention_dropout,
                activation_dropout=self.activation_dropout,
                pre_norm=self.pre_norm,
                layer_norm_epsilon=self.layer_norm_epsilon,
                initializer_range=self.initializer_range,
                name=f"transformer_layer_{i}",
                **arguments,
            )
            for i in range(num_layers)
        ]

    def _make_final_norm(self) -> keras.layers.Layer | None:
        if not self.pre_norm:
            return None
        return make_norm(self.embeddings, "final_norm", self.layer_norm_epsilon)

    def _connect_layers(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """dict of the outputs of the functional model, from dict of its symbolic inputs."""
        mask = inputs["padding_mask"]
        shifted = shift_right(inputs["token_ids"], mask)
        self.hidden_states = self.decoder(shifted, mask, self.encode_sources(inputs), mask)
        x = self.hidden_states[-1]
        pooled = self.pooler(take_summary(x, mask, "last"))
        outputs = {"sequence_output": x, "pooled_output": pooled}
        if self.output_hidden_states:
            outputs["hidden_states"] = self.hidden_states
        return outputs

    def _connect_frames(self, source: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """The inputs and the outputs of the model of a source of frames and a target."""
        target = make_inputs(TARGET_INPUTS, None)
        encoded = self.encode_sources(source)
        self.hidden_states = self.decoder(*target.values(), encoded, source["padding_mask"])
        outputs = {
            "encoder_sequence_output": encoded,
            "decoder_sequence_output": self.hidden_states[-1],
        }
        if self.output_hidden_states:
            outputs["hidden_states"] = self.hidden_states
        return {**source, **target}, outputs

    def encode_summary(self, inputs: dict[str, Tensor]) -> Tensor:
        """The vectors of rows, symbolic float (B, P).

        The last block computes the last token of each row alone, of which they are made.
        """
        own = self.input
        mask = own["padding_mask"]
        last = ops.maximum(ops.sum(mask, axis=1, keepdims=True) - 1, 0)
        shifted, encoded = shift_right(own["token_ids"], mask), self.encode_sources(own)
        states = self.decoder(shifted, mask, encoded, mask, read_positions=last)
        model = keras.Model(own, self.pooler(states[-1][:, 0]), name="read_states")
        return model(inputs)

    def encode_sources(self, source: dict[str, Tensor]) -> Tensor:
        """The output of the encoder, float (B, L, H), for packed arrays (B, L)."""
        hidden = self.embeddings(source[self.input_names[0]])
        for block in self.encoder_layers:
            hidden = block(hidden, source["padding_mask"])
        return hidden if self.final_norm is None else self.final_norm(hidden)

    def connect_pairs(self) -> tuple[dict[str, Tensor], Tensor]:
        """The graph from a source and a target to the output of the decoder.

        ```python
        inputs, hidden = backbone.connect_pairs()
        model = keras.Model(inputs, hidden)
        ```

        Returns:
            tuple (dict of symbolic int32: `token_ids` and `padding_mask` (B, L) of the source,
            `decoder_token_ids` and `decoder_padding_mask` (B, T) of the tokens that the decoder
            reads; symbolic float (B, T, H)). Frames, float (B, L, D), take the place of the
            `token_ids` of an encoder of frames.
        """
        if self.frame_dim is not None:
            return self.input, self.output["decoder_sequence_output"]
        target, source = make_inputs(TARGET_INPUTS, None), self.input
        encoded = self.encode_sources(source)
        states = self.decoder(*target.values(), encoded, source["padding_mask"])
        return {**source, **target}, states[-1]

    def list_calls(self) -> list[keras.layers.Layer]:
        """The blocks of the decoder, to which `hidden_states` belong."""
        return self.decoder.blocks

    def make_decoder(self, head: keras.layers.Layer) -> Decoder:
        """The decoder of a `Seq2Seq` whose head is `head`."""
        return CrossAttentionDecoder(self, _SourceEncoder(self), head, starts_with_end=True)


class _SourceEncoder(Encoder, keras.Model):
    """The encoder of a `BartBackbone` alone, which reads sources."""

    def __init__(self, backbone: BartBackbone) -> None:
        source = {name: backbone.input[name] for name in backbone.input_names}
        encoded = backbone.encode_sources(source)
        super().__init__(source, {"sequence_output": encoded}, name="encoder")
        self.vocabulary_size = backbone.vocabulary_size
        self.frame_dim = backbone.frame_dim
        self.max_sequence_length = backbone.max_sequence_length
        self._unused = [backbone.find_unused(transformed) for transformed in (False, True)]

    def find_unused(self, transformed: bool = False) -> frozenset[str]:
        """The paths of the weights of the backbone that a target does not need: the pooler's."""
        return self._unused[transformed]


def shift_right(token_ids: Tensor, padding_mask: Tensor) -> Tensor:
    """Moves the last token of each row to its front: int32 (B, L), int32 (B, L) -> int32 (B, L).

    >>> shift_right([[0, 7, 8, 2, 1]], [[1, 1, 1, 1, 0]])
    [[2, 0, 7, 8, 2]]

    The place after the last token has no meaning: it is padding. A row of BART ends with the token
    with which its decoder begins, and a row of mBART with the code of its language.
    """
    last = ops.sum(padding_mask, axis=1, keepdims=True) - 1
    first = ops.take_along_axis(token_ids, ops.maximum(last, 0), axis=1)
    return ops.concatenate([first, token_ids[:, :-1]], axis=1)
