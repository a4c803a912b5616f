"""Batches whose rows continue the rows of the batch before."""

from typing import Any

import grain
import keras
import keras_hub
import numpy as np

from keras_bert_suite.argument_checks import check_integer
from keras_bert_suite.corpus.token_corpus import TokenCorpus
from keras_bert_suite.data.row_orders import find_batch
from keras_bert_suite.models.encoder import Encoder
from keras_bert_suite.pretraining.pretraining_batches import check_vocabulary, name_arrays
from keras_bert_suite.pretraining.token_ring import TokenRing


class LaneBatches(grain.MapDataset):
    """A Grain dataset of batches for a left-to-right model that remembers the rows before.

    The documents of a corpus, with [SEP] behind each, are one ring of tokens. It is cut into as
    many lanes as a batch has rows. Row i of a batch has the next L tokens of lane i, so it
    continues row i of the batch before it. Each token predicts the next one, also the last of its
    row. Rows have no other special tokens and no padding.

    An epoch is as many batches as fit into a lane. Each epoch cuts the ring at another token.
    Element i is a pure function of the arguments and i, as those of `PretrainingBatches` are.

    Args:
        corpus: `TokenCorpus`. Memory holds 8 bytes for each document.
        tokenizer: tokenizer of the corpus.
        sequence_length: int, L.
        batch_size: int, B, the number of lanes.
        seed: int, not negative.

    Raises:
        ValueError: if an argument is out of its range, the corpus has another vocabulary, or a lane
            is shorter than a row.

    Example:
    ```python
    batches = LaneBatches(corpus, tokenizer, sequence_length=128, batch_size=16)
    backbone = XLNetBackbone(
        *sizes, attention_pattern="left_to_right", num_segments=0, memory_length=128
    )
    pretrainer = Pretrainer(backbone, next_sentence=False)
    pretrainer.compile(technique=CarriedMemory(lanes=16))
    pretrainer.fit(batches, epochs=10)
    ```

    Source: Dai et al., 2019, Transformer-XL (https://arxiv.org/abs/1901.02860), section 3.2, and
    kimiyoung/transformer-xl, data_utils.py, `LMOrderedIterator`.
    """

    def __init__(
        self,
        corpus: TokenCorpus,
        tokenizer: keras_hub.tokenizers.Tokenizer,
        sequence_length: int,
        batch_size: int,
        seed: int = 0,
    ) -> None:
        super().__init__()
        check_integer("sequence_length", sequence_length, at_least=1)
        check_vocabulary(corpus, tokenizer)
        separator = tokenizer.end_token_id
        self._ring = TokenRing(corpus, separator, batch_size, sequence_length, seed)
        self._sequence_length = sequence_length
        self.batch_size = batch_size

    def __len__(self) -> int:
        return self._ring.lane_length // self._sequence_length

    def __getitem__(self, index: Any) -> Any:
        """One batch.

        Returns:
            `(x, y, sample_weight)`, NumPy arrays in dicts.
            x: `token_ids`, `segment_ids` (0), `padding_mask` (1), `mask_positions` (0 to L - 1)
            int32 (B, L); `continues` int32 (B, 1), 0 in the first batch of an epoch, otherwise 1.
            y: `mlm` int32 (B, L), the tokens behind these. sample_weight: `mlm` float32 (B, L), 1.
        """
        if isinstance(index, slice):
            return self.slice(index)
        epoch, batch = find_batch(index, len(self))
        shape = self.batch_size, self._sequence_length
        places = self._ring.cut(epoch) + batch * shape[1]
        rows = self._ring.read(places, np.full(shape[0], shape[1] + 1))
        token_ids = rows["token_ids"].reshape(shape[0], -1)
        ones = np.ones(shape, "int32")
        return name_arrays(
            {
                "token_ids": token_ids[:, :-1],
                "segment_ids": np.zeros_like(ones),
                "padding_mask": ones,
                "mask_positions": ones * np.arange(shape[1], dtype="int32"),
                "continues": np.full((shape[0], 1), batch > 0, "int32"),
                "mask_ids": token_ids[:, 1:],
                "mask_weights": ones.astype("float32"),
            }
        )

    def check_task(self, task: keras.Model) -> None:
        """Raises a ValueError if the tokens of a task see those that they predict."""
        pattern = Encoder.of(task.backbone).attention_pattern
        if pattern != "left_to_right":
            raise ValueError(
                "With LaneBatches each token predicts the next one. The backbone needs "
                f"attention_pattern='left_to_right', got {pattern!r}."
            )
