"""Makes the targets of a bidirectional language model."""

import functools
import hashlib
from collections.abc import Mapping
from typing import Any

import keras
import keras_hub
import numpy as np

from keras_bert_suite.annotations import Tensor
from keras_bert_suite.argument_checks import check_integer
from keras_bert_suite.masking.masking_layer import MaskingLayer
from keras_bert_suite.tokenizers.characters.character_tokenizer import CharacterTokenizer


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class BidirectionalTargets(MaskingLayer):
    """The targets of a bidirectional language model: every token predicts both of its neighbors.

    No token is masked. The layer is called like a `TokenMasker` and takes its place, also in
    `PretrainingBatches`. An `ElmoPretrainer` learns from the batches.

    ```python
    targets = BidirectionalTargets(tokenizer)
    batches = PretrainingBatches(corpus, targets, 128, batch_size=32, mode="full_sentences")
    pretrainer = ElmoPretrainer(ElmoBackbone.from_size("tiny", 30522))
    pretrainer.fit(batches)
    ```

    Args:
        tokenizer: a tokenizer of this package. `PretrainingBatches` packs rows with it.
        max_characters: int W, with which the batches also have the characters of the tokens, for an
            `ElmoBackbone` with `characters`. None for no characters.
        dynamic: bool. False gives `PretrainingBatches` the same instances in every epoch.

    Source: Peters et al., 2018 (https://arxiv.org/abs/1802.05365), section 3.1. Rows are packed as
    for a BERT, so they begin with [CLS] and end with [SEP]. The original code cuts one long text
    into pieces of 20 tokens, and carries the states of the LSTMs from piece to piece.
    """

    labels = {
        "forward": ("next_ids", "neighbor_weights"),
        "backward": ("previous_ids", "neighbor_weights"),
    }

    def __init__(
        self,
        tokenizer: keras_hub.tokenizers.Tokenizer,
        max_characters: int | None = None,
        dynamic: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if max_characters is not None:
            check_integer("max_characters", max_characters, at_least=3)
        self.tokenizer = tokenizer
        self.max_characters = max_characters
        self.dynamic = dynamic

    def call(
        self, inputs: Mapping[str, Tensor], row_ids: Tensor = None, epoch: Tensor = 0
    ) -> dict[str, Tensor]:
        """Lists the predictions of a batch.

        Args:
            inputs, row_ids, epoch: as for `NextTokenTargets.call`.

        Returns:
            dict of `inputs` and three further arrays (B, L - 1), one entry for each pair of
            tokens side by side: `next_ids` int32, the second tokens, which the first predict
            forwards; `previous_ids` int32, the first tokens, which the second predict backwards;
            `neighbor_weights` float32, 1 for pairs of tokens. All are 0 beside padding. With
            `max_characters` also `character_ids` int32 (B, L, W).
        """
        token_ids, is_token = inputs["token_ids"], inputs["padding_mask"] != 0
        are_tokens = is_token[:, :-1] & is_token[:, 1:]
        characters = {}
        if self.max_characters is not None:
            characters = {"character_ids": self._character_table[token_ids]}
        return {
            **inputs,
            **characters,
            "next_ids": are_tokens * token_ids[:, 1:].astype("int32"),
            "previous_ids": are_tokens * token_ids[:, :-1].astype("int32"),
            "neighbor_weights": are_tokens.astype("float32"),
        }

    @functools.cached_property
    def vocabulary_sha256(self) -> str:
        """The SHA-256 of the tokens of the vocabulary, in hexadecimal."""
        return hashlib.sha256("\n".join(self.tokenizer.get_vocabulary()).encode()).hexdigest()

    def check_task(self, task: keras.Model) -> None:
        """Raises a ValueError if an `ElmoPretrainer` predicts the tokens of another vocabulary."""
        wanted = getattr(task, "vocabulary_size", None), getattr(task, "vocabulary_sha256", None)
        size = self.tokenizer.vocabulary_size()
        if wanted[0] not in (None, size) or wanted[1] not in (None, self.vocabulary_sha256):
            raise ValueError(
                f"The batches have a vocabulary of {size} tokens, and this {type(task).__name__} "
                f"predicts {'others' if wanted[0] == size else wanted[0]}. Prepare the corpus with "
                "the vocabulary with which its training began."
            )

    @functools.cached_property
    def _character_table(self) -> np.ndarray:
        """int32 (V, W), the characters of each token, as a `CharacterTokenizer` has those of words.

        A piece that continues a word is read as a word.
        """
        assert self.max_characters is not None
        characters = CharacterTokenizer(max_characters=self.max_characters)
        size = self.tokenizer.vocabulary_size()
        words = [self.tokenizer.detokenize([id]).strip() or " " for id in range(size)]
        table, _ = characters.tokenize_words(words)
        ids = ("start_token_id", "end_token_id", "pad_token_id")
        table[[getattr(self.tokenizer, id) for id in ids]] = characters.special_rows
        return table
