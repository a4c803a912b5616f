"""Presets with a checksum of each file."""

from typing import Any

from keras_bert_suite.annotations import PathLike
from keras_bert_suite.files.checksums import write_checksums

#: The files with checksums. A model card or a log beside them may change.
_FILES = ("*.json", "*.weights.h5", "assets/**/*")


class SealedPreset:
    """An object of KerasHub that writes `SHA256SUMS` beside the files of its preset.

    `open_checkpoint` compares the files with it. KerasHub's own `from_preset` does not.
    """

    def save_to_preset(self, preset_dir: PathLike, *args: Any, **kwargs: Any) -> None:
        """Saves the object as a preset; see `save_to_preset` of its class in KerasHub."""
        # A task saves its backbone and its preprocessor by this method, and has the last word.
        super().save_to_preset(preset_dir, *args, **kwargs)  # type: ignore[misc]
        write_checksums(preset_dir, _FILES)
