"""What an adaptation is: which layers it adds to an encoder, and which weights it trains."""

from typing import Any, ClassVar, Self

import keras

from keras_bert_suite.annotations import Config
from keras_bert_suite.argument_checks import list_arguments, with_article

#: A layer of an encoder, the kind of the adapter that it gets, and the layer of the adapter.
Made = tuple[Any, str, keras.layers.Layer]


class Adaptation:
    """A way to train few weights of an encoder.

    A subclass keeps each argument of its constructor in an attribute of the same name. It makes
    layers in `make_layers`, and names in `trained` the weights of the encoder itself that train.
    """

    #: Regular expressions of the whole paths of weights of the encoder that are trained.
    trained: tuple[str, ...] = ()
    #: The peak of the learning rate that `compile` takes for "auto".
    learning_rate: ClassVar[float]
    #: The places that it puts before the tokens of each row.
    prompt_length: int = 0

    def make_layers(self, encoder: Any, name: str) -> list[Made]:
        """Makes the layers of an adapter of a built encoder, which stays as it is.

        Args:
            encoder: `TextEncoder`.
            name: str, the name of the adapter.

        Returns:
            list of the arguments of `Adaptable.add_adapter` after the layer of the encoder: (that
            layer, kind, the new layer).

        Raises:
            ValueError: if the encoder has no place for them, which the message names.
        """
        return []

    def find_start(self, encoder: Any, tokenizer: Any) -> dict[str, Any]:
        """The values with which weights of a new adapter begin, if they depend on the encoder.

        Args:
            encoder: `TextEncoder`, without the adapter.
            tokenizer: of the task; None without.

        Returns:
            dict of path, as `AdaptedEncoder.weights_of_adapter` has them -> array.

        Raises:
            ValueError: if the encoder or the tokenizer has none.
        """
        return {}

    def get_config(self) -> Config:
        """dict of the arguments of the constructor."""
        return {name: getattr(self, name) for name in list_arguments(type(self))}

    @classmethod
    def from_config(cls, config: Config) -> Self:
        """Makes an adaptation of what `get_config` returns."""
        return cls(**config)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.get_config() == self.get_config()

    def __hash__(self) -> int:
        return hash(repr(self))

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self.get_config().items())
        return f"{type(self).__name__}({given})"


def list_layers(encoder: Any, kind: type) -> list[Any]:
    """The layers of a class in an encoder, each once."""
    return [layer for layer in encoder._flatten_layers() if isinstance(layer, kind)]


def refuse(adaptation: Adaptation, encoder: keras.Model, reason: str) -> ValueError:
    """The error of an encoder that an adaptation has no place in. `reason` is a sentence."""
    return ValueError(f"{type(adaptation).__name__} cannot adapt {with_article(encoder)}. {reason}")
