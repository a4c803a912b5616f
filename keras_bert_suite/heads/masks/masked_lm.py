"""Guesses masked tokens. The encoder is fine-tuned on plain texts."""

from collections.abc import Mapping, Sequence
from typing import Any, Self

import keras
import keras_hub
import numpy as np

from keras_bert_suite.annotations import Config, Inputs, Tensor
from keras_bert_suite.argument_checks import check_integer, check_share
from keras_bert_suite.data.rows import Rows
from keras_bert_suite.heads import masks
from keras_bert_suite.heads.base.keras_presets import holds_task
from keras_bert_suite.heads.base.part_checks import find_direction
from keras_bert_suite.heads.base.task import Task, part_attribute
from keras_bert_suite.heads.masks.answers import find_targets, rank_tokens
from keras_bert_suite.heads.masks.masked_lm_head import add_perplexity, make_masked_lm_head
from keras_bert_suite.heads.masks.pseudo_perplexity import measure_surprise
from keras_bert_suite.masking.word_segmenters import check_saved_functions, name_segmenter
from keras_bert_suite.models.encoder import Encoder
from keras_bert_suite.runs.batches import choose_size
from keras_bert_suite.training import MaskedLMAccuracy, MaskedLMLoss


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class MaskedLM(Task, keras_hub.models.Task):
    """A text encoder that guesses masked tokens.

    `fit` and `evaluate` take texts without labels, and mask some of their tokens. So an encoder
    adapts to a domain from the domain's texts. For a corpus that does not fit in memory, use
    `PretrainingBatches` and a `Pretrainer`.

    For texts in memory, the masks of a text depend only on the seed, the epoch and the index of the
    text. An evaluation always has the masks of epoch 0. In a dataset of batches, the masks of a
    text depend only on the seed and its tokens, so they are the same in every epoch.

    `predict` takes texts that have the tokenizer's mask token, [MASK] or <mask>, instead of some
    tokens.

    `fit` and `evaluate` also take packed arrays, the inputs of the model, with labels int32 (B, P),
    and sample weights float32 (B, P), as `TokenMasker` makes them.

    An `XLNetBackbone` of two streams guesses by its query stream, and no token sees a mask. It
    learns from the batches of a `Pretrainer`, so `fit` takes no texts for it.

    Args:
        backbone: `BertBackbone`, or any KerasHub text encoder with a `token_embedding`.
        preprocessor: `SegmentPacker`, or None for packed arrays only.
        masking: dict of the arguments of `TokenMasker` other than the tokenizer, such as
            `{"unit": "word", "rate": 0.15}`. Files keep "jieba" as `word_segmenter`, and
            registered functions; others are refused.
        input_names: the names of the texts of a row; see `TextClassifier`.
        top_k: int, how many guesses `predict` and an export return for each mask.

    Inputs, a dictionary: the inputs of the backbone, int32 (B, L), and `mask_positions`, int32
    (B, P). Outputs: float (B, P, V), logits.

    Example:
    ```python
    model = MaskedLM.from_preset("path/to/checkpoint", masking={"unit": "word"})
    model.fit(texts, validation_data=(dev_texts,), epochs=3)
    model.predict("Paris is the [MASK] of France.", top_k=2)   # [[("capital", 0.97), ...]]
    ```

    Source: Devlin et al., 2018 (https://arxiv.org/abs/1810.04805), section 3.1.
    """

    global_tokens = "none"
    are_tokens = True

    masking = part_attribute("data", "masking")
    HEAD = masks.HEAD
    top_k = part_attribute("answers", "top_k")

    def __init__(
        self,
        backbone: keras_hub.models.Backbone,
        *,
        preprocessor: keras.layers.Layer | None = None,
        masking: Mapping[str, Any] | None = None,
        input_names: tuple[str, ...] | None = None,
        top_k: int = 5,
        **kwargs: Any,
    ) -> None:
        self.check_further_arguments(kwargs)
        check_integer("top_k", top_k, at_least=1)
        if not isinstance(masking, Mapping | None):
            raise ValueError(
                "masking must be a dict of arguments of TokenMasker, such as "
                f"{{'unit': 'word'}}, got {masking!r}."
            )
        # === Layers ===
        self.backbone = backbone
        self.masked_lm = make_masked_lm_head(backbone)

        # === Functional Model ===
        mask_positions = backbone.input.get("mask_positions")
        if mask_positions is None:
            mask_positions = keras.Input(shape=(None,), dtype="int32", name="mask_positions")
        encoder = Encoder.of(backbone)
        self.unused_paths = encoder.find_unused(transformed=True)
        inputs = {**backbone.input, "mask_positions": mask_positions}
        outputs = self.masked_lm(encoder.encode_tokens_at(backbone.input, mask_positions))

        # === Data and Answers ===
        # Keras saves no sets.
        masking = {
            name: sorted(value) if isinstance(value, set | frozenset) else value
            for name, value in (masking or {}).items()
        }
        if "word_segmenter" in masking:
            masking["word_segmenter"] = name_segmenter(masking["word_segmenter"])
        check_saved_functions(masking)
        check_share("masking['rate']", masking.get("rate", 1.0), positive=True)
        self.make_parts(
            preprocessor,
            masking=masking,
            direction=find_direction(backbone),
            top_k=top_k,
            input_names=input_names,
        )
        if preprocessor is not None:
            self.data.find_masker()  # A wrong argument is an error now.
        super().__init__(inputs=inputs, outputs=outputs, **kwargs)

    @property
    def takes_further_inputs(self) -> bool:  # type: ignore[override]  # Nobody sets it.
        """Whether a preset keeps the inputs of its backbone that are not made of texts."""
        return "mask_positions" in self.backbone.input

    @classmethod
    def preset_classes(cls) -> tuple[type, ...]:
        return cls, find_pretrainer()

    @classmethod
    def load_keras_preset(cls, loader: Any, load_weights: bool, **arguments: Any) -> Self:
        pretrainer_cls = find_pretrainer()
        if not holds_task(loader.preset, pretrainer_cls):
            return super().load_keras_preset(loader, load_weights, **arguments)
        pretrainer = pretrainer_cls.load_keras_preset(
            loader, load_weights, dtype=arguments.pop("dtype", None)
        )
        task = cls(pretrainer.backbone, **arguments)
        task.masked_lm.set_weights(pretrainer.masked_lm.get_weights())
        return task

    def make_loss(self) -> keras.losses.Loss:
        """The mean over the masked tokens."""
        return MaskedLMLoss()

    def make_metrics(self) -> dict[str, Any]:
        """The accuracy over the masked tokens. `perplexity` is always logged."""
        return {"weighted_metrics": [MaskedLMAccuracy(name="mlm_accuracy")]}

    def get_metrics_result(self) -> dict[str, Tensor]:
        """dict of the metrics, with `perplexity`."""
        return add_perplexity(super().get_metrics_result())

    def predict(
        self,
        x: Inputs = None,
        batch_size: int | None = None,
        steps: int | None = None,
        *,
        top_k: int | None = None,
        whole_words: bool = False,
        targets: Sequence[str] | None = None,
        **kwargs: Any,
    ) -> Any:
        """Guesses the tokens in the place of each mask, or scores words of your own there.

        >>> model.predict(["Paris is the [MASK] of France."], top_k=2)
        [[[("capital", 0.97), ("heart", 0.01)]]]
        >>> model.predict("The film was [MASK].", targets=["good", "bad"])
        [[("good", 0.21), ("bad", 0.04)]]

        Args:
            x: texts with mask tokens: a list, an array or a pandas Series, a dataset of batches of
                them, or a single str. Or packed arrays by name.
            batch_size, steps: as for `Task.predict`.
            top_k: int, how many guesses are returned for each mask. None is the task's `top_k`.
            whole_words: bool, whether to leave out the tokens that continue a word.
            targets: list of str, the only words that are guessed, all of them unless `top_k` is
                less. Each is one token; with byte pairs a space before it begins a word, " good".
                Their probabilities are those among all tokens. None for all tokens.
            **kwargs: `verbose` and `callbacks`, as in Keras.

        Returns:
            a list for each text. It has, for each mask of the text, a list of `top_k` pairs
            (token, probability), or (target, probability), the most probable first. For a single
            str, the list of this text. For packed arrays, the logits, float (N, P, V). Masks beyond
            the packer's `sequence_length` are left out, with a warning, as an export leaves them
            out.

        Raises:
            ValueError: if there is no preprocessor, or a text has no mask; or if a target is not
                one token, or another target is the same token.
        """
        if isinstance(x, str):
            kwargs.update(whole_words=whole_words, targets=targets)
            return self.predict([x], batch_size, steps, top_k=top_k, **kwargs)[0]
        if top_k is not None:
            check_integer("top_k", top_k, at_least=1)
        names: dict[int, str] | None = None
        if targets is not None:
            if whole_words:
                raise ValueError("targets are all words that are guessed. Leave out whole_words.")
            names = find_targets(self.preprocessor.tokenizer, targets)
            top_k = min(top_k or len(names), len(names))
        num_guesses = top_k or self.top_k

        def rank(logits: np.ndarray, rows: Rows) -> np.ndarray:
            if rows.is_packed:
                return logits
            tokenizer = self.preprocessor.tokenizer
            allowed = np.full(tokenizer.vocabulary_size(), names is None)
            if names is not None:
                allowed[[*names]] = True
            elif whole_words:
                allowed = ~tokenizer.find_continuations()
            return rank_tokens(logits, num_guesses, allowed)

        def decode(outputs: Any, rows: Rows) -> Any:
            return self.answers.decode(outputs, rows, names)

        return self.predict_with(decode, x, batch_size, steps, rank, **kwargs)

    def pseudo_perplexity(
        self, texts: Inputs, batch_size: int | None = None, *, whole_words: bool = False
    ) -> np.ndarray:
        """Measures how much each text surprises the model.

        Each token is masked in turn, and the model gives the probability of this token. The
        pseudo-perplexity is the exponential of the mean of -log(probability). Each token of a text
        takes a row of a batch.

        Args:
            texts: list of str. A text that is longer than `sequence_length` is cut.
            batch_size: int, 32 by default.
            whole_words: bool. True also masks the tokens that follow the token in the same word.
                Otherwise the end of a long word gives away its beginning (Kauf and Ivanova, 2023,
                https://arxiv.org/abs/2305.10588).

        Returns:
            float64 (N,), at least 1; NaN for a text without tokens.

        Raises:
            ValueError: if `batch_size` is no integer of at least 1.

        Source: Salazar et al., 2020 (https://arxiv.org/abs/1910.14659), section 2.
        """
        return measure_surprise(self, texts, choose_size(batch_size), whole_words)

    def get_config(self) -> Config:
        masking = keras.saving.serialize_keras_object(self.masking)
        return {**super().get_config(), "masking": masking}

    @classmethod
    def from_config(cls, config: Config) -> Self:
        masking = keras.saving.deserialize_keras_object(config.get("masking") or {})
        return super().from_config({**config, "masking": masking})


def find_pretrainer() -> Any:
    """The class `Pretrainer`, whose presets hold the head of this task. It imports this room."""
    return keras.saving.get_registered_object("keras_bert_suite>Pretrainer")
