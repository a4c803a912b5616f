"""What a head may ask of an encoder, with transformer blocks or without."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import keras
import keras_hub
from keras import ops

from keras_bert_suite.annotations import Tensor
from keras_bert_suite.argument_checks import with_article
from keras_bert_suite.layers import UnpackSequences, gelu_tanh
from keras_bert_suite.layers.poolings.pooling import take_summary


class EncodedRows(NamedTuple):
    """What a task reads of rows.

    Attributes:
        states: symbolic float (B, L, H), or (B, Q, H) at Q positions.
        summary: symbolic float (B, P), the vectors of the rows; None if the encoder has none.
        memory: symbolic float (B, N, M, H), for the rows that continue these; None if the encoder
            has none.
    """

    states: Tensor
    summary: Tensor | None
    memory: Tensor | None = None


class Encoder:
    """What a head may ask of an encoder.

    An encoder is a functional model from arrays by name, int32 (B, L), to the states of the tokens,
    float (B, L, H). Its output is the states, or a dict with `sequence_output`, the states, and
    `pooled_output`, float (B, P), the vectors of the rows. Neither has a mask of Keras, by which it
    would weigh losses: `ops.where(is_token, states, 0.0)` drops the mask of an LSTM. Backbones of
    this package are encoders, see `TextEncoder`. `Encoder.of` makes an encoder of any other.

    The attributes are facts that a backbone may state. The values here hold if it does not. Sizes
    are int or None.
    """

    #: The place of the token whose state stands for its row, "first" or "last". None for no token.
    summary_place: str | None = None
    #: Which tokens a token attends to, as for `BertBackbone`.
    attention_pattern: str = "bidirectional"
    #: How many tokens, segments and positions have embeddings. None for no such number.
    vocabulary_size: Any = None
    num_segments: Any = None
    max_sequence_length: Any = None
    #: The width of the input `frames`, for an encoder that reads vectors in the place of token ids.
    frame_dim: Any = None
    #: The `NormCondition` of norms that depend on the input `condition`.
    norm_condition: Any = None
    #: The rule for global tokens, and their maximum number in a row, as for `LongformerBackbone`.
    global_tokens: Any = None
    max_global_tokens: Any = None
    #: The layer from token ids to the first states, and the table (V, E) in it.
    embeddings: Any = None
    token_embedding: Any  # KerasHub has it as a property.
    #: The blocks, and how many there are.
    transformer_layers: Any = ()
    num_layers: Any = None
    #: Symbolic (B, L, H): the embeddings and the output of each layer. The last is the output of
    #: the encoder. None for the calls of `transformer_layers`.
    hidden_states: Sequence[Any] | None = None
    #: The layer between the states and a head on tokens. None for no layer.
    token_transform: Any = None
    #: The settings of the head for masked tokens. `masked_lm_activation` is `activation` by
    #: default.
    activation: Callable[[Tensor], Tensor] = staticmethod(gelu_tanh)
    masked_lm_activation: Callable[[Tensor], Tensor] | None = None
    layer_norm_epsilon: float = 1e-12
    initializer_range: float = 0.02

    @staticmethod
    def of(backbone: keras_hub.models.Backbone) -> "Encoder":
        """The backbone itself if it is an encoder; else an encoder with its attributes."""
        return backbone if isinstance(backbone, Encoder) else _OtherEncoder(backbone)

    def as_model(self) -> Any:
        """The functional model."""
        return self

    @property
    def packs_sequences(self) -> bool:
        """Whether the layers tell the rows of a packed row apart."""
        return _find_unpacking(self.as_model()) is not None

    def encode_tokens(self, inputs: dict[str, Tensor] | None = None) -> Tensor:
        """The states of all tokens, symbolic float (B, L, H).

        Args:
            inputs: dict of symbolic (B, L) by name. None for the inputs of the model.
        """
        model = self.as_model()
        return _read_states(model(model.input if inputs is None else inputs))

    def encode_tokens_at(self, inputs: dict[str, Tensor], positions: Tensor) -> Tensor:
        """The states of the tokens at int32 (B, Q) of each row, symbolic float (B, Q, H)."""
        return take_states(self.encode_tokens(inputs), positions)

    def encode_summary(self, inputs: dict[str, Tensor]) -> Tensor:
        """The vectors of rows, symbolic float (B, P).

        Without a `pooled_output` they are the states of the tokens at `summary_place`.

        Raises:
            ValueError: if the encoder has neither.
        """
        self.check_summary()
        summary = self._pool(self.as_model()(inputs), inputs)
        assert summary is not None
        return summary

    def trace_summary(self) -> Tensor:
        """The vectors of rows, symbolic (B, P), in the graph of the model itself.

        A model from one of `hidden_states` to them is the rest of the encoder. `encode_summary`
        calls the whole encoder.

        Raises:
            ValueError: as `encode_summary`.
        """
        self.check_summary()
        model = self.as_model()
        summary = self._pool(model.output, model.input)
        assert summary is not None
        return summary

    def check_summary(self) -> None:
        """Raises a ValueError if the encoder makes no vectors of rows."""
        output = self.as_model().output
        has_vectors = isinstance(output, dict) and "pooled_output" in output
        if not has_vectors and self.summary_place is None:
            raise ValueError(
                f"{with_article(self.as_model(), 'A')} has no pooled_output, and no token stands "
                "for a row. Pass pooling='mean' where the task has a pooling, or set "
                "`summary_place` of the encoder to 'first' or 'last'."
            )

    def encode_rows(
        self, inputs: dict[str, Tensor], positions: Tensor | None = None
    ) -> EncodedRows:
        """What a task reads of rows, by one call of the encoder.

        The states are those at int32 `positions` (B, Q), or of all tokens without positions.
        """
        encoded = self.as_model()(inputs)
        states, memory = _read_states(encoded), None
        if isinstance(encoded, dict):
            memory = encoded.get("memory")
        if positions is not None:
            states = take_states(states, positions)
        return EncodedRows(states, self._pool(encoded, inputs), memory)

    def _pool(self, encoded: Any, inputs: dict[str, Tensor]) -> Tensor | None:
        if isinstance(encoded, dict) and "pooled_output" in encoded:
            return encoded["pooled_output"]
        if self.summary_place is None:
            return None
        return take_summary(_read_states(encoded), inputs.get("padding_mask"), self.summary_place)

    def transform_tokens(self, states: Tensor) -> Tensor:
        """The states (B, L, H) that the output layer of a head on tokens takes."""
        return states if self.token_transform is None else self.token_transform(states)

    def list_calls(self) -> list[keras.layers.Layer]:
        """The blocks in the order of their calls."""
        return list(self.transformer_layers)

    def make_layer_model(self) -> keras.Model:
        """The model from the inputs to `hidden_states`, a list of (B, L, H).

        Raises:
            ValueError: if the encoder names neither its hidden states nor its blocks.
        """
        model = self.as_model()
        if not self.hidden_states and not self.transformer_layers:
            raise ValueError(
                f"{with_article(model, 'A')} does not name its transformer layers, so their "
                "outputs cannot be found. To pool, choose a pooling of the last layer, such as "
                "MeanPooling(); or set `hidden_states` of the encoder."
            )
        *states, last = self.hidden_states or self._follow_blocks()[1]
        unpack = _find_unpacking(model)
        if unpack is not None:
            states = [unpack(state, model.input["padding_mask"]) for state in states]
        return keras.Model(model.input, [*states, last], name="layer_outputs")

    def _follow_blocks(self) -> tuple[list[keras.layers.Layer], list[Tensor]]:
        """The blocks in the order of their calls, and the `hidden_states` of a run of the graph.

        ALBERT calls a block several times. Some blocks return a tuple, with the states first.
        """
        blocks = {id(block) for block in self.transformer_layers}
        calls, states = [], []

        def call(layer: Any, *args: Any, **kwargs: Any) -> Any:
            outputs = layer(*args, **kwargs)
            if id(layer) in blocks:
                calls.append(layer)
                states.append(keras.tree.flatten((args, kwargs))[0])
            return outputs

        model = self.as_model()
        run = keras.models.clone_model(
            model,
            input_tensors=model.input,
            clone_function=lambda layer: layer,
            call_function=call,
        )
        return calls, [*states, _read_states(run.output)]

    def list_unused(self, *used: Any) -> frozenset[str]:
        """The paths of the weights that are in none of some models and layers."""
        paths = {variable.path for part in used for variable in part.variables}
        return frozenset(v.path for v in self.as_model().variables if v.path not in paths)

    def find_unused(self, transformed: bool = False) -> frozenset[str]:
        """The paths of the weights that a head on tokens does not need, such as the pooler's.

        With `transformed` the head is on `transform_tokens` of the states.
        """
        model = self.as_model()
        if not isinstance(model.output, dict) or "sequence_output" not in model.output:
            return frozenset()
        used = [keras.Model(model.input, model.output["sequence_output"], name="sequence_encoder")]
        if transformed and self.token_transform is not None:
            used.append(self.token_transform)
        return self.list_unused(*used)


class _OtherEncoder(Encoder):
    """A backbone of KerasHub or of a user as an encoder."""

    def __init__(self, backbone: keras_hub.models.Backbone) -> None:
        self.backbone = backbone
        if any(_is_of_keras_hub(cls) for cls in type(backbone).__mro__):
            self.summary_place = "first"
        for name in Encoder.__annotations__:
            if hasattr(backbone, name):
                setattr(self, name, getattr(backbone, name))
        self.transformer_layers = keras.tree.flatten(self.transformer_layers)

    def as_model(self) -> Any:
        return self.backbone

    def list_calls(self) -> list[keras.layers.Layer]:
        return self._follow_blocks()[0]


def take_states(states: Tensor, positions: Tensor) -> Tensor:
    """float (B, L, H) -> (B, Q, H), the states at int (B, Q)."""
    return ops.take_along_axis(states, positions[:, :, None], axis=1)


def _read_states(encoded: Any) -> Tensor:
    return encoded["sequence_output"] if isinstance(encoded, dict) else encoded


def _find_unpacking(model: keras.Model) -> UnpackSequences | None:
    return next((layer for layer in model.layers if isinstance(layer, UnpackSequences)), None)


def _is_of_keras_hub(cls: type) -> bool:
    """Whether a class is a model of KerasHub. Its text encoders read the first token of a row."""
    is_base = cls is keras_hub.models.Backbone
    return cls.__module__.partition(".")[0] == "keras_hub" and not is_base
