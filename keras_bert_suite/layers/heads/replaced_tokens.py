"""The layers between ELECTRA's generator and discriminator, and on top of the discriminator."""

from functools import partial
from typing import Any

import keras
from keras import ops

from keras_bert_suite.annotations import Activation, Shape, Tensor
from keras_bert_suite.layers.configured_layer import ConfiguredLayer
from keras_bert_suite.layers.dense import make_dense

#: The seed of all samples outside of training. So an evaluation always gives the same result.
EVALUATION_SEED = 1


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class ReplacementSampler(ConfiguredLayer):
    """Puts tokens that a generator proposes in the place of masked tokens.

    A token is drawn from the softmax of its logits: the token with the highest sum of logit and
    Gumbel noise. No gradient flows through the draw.

    In training the noise is a function of the seed and of the number of the call, which a training
    checkpoint holds. Otherwise it is always the same.

    Args:
        seed: int, or None for a random one.

    Source: Clark et al., 2020 (https://arxiv.org/abs/2003.10555), section 2, and
    google-research/electra, run_pretraining.py, `_get_fake_data`.
    """

    def __init__(self, seed: int | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.seed = seed
        self.seed_generator = keras.random.SeedGenerator(seed)

    def call(
        self,
        token_ids: Tensor,
        mask_positions: Tensor,
        logits: Tensor,
        training: bool | None = None,
    ) -> Tensor:
        """Replaces the tokens at the masked positions: int32 (B, L) -> int32 (B, L).

        In `mask_positions`, int32 (B, P), a slot without a prediction has 0, the position of [CLS].
        The logits are float (B, P, V).
        """
        seed = self.seed_generator if training else EVALUATION_SEED
        draws = keras.random.uniform(ops.shape(logits), dtype="float32", seed=seed)
        noise = -ops.log(-ops.log(draws))
        drawn = ops.argmax(ops.cast(ops.stop_gradient(logits), "float32") + noise, axis=-1)
        return write_tokens(token_ids, mask_positions, drawn)

    def compute_output_spec(
        self, token_ids: Any, mask_positions: Any, logits: Any, training: bool | None = None
    ) -> keras.KerasTensor:
        return keras.KerasTensor(token_ids.shape, dtype=token_ids.dtype)


def write_tokens(token_ids: Tensor, positions: Tensor, values: Tensor) -> Tensor:
    """Writes tokens, int (B, P), to positions, int (B, P), of each row of `token_ids`, int (B, L).

    Nothing is written to position 0, [CLS]: slots without a prediction have it. Other positions of
    a row differ.
    """
    positions = ops.cast(positions, "int32")
    kept = ops.take_along_axis(token_ids, positions, axis=1)
    values = ops.where(positions > 0, ops.cast(values, kept.dtype), kept)
    rows = ops.arange(ops.shape(token_ids)[0], dtype="int32")[:, None]
    indices = ops.stack([ops.broadcast_to(rows, ops.shape(positions)), positions], axis=-1)
    # All slots at position 0 of a row write the same token, which is there already.
    return ops.scatter_update(token_ids, ops.reshape(indices, (-1, 2)), ops.reshape(values, (-1,)))


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class ReplacedTokenHead(ConfiguredLayer):
    """Scores for each token whether it was replaced: a dense layer, an activation, one number.

    Args:
        hidden_dim: int H.
        activation: function.
        initializer_range: float, standard deviation of the truncated normal.

    Source: google-research/electra, run_pretraining.py, `_get_discriminator_output`.
    """

    def __init__(
        self,
        hidden_dim: int,
        activation: Activation,
        initializer_range: float = 0.02,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.hidden_dim = hidden_dim
        self.activation = keras.activations.get(activation)
        self.initializer_range = initializer_range

    def build(self, sequence_output_shape: Shape) -> None:
        dense = partial(make_dense, self, stddev=self.initializer_range)
        self.transform = dense(
            self.hidden_dim, "transform", sequence_output_shape, activation=self.activation
        )
        self.scorer = dense(1, "scorer", (*sequence_output_shape[:-1], self.hidden_dim))

    def call(self, sequence_output: Tensor) -> Tensor:
        """float (B, L, H) -> float (B, L) in the compute dtype, logits: positive if replaced."""
        return self.scorer(self.transform(sequence_output))[..., 0]

    def compute_output_shape(self, sequence_output_shape: Shape) -> Shape:
        return sequence_output_shape[:-1]
