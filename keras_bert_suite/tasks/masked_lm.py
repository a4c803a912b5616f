"""Guesses masked tokens. The encoder is fine-tuned on plain texts."""

import dataclasses
import zlib
from collections.abc import Mapping
from typing import Any, Self

import keras
import keras_hub
import numpy as np
from keras import ops

from keras_bert_suite.annotations import Config, Inputs, Labels, Tensor
from keras_bert_suite.argument_checks import check_integer
from keras_bert_suite.data.rows import Rows, leave_tensorflow
from keras_bert_suite.models import BertBackbone
from keras_bert_suite.preprocessing import SegmentPacker, TokenMasker
from keras_bert_suite.tasks.base.idle_weights import (
    IdleWeights,
    encode_tokens,
    find_idle,
)
from keras_bert_suite.tasks.base.predicting import predict
from keras_bert_suite.tasks.base.preset_task import holds_task
from keras_bert_suite.tasks.base.row_task import RowTask
from keras_bert_suite.tasks.base.text_packing import check_can_pack
from keras_bert_suite.tasks.mask_filling import (
    check_can_read,
    name_guesses,
    pack_masked_texts,
    rank_tokens,
    score_texts,
)
from keras_bert_suite.tasks.pretrainer import Pretrainer
from keras_bert_suite.tasks.pretraining_heads import add_perplexity, make_masked_lm_head
from keras_bert_suite.tokenizers.text_inputs import canonicalize_texts
from keras_bert_suite.training import MaskedLMAccuracy, MaskedLMLoss


@dataclasses.dataclass(frozen=True)
class NumberedRows(Rows):
    """Rows with their index as the label. A batch also has its epoch."""

    def batch(self, rows, epoch):
        x, numbers, weights = super().batch(rows, epoch)
        return x, (numbers, np.full(len(numbers), epoch)), weights


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class MaskedLM(IdleWeights, RowTask, keras_hub.models.Task):
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

    Args:
        backbone: `BertBackbone`, or any KerasHub text encoder with a `token_embedding`.
        preprocessor: `SegmentPacker`, or None for packed arrays only.
        masking: dict of the arguments of `TokenMasker` other than the tokenizer, such as
            `{"unit": "word", "rate": 0.15}`.
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

    backbone_cls = BertBackbone
    preprocessor_cls = SegmentPacker
    global_tokens = "none"
    needs_labels = False
    # The masker numbers the rows of a batch in Python.
    preprocesses_in_graphs = False
    needs_segment_packer = True

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
        # === Layers ===
        self.backbone = backbone
        self.preprocessor = preprocessor
        self.masked_lm = make_masked_lm_head(backbone)

        # === Functional Model ===
        mask_positions = keras.Input(shape=(None,), dtype="int32", name="mask_positions")
        self.idle_paths = find_idle(backbone, transformed=True)
        super().__init__(
            inputs={**backbone.input, "mask_positions": mask_positions},
            outputs=self.masked_lm(encode_tokens(backbone), mask_positions),
            **kwargs,
        )

        # === Config ===
        # Keras saves no sets.
        self.masking = {
            name: sorted(value) if isinstance(value, set | frozenset) else value
            for name, value in (masking or {}).items()
        }
        self.input_names = input_names and tuple(input_names)
        self.top_k = top_k
        self._masker: TokenMasker | None = None
        if preprocessor is not None:
            check_can_pack(self)
            self._find_masker()  # A wrong argument is an error now.

    @classmethod
    def preset_classes(cls) -> tuple[type, ...]:
        return cls, Pretrainer

    @classmethod
    def load_keras_preset(cls, loader: Any, load_weights: bool, **arguments: Any) -> Self:
        if not holds_task(loader.preset, Pretrainer):
            return super().load_keras_preset(loader, load_weights, **arguments)
        pretrainer = Pretrainer.load_keras_preset(
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
        **kwargs: Any,
    ) -> Any:
        """Guesses the tokens in the place of each mask.

        >>> model.predict(["Paris is the [MASK] of France."], top_k=2)
        [[[("capital", 0.97), ("heart", 0.01)]]]

        Args:
            x: texts with mask tokens: a list, an array or a pandas Series, a dataset of batches of
                them, or a single str. Or packed arrays by name.
            batch_size, steps: as for `RowTask.predict`.
            top_k: int, how many guesses are returned for each mask. None is the task's `top_k`.
            whole_words: bool, whether to leave out the tokens that continue a word.
            **kwargs: `verbose` and `callbacks`, as in Keras.

        Returns:
            a list for each text. It has, for each mask of the text, a list of `top_k` pairs
            (token, probability), the most probable first. For a single str, the list of this text.
            For packed arrays, the logits, float (N, P, V).

        Raises:
            ValueError: if there is no preprocessor, a text has no mask, or a mask is beyond the
                packer's `sequence_length`.
        """
        if isinstance(x, str):
            return self.predict(
                [x], batch_size, steps, top_k=top_k, whole_words=whole_words, **kwargs
            )[0]
        top_k = self.top_k if top_k is None else top_k
        check_integer("top_k", top_k, at_least=1)
        allowed = None
        if whole_words and self.preprocessor is not None:
            allowed = ~self.preprocessor.tokenizer.find_continuations()

        def rank(logits: np.ndarray, rows: Rows) -> np.ndarray:
            is_text = isinstance(rows, NumberedRows)
            return rank_tokens(logits, top_k, allowed) if is_text else logits

        return predict(self, x, batch_size, steps, self.decode, condense=rank, **kwargs)

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

        Source: Salazar et al., 2020 (https://arxiv.org/abs/1910.14659), section 2.
        """
        check_can_read(self)
        return score_texts(self, texts, batch_size or 32, whole_words)

    def read_rows(self, x: Inputs, y: Labels = None, sample_weight: Labels = None) -> Rows:
        rows = super().read_rows(x, y, sample_weight)
        if isinstance(rows.inputs, dict):
            return rows
        _check_no_labels(y, sample_weight)
        return Rows(rows.inputs, np.arange(len(rows)), None, rows.input_names)

    def read_batch(self, x: Inputs, y: Labels = None, sample_weight: Labels = None) -> Rows:
        rows = super().read_batch(x, y, sample_weight)
        if isinstance(rows.inputs, dict):
            return Rows(*leave_tensorflow((rows.inputs, rows.labels, rows.weights)))
        _check_no_labels(y, sample_weight)
        texts = tuple(canonicalize_texts(np.asarray(column))[0] for column in rows.inputs)
        return Rows(texts, None, None, rows.input_names)

    def cut_windows(self, rows: Rows) -> Rows:
        if isinstance(rows.inputs, dict):
            return rows
        return NumberedRows(rows.inputs, rows.labels, None, rows.input_names)

    def preprocess(self, x: Inputs, y: Labels = None, sample_weight: Labels = None) -> Any:
        if isinstance(x, tuple):
            check_can_read(self)
            return pack_masked_texts(self, x)
        return keras.utils.pack_x_y_sample_weight(x, y, sample_weight)

    def preprocess_training(self, x: Inputs, y: Labels = None, sample_weight: Labels = None) -> Any:
        if isinstance(x, dict):
            return self.preprocess(x, y, sample_weight)
        packed = self.pack_texts(x)
        if y is None:
            # Without the padding, whose length depends on the other rows of a batch.
            rows = zip(packed["token_ids"], packed["padding_mask"], strict=True)
            numbers = [zlib.crc32(ids[mask > 0].tobytes()) for ids, mask in rows]
            epochs = np.zeros(len(numbers), "int64")
        else:
            numbers, epochs = y
        masked = self._find_masker()(packed, np.array(numbers), int(epochs[0]))
        labels, weights = masked.pop("mask_ids"), masked.pop("mask_weights")
        return masked, labels, weights

    def decode(self, outputs: Any, rows: Rows | None) -> Any:
        """Turns ranked tokens into guesses for each mask of each text."""
        if not isinstance(rows, NumberedRows):
            return outputs
        return name_guesses(self.preprocessor.tokenizer, outputs, rows.inputs)

    def serving_outputs(self, outputs: Tensor, packed: Any) -> dict[str, Tensor]:
        """The answers for masks: `probabilities` float32 (B, P, V)."""
        return {"probabilities": ops.softmax(ops.cast(outputs, "float32"))}

    def _find_masker(self):
        """The `TokenMasker` of the preprocessor's tokenizer."""
        tokenizer = self.preprocessor.tokenizer
        if self._masker is None or self._masker.tokenizer is not tokenizer:
            self._masker = TokenMasker(tokenizer, **self.masking)
        return self._masker

    def get_config(self) -> Config:
        return {
            **super().get_config(),
            "masking": keras.saving.serialize_keras_object(self.masking),
            "input_names": self.input_names and list(self.input_names),
            "top_k": self.top_k,
        }

    @classmethod
    def from_config(cls, config: Config) -> Self:
        masking = keras.saving.deserialize_keras_object(config.get("masking") or {})
        return super().from_config({**config, "masking": masking})


def _check_no_labels(y, sample_weight):
    if y is not None or sample_weight is not None:
        raise ValueError(
            "A MaskedLM makes labels from its texts, and takes no labels and no sample weights "
            "with texts. Pass the texts alone."
        )
