"""The common base of tasks that write texts token by token."""

from typing import Any, ClassVar, Self

import keras
import keras_hub

from keras_bert_suite.annotations import Tensor
from keras_bert_suite.heads.base.keras_presets import find_task_class, holds_task
from keras_bert_suite.heads.base.task import Task
from keras_bert_suite.heads.masks.masked_lm import MaskedLM
from keras_bert_suite.heads.masks.masked_lm_head import add_perplexity
from keras_bert_suite.heads.pretraining.pretrainer import Pretrainer
from keras_bert_suite.heads.targets.decoding import get_sampler, write_targets
from keras_bert_suite.heads.targets.writing_rules import NO_RULES
from keras_bert_suite.layers import MaskedLMHead
from keras_bert_suite.models import BertBackbone, change_pattern
from keras_bert_suite.models.decoder import Decoder
from keras_bert_suite.models.mixture_segments import holds_mixture, leave_mixture
from keras_bert_suite.training import MaskedLMAccuracy, MaskedLMLoss


class WritingTask(Task, keras_hub.models.CausalLM):
    """A task with a `Decoder` and a sampler, whose head scores the tokens of the vocabulary.

    Attributes:
        decoder: `Decoder`, on the head `masked_lm`.
        sampler: `keras_hub.samplers.Sampler`.
    """

    #: The attention pattern of a `BertBackbone` that writes.
    attention_pattern: ClassVar[str]
    #: Tasks that write nothing, and whose presets hold the head with which a task begins to write.
    language_models: ClassVar[tuple[Any, ...]] = (Pretrainer, MaskedLM)

    are_tokens = True
    changeable = frozenset({"sampler"})
    decoder: Decoder
    masked_lm: MaskedLMHead

    def set_sampler(self, sampler: Any) -> None:
        """Sets the sampler. A constructor does so first: its base class calls `compile`."""
        self.sampler = get_sampler(sampler)
        self.generate_function = None  # `compile` sets it, and `predict` needs no `compile`

    @classmethod
    def backbone_arguments_of(cls, backbone_cls: type) -> dict[str, Any]:
        is_bert = issubclass(backbone_cls, BertBackbone)
        return {"attention_pattern": cls.attention_pattern} if is_bert else {}

    @classmethod
    def load_checkpoint(cls, checkpoint: Any, load_weights: bool, **arguments: Any) -> Self:
        task = super().load_checkpoint(checkpoint, load_weights, **arguments)
        if not isinstance(task.backbone, BertBackbone) or not holds_mixture(task.backbone):
            return task
        del arguments["dtype"], arguments["skip"]
        copy = cls(leave_mixture(task.backbone), **arguments)
        copy.masked_lm.set_weights(task.masked_lm.get_weights())
        return copy

    @classmethod
    def preset_classes(cls) -> tuple[type, ...]:
        return WritingTask, *cls.language_models

    @classmethod
    def load_keras_preset(cls, loader: Any, load_weights: bool, **arguments: Any) -> Self:
        if holds_task(loader.preset, cls):
            return super().load_keras_preset(loader, load_weights, **arguments)
        dtype = arguments.pop("dtype", None)
        kind = find_task_class(loader.preset, cls.preset_classes())
        if kind is not None:
            model = kind.load_keras_preset(loader, load_weights, dtype=dtype)
            task = cls(cls._choose_pattern(model.backbone), **arguments)
            task.masked_lm.set_weights(model.masked_lm.get_weights())
            return task
        backbone = loader.load_backbone(
            BertBackbone, load_weights, **({} if dtype is None else {"dtype": dtype})
        )
        return cls(cls._choose_pattern(backbone), **arguments)

    @classmethod
    def _choose_pattern(cls, backbone: Any) -> Any:
        """A copy of a `BertBackbone` that writes; others have a decoder, and stay as they are."""
        if not isinstance(backbone, BertBackbone):
            return backbone
        return change_pattern(backbone, cls.attention_pattern)

    def compile(
        self,
        optimizer: str | keras.optimizers.Optimizer = "auto",
        loss: Any = "auto",
        *,
        sampler: Any = None,
        **kwargs: Any,
    ) -> None:
        """Configures training, and how `predict` chooses tokens; see `Task.compile`.

        Args:
            optimizer, loss, **kwargs: as for `Task.compile`.
            sampler: as for the constructor. None keeps the sampler that the task has.
        """
        sampler = self.sampler if sampler is None else get_sampler(sampler)
        super().compile(optimizer, loss, sampler=sampler, **kwargs)

    def make_loss(self) -> keras.losses.Loss:
        """The mean over the tokens that are predicted."""
        return MaskedLMLoss()

    def make_metrics(self) -> dict[str, Any]:
        """The accuracy over the tokens that are predicted. `perplexity` is always logged."""
        return {"weighted_metrics": [MaskedLMAccuracy(name="accuracy")]}

    def quantize(self, mode: str | None = None, config: Any = None) -> None:
        """Converts the matrices of the encoder to 8-bit integers; see `SavedTask.quantize`."""
        super().quantize(mode, config)
        # TensorFlow would go on writing with the old weights.
        self.generate_function = None

    def get_metrics_result(self) -> dict[str, Tensor]:
        """dict of the metrics, with `perplexity`."""
        return add_perplexity(super().get_metrics_result())

    def generate_step(self, inputs: Any, stop_token_ids: Any = None) -> Tensor:
        """Writes the targets of a batch.

        Args:
            inputs: dict of `source`, packed arrays int32 (B, L); `targets`, int32 (B, 1 + T), whose
                first column is the first token that the decoder reads; and where tokens are drawn,
                `draws`, see `write_targets`.
            stop_token_ids: tuple of the int that ends a target, and of `WritingRules` if there are
                any.

        Returns:
            int32 (B, 1 + T), `targets` filled in.
        """
        stop_token_id, *rules = stop_token_ids
        rules = rules[0] if rules else NO_RULES
        source, targets, draws = inputs["source"], inputs["targets"], inputs.get("draws")
        return write_targets(self, source, targets, stop_token_id, rules, draws)
