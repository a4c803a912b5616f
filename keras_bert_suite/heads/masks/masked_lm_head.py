"""The head that guesses masked tokens, which several tasks have."""

import keras_hub
from keras import ops

from keras_bert_suite.annotations import Tensor
from keras_bert_suite.layers import MaskedLMHead, gelu_tanh


def make_masked_lm_head(backbone: keras_hub.models.Backbone) -> MaskedLMHead:
    """The head that guesses masked tokens, on the token embedding of a backbone."""
    own = getattr(backbone, "activation", gelu_tanh)
    return MaskedLMHead(
        backbone.token_embedding,
        activation=getattr(backbone, "masked_lm_activation", own),
        layer_norm_epsilon=getattr(backbone, "layer_norm_epsilon", 1e-12),
        initializer_range=getattr(backbone, "initializer_range", 0.02),
        transform=getattr(backbone, "token_transform", None),
        dtype=backbone.dtype_policy,
        name="masked_lm",
    )


def add_perplexity(results: dict[str, Tensor]) -> dict[str, Tensor]:
    """Adds `perplexity` to results that have the loss over masked tokens."""
    loss = results.get("mlm_loss", results.get("loss"))
    return results if loss is None else {**results, "perplexity": ops.exp(loss)}
