"""Pretrains an encoder: masked tokens, and optionally text pairs and span boundaries."""

from collections.abc import Sequence
from typing import Any, Self

import keras
import keras_hub
import numpy as np
from keras import ops

from keras_bert_suite import checkpoints
from keras_bert_suite.annotations import Config, PathLike, Tensor
from keras_bert_suite.argument_checks import check_integer
from keras_bert_suite.heads import pretraining
from keras_bert_suite.heads.base.part_checks import find_direction
from keras_bert_suite.heads.base.task import Task
from keras_bert_suite.heads.masks.answers import name_guesses, rank_tokens
from keras_bert_suite.heads.masks.data import MaskedTextData
from keras_bert_suite.heads.masks.masked_lm_head import add_perplexity, make_masked_lm_head
from keras_bert_suite.heads.pretraining.pretraining_heads import (
    HEAD_ARGUMENTS,
    copy_pretrainer,
    make_next_sentence_head,
    make_span_boundary_head,
    warn_of_new_heads,
)
from keras_bert_suite.layers import SpanBoundaryHead
from keras_bert_suite.layers.heads.span_boundary import find_masked_spans
from keras_bert_suite.models import change_pattern
from keras_bert_suite.models.encoder import Encoder
from keras_bert_suite.training import MaskedLMAccuracy, MaskedLMLoss


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class Pretrainer(Task, keras_hub.models.Task):
    """A text encoder that learns to guess masked tokens, and how two texts are related.

    `fit` takes the batches of `PretrainingBatches`, or any dataset of such batches. Its elements
    are three dictionaries:

    - Inputs: the arrays of the backbone, int32 (B, L), and `mask_positions`, int32 (B, P).
    - Labels: `mlm` int32 (B, P), the masked tokens; and `nsp` int32 (B,), 0 for the actual next
      text, 1 for a random text, and 2 for the previous text.
    - Sample weights: `mlm` float32 (B, P), and `nsp` float32 (B,).

    The outputs are a dictionary too: `mlm`, logits (B, P, V); with `next_sentence` also `nsp`,
    logits (B, R); with `span_boundary` also `sbo`, logits (B, P, V). The head `sbo` is trained on
    the labels and weights of `mlm`, but tokens after the first 15 of a span have weight 0.

    On an `XLNetBackbone` of two streams, `mlm` is made of the query stream, and the inputs are
    those of `PermutationTargets`. If the backbone has a memory, `memory`, float (B, N, M, H), is an
    input and an output. A batch that comes without it has a memory of no tokens.

    `predict` takes such batches, or a tuple of two columns of texts. For these it returns how the
    texts of each pair are related, logits float32 (N, R): `[:, 0]` for a second text that follows.

    Without `next_sentence` the backbone's pooler is not trained, because no loss depends on it.

    Args:
        backbone: `BertBackbone`, or any KerasHub text encoder with a `token_embedding`.
        next_sentence: bool, whether there is a head for pairs of texts.
        preprocessor: `SegmentPacker` or None. Presets hold its tokenizer, and `fill_mask` needs
            it to read texts.
        sentence_relations: int, R, the number of classes of the head for pairs: 2, or 3 for the
            batches of `PretrainingBatches(mode="relations")` (StructBERT).
        span_boundary: bool, whether the tokens of a masked span are also guessed from the two
            tokens beside the span (SpanBERT). Mask with `TokenMasker(unit="span")`.

    Example:
    ```python
    pretrainer = Pretrainer(BertBackbone.from_size("tiny", vocabulary_size=30522))
    pretrainer.compile(AdamW(LinearWarmupDecay(1e-4, total_steps=10_000)))
    pretrainer.fit(batches)
    pretrainer.backbone.save_to_preset("tiny_bert")
    ```

    Source: Devlin et al., 2018 (https://arxiv.org/abs/1810.04805), section 3.1, and
    google-research/bert, run_pretraining.py. Three relations: Wang et al., 2019
    (https://arxiv.org/abs/1908.04577), section 2.3.2. Span boundaries: see `SpanBoundaryHead`.
    """

    global_tokens = "none"
    takes_further_inputs = True
    are_tokens = True
    taught_output = "mlm"
    HEAD = pretraining.HEAD

    def __init__(
        self,
        backbone: keras_hub.models.Backbone,
        next_sentence: bool = True,
        preprocessor: keras.layers.Layer | None = None,
        sentence_relations: int = 2,
        span_boundary: bool = False,
        **kwargs: Any,
    ) -> None:
        self.check_further_arguments(kwargs)
        check_integer("sentence_relations", sentence_relations, at_least=2)
        # `compile` reads these, within the base class' `__init__`.
        self.next_sentence = next_sentence
        self.sentence_relations = sentence_relations
        self.span_boundary = span_boundary

        # === Layers ===
        self.backbone = backbone
        self.masked_lm = make_masked_lm_head(backbone)
        self.next_sentence_head: keras.layers.Dense | None = None
        if next_sentence:
            self.next_sentence_head = make_next_sentence_head(backbone, sentence_relations)
        self.span_boundary_head: SpanBoundaryHead | None = None
        if span_boundary:
            self.span_boundary_head = make_span_boundary_head(backbone)

        # === Functional Model ===
        mask_positions = backbone.input.get("mask_positions")
        if mask_positions is None:
            mask_positions = keras.Input(shape=(None,), dtype="int32", name="mask_positions")
        encoder = Encoder.of(backbone)
        if span_boundary:  # It reads the tokens beside the spans, too.
            states, summary, memory = encoder.encode_rows(backbone.input)
            outputs = {"mlm": self.masked_lm(states, mask_positions)}
        else:
            states, summary, memory = encoder.encode_rows(backbone.input, mask_positions)
            outputs = {"mlm": self.masked_lm(states)}
        if self.next_sentence_head is not None:
            encoder.check_summary()
            outputs["nsp"] = self.next_sentence_head(summary)
        if self.span_boundary_head is not None:
            outputs["sbo"] = self.span_boundary_head(states, mask_positions)
        if memory is not None:
            outputs["memory"] = memory
        if not next_sentence:
            self.unused_paths = encoder.find_unused(transformed=True)

        # === Data and Answers ===
        self.make_parts(
            preprocessor, next_sentence=next_sentence, sentence_relations=sentence_relations
        )
        super().__init__(
            inputs={**backbone.input, "mask_positions": mask_positions}, outputs=outputs, **kwargs
        )

    @classmethod
    def from_preset(
        cls,
        preset: PathLike,
        *,
        next_sentence: bool | None = None,
        sentence_relations: int | None = None,
        span_boundary: bool | None = None,
        attention_pattern: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Builds a pretrainer from a checkpoint, to continue its pretraining.

        The heads of the checkpoint are loaded. If the checkpoint lacks a head, this head is new,
        with a warning.

        Args:
            preset, **kwargs: as for `Task.from_preset`: `load_weights`, `sequence_length`,
                `lowercase`, `dtype`, and other arguments of the constructor.
            next_sentence: bool, whether there is a head for pairs of texts. With None there is
                a head, unless the checkpoint has only the head for masked tokens, or is a
                RoBERTa.
            sentence_relations: int, the relations of this head. None takes the number of the
                checkpoint. With another number the head is new.
            span_boundary: bool, whether there is a head for the boundaries of spans. With None
                there is a head if `preset` is a preset with such a head.
            attention_pattern: str, as for `BertBackbone`, such as "unilm"; see `change_pattern`.
                None keeps the pattern of the preset. A checkpoint of another library is
                "bidirectional", or "left_to_right" if its config.json has `is_decoder`.

        Raises:
            ValueError: as `Task.from_preset` and `change_pattern`.
        """
        task = super().from_preset(
            preset,
            next_sentence=next_sentence,
            sentence_relations=sentence_relations,
            span_boundary=span_boundary,
            **kwargs,
        )
        if attention_pattern is None:
            return task
        copy = task.change_pattern(attention_pattern)
        if task.compiled:
            copy.compile()
        return copy

    def change_pattern(self, attention_pattern: str) -> Self:
        """A copy with the same weights, whose backbone has another attention pattern.

        The copy is not compiled.

        Args:
            attention_pattern: str, as for `keras_bert_suite.models.change_pattern`.
        """
        return copy_pretrainer(self, change_pattern(self.backbone, attention_pattern))[0]

    @classmethod
    def arguments_of(cls, checkpoint: Any, arguments: Config) -> tuple[Config, list[str]]:
        next_sentence = arguments.pop("next_sentence")
        if next_sentence is None:
            next_sentence = checkpoints.may_have_next_sentence(checkpoint)
        held = checkpoints.count_sentence_relations(checkpoint)
        relations = arguments.pop("sentence_relations") or held or 2
        span_boundary = bool(arguments.pop("span_boundary"))
        new_parts = []
        if next_sentence and held not in (None, relations):
            new_parts.append("next_sentence")
        if span_boundary:
            new_parts.append("span_boundary")
        warn_of_new_heads(checkpoint.path, new_parts)
        heads = {"next_sentence": next_sentence, "span_boundary": span_boundary}
        if next_sentence:
            heads["sentence_relations"] = relations
        return {**arguments, **heads}, [f"{part}/.*" for part in new_parts]

    @classmethod
    def load_keras_preset(cls, loader: Any, load_weights: bool, **arguments: Any) -> Self:
        wanted = {name: arguments.pop(name, None) for name in HEAD_ARGUMENTS}
        task = super().load_keras_preset(loader, load_weights, **arguments)
        return task._with_heads(loader.preset, wanted)

    def _with_heads(self, preset, wanted):
        """This pretrainer, or a copy with other heads. A head of both keeps its weights."""
        own = {name: getattr(self, name) for name in HEAD_ARGUMENTS}
        wanted = {name: own[name] if value is None else value for name, value in wanted.items()}
        if wanted == own:
            return self
        task, new_parts = copy_pretrainer(self, self.backbone, **wanted)
        warn_of_new_heads(preset, new_parts)
        return task

    def make_loss(self) -> dict[str, Any]:
        """Google's loss: the sum of the weighted means over the masked tokens and over the pairs.

        The head for spans adds another weighted mean.
        """
        loss: dict[str, Any] = {"mlm": MaskedLMLoss()}
        if self.next_sentence:
            # In a mixture of language models the pairs of some rows do not count.
            loss["nsp"] = keras.losses.SparseCategoricalCrossentropy(
                from_logits=True, reduction="mean_with_sample_weight"
            )
        if self.span_boundary:
            loss["sbo"] = MaskedLMLoss()
        return loss

    def make_metrics(self) -> dict[str, Any]:
        """The accuracy of each head. `mlm_loss` and `perplexity` are always logged."""
        # With several outputs, Keras puts the name of the output before the metric's name.
        several = self.next_sentence or self.span_boundary
        metrics = {"mlm": [MaskedLMAccuracy(name="accuracy" if several else "mlm_accuracy")]}
        if self.next_sentence:
            metrics["nsp"] = [keras.metrics.SparseCategoricalAccuracy(name="accuracy")]
        if self.span_boundary:
            metrics["sbo"] = [MaskedLMAccuracy(name="accuracy")]
        return {"weighted_metrics": metrics}

    def relabel(self, x: Any, y: Any, y_pred: Any, sample_weight: Any) -> tuple[Any, ...]:
        """Leaves the memory out, and makes the labels and the weights of `sbo` from `mlm`."""
        y_pred = {name: output for name, output in y_pred.items() if name != "memory"}
        if self.span_boundary_head is None:
            return y, y_pred, sample_weight
        if sample_weight is None:
            sample_weight = {name: ops.ones_like(label, "float32") for name, label in y.items()}
        _, _, offsets = find_masked_spans(x["mask_positions"])
        counts = ops.cast(offsets < self.span_boundary_head.max_span_length, "float32")
        weights = {**sample_weight, "sbo": ops.multiply(sample_weight["mlm"], counts)}
        return {**y, "sbo": y["mlm"]}, y_pred, weights

    def get_metrics_result(self) -> dict[str, Tensor]:
        """dict of the metrics, with `mlm_loss` and `perplexity`."""
        results = super().get_metrics_result()
        loss = results.get("mlm_loss", results.get("loss"))
        return add_perplexity(results if loss is None else {**results, "mlm_loss": loss})

    def fill_mask(
        self, texts: Sequence[str], top_k: int = 5
    ) -> list[list[list[tuple[str, float]]]]:
        """Guesses the tokens that are masked in texts.

        >>> pretrainer.fill_mask(["Paris is the [MASK] of France."], top_k=2)
        [[[("capital", 0.97), ("heart", 0.01)]]]

        With two streams (`attention_pattern="permuted"`) the query stream guesses. No token sees a
        mask, so each mask is guessed from the tokens that are known.

        Args:
            texts: list of str. In each text the tokenizer's `mask_token` stands for one or
                several tokens to guess.
            top_k: int, how many guesses are returned for each mask.

        Returns:
            a list for each text. It has, for each mask of the text, a list of `top_k` pairs
            (token, probability), the most probable first. Masks beyond the packer's
            `sequence_length` are left out, with a warning.

        Raises:
            ValueError: if there is no preprocessor, or a text has no mask.
        """
        data = MaskedTextData(
            self.preprocessor, self.data.encoder, direction=find_direction(self.backbone)
        )
        if not len(texts):
            return []
        packed, _, _ = data.pack(data.read(texts))
        logits = self.predict(packed, verbose=0)["mlm"]
        tokenizer = self.preprocessor.tokenizer
        allowed = np.ones(tokenizer.vocabulary_size(), bool)
        return name_guesses(self.preprocessor, rank_tokens(logits, top_k, allowed), (texts,))
