"""ELMo, the encoder without a head."""

from collections.abc import Mapping
from typing import Any, ClassVar

import keras
from keras import ops

from keras_bert_suite.annotations import Config, Dtype, Tensor
from keras_bert_suite.argument_checks import (
    check_below_one,
    check_further_arguments,
    check_integer,
    check_not_negative,
)
from keras_bert_suite.layers import CharacterEmbeddings, Dropout, ProjectedLSTM
from keras_bert_suite.layers.embeddings.bert_embeddings import make_frame_projection
from keras_bert_suite.layers.poolings.pooling import take_summary
from keras_bert_suite.models.frame_inputs import FRAMES, check_tokens, name_frame_inputs
from keras_bert_suite.models.text_encoder import TextEncoder

DIRECTIONS = ("forward", "backward")


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class ElmoBackbone(TextEncoder):
    """A functional encoder of the bidirectional language model ELMo.

    LSTMs read a row from the first token to the last, and others from the last token to the first.
    The two directions share the embeddings of the tokens alone. Take it as a baseline, or for
    features on a `ScalarMix` of its layers.

    Inputs, a dictionary: `token_ids`, int32 (B, L), or with `characters` `character_ids`, int32
    (B, L, W); and `padding_mask`, int32 (B, L), 1 on tokens and 0 on padding.

    Outputs, a dictionary: `sequence_output` (B, L, 2 P), at each token the state of both
    directions, and 0 on padding; `pooled_output` (B, 2 P), of each direction the state of the
    token that it reads last. `hidden_states` are num_layers + 1 tensors (B, L, 2 P). The first has
    the embeddings twice.

    Args:
        vocabulary_size: int V; None for `characters` and for frames.
        num_layers: int, the LSTMs of a direction.
        units: int, the width of the memory of an LSTM.
        projection_dim: int P, the width of the embeddings, and of the output of an LSTM.
        cell_clip, projection_clip: float or None, as for `ProjectedLSTMCell`.
        skip_connections: bool, whether each LSTM from the second on adds its input to its output.
        characters: dict of arguments of `CharacterEmbeddings`, by which tokens are embedded instead
            of a table. An empty dict is for the released models'. None is for a table.
        frame_dim: int D, as for `BertBackbone`. Frames of another width than P are projected to it.
        dropout: float, dropout rate of the inputs of the LSTMs.
        initializer_range: float, standard deviation of the table of tokens.
        dtype: string or `keras.DTypePolicy`.

    Example:
    ```python
    backbone = ElmoBackbone.from_size("tiny", vocabulary_size=30522)
    features = kbs.TokenClassifier(backbone, 9, head_layers=kbs.ScalarMix(pooling=None))
    ```

    Raises:
        ValueError: if a size is no positive integer, the dropout rate is not in [0, 1),
            `initializer_range` is below 0, or there are not exactly one of `vocabulary_size`,
            `characters` and `frame_dim`.

    Source: Peters et al., 2018 (https://arxiv.org/abs/1802.05365), and allenai/bilm-tf. Their table
    of tokens is drawn from [-1, 1].
    """

    #: "small", "medium" and "base" are those of the released models: 1,024, 2,048 and 4,096 units.
    sizes: ClassVar[dict[str, Config]] = {
        size: {"num_layers": 2, "units": units, "projection_dim": projection_dim}
        for size, units, projection_dim in (
            ("tiny", 256, 128),
            ("mini", 512, 128),
            ("small", 1024, 128),
            ("medium", 2048, 256),
            ("base", 4096, 512),
        )
    }
    #: The names of the model's inputs, if it has a table of tokens.
    input_names: tuple[str, ...] = ("token_ids", "padding_mask")

    def __init__(
        self,
        vocabulary_size: int | None,
        num_layers: int = 2,
        units: int = 4096,
        projection_dim: int = 512,
        *,
        cell_clip: float | None = 3.0,
        projection_clip: float | None = 3.0,
        skip_connections: bool = True,
        characters: Mapping[str, Any] | None = None,
        frame_dim: int | None = None,
        dropout: float = 0.1,
        initializer_range: float = 0.02,
        dtype: Dtype | None = None,
        **kwargs: Any,
    ) -> None:
        check_further_arguments(type(self), kwargs, ("name", "trainable"))
        for name, size in (
            ("num_layers", num_layers),
            ("units", units),
            ("projection_dim", projection_dim),
        ):
            check_integer(name, size, at_least=1)
        check_below_one(dropout=dropout)
        check_not_negative("initializer_range", initializer_range)
        check_tokens(vocabulary_size=vocabulary_size, characters=characters, frame_dim=frame_dim)

        # === Config ===
        self.vocabulary_size = vocabulary_size
        self.num_layers = num_layers
        self.units = units
        self.projection_dim = projection_dim
        self.cell_clip = cell_clip
        self.projection_clip = projection_clip
        self.skip_connections = skip_connections
        self.characters = None if characters is None else dict(characters)
        self.frame_dim = frame_dim
        self.dropout = dropout
        self.initializer_range = initializer_range

        # === Layers ===
        self.embeddings, tokens = self._make_embeddings(dtype)
        self.lstms = {direction: self._make_lstms(direction, dtype) for direction in DIRECTIONS}
        self.dropouts = {
            direction: [
                Dropout(dropout, dtype=dtype, name=f"{direction}_dropout_{i}")
                for i in range(num_layers)
            ]
            for direction in DIRECTIONS
        }

        # === Functional Model ===
        padding_mask = keras.Input((None,), dtype="int32", name="padding_mask")
        inputs = {tokens.name: tokens, "padding_mask": padding_mask}
        self.hidden_states, _ = self._connect(inputs)
        forward, backward = self.split_directions(self.hidden_states[-1])
        read_last = [
            take_summary(forward, padding_mask, "last"),
            take_summary(backward, padding_mask, "first"),
        ]
        outputs = {
            "sequence_output": self.hidden_states[-1],
            "pooled_output": ops.concatenate(read_last, axis=-1),
        }
        super().__init__(inputs=inputs, outputs=outputs, dtype=dtype, **kwargs)

    def _make_embeddings(self, dtype: Dtype | None) -> tuple[keras.layers.Layer | None, Tensor]:
        """(the layer that embeds tokens, or None for frames as they are, symbolic tokens)."""
        if self.characters is not None:
            embeddings: Any = CharacterEmbeddings(
                self.projection_dim, **self.characters, dtype=dtype, name="character_embeddings"
            )
            shape = (None, embeddings.max_characters)
            return embeddings, keras.Input(shape, dtype="int32", name="character_ids")
        initializer = keras.initializers.TruncatedNormal(stddev=self.initializer_range)
        if self.frame_dim is not None:
            check_integer("frame_dim", self.frame_dim, at_least=1)
            self.input_names = name_frame_inputs(self.input_names)
            projection = make_frame_projection(
                self.frame_dim, self.projection_dim, initializer, dtype
            )
            return projection, keras.Input((None, self.frame_dim), dtype="float32", name=FRAMES)
        check_integer("vocabulary_size", self.vocabulary_size, at_least=1)
        self.token_embedding = keras.layers.ReversibleEmbedding(
            self.vocabulary_size,
            self.projection_dim,
            embeddings_initializer=initializer,
            dtype=dtype,
            name="token_embedding",
        )
        return self.token_embedding, keras.Input((None,), dtype="int32", name="token_ids")

    def _make_lstms(self, direction: str, dtype: Dtype | None) -> list[ProjectedLSTM]:
        return [
            ProjectedLSTM(
                self.units,
                self.projection_dim,
                self.cell_clip,
                self.projection_clip,
                go_backwards=direction == "backward",
                dtype=dtype,
                name=f"{direction}_lstm_{i}",
            )
            for i in range(self.num_layers)
        ]

    def quantize(self, mode: Any = None, config: Any = None, **kwargs: Any) -> None:
        """Keras has 8-bit integers for the matrices of its own layers, and not for these LSTMs.

        Raises:
            ValueError: always.
        """
        raise ValueError(
            f"An ElmoBackbone is not quantized, got mode={mode!r}: nearly all of its weights are "
            "matrices of LSTMs, for which Keras has no 8-bit integers. Leave it in floats, or "
            "train one with fewer `units`."
        )

    def split_directions(self, states: Tensor) -> tuple[Tensor, Tensor]:
        """(forward, backward) states, float (B, L, P) each, of states (B, L, 2 P)."""
        return states[..., : self.projection_dim], states[..., self.projection_dim :]

    def make_stateful_model(self) -> keras.Model:
        """A model that goes on where the rows of the batch before have ended.

        It has one more input, `states`, float (B, 2, num_layers, P + units): of each direction and
        each LSTM the output and the memory after the batch before, or zeros. Its outputs are
        `hidden_states`, and the new `states`. It shares the weights of this encoder.

        ```python
        model = backbone.make_stateful_model()
        states = np.zeros((3, *model.input["states"].shape[1:]), "float32")
        for batch in batches:
            outputs = model({**batch, "states": states})
            states = keras.ops.convert_to_numpy(outputs["states"])
        ```
        """
        shape = (len(DIRECTIONS), self.num_layers, self.projection_dim + self.units)
        states = keras.Input(shape, dtype=self.compute_dtype, name="states")
        inputs = {name: tensor for name, tensor in self.input.items()}
        hidden_states, states_after = self._connect(inputs, states)
        outputs = {"hidden_states": hidden_states, "states": states_after}
        return keras.Model({**inputs, "states": states}, outputs, name=f"stateful_{self.name}")

    def _connect(
        self, inputs: dict[str, Tensor], states: Tensor | None = None
    ) -> tuple[list[Tensor], Tensor]:
        """The hidden states and the states of the LSTMs, as of `make_stateful_model`."""
        tokens, padding_mask = inputs.values()
        embedded = tokens if self.embeddings is None else self.embeddings(tokens)
        embedded = ops.where((padding_mask != 0)[:, :, None], embedded, 0.0)
        layers: dict[str, list[Tensor]] = {name: [embedded] for name in DIRECTIONS}
        states_after = []
        for number, direction in enumerate(DIRECTIONS):
            for i, lstm in enumerate(self.lstms[direction]):
                before = None if states is None else states[:, number, i]
                x = self.dropouts[direction][i](layers[direction][-1])
                y, after = lstm(x, padding_mask, before)
                layers[direction].append(x + y if i and self.skip_connections else y)
                states_after.append(after)
        both = zip(*layers.values(), strict=True)
        hidden_states = [ops.concatenate(pair, axis=-1) for pair in both]
        shape = (-1, len(DIRECTIONS), self.num_layers, self.projection_dim + self.units)
        return hidden_states, ops.reshape(ops.stack(states_after, axis=1), shape)
