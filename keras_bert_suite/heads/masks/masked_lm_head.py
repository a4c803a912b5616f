"""The head that guesses masked tokens, which several tasks have."""

import keras_hub
from keras import ops

from keras_bert_suite.annotations import Tensor
from keras_bert_suite.argument_checks import with_article
from keras_bert_suite.layers import MaskedLMHead
from keras_bert_suite.models.encoder import Encoder


def make_masked_lm_head(backbone: keras_hub.models.Backbone) -> MaskedLMHead:
    """The head that guesses masked tokens, on the token embedding of a backbone."""
    encoder = Encoder.of(backbone)
    if encoder.token_embedding is None and encoder.frame_dim is not None:
        raise ValueError(
            f"{with_article(backbone, 'A')} that reads frames has no table of tokens, so it writes "
            "none. Take a BartBackbone with frame_dim: its encoder reads frames, and its decoder "
            "writes tokens."
        )
    if encoder.token_embedding is None:
        raise ValueError(
            f"{with_article(backbone, 'A')} has no token_embedding, by which masked tokens are "
            "guessed. Set it in the constructor of the encoder."
        )
    return MaskedLMHead(
        encoder.token_embedding,
        activation=encoder.masked_lm_activation or encoder.activation,
        layer_norm_epsilon=encoder.layer_norm_epsilon,
        initializer_range=encoder.initializer_range,
        transform=encoder.token_transform,
        dtype=backbone.dtype_policy,
        name="masked_lm",
    )


def add_perplexity(results: dict[str, Tensor]) -> dict[str, Tensor]:
    """Adds `perplexity` to results that have the loss over masked tokens."""
    loss = results.get("mlm_loss", results.get("loss"))
    return results if loss is None else {**results, "perplexity": ops.exp(loss)}
