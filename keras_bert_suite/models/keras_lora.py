"""Refuses to save a model with Keras' own LoRA, which Keras' files do not keep."""

from typing import Any

import keras

from keras_bert_suite.annotations import PathLike


class WithoutKerasLora:
    """A model that is saved, copied and pickled only if no layer has LoRA of Keras.

    Keras adds the product of an adapter to the kernel in the file. The layer that is loaded has no
    adapter, so another training would train its whole kernel.
    """

    def save(self, filepath: PathLike, *args: Any, **kwargs: Any) -> None:
        """Saves the model as a `.keras` file; see `keras.Model.save`."""
        check_no_keras_lora(self)
        super().save(filepath, *args, **kwargs)  # type: ignore[misc]

    def save_weights(self, filepath: PathLike, *args: Any, **kwargs: Any) -> None:
        """Saves the weights; see `keras.Model.save_weights`."""
        check_no_keras_lora(self)
        super().save_weights(filepath, *args, **kwargs)  # type: ignore[misc]

    def save_own_variables(self, store: Any) -> None:
        """Saves the weights of the model itself, for `keras.saving.save_model`, too."""
        if getattr(store, "archive", None) is not None:  # A `.keras` file, not weights alone.
            check_no_keras_lora(self)
        super().save_own_variables(store)  # type: ignore[misc]

    def __reduce__(self) -> Any:
        check_no_keras_lora(self)  # Keras copies and pickles a model as a file.
        return super().__reduce__()

    def save_to_preset(self, preset_dir: PathLike, *args: Any, **kwargs: Any) -> None:
        """Saves the model as a preset; see `save_to_preset` in KerasHub."""
        check_no_keras_lora(self)
        super().save_to_preset(preset_dir, *args, **kwargs)  # type: ignore[misc]


def check_no_keras_lora(model: Any) -> None:
    """Raises a ValueError if a layer of a model has LoRA of Keras, by `enable_lora`."""
    layers: list[keras.layers.Layer] = model._flatten_layers()
    adapted = [layer.path for layer in layers if getattr(layer, "lora_enabled", False)]
    if adapted:
        name = type(model).__name__
        raise ValueError(
            f"{len(adapted)} layers of this {name}, such as {adapted[0]}, have LoRA of Keras, "
            "which no file or copy keeps: Keras would add the adapters to the kernels, and a "
            "loaded model would train whole kernels. If the sums are wanted, write "
            "keras.saving.save_weights(model, 'sums.weights.h5'), and read them into a "
            f"{name} without LoRA by new.load_weights('sums.weights.h5')."
        )
