"""A tokenized corpus: documents of sentences of token ids."""

from collections.abc import Callable, Iterable, Sequence
from typing import Self

import numpy as np


class TokenCorpus:
    """The documents that pretraining instances are cut from.

    Lengths are in memory. Tokens are read when they are needed. D documents, S sentences.

    Args:
        sentence_lengths: int32 (S,), how many tokens each sentence has, at least 1, document
            after document.
        document_starts: int64 (D + 1,), the first sentence of each document, then S. A
            document has at least one sentence.
        read_tokens: function from a document, int in [0, D), to the int32 ids of its
            sentences one after the other.

    Example:
    ```python
    corpus = TokenCorpus.from_documents([[[7, 8], [9]], [[5, 6]]])
    corpus.tokens(0)         # array([7, 8, 9])
    corpus.sentences(0)      # array([2, 1]), their lengths
    ```
    """

    def __init__(
        self,
        sentence_lengths: np.ndarray,
        document_starts: np.ndarray,
        read_tokens: Callable[[int], np.ndarray],
    ) -> None:
        self.sentence_lengths = sentence_lengths
        self.document_starts = document_starts
        self._read_tokens = read_tokens

    @classmethod
    def from_documents(cls, documents: Iterable[Sequence[Sequence[int]]]) -> Self:
        """Makes a corpus in memory. A document is a list of sentences, a sentence a list of ids.

        Empty sentences are left out, and so are documents that have empty sentences only.
        """
        documents = [[sentence for sentence in document if len(sentence)] for document in documents]
        documents = [document for document in documents if document]
        lengths = [len(sentence) for document in documents for sentence in document]
        tokens = [np.concatenate(document).astype("int32") for document in documents]
        starts = np.cumsum([0, *map(len, documents)])
        return cls(np.array(lengths, "int32"), starts, tokens.__getitem__)

    @property
    def num_documents(self) -> int:
        """int, D."""
        return len(self.document_starts) - 1

    def sentences(self, document: int) -> np.ndarray:
        """int32, the lengths of a document's sentences."""
        first, end = self.document_starts[document : document + 2]
        return self.sentence_lengths[first:end]

    def tokens(self, document: int) -> np.ndarray:
        """int32, the ids of a document's sentences one after the other."""
        return self._read_tokens(document)

    def count_tokens(self, vocabulary_size: int) -> np.ndarray:
        """Counts each id in the whole corpus, which it reads once. int64 (V,)."""
        counts = np.zeros(vocabulary_size, "int64")
        # Many documents at a time, because each count makes an array (V,).
        group, size = [], 0
        for document in range(self.num_documents):
            group.append(self.tokens(document))
            size += len(group[-1])
            if size > 8 * vocabulary_size or document + 1 == self.num_documents:
                counts += np.bincount(np.concatenate(group), minlength=vocabulary_size)
                group, size = [], 0
        return counts
