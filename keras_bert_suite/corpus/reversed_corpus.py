"""A corpus that is read from its end."""

import numpy as np

from keras_bert_suite.corpus.token_corpus import TokenCorpus


class ReversedCorpus(TokenCorpus):
    """A corpus whose tokens, sentences and documents are in the reverse order.

    ```python
    corpus = TokenCorpus.from_documents([[[7, 8], [9]], [[5, 6]]])
    ReversedCorpus(corpus).tokens(0)  # array([6, 5])
    ReversedCorpus(corpus).tokens(1)  # array([9, 8, 7])
    ```

    Args:
        corpus: `TokenCorpus`. Its lengths and tokens are read when they are needed.
    """

    def __init__(self, corpus: TokenCorpus) -> None:
        super().__init__(corpus.shard_documents[::-1], corpus.shard_sentences[::-1])
        self.vocabulary = corpus.vocabulary
        self._corpus = corpus

    def read_lengths(self, shard: int) -> tuple[np.ndarray, np.ndarray]:
        lengths, counts = self._corpus.read_lengths(self.num_shards - 1 - shard)
        return lengths[::-1], counts[::-1]

    def tokens(self, document: int) -> np.ndarray:
        return self._corpus.tokens(self.num_documents - 1 - document)[::-1]
