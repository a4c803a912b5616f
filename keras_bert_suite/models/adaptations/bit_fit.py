"""Training of biases alone."""

import re
from typing import Any

import keras

from keras_bert_suite.models.adaptations.adaptation import Adaptation, Made, refuse


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class BitFit(Adaptation):
    """Trains the biases of an encoder, those of its norms too, and nothing else of it.

    It adds no layer, so it costs nothing in a served model. It changes weights of the encoder, so
    it does not go with other adapters on the same encoder.

    Source: Ben Zaken et al., 2021 (https://arxiv.org/abs/2106.10199).
    """

    trained = (r".*/(bias|beta|\w+_bias)",)
    learning_rate = 1e-3

    def make_layers(self, encoder: Any, name: str) -> list[Made]:
        if not any(re.fullmatch(self.trained[0], weight.path) for weight in encoder.weights):
            raise refuse(self, encoder, "It has no biases. Take LoRA.")
        return []
