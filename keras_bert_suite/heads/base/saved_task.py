"""Saves and loads tasks."""

import os
import warnings
from typing import Any, Self

import keras

from keras_bert_suite.annotations import Config, PathLike
from keras_bert_suite.argument_checks import list_arguments
from keras_bert_suite.checkpoints import SealedPreset
from keras_bert_suite.data.rows import Rows
from keras_bert_suite.files.model_card import write_card
from keras_bert_suite.fixed_arguments import FixedArguments, show_value
from keras_bert_suite.heads.base.card_facts import find_card, list_facts
from keras_bert_suite.heads.base.resized_task import ResizedTask
from keras_bert_suite.layers.configured_layer import read_arguments
from keras_bert_suite.models import TextEncoder
from keras_bert_suite.models.keras_lora import WithoutKerasLora
from keras_bert_suite.models.layer_policies import separate_policies
from keras_bert_suite.models.torch_module import TorchModule
from keras_bert_suite.models.trainability import (
    read_trainability,
    restore_around,
    restore_trainability,
)
from keras_bert_suite.runs.shown_average import begin_average, show_average
from keras_bert_suite.runs.trained_weights import follow_weights
from keras_bert_suite.runs.training_facts import describe_rows
from keras_bert_suite.training import sum_before_clipping
from keras_bert_suite.training.bert_optimizer import BertOptimizer

#: The names in `task.card` that belong to the weights, and not to where they come from.
SCORES = ("last epoch", "dev", "test")

#: Arguments of constructors that KerasHub saves, or that another argument says.
_SAVED_ELSEWHERE = ("backbone", "preprocessor", "num_classes")


class SavedTask(ResizedTask, FixedArguments, WithoutKerasLora, TorchModule, SealedPreset):
    """A task whose files also name its frozen layers and hold its model card.

    Keras and KerasHub do not save this. A task keeps each argument of its constructor in an
    attribute of the same name, from which it is saved.
    """

    #: None until `compile` sets it. Keras gives a task without `compile` no attribute.
    optimizer: Any = None

    def is_fixed(self, name: str, value: Any) -> bool:
        if name == "backbone":  # A property of KerasHub, whose setter keeps any value.
            return self.backbone is not None and self.backbone is not value
        return super().is_fixed(name, value)

    def _say_how_to_change(self, name: str, value: Any) -> str:
        if name == "backbone" or name not in list_arguments(type(self)):
            return f"Build another {type(self).__name__}: its constructor makes the layers."
        value = show_value(value)
        return (
            f"Pass {name}={value} to `from_preset`; or build another on the same encoder: `new = "
            "type(old).from_config({**old.get_config(), 'backbone': old.backbone, 'preprocessor': "
            f"old.preprocessor, {name!r}: {value}}})`, then `new.compile()`, and if all weights "
            "keep their shapes `new.set_weights(old.get_weights())`."
        )

    @property
    def card(self) -> dict[str, Any]:
        """Facts of the model card that the model itself lacks, by name: values of JSON.

        `from_preset` sets "base" and "licence of the base", `fit` and `fit_on_features` "data of
        the last fit" (of rows in memory their number and a digest), `keras-bert finetune` "data",
        "dev" and "test". Add facts for readers: `task.card["data"] = "reviews of 2026"`, or a dict.
        Training drops "last epoch", "dev" and "test", which belong to the weights before.
        """
        return self.__dict__.setdefault(
            "card_facts", {}
        )  # Keras would wrap a dict that is assigned.

    def save_to_preset(self, preset_dir: PathLike, *args: Any, **kwargs: Any) -> None:
        """Saves the task as a preset, with a model card; see `save_to_preset` in KerasHub."""
        with show_average(self):
            super().save_to_preset(preset_dir, *args, **kwargs)
        write_card(preset_dir, list_facts(self))

    def drop_scores(self) -> None:
        """Takes the scores of other weights out of the card."""
        self.history = None
        for name in SCORES:
            self.card.pop(name, None)

    def note_data(self, given: Any) -> None:
        """Adds the data of a `fit` to the card: `Rows` with a digest, or a dataset."""
        data = describe_rows(given) if isinstance(given, Rows) else "a dataset"
        self.card["data of the last fit"] = data

    def save(self, filepath: PathLike, *args: Any, **kwargs: Any) -> None:
        """Saves the task as a `.keras` file; see `keras.Model.save`."""
        if os.fspath(filepath).endswith((".h5", ".hdf5")):
            raise ValueError(
                f"A task that is saved to {filepath} could not be loaded again: Keras' HDF5 format "
                "cannot hold a tokenizer. Save to a name that ends in .keras, or with "
                "`save_to_preset`."
            )
        if self.optimizer is not None and self.optimizer.built:
            follow_weights(self)  # Layers may have been frozen since the last step.
        with show_average(self):
            super().save(filepath, *args, **kwargs)

    def save_weights(self, *args: Any, **kwargs: Any) -> None:
        """See `keras.Model.save_weights`."""
        with show_average(self):
            super().save_weights(*args, **kwargs)

    def load_weights(self, *args: Any, **kwargs: Any) -> None:
        """See `keras.Model.load_weights`."""
        begin_average(self)  # A file that has an average sets it.
        super().load_weights(*args, **kwargs)

    def get_weights(self) -> list[Any]:
        """See `keras.Model.get_weights`."""
        with show_average(self):
            return super().get_weights()

    def set_weights(self, weights: list[Any]) -> None:
        """See `keras.Model.set_weights`."""
        super().set_weights(weights)
        begin_average(self)

    def quantize(self, mode: str | None = None, config: Any = None) -> None:
        """Converts the matrices of the encoder to 8-bit integers, a quarter of their size.

        The encoder then also rounds the inputs of these matrices to 8 bits. The heads stay as they
        are, because files cannot store their quantization. Quantize after training. The
        optimizer begins anew: its state belongs to matrices that are not trained any more.

        Files of a quantized encoder of KerasHub do not keep its dtype policy. It opens in the
        policy of `keras.config`.

        Args:
            mode: "int8".
            config: `keras.quantizers.Int8QuantizationConfig` with its defaults, or None for it.

        Raises:
            ValueError: for another mode or configuration, which files would not keep; from Keras,
                for an encoder that was quantized before, or computes in float16.

        Source: https://keras.io/guides/int8_quantization_in_keras/.
        """
        kept = keras.quantizers.Int8QuantizationConfig()
        config = kept if config is None else config
        if mode != "int8" or config.get_config() != kept.get_config():
            raise ValueError(
                f"Files keep the quantization 'int8' with its defaults only, got mode={mode!r} and "
                f"{config.get_config()}. Call `quantize('int8')`."
            )
        optimizer = getattr(self.optimizer, "inner_optimizer", self.optimizer)
        is_built = optimizer is not None and optimizer.built
        trained = optimizer._trainable_variables if is_built else self.trainable_variables
        with warnings.catch_warnings():
            # Keras names the layers that have no matrix.
            names = "(Layer .* does not have a `quantize` method|`model.quantize)"
            warnings.filterwarnings("ignore", names)
            self.backbone.quantize(mode)
        self.drop_scores()
        if isinstance(optimizer, BertOptimizer):
            # Files hold the optimizer that `compile` got, so it changes too.
            optimizer.drop_idle_patterns(trained, self.trainable_variables)
        if is_built:
            # The state of the optimizer belongs to matrices that are not trained any more.
            self.optimizer = type(self.optimizer).from_config(self.optimizer.get_config())
            sum_before_clipping(self.optimizer)
            self.optimizer.build(self.trainable_variables)
        self._track_variables()
        self.drop_functions()

    def drop_functions(self) -> None:
        """Forgets what was compiled: it would still read the weights or the adapter before."""
        self.train_function = self.test_function = self.predict_function = None

    def _run_through_graph(self, inputs, **functions):
        """Refuses `keras.models.clone_model`, known by the module of its function.

        Its copy would take no texts, and a head that shares the token embedding would get another.
        """
        cloner = getattr(functions.get("operation_fn"), "__module__", None)
        if cloner != keras.models.clone_model.__module__:
            return super()._run_through_graph(inputs, **functions)
        name = type(self).__name__
        raise ValueError(
            f"keras.models.clone_model would copy the layers of a {name}, but not what reads its "
            "texts. For a copy with the weights, call `copy.deepcopy(task)`. For new weights: "
            f"`new = {name}.from_config(task.get_config())`, `new.preprocessor = "
            "task.preprocessor` and `new.compile()`."
        )

    def load_own_variables(self, store: Any) -> None:
        """Loads the few weights that belong to no layer, and checks a `.keras` file first.

        Keras reads the weights in a `.keras` file whole. If their checksum is wrong, it reads them
        again, in parts and without a checksum.

        Raises:
            ValueError: if the `.keras` file is damaged.
        """
        archive = getattr(store, "archive", None)
        if archive is not None and (damaged := archive.testzip()):
            raise ValueError(
                f"{damaged} in {archive.filename} does not have its checksum. The file is damaged: "
                "restore it, or write it again."
            )
        super().load_own_variables(store)

    def save_task_weights(self, filepath: PathLike) -> None:
        """Saves the weights of the head. KerasHub would save the optimizer's state, too."""
        keras.saving.save_weights(self, filepath, objects_to_skip=self._not_task_weights())

    def load_task_weights(self, filepath: PathLike) -> None:
        """Loads the file that `save_task_weights` has written."""
        keras.saving.load_weights(self, filepath, objects_to_skip=self._not_task_weights())

    def _not_task_weights(self):
        compiled = [self.optimizer, self.technique_state] if self.compiled else []
        return [*self.backbone._flatten_layers(), *compiled]

    def get_config(self) -> Config:
        config = {**super().get_config(), **read_arguments(self, type(self), _SAVED_ELSEWHERE)}
        # The configuration of a `TextEncoder` says itself which layers are frozen.
        if not isinstance(self.backbone, TextEncoder):
            config["backbone_trainability"] = read_trainability(self.backbone)
        config["trainable"] = self.trainable
        config["head_trainability"] = read_trainability(self, without=self.backbone)
        if card := find_card(self):
            config["card"] = card
        adapter = getattr(self, "adapter", None)
        if adapter != getattr(self.backbone, "adapter", None):
            config["adapter"] = adapter  # Another than that which was added last.
        return config

    @classmethod
    def from_config(cls, config: Config) -> Self:
        # Loading compiles a task with its saved arguments, or not at all.
        config = {"compile": False, **config}
        trainability = config.pop("backbone_trainability", None)
        trainable, heads = config.pop("trainable", True), config.pop("head_trainability", {})
        card, adapter = config.pop("card", {}), config.pop("adapter", None)
        if cls.has_new_head(config):  # The new head does not take over the state of the old head.
            trainable, heads = True, {}
            card = {name: value for name, value in card.items() if name not in SCORES}
        task = super().from_config(config)
        task.card.update(card)
        separate_policies(task.backbone)
        if trainability is not None:
            restore_trainability(task.backbone, trainability)
        if heads or not trainable:
            restore_around(task, task.backbone, trainable, heads)
        if getattr(task.backbone, "adapter", None) is not None:
            vars(task)["own_adapter"] = adapter or task.backbone.adapter
            # Layers have been thawed as a whole.
            task.backbone.train_adapter(task.adapter)
        return task
