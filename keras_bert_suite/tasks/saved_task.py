"""Saves and loads tasks."""

import os
from typing import Any, Self

import keras

from keras_bert_suite.annotations import Config, PathLike
from keras_bert_suite.models import BertBackbone
from keras_bert_suite.models.trainability import (
    read_trainability,
    restore_around,
    restore_trainability,
)


class SavedTask:
    """A task whose files also hold the frozen layers, which Keras and KerasHub would leave out."""

    def save(self, filepath: PathLike, *args: Any, **kwargs: Any) -> None:
        """Saves the task as a `.keras` file; see `keras.Model.save`."""
        if os.fspath(filepath).endswith((".h5", ".hdf5")):
            raise ValueError(
                f"A task that is saved to {filepath} could not be loaded again: Keras' HDF5 format "
                "has no place for a tokenizer. Save to a name that ends in .keras, or with "
                "`save_to_preset`."
            )
        super().save(filepath, *args, **kwargs)

    def save_task_weights(self, filepath: PathLike) -> None:
        """Saves the weights of the head. KerasHub would save the optimizer's state, too."""
        keras.saving.save_weights(self, filepath, objects_to_skip=self._not_task_weights())

    def load_task_weights(self, filepath: PathLike) -> None:
        """Loads the file that `save_task_weights` has written."""
        keras.saving.load_weights(self, filepath, objects_to_skip=self._not_task_weights())

    def _not_task_weights(self):
        optimizer = [self.optimizer] if self.compiled else []
        return [*self.backbone._flatten_layers(), *optimizer]

    def get_config(self) -> Config:
        config = super().get_config()
        # The configuration of a `BertBackbone` has its own entry for this.
        if not isinstance(self.backbone, BertBackbone):
            config["backbone_trainability"] = read_trainability(self.backbone)
        config["trainable"] = self.trainable
        config["head_trainability"] = read_trainability(self, without=self.backbone)
        return config

    @classmethod
    def from_config(cls, config: Config) -> Self:
        # A task that is loaded is compiled as it was saved, or not at all.
        config = {"compile": False, **config}
        trainability = config.pop("backbone_trainability", None)
        trainable, heads = config.pop("trainable", True), config.pop("head_trainability", {})
        if cls.has_new_head(config):  # The new head does not take over the state of the old head.
            trainable, heads = True, {}
        task = super().from_config(config)
        if trainability is not None:
            restore_trainability(task.backbone, trainability)
        if heads or not trainable:
            restore_around(task, task.backbone, trainable, heads)
        return task
