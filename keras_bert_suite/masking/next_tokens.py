"""Makes the targets of a left-to-right language model."""

from collections.abc import Mapping
from typing import Any

import keras
import keras_hub
import numpy as np

from keras_bert_suite.annotations import Tensor
from keras_bert_suite.masking.masking_layer import MaskingLayer
from keras_bert_suite.models.encoder import Encoder


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class NextTokenTargets(MaskingLayer):
    """The targets of a left-to-right language model: every token predicts the next one.

    No token is masked. The layer is called like a `TokenMasker` and takes its place, also in
    `PretrainingBatches`. A `Pretrainer(next_sentence=False)` learns from the batches, if its
    backbone has `attention_pattern="left_to_right"`. With another pattern a token would see the
    token that it predicts; then `fit` and `evaluate` raise an error before the first step.

    ```python
    targets = NextTokenTargets(tokenizer)
    batches = PretrainingBatches(corpus, targets, 128, batch_size=32, mode="full_sentences")
    backbone = BertBackbone.from_size("tiny", 30522, attention_pattern="left_to_right")
    pretrainer = Pretrainer(backbone, next_sentence=False)
    pretrainer.fit(batches)
    ```

    Args:
        tokenizer: a tokenizer of this package. `PretrainingBatches` packs rows with it.
        dynamic: bool. False gives `PretrainingBatches` the same instances in every epoch.

    The first token of such a model sees only itself. A classifier on it needs a pooling of all
    tokens, such as `MeanPooling`.

    Source: Radford et al., 2018, "Improving language understanding by generative pre-training".
    Rows are packed as for a BERT, so they begin with [CLS] and end with [SEP].
    """

    def __init__(
        self, tokenizer: keras_hub.tokenizers.Tokenizer, dynamic: bool = True, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.tokenizer = tokenizer
        self.dynamic = dynamic

    def call(
        self, inputs: Mapping[str, Tensor], row_ids: Tensor = None, epoch: Tensor = 0
    ) -> dict[str, Tensor]:
        """Lists the predictions of a batch.

        Args:
            inputs: dict from `SegmentPacker`: `token_ids` and `padding_mask`, int (B, L), or (L,)
                for a row without a batch. NumPy arrays or TensorFlow tensors. Other entries are
                passed on.
            row_ids, epoch: as for `TokenMasker`. Nothing is drawn, so they are not used.

        Returns:
            dict of `inputs` and three further arrays, P = L - 1: `mask_positions` int32 (B, P), the
            tokens that predict; `mask_ids` int32 (B, P), the tokens that follow them;
            `mask_weights` float32 (B, P), 1 for predictions. All three are 0 where there is no
            next token.
        """
        token_ids, is_token = inputs["token_ids"], inputs["padding_mask"] != 0
        predicts = is_token[:, :-1] & is_token[:, 1:]
        return {
            **inputs,
            "mask_positions": predicts * np.arange(predicts.shape[1], dtype="int32"),
            "mask_ids": predicts * token_ids[:, 1:].astype("int32"),
            "mask_weights": predicts.astype("float32"),
        }

    def check_task(self, task: keras.Model) -> None:
        """Raises a ValueError if a task cannot learn from these targets.

        Its tokens must not see the tokens that they predict, and its only head must be that for
        masked tokens.
        """
        backbone = task.backbone
        pattern = Encoder.of(backbone).attention_pattern
        if pattern != "left_to_right":
            raise ValueError(
                "With NextTokenTargets each token predicts the next one. The backbone needs "
                f"attention_pattern='left_to_right', got {pattern!r}."
            )
        heads = set(task.output) if isinstance(task.output, dict) else set()
        others = sorted(heads - {"mlm", "memory"})  # A memory has no loss.
        if others:
            raise ValueError(
                f"With NextTokenTargets this {type(task).__name__} must not predict "
                f"{', '.join(others)}. Use next_sentence=False and span_boundary=False."
            )
