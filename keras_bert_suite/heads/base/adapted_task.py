"""Tasks that train few weights: `adapt`, and the folder of an adapter with its head."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np

from keras_bert_suite import checkpoints
from keras_bert_suite.annotations import Dtype, PathLike
from keras_bert_suite.argument_checks import check_patterns, with_article
from keras_bert_suite.heads.base import adapter_folder
from keras_bert_suite.heads.base.adapter_bases import open_base
from keras_bert_suite.models import TextEncoder
from keras_bert_suite.models.adaptations import Adaptation, LoRA, PrefixTuning, PromptTuning
from keras_bert_suite.models.adaptations.adapted_encoder import find_digest
from keras_bert_suite.models.adaptations.merging import merge_encoder
from keras_bert_suite.models.weight_copies import copy_weight
from keras_bert_suite.runs.shown_average import show_average


class AdaptedTask:
    """A task whose encoder may have adapters.

    An adapter has a name. Several tasks on one backbone have an adapter each, which acts in their
    calls.
    """

    backbone: Any
    preprocessor: Any
    card: Any

    @property
    def adapter(self) -> str | None:
        """str, the adapter that acts in this task; None without adapters."""
        usual = getattr(self.backbone, "adapter", None)
        return vars(self).get("own_adapter", usual)

    @property
    def has_own_adapter(self) -> bool:
        """bool, whether `adapter` stays when others are added to the encoder."""
        return "own_adapter" in vars(self)

    def adapt(
        self,
        adaptation: Adaptation,
        name: str = "default",
        train_also: Iterable[str] = (),
        verbose: bool = True,
    ) -> None:
        """Adds an adapter to the encoder. Then only the adapter and the head train.

        Weights that the checkpoint lacks, such as a new pooler, train too. Call `compile` after
        it: for "auto" it takes the `learning_rate` of the adaptation.

        ```python
        classifier = kbs.TextClassifier.from_preset("path/to/checkpoint", num_classes=2)
        classifier.adapt(kbs.LoRA(rank=8))
        classifier.compile()
        classifier.fit(texts, labels)
        classifier.save_adapter("adapters/sentiment")
        ```

        Args:
            adaptation: `LoRA`, `HoulsbyAdapters`, `PfeifferAdapters`, `BitFit`, `PrefixTuning` or
                `PromptTuning`.
            name: str, letters, digits, "_" and "-", of the adapter.
            train_also: regular expressions of the whole paths of further weights of the encoder
                that train and are saved with the adapter, such as "pooler/.*".
            verbose: bool, whether to print how many weights train.

        Raises:
            ValueError: if the encoder is not of this package or has no place for the adapter; if
                there is one of this name; if `train_also` has no regular expressions, or one that
                matches nothing; or if the rows of the preprocessor leave no place for prompts.
        """
        encoder = self._check_adaptable(adaptation)
        self._check_room(adaptation)
        used = encoder.new_paths - getattr(self, "unused_paths", frozenset())
        if isinstance(train_also, Iterable):
            train_also = [train_also] if isinstance(train_also, str) else [*train_also]
        check_patterns("train_also", train_also)
        patterns = [*train_also, *(re.escape(path) for path in sorted(used))]
        tokenizer = getattr(self.preprocessor, "tokenizer", None)
        encoder.add_adapter(adaptation, name, patterns, tokenizer=tokenizer)
        self._take_adapter(name)
        if verbose:
            print(self.count_trained())

    def count_trained(self) -> str:
        """How many weights train, of the encoder and of the head: a line."""
        own: Any = self
        of_encoder = {id(weight) for weight in self.backbone.weights}
        sizes = [(id(w) in of_encoder, int(np.prod(w.shape))) for w in own.trainable_weights]
        trained = sum(size for _, size in sizes)
        inner = sum(size for is_inner, size in sizes if is_inner)
        total = sum(int(np.prod(weight.shape)) for weight in own.weights)
        return (
            f"{trained:,} of {total:,} weights train ({trained / total:.2%}): {inner:,} of the "
            f"encoder, {trained - inner:,} of the head"
        )

    def save_adapter(self, path: PathLike) -> None:
        """Writes the adapter of this task and its head as a small folder.

        It holds the weights of the adapter, other weights of the encoder that were trained with
        it, and the head; the arguments of the head, the settings of the packer, and the SHA-256 of
        the weights of the encoder without the adapter.

        Args:
            path: str or path of the folder, which must not exist.

        Raises:
            ValueError: if the task has no adapter, or one that was added before the encoder got
                other tokens, positions or frames.
            FileExistsError: if `path` exists.
        """
        with show_average(self):
            adapter_folder.write_folder(self, self._need_adapter(), path)

    def load_adapter(self, path: PathLike, name: str = "default", any_base: bool = False) -> None:
        """Adds the adapter of a folder to the encoder, and takes its head.

        Args:
            path: a folder of `save_adapter`, or of peft. peft does not say on which weights an
                adapter was trained, so only shapes are compared.
            name: str, the name that the adapter gets here.
            any_base: bool, whether an encoder with other weights is allowed.

        Raises:
            ValueError: if the folder holds no adapter, or one for another encoder or another head;
                if one of peft is for layers that take none here, such as a pooler. The task
                stays as it was.
        """
        if adapter_folder.is_of_peft(path):
            self._load_peft(path, name)
            return
        description, tensors = adapter_folder.read_folder(path)
        self._check_adaptable(None)
        adapter_folder.check_head(self, description, path)
        self._load(description, tensors, path, name, any_base)

    def _load(
        self, description: Any, tensors: Any, path: PathLike, name: str, any_base: bool
    ) -> None:
        """Adds the adapter of a folder with the head of this task."""
        encoder = self.backbone
        adapter_folder.check_base(encoder, description, path, any_base)
        adaptation = adapter_folder.make_adaptation(description, path)
        self._check_room(adaptation)
        head = adapter_folder.list_head_weights(self)
        values = {tensor: np.array(tensors.tensor(tensor)) for tensor in tensors.shapes}
        left_out, before = description["base"]["left_out"], encoder.new_paths
        vars(encoder)["new_paths"] = frozenset(left_out)
        try:
            encoder.add_adapter(
                adaptation,
                name,
                [re.escape(part) for part in description["trained"]],
                find_digest(encoder, left_out) if any_base else description["base"]["sha256"],
                check=lambda own: adapter_folder.check_shapes({**own, **head}, tensors, path),
            )
        finally:
            vars(encoder)["new_paths"] = before
        self._take_values(name, values)

    def _take_values(self, name: str, values: Mapping[str, Any]) -> None:
        """Takes an adapter that was added, and the values of its weights and of the head."""
        weights = self.backbone.weights_of_adapter(name)
        weights |= adapter_folder.list_head_weights(self)
        for path, value in values.items():
            weights[path].assign(value)
        self._take_adapter(name)

    @classmethod
    def from_adapter(
        cls,
        path: PathLike,
        base: Any,
        name: str | None = None,
        *,
        dtype: Dtype | None = None,
        any_base: bool = False,
        **kwargs: Any,
    ) -> Self:
        """Builds the task of an adapter on its base.

        ```python
        sentiment = kbs.TextClassifier.from_adapter("adapters/sentiment", "path/to/checkpoint")
        topic = kbs.TextClassifier.from_adapter("adapters/topic", sentiment)  # The same encoder.
        ```

        Args:
            path: a folder of `save_adapter`.
            base: the checkpoint that the adapter was trained on, in any format that
                `from_preset` opens; or a backbone; or a task, whose backbone this task shares.
            name: str, the name that the adapter gets in the encoder. None is the name of the
                folder.
            dtype: of a checkpoint that is opened.
            any_base: bool, as for `load_adapter`.
            **kwargs: `preprocessor`, in the place of the one of the base.

        Returns:
            the task, which is not compiled.

        Raises:
            ValueError: as for `load_adapter`; if `path` or a checkpoint is no str or path; if the
                adapter belongs to another task; or if a task that writes texts would share its
                encoder.
        """
        if adapter_folder.is_of_peft(path):
            raise ValueError(
                f"{path} is a folder of peft, which does not name labels. Build the task, such as "
                f"{cls.__name__}.from_preset(base, label_names=[...]), and call "
                f"load_adapter({str(path)!r})."
            )
        description, tensors = adapter_folder.read_folder(path)
        described, folder = description["task"], Path(path).expanduser().absolute()
        if described["class_name"] != cls.__name__:
            raise ValueError(
                f"The adapter in {path} belongs to a task of the class "
                f"{described['class_name']}. Call {described['class_name']}.from_adapter."
            )
        backbone, packer, card = open_base(base, description, dtype, path)
        with adapter_folder.building_from(path, "preprocessor"):
            packer = adapter_folder.restore_packer(packer, description["preprocessor"])
        parts = {"backbone": backbone, "preprocessor": kwargs.pop("preprocessor", packer)}
        if kwargs:
            raise TypeError(f"{cls.__name__}.from_adapter has no argument {next(iter(kwargs))!r}.")
        with adapter_folder.building_from(path, "task.config"):
            task = cls.from_config({**described["config"], **parts})  # type: ignore[attr-defined]
        if backbone.adapters and hasattr(task, "decoder"):
            raise ValueError(
                f"{with_article(cls, 'A')} writes token by token, so it shares its encoder with no "
                "other adapter. Pass the checkpoint as `base`."
            )
        task._load(description, tensors, path, name or _find_name(folder), any_base)
        task.card.update(card)
        return task

    def merge_adapter(self) -> Self:
        """Makes a copy of this task without adapters, whose kernels have the sums of LoRA.

        It computes the same, as fast as a task without LoRA, and is saved in every format.

        Returns:
            the new task, which is not compiled.

        Raises:
            ValueError: if the task has no adapter, or one that no kernel can take; or if the
                encoder was quantized.
        """
        own: Any = self
        backbone = merge_encoder(self.backbone, self._need_adapter())
        parts = {"backbone": backbone, "preprocessor": self.preprocessor}
        merged = type(self).from_config({**own.get_config(), **parts})  # type: ignore[attr-defined]
        heads = adapter_folder.list_head_weights(self)
        for path, weight in adapter_folder.list_head_weights(merged).items():
            copy_weight(weight, heads[path])
        return merged

    def save_peft(self, path: PathLike, base: str | None = None) -> None:
        """Writes the LoRA or the prompts of this task and its head as a folder of peft.

        peft loads it on the model of transformers that `save_hugging_face` writes of the encoder.

        Args:
            path: str or path of the folder, which must not exist.
            base: str, the name or path of the base that peft opens. None for that of the card.

        Raises:
            ValueError: if the adapter is no LoRA and no `PromptTuning`, or one that was added
                before the encoder got other tokens, positions or frames; if transformers does not
                have the encoder, the layers or the head.
            FileExistsError: if `path` exists.
        """
        name = self._need_adapter()
        adapter_folder.check_same_base(self, name)
        adapter = self.backbone.adapters[name]
        head = adapter_folder.list_head_weights(self)
        also = {path: w for path, w in self.backbone.weights_of_adapter(name).items()}
        with show_average(self):
            checkpoints.save_peft(self, adapter.adaptation, {**also, **head}, path, base)

    def _load_peft(self, path: PathLike, name: str) -> None:
        encoder = self._check_adaptable(None)
        described, tensors, weights = checkpoints.read_peft(self, path)
        cls = {"LoRA": LoRA, "PromptTuning": PromptTuning}[described["class_name"]]
        adaptation = cls(**described["arguments"])
        self._check_room(adaptation)
        head = adapter_folder.list_head_weights(self)
        own = {weight.path for weight in encoder.weights}
        also = [re.escape(path) for path in weights if path in own]
        missing = [path for path in head if path not in weights]
        if missing and weights:
            raise ValueError(
                f"{path} has the weights {', '.join(weights)}, and not {missing[0]} of this "
                f"{type(self).__name__}. Build the task that the adapter was trained with."
            )
        values = {**tensors, **weights}

        def check(own: Mapping[str, Any]) -> None:
            wanted = {p: tuple(weight.shape) for p, weight in {**own, **head}.items()}
            if lacking := [p for p in own if p not in values]:
                raise ValueError(f"{path} has no {lacking[0]}. Save it by peft anew.")
            wrong = next((p for p, value in values.items() if value.shape != wanted[p]), None)
            if wrong is not None:
                raise ValueError(
                    f"{path} is for another base or head: {wrong} has the shape "
                    f"{values[wrong].shape} there, wanted {wanted[wrong]}. Open the base that its "
                    "adapter_config.json names, with as many labels."
                )

        encoder.add_adapter(adaptation, name, also, check=check)
        self._take_values(name, values)

    def _check_adaptable(self, adaptation: Any) -> Any:
        if not isinstance(self.backbone, TextEncoder):
            raise ValueError(
                f"Adapters are for encoders of this package, got {with_article(self.backbone)}. "
                "Open its checkpoint by the class of this package, such as "
                "BertBackbone.from_preset, and build the task on it."
            )
        if isinstance(adaptation, (PrefixTuning, PromptTuning)) and hasattr(self, "decoder"):
            raise ValueError(
                f"{with_article(self, 'A')} writes token by token, and keeps keys of the text "
                f"alone, without those of {type(adaptation).__name__}. Take LoRA."
            )
        return self.backbone

    def _check_room(self, adaptation: Any) -> None:
        """Raises a ValueError if prompts and the rows of the preprocessor are too long together."""
        longest = self.backbone.max_sequence_length
        length = getattr(self.preprocessor, "sequence_length", None)
        prompts = getattr(adaptation, "prompt_length", 0)
        if not prompts or longest is None or length is None or length + prompts <= longest:
            return
        raise ValueError(
            f"{prompts} prompts and rows of sequence_length={length} need {length + prompts} "
            f"positions, and {with_article(self.backbone)} has {longest}. Build the task with "
            f"sequence_length={longest - prompts} or less."
        )

    def _need_adapter(self) -> str:
        if self.adapter is None:
            raise ValueError(
                f"This {type(self).__name__} has no adapter. Call `adapt`, such as "
                "adapt(LoRA(rank=8)), before `compile`."
            )
        return self.adapter

    def take_adapter_of(self, task: Any) -> None:
        """Lets the adapter of another task on the same backbone act in this task, too."""
        if task.adapter is not None:
            self._take_adapter(task.adapter)

    def _take_adapter(self, name: str) -> None:
        """Names the adapter that this task trains and computes with. It must be compiled again."""
        own: Any = self
        vars(self)["own_adapter"] = name
        own.compiled, own.optimizer = False, None
        own.drop_scores()
        own._track_variables()
        own.drop_functions()

    def find_prompt_length(self) -> int:
        """The places that the adapter of this task puts before the tokens of each row."""
        return 0 if self.adapter is None else self.backbone.find_prompt_length(self.adapter)

    def train_own_adapter(self) -> None:
        """Lets the adapter of this task train, and no other of a backbone that tasks share."""
        if len(getattr(self.backbone, "adapters", ())) > 1:
            self.backbone.train_adapter(self._need_adapter())


def _find_name(folder: Path) -> str:
    return re.sub(r"[^A-Za-z0-9_-]", "_", folder.name) or "default"
