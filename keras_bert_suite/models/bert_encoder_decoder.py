"""A BERT that reads sources, and a BERT that writes targets and attends to the first one."""

from typing import Any, Self

import keras

from keras_bert_suite.annotations import Config, Dtype, Tensor
from keras_bert_suite.argument_checks import check_further_arguments, with_article
from keras_bert_suite.layers import TransformerBlock
from keras_bert_suite.models.bert_backbone import BertBackbone
from keras_bert_suite.models.cross_attention_decoder import CrossAttentionDecoder, DecoderLayers
from keras_bert_suite.models.decoder import Decoder
from keras_bert_suite.models.text_encoder import TextEncoder
from keras_bert_suite.models.weight_copies import copy_known, list_by_path

#: Entries of a model's configuration that are no arguments of its constructor.
_NOT_ARGUMENTS = ("name", "trainable", "dtype", "trainability")


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class BertEncoderDecoder(TextEncoder):
    """A functional encoder-decoder of two BERTs, the backbone of a `Seq2Seq`.

    The encoder is a `BertBackbone`. The decoder has the layers of a BERT, too. Each of its tokens
    attends to itself and the tokens before it. Between self-attention and feed-forward network each
    block attends to the output of the encoder, by layers that no BERT has: they are to be trained.

    Use it where targets are long, or where sources need all positions of the encoder. For short
    targets a `BertBackbone` with `attention_pattern="seq2seq"` has no new weights.

    Inputs, a dictionary: `token_ids`, `segment_ids` and `padding_mask`, int32 (B, L), the source;
    `decoder_token_ids` and `decoder_padding_mask`, int32 (B, T), the target from its first token
    on, [CLS], to the token before its last. All of it has segment 0.

    Outputs, a dictionary: `encoder_sequence_output` (B, L, H) and `decoder_sequence_output`
    (B, T, H). If encoder and decoder differ in width, a dense layer brings the encoder to the
    decoder's.

    Args:
        encoder_arguments: dict of arguments of `BertBackbone`.
        decoder_arguments: the same for the decoder. None for a decoder that shares all weights of
            the encoder, and has only its attention to the encoder for itself.
        dtype: string or `keras.DTypePolicy`.

    Example:
    ```python
    bert = BertBackbone.from_preset("path/to/checkpoint")
    backbone = BertEncoderDecoder.from_backbones(bert, bert)
    ```

    Source: Rothe et al., 2020 (https://arxiv.org/abs/1907.12461), BERT2BERT and BERTSHARE. The
    names of inputs and outputs of the decoder are KerasHub's.
    """

    sizes = {}
    position_offset = 0
    summary_place = "first"

    def __init__(
        self,
        encoder_arguments: Config,
        decoder_arguments: Config | None = None,
        *,
        dtype: Dtype | None = None,
        **kwargs: Any,
    ) -> None:
        check_further_arguments(type(self), kwargs, ("name", "trainable"))
        written_arguments = encoder_arguments if decoder_arguments is None else decoder_arguments
        if written_arguments.get("hashing") is not None:
            raise ValueError(
                "A decoder writes token by token, which attention by hashing cannot, got "
                f"hashing={written_arguments['hashing']}. Leave it out, or pass it to an encoder "
                "with a decoder of its own."
            )
        # === Layers ===
        if decoder_arguments is None:
            self.encoder = written = _CrossAttendingBert(**encoder_arguments, dtype=dtype)
        else:
            self.encoder = BertBackbone(**encoder_arguments, dtype=dtype)
            with keras.name_scope("decoder"):
                written = _CrossAttendingBert(**decoder_arguments, dtype=dtype)
        layers = written.embeddings, written.transformer_layers
        self.decoder = _DecoderLayers(*layers, dtype=dtype, name="decoder")
        self.encoder_projection = None
        if self.encoder.hidden_dim != written.hidden_dim:
            self.encoder_projection = keras.layers.Dense(
                written.hidden_dim, dtype=dtype, name="encoder_projection"
            )

        # === Functional Model ===
        names = ("decoder_token_ids", "decoder_padding_mask")
        inputs = {name: keras.Input(shape=(None,), dtype="int32", name=name) for name in names}
        inputs = {**self.encoder.input, **inputs}
        encoded = self.encode_sources(self.encoder.input)
        decoded = self.decoder(*(inputs[name] for name in names), encoded, inputs["padding_mask"])
        outputs = {"encoder_sequence_output": encoded, "decoder_sequence_output": decoded[-1]}
        super().__init__(inputs=inputs, outputs=outputs, dtype=dtype, **kwargs)

        # === Config ===
        shares = written is self.encoder
        self._decoder_arguments = None if shares else _read_arguments(written)
        self.vocabulary_size = min(self.encoder.vocabulary_size, written.vocabulary_size)
        self.num_segments = self.encoder.num_segments
        self.max_sequence_length = self.encoder.max_sequence_length
        self.max_decoder_length = written.max_sequence_length
        # The needs of a head on the output of the decoder.
        self.hidden_dim = written.hidden_dim
        self.activation = written.activation
        self.layer_norm_epsilon = written.layer_norm_epsilon
        self.initializer_range = written.initializer_range
        self.token_embedding = self.decoder.embeddings.token_embedding
        own = [] if shares else self.decoder.blocks
        self.transformer_layers = [*self.encoder.transformer_layers, *own]

    @property
    def encoder_arguments(self) -> Config:
        """dict of arguments of `BertBackbone` for the encoder."""
        return _read_arguments(self.encoder)

    @property
    def decoder_arguments(self) -> Config | None:
        """The same for the decoder; None if it shares the weights of the encoder."""
        if self._decoder_arguments is None:
            return None
        remat = all(block.remat for block in self.decoder.blocks)
        return {**self._decoder_arguments, "remat": remat}

    @classmethod
    def from_backbones(
        cls, encoder: BertBackbone, decoder: BertBackbone | None = None, **kwargs: Any
    ) -> Self:
        """Builds an encoder-decoder with the weights of one or two BERTs.

        All tokens of a source attend to each other, whatever pattern the encoder had.

        Args:
            encoder: `BertBackbone`.
            decoder: `BertBackbone`, which may be the same; its weights are copied. None for a
                decoder that shares the weights of the encoder.
            **kwargs: `dtype`, by default the encoder's, and `name`.

        Raises:
            ValueError: if one of them is no `BertBackbone`. A subclass has other layers.
        """
        for backbone in (encoder, decoder):
            if backbone is not None and type(backbone) is not BertBackbone:
                raise ValueError(
                    f"{cls.__name__} has the layers of a BertBackbone, got "
                    f"{with_article(backbone)}. Open a checkpoint of a BERT."
                )
        kwargs = {"dtype": encoder.dtype_policy, **kwargs}
        pattern = {"attention_pattern": "bidirectional"}
        arguments = None if decoder is None else {**_read_arguments(decoder), **pattern}
        model = cls({**_read_arguments(encoder), **pattern}, arguments, **kwargs)
        values = list_by_path(encoder)
        if decoder is not None:
            values.update((f"decoder/{weight.path}", weight) for weight in decoder.weights)
        copy_known(model, values)
        return model

    def resize(self, *args: Any, **kwargs: Any) -> Self:
        """Raises a ValueError: the BERTs are resized before they are joined."""
        raise ValueError(
            f"{with_article(self, 'A')} cannot be resized. Resize the BERTs, and join them: "
            f"{type(self).__name__}.from_backbones(encoder.resize(...), decoder.resize(...)), or "
            "the same with `resize_vocabulary`."
        )

    resize_vocabulary = take_tokens = keep_layers = resize
    keep_heads = keep_units = factorize_embeddings = to_full_size = resize

    def encode_sources(self, source: dict[str, Tensor]) -> Tensor:
        """The output of the encoder in the width of the decoder: float (B, L, H)."""
        encoded = self.encoder(source)["sequence_output"]
        return encoded if self.encoder_projection is None else self.encoder_projection(encoded)

    def connect_pairs(self) -> tuple[dict[str, Tensor], Tensor]:
        """The inputs of this model by name, and the output of its decoder, symbolic."""
        return self.input, self(self.input)["decoder_sequence_output"]

    def make_decoder(self, head: keras.layers.Layer) -> Decoder:
        """The decoder of a `Seq2Seq` whose head is `head`."""
        return CrossAttentionDecoder(self, self.encoder, head)


class _DecoderLayers(DecoderLayers):
    """The layers by the name that the weights in files have."""


class _CrossAttendingBert(BertBackbone):
    """A BERT whose blocks also have weights for a decoder."""

    def make_block(self, index: int, **arguments: Any) -> keras.layers.Layer:
        return TransformerBlock(**arguments, has_cross_attention=True)


def _read_arguments(backbone: BertBackbone) -> Config:
    """The arguments of the constructor of a backbone, as JSON has them."""
    config = backbone.get_config()
    for name in ("frame_dim", "part_embeddings", "norm_condition"):
        if config[name] is not None:
            raise ValueError(
                f"The BERTs of a BertEncoderDecoder read tokens alone, got one with {name}. Take "
                "one without it."
            )
    return {name: value for name, value in config.items() if name not in _NOT_ARGUMENTS}
