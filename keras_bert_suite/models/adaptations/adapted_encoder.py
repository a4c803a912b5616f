"""An encoder with adapters: which there are, which weights train, and from which base they are."""

import hashlib
import re
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import keras
import numpy as np

from keras_bert_suite.annotations import Config
from keras_bert_suite.argument_checks import with_article
from keras_bert_suite.models.adaptations.adaptation import Adaptation

#: The paths of the weights of the layers of an adapter, by its name.
_OF_ADAPTER = r"(?:.*/)?\w+-{}/.*"


class Adapter(NamedTuple):
    """An adapter of an encoder.

    Attributes:
        adaptation: `Adaptation`.
        digest: str, the SHA-256 of the weights of the encoder before it was trained.
        trained: tuple of paths of weights that the encoder has without adapters, and that train.
        left_out: tuple of paths of weights that are not in the digest: the checkpoint lacks them.
        resized_by: str, the method that has copied the encoder with other weights since then, so
            that the digest is that of another encoder; None if there was none.
    """

    adaptation: Adaptation
    digest: str
    trained: tuple[str, ...]
    left_out: tuple[str, ...]
    resized_by: str | None = None


class AdaptedEncoder:
    """A backbone to which adapters are added; see `TextEncoder`."""

    #: The name of the adapter that acts outside of a task, the one that was added last; or None.
    adapter: str | None = None
    #: The paths of the weights that the checkpoint lacks, which are new.
    new_paths: frozenset[str] = frozenset()

    @property
    def adapters(self) -> dict[str, Adapter]:
        """dict of name -> `Adapter`, in the order in which they were added."""
        return vars(self).setdefault("adapters_by_name", {})  # Keras would wrap it.

    def add_adapter(
        self,
        adaptation: Adaptation,
        name: str = "default",
        train_also: Iterable[str] = (),
        digest: str | None = None,
        tokenizer: Any = None,
        check: Callable[[dict[str, keras.Variable]], None] | None = None,
    ) -> None:
        """Adds an adapter to this encoder, which then trains nothing but this adapter.

        A task has `adapt`, which also says what trains.

        Args:
            adaptation: `Adaptation`, such as `LoRA(8)`.
            name: str, letters, digits, "_" and "-".
            train_also: regular expressions of the whole paths of further weights that train.
            digest: str, of the encoder for which the adapter was made. None computes it, for an
                adapter that begins here.
            tokenizer: of the encoder, for an adapter that begins with a text.
            check: function of what `weights_of_adapter` will return. It is called before the
                encoder changes, and may raise an error.

        Raises:
            ValueError: if there is an adapter of this name, the encoder has no place for it, or
                one of the two changes weights that they would share. The encoder stays as it was.
        """
        _check_new(self, adaptation, name)
        patterns = (*adaptation.trained, *train_also)
        own: Any = self
        paths = [weight.path for weight in own.weights]
        trained = tuple(p for p in paths if any(re.fullmatch(x, p) for x in patterns))
        others = [x for x in train_also if not any(re.fullmatch(x, p) for p in paths)]
        if others:
            raise ValueError(
                f"train_also has {others[0]!r}, which matches the path of no weight of this "
                f"{type(self).__name__}. Its weights are {', '.join(paths[:3])} and so on."
            )
        shared = [other for other in self.adapters if self.adapters[other].trained or trained]
        if shared:
            raise ValueError(
                f"The adapters {shared[0]!r} and {name!r} would share weights of the encoder that "
                "one of them trains. Open the checkpoint anew for the second one."
            )
        left_out = tuple(sorted(self.new_paths))
        start = adaptation.find_start(self, tokenizer) if digest is None else {}
        if digest is None:
            digest = find_digest(self, left_out)
        made = adaptation.make_layers(self, name)
        if check is not None:
            new = [weight for _, _, layer in made for weight in layer.weights]
            check(_name_weights([*own.weights, *new], name, trained))
        for place, kind, layer in made:
            place.add_adapter(kind, name, layer)
        self.adapters[name] = Adapter(adaptation, digest, trained, left_out)
        vars(self)["adapter"] = name
        self._thaw(trained)
        self.train_adapter(name)
        for path, value in start.items():
            self.weights_of_adapter(name)[path].assign(value)
        own._track_variables()
        own.train_function = own.test_function = own.predict_function = None

    def quantize(self, *args: Any, **kwargs: Any) -> None:
        """Quantizes an encoder without adapters; see `keras.Model.quantize`.

        Keras would leave layers with LoRA as they are, and quantize other layers of adapters.
        """
        if self.adapters:
            name, adapter = next(iter(self.adapters.items()))
            raise ValueError(
                f"This {type(self).__name__} has the adapter {name!r}, {adapter.adaptation}, and "
                "layers with an adapter cannot be quantized. Quantize before `adapt`; or quantize "
                "the copy of `merge_adapter`; or quantize the base, and load the adapter with "
                "any_base=True, which changes the outputs a little."
            )
        super().quantize(*args, **kwargs)  # type: ignore[misc]

    def find_prompt_length(self, name: str) -> int:
        """The places that an adapter puts before the tokens of each row."""
        adapter = vars(self).get("adapters_by_name", {}).get(name)
        return 0 if adapter is None else adapter.adaptation.prompt_length

    def train_adapter(self, name: str) -> None:
        """Lets the weights of an adapter train, and freezes all others.

        Layers that were frozen after the adapter was added stay frozen.
        """
        trained = {*self.adapters[name].trained}
        pattern = _OF_ADAPTER.format(re.escape(name))
        for layer in self._flatten_layers():  # type: ignore[attr-defined]
            for weight in layer._trainable_variables:
                is_own = re.fullmatch(pattern, weight.path) is not None
                weight.trainable = layer.trainable and (is_own or weight.path in trained)

    def _thaw(self, paths: Iterable[str]) -> None:
        """Thaws the layers that have some weights, which an adapter trains."""
        wanted = {*paths}
        for layer in self._flatten_layers():  # type: ignore[attr-defined]
            if any(weight.path in wanted for weight in layer._trainable_variables):
                layer.trainable = True

    def weights_of_adapter(self, name: str) -> dict[str, keras.Variable]:
        """The weights of an adapter by their paths, in which its name is "adapter"."""
        own: Any = self
        return _name_weights(own.weights, name, self.adapters[name].trained)

    def describe_adapters(self) -> Config:
        """The adapters in a configuration; {} for none."""
        if not self.adapters:
            return {}
        described = {
            name: {
                "adaptation": keras.saving.serialize_keras_object(adapter.adaptation),
                "digest": adapter.digest,
                "trained": list(adapter.trained),
                "left_out": list(adapter.left_out),
                **({"resized_by": adapter.resized_by} if adapter.resized_by else {}),
            }
            for name, adapter in self.adapters.items()
        }
        return {"adapters": described}

    def restore_adapters(self, described: Config) -> None:
        """Adds the adapters of a configuration, with their initial values."""
        for name, adapter in described.items():
            vars(self)["new_paths"] = frozenset(adapter["left_out"])
            self.add_adapter(
                keras.saving.deserialize_keras_object(adapter["adaptation"]),
                name,
                [re.escape(path) for path in adapter["trained"]],
                adapter["digest"],
            )
            if "resized_by" in adapter:
                restored = self.adapters[name]._replace(resized_by=adapter["resized_by"])
                self.adapters[name] = restored

    def mark_resized(self, method: str) -> None:
        """Notes that a method has made this copy with other weights than its adapters were for."""
        for name, adapter in self.adapters.items():
            self.adapters[name] = adapter._replace(resized_by=method)


def find_digest(encoder: Any, left_out: Iterable[str] = ()) -> str:
    """The SHA-256 of the weights of an encoder, without its adapters.

    Floats are read as float32, so that it does not matter which format of files they came from.

    Args:
        encoder: `TextEncoder`.
        left_out: paths of weights that do not count.
    """
    digest, without = hashlib.sha256(), {*left_out}
    patterns = [_OF_ADAPTER.format(re.escape(name)) for name in encoder.adapters]
    for weight in sorted(encoder.weights, key=lambda weight: weight.path):
        if weight.path in without or any(re.fullmatch(p, weight.path) for p in patterns):
            continue
        value = weight.value
        if keras.backend.is_float_dtype(weight.dtype):
            value = keras.ops.cast(value, "float32")
        array = np.ascontiguousarray(keras.ops.convert_to_numpy(value))
        digest.update(f"{weight.path} {array.shape} {array.dtype.str}\n".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def _name_weights(
    weights: Iterable[keras.Variable], name: str, trained: Iterable[str]
) -> dict[str, keras.Variable]:
    """Those of some weights that belong to an adapter; see `AdaptedEncoder.weights_of_adapter`."""
    trained, found = {*trained}, {}
    pattern = _OF_ADAPTER.format(re.escape(name))
    for weight in weights:
        if re.fullmatch(pattern, weight.path):
            found[re.sub(rf"-{re.escape(name)}/", "-adapter/", weight.path)] = weight
        elif weight.path in trained:
            found[weight.path] = weight
    return found


def _check_new(encoder: Any, adaptation: Any, name: str) -> None:
    if not isinstance(adaptation, Adaptation):
        raise ValueError(
            f"An encoder is adapted by an Adaptation, such as LoRA(8), got {adaptation!r}."
        )
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9_-]+", name):
        raise ValueError(f"The name of an adapter has letters, digits, '_' and '-', got {name!r}.")
    if name in encoder.adapters:
        raise ValueError(
            f"This {type(encoder).__name__} has an adapter {name!r}: "
            f"{encoder.adapters[name].adaptation}. Pass another name, or open "
            f"{with_article(encoder)} anew."
        )
