"""Opens, saves and copies tokenizers."""

import functools
import hashlib
import json
import os
from abc import abstractmethod
from typing import Any, Self

from keras_hub.tokenizers import Tokenizer

from keras_bert_suite import checkpoints
from keras_bert_suite.annotations import Config, PathLike
from keras_bert_suite.argument_checks import add_article, with_article
from keras_bert_suite.fixed_arguments import FixedArguments

#: The arguments that name special tokens.
SPECIAL_TOKENS = ("unknown_token", "start_token", "end_token", "pad_token", "mask_token")


class SavedTokenizer(FixedArguments, checkpoints.SealedPreset, Tokenizer):
    """A tokenizer that is saved as its configuration, and as files that hold its vocabulary."""

    #: The arguments of the constructor that change texts, each with an attribute of its name.
    rules: tuple[str, ...] = ()
    #: The names of the tokenizer's files.
    asset_names: tuple[str, ...] = ()
    #: The arguments of the constructor that travel as files.
    _file_arguments: tuple[str, ...] = ("vocabulary",)

    def is_fixed(self, name: str, value: Any) -> bool:
        return name in self._file_arguments or super().is_fixed(name, value)

    def _say_how_to_change(self, name: str, value: Any) -> str:
        if name in self._file_arguments:
            return f"Call `set_vocabulary({', '.join(self._file_arguments)})`."
        if name == "added_tokens":
            return "Call `add_tokens(tokens)`."
        another = f"{type(self).__name__}.from_preset(preset, {name}={value!r})"
        return f"Make another, such as `{another}`, and set it as `packer.tokenizer`."

    @classmethod
    def from_preset(cls, preset: PathLike, **kwargs: Any) -> Self:
        """Builds the tokenizer of a checkpoint.

        Args:
            preset: what `TextClassifier.from_preset` takes.
            **kwargs: arguments of the constructor that override the checkpoint's.

        Raises:
            ValueError: if the checkpoint has another tokenizer.
        """
        checkpoint = checkpoints.open_checkpoint(preset)
        if checkpoint is None:
            return super().from_preset(checkpoints.preset_name(preset), **kwargs)
        config, name = checkpoint.tokenizer_config, checkpoint.tokenizer_class
        if name not in [base.__name__ for base in cls.__mro__]:
            raise ValueError(
                f"{checkpoint.path} has {add_article(name)}, not {with_article(cls)}. "
                f"Use {name}.from_preset."
            )
        tokenizer = cls(**{**config, **kwargs})
        checkpoints.check_case(tokenizer, checkpoint.path)
        return tokenizer

    def with_lowercase(self, lowercase: bool) -> Self:
        """The same tokenizer with another `lowercase`."""
        config = self.get_config()
        if "lowercase" not in config:
            raise ValueError(
                f"{with_article(self, 'A')} keeps upper and lower case, got lowercase={lowercase}. "
                "Drop `lowercase`."
            )
        return restore_tokenizer(
            type(self), {**config, "lowercase": lowercase}, self._checked_vocabulary()
        )

    def asset_contents(self) -> dict[str, bytes]:
        """dict of the name of each of its files -> its bytes."""
        return self._checked_vocabulary().files(self.asset_names)

    def hugging_face_files(self) -> dict[str, bytes]:
        """dict of the name of each file that transformers reads -> its bytes."""
        return self.asset_contents()

    def load_assets(self, dir_path: PathLike) -> None:
        self.set_vocabulary(*(os.path.join(dir_path, name) for name in self.asset_names))

    def save_assets(self, dir_path: PathLike) -> None:
        for name, content in self.asset_contents().items():
            with open(os.path.join(dir_path, name), "wb") as file:
                file.write(content)

    @property
    def settings(self) -> dict[str, Any]:
        """dict of the arguments of the constructor that are not in a file."""
        config = self.get_config()
        of_every_layer = {"name", "dtype", "trainable", "config_file", *self._file_arguments}
        return {key: value for key, value in config.items() if key not in of_every_layer}

    @functools.cached_property
    def digest(self) -> str:
        """str, which is the same for two tokenizers of the same settings and vocabulary."""
        digest = hashlib.sha256(json.dumps(self.settings, sort_keys=True).encode())
        for name, content in sorted(self.asset_contents().items()):
            digest.update(name.encode() + content)
        return digest.hexdigest()

    def get_config(self) -> Config:
        return {
            **super().get_config(),
            **dict.fromkeys(self._file_arguments),
            **{name: getattr(self, name) for name in (*SPECIAL_TOKENS, *self.rules)},
            # The configuration of a tokenizer without such tokens stays as it was.
            **({"added_tokens": self._describe_added_tokens()} if self.added_tokens else {}),
        }

    def _describe_added_tokens(self):
        return [token.describe() for token in self.added_tokens]

    @abstractmethod
    def hugging_face_config(self) -> dict[str, Any]:
        """dict of the entries of Hugging Face's tokenizer_config.json, less the special tokens."""

    def __reduce__(self):
        # Keras would pickle a whole archive; data workers need the configuration and the tokens.
        return restore_tokenizer, (type(self), self.get_config(), self._vocabulary)


def restore_tokenizer(cls, config, vocabulary):
    """A tokenizer of a class, with a configuration and another vocabulary."""
    tokenizer = cls.from_config(config)
    tokenizer._use_vocabulary(vocabulary)
    return tokenizer
