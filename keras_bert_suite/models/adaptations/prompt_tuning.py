"""Learned vectors before the tokens of each row."""

from typing import Any

import keras
import numpy as np
from keras import ops

from keras_bert_suite.argument_checks import check_integer, with_article
from keras_bert_suite.layers import BertEmbeddings
from keras_bert_suite.layers.adapters.adaptable import choose_policy, name_layer, scope_of
from keras_bert_suite.layers.adapters.prompt_vectors import PROMPT, PromptVectors
from keras_bert_suite.models.adaptations.adaptation import Adaptation, Made, refuse


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class PromptTuning(Adaptation):
    """Puts learned vectors before the token embeddings of each row.

    They are embedded as further tokens of the first segment, with the first positions, so the
    positions of the text begin after them, and a row may have `length` tokens fewer. The pooled
    output reads the first of them. Heads on tokens, and poolings of the states, read the text
    alone. All this is as peft has it. Of the adaptations here it trains the fewest weights, and
    learns slowest: take a rate of 0.01 or more.

    It needs attention among all tokens, and no layer that is cut to the text: BERT, RoBERTa,
    ELECTRA, DistilBERT, ALBERT, ERNIE and RoFormer.

    Args:
        length: int P, vectors.
        initial_text: str, of whose tokens the vectors begin as the embeddings. They are repeated,
            or cut, to `length`. None draws tokens of the vocabulary. It needs the tokenizer of a
            task, see `adapt`.

    Raises:
        ValueError: if `length` is not above 0, or `initial_text` is no text.

    Source: Lester et al., 2021 (https://arxiv.org/abs/2104.08691); peft for the places.
    """

    learning_rate = 1e-2

    def __init__(self, length: int = 10, initial_text: str | None = None) -> None:
        check_integer("length", length, at_least=1)
        if initial_text is not None and (
            not isinstance(initial_text, str) or not initial_text.strip()
        ):
            raise ValueError(f"initial_text must be a text or None, got {initial_text!r}.")
        self.length = length
        self.initial_text = initial_text

    @property
    def prompt_length(self) -> int:  # type: ignore[override]
        return self.length

    def find_start(self, encoder: Any, tokenizer: Any) -> dict[str, Any]:
        """The embeddings of tokens, float32 (P, E), unless the encoder reads frames."""
        self._check(encoder)
        if self.initial_text is not None:
            ids = self._read_text(encoder, tokenizer)
        elif encoder.token_embedding is None:
            return {}
        else:
            ids = keras.random.randint((self.length,), 0, encoder.vocabulary_size, dtype="int32")
        rows = ops.cast(encoder.token_embedding(ids), "float32")
        return {f"{encoder.embeddings.path}/{name_layer(PROMPT, 'adapter')}/vectors": rows}

    def _read_text(self, encoder: Any, tokenizer: Any) -> np.ndarray:
        if tokenizer is None or encoder.token_embedding is None:
            raise ValueError(
                f"initial_text={self.initial_text!r} is read by the tokenizer of a task, and there "
                "is none. Call `adapt` of a task with a preprocessor, or leave initial_text out."
            )
        ids = tokenizer.tokenize([self.initial_text])[0]
        return np.resize(np.asarray(ids, "int32"), self.length)

    def make_layers(self, encoder: Any, name: str) -> list[Made]:
        self._check(encoder)
        embeddings = encoder.embeddings
        vectors = PromptVectors(
            self.length,
            embeddings.embedding_dim,
            embeddings.initializer_range,
            dtype=choose_policy(embeddings),
            name=name_layer(PROMPT, name),
        )
        with scope_of(embeddings):
            vectors.build()
        return [(embeddings, PROMPT, vectors)]

    def _check(self, encoder: Any) -> None:
        reads = getattr(encoder, "reads_few_tokens", None)
        is_plain = isinstance(encoder.embeddings, BertEmbeddings) and reads is not None and reads()
        if not is_plain or encoder.summary_place != "first":
            raise refuse(
                self,
                encoder,
                "Its layers know the places of the text, where prompts have none. Take LoRA.",
            )
        longest = encoder.max_sequence_length
        if longest is not None and self.length >= longest:
            raise ValueError(
                f"{with_article(encoder, 'A')} has {longest} positions, of which {self.length} "
                f"prompts leave none for a text. Take a length below {longest}."
            )
