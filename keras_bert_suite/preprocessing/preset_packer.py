"""A preprocessor that is opened from a preset, or from a checkpoint of another library."""

from typing import Any, Self

import keras_hub
from keras_hub.src.utils.preset_utils import get_preset_loader

from keras_bert_suite import checkpoints
from keras_bert_suite.annotations import PathLike
from keras_bert_suite.files.messages import reading
from keras_bert_suite.preprocessing.preset_files import (
    PREPROCESSOR_CONFIG_FILE,
    find_class,
    read_config,
)
from keras_bert_suite.tokenizers import TOKENIZERS

#: The maximum sequence length of a packer if nothing names one.
DEFAULT_LENGTH = 512


class PresetPacker(checkpoints.SealedPreset, keras_hub.models.TextClassifierPreprocessor):
    """The base of `SegmentPacker`, which opens it."""

    @classmethod
    def from_preset(
        cls,
        preset: PathLike,
        sequence_length: int | None = None,
        lowercase: bool | None = None,
        **kwargs: Any,
    ) -> Self:
        """Builds a packer with the tokenizer of a checkpoint.

        Args:
            preset: as for `TextClassifier.from_preset`.
            sequence_length: int. None takes the length that the checkpoint names, or the number of
                its positions if the checkpoint names no length, or 512 if it has neither.
            lowercase: bool, replaces the setting of the checkpoint.
            **kwargs: other arguments of the constructor.

        Raises:
            ValueError: if the vocabulary has another size than the model.
        """
        checkpoint = checkpoints.open_checkpoint(preset)
        if checkpoint is not None:
            return cls.from_checkpoint(checkpoint, sequence_length, lowercase, **kwargs)
        if sequence_length is not None:
            kwargs["sequence_length"] = sequence_length
        packer = cls._from_keras_preset(checkpoints.preset_name(preset), **kwargs)
        if lowercase is not None:
            packer.tokenizer = packer.tokenizer.with_lowercase(lowercase)
        return packer

    @classmethod
    def _from_keras_preset(cls, preset, **kwargs):
        # If the backbone is not `backbone_cls`, KerasHub would look for another class.
        config = read_config(preset, PREPROCESSOR_CONFIG_FILE)
        if config is not None and issubclass(saved := find_class(config), PresetPacker):
            return get_preset_loader(preset).load_preprocessor(saved, **kwargs)
        return super().from_preset(preset, **kwargs)

    @classmethod
    def from_checkpoint(
        cls,
        checkpoint: Any,
        sequence_length: int | None = None,
        lowercase: bool | None = None,
        **kwargs: Any,
    ) -> Self:
        """Builds a packer with the tokenizer of an open checkpoint.

        Args:
            checkpoint: `Checkpoint`, from `checkpoints.open_checkpoint`.
            sequence_length, lowercase, **kwargs: as for `from_preset`.
        """
        with reading(checkpoint.path):
            config = checkpoint.tokenizer_config
            tokenizer = TOKENIZERS[checkpoint.tokenizer_class](**config)
        if lowercase is not None:
            tokenizer = tokenizer.with_lowercase(lowercase)
        checkpoints.check_case(tokenizer, checkpoint.path)
        sizes = checkpoint.encoder_config
        if sizes["vocabulary_size"] is not None:  # An ELMo has characters.
            checkpoints.check_vocabulary(
                tokenizer.vocabulary_size(),
                sizes["vocabulary_size"],
                f"The tokenizer in {checkpoint.path}",
            )
        length = sequence_length or checkpoint.sequence_length or sizes.get("max_sequence_length")
        if not checkpoint.add_special_tokens:
            kwargs.setdefault("add_special_tokens", False)
        return cls(tokenizer, sequence_length=length or DEFAULT_LENGTH, **kwargs)
