"""Divides a corpus into documents to train on and documents to evaluate on."""

import functools
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from keras_bert_suite.argument_checks import check_share
from keras_bert_suite.corpus.token_corpus import TokenCorpus

#: Shards whose drawn documents are kept in memory. The blocks that `PretrainingBatches` shuffles
#: together have fewer shards.
SHARDS_KEPT = 256


def hold_out(corpus: TokenCorpus, share: float, seed: int = 0) -> tuple[TokenCorpus, TokenCorpus]:
    """Divides a corpus by documents. The same arguments give the same parts.

    Each document is drawn by itself, from the seed and its number. So documents that are added at
    the end do not move the others. On average `share` of the documents is held out.

    Args:
        corpus: `TokenCorpus`.
        share: float over 0 and at most 1, the share of the documents to hold out.
        seed: int, not negative.

    Returns:
        two `TokenCorpus`: the documents to train on, and the documents that are held out.

    Raises:
        ValueError: if `share` is out of its range, or either part has no document.
    """
    check_share("share", share, positive=True)

    def count_held(shard):
        documents = draw_documents(*corpus.documents_of(shard), share, seed, held=True)
        return len(documents), corpus.read_lengths(shard)[1][documents].sum()

    with ThreadPoolExecutor() as threads:
        held = np.array(list(threads.map(count_held, range(corpus.num_shards))))
    if held[:, 0].sum() in (0, corpus.num_documents):
        raise ValueError(
            f"share={share} holds {held[:, 0].sum()} of {corpus.num_documents} documents out, but "
            "both parts need at least one document. Use another share or seed. In a text file, an "
            "empty line ends a document."
        )
    trained = np.stack([corpus.shard_documents, corpus.shard_sentences], axis=1) - held
    return (
        CorpusPart(corpus, share, seed, False, *trained.T),
        CorpusPart(corpus, share, seed, True, *held.T),
    )


class CorpusPart(TokenCorpus):
    """One of the two parts of a corpus of `hold_out`, with its shards, and fewer documents.

    `held` says whether it is the part that is held out.
    """

    def __init__(
        self,
        corpus: TokenCorpus,
        share: float,
        seed: int,
        held: bool,
        shard_documents: np.ndarray,
        shard_sentences: np.ndarray,
    ) -> None:
        super().__init__(shard_documents, shard_sentences)
        self.vocabulary = corpus.vocabulary
        self._corpus = corpus
        self._drawing = share, seed, held

    def read_lengths(self, shard: int) -> tuple[np.ndarray, np.ndarray]:
        lengths, counts = self._corpus.read_lengths(shard)
        chosen = np.zeros(len(counts), bool)
        chosen[self._find_documents(shard)] = True
        return lengths[np.repeat(chosen, counts)], counts[chosen]

    def tokens(self, document: int) -> np.ndarray:
        shard, number = self.locate(document)
        first, _ = self._corpus.documents_of(shard)
        return self._corpus.tokens(first + int(self._find_documents(shard)[number]))

    def _find_documents(self, shard):
        return draw_documents(*self._corpus.documents_of(shard), *self._drawing)


@functools.lru_cache(SHARDS_KEPT)
def draw_documents(first: int, end: int, share: float, seed: int, held: bool) -> np.ndarray:
    """The documents of a part among the documents `first` to `end` - 1 of a corpus.

    It is an int32 array, sorted, counted from `first`.
    """
    # A document takes one number.
    rng = np.random.Generator(np.random.PCG64(seed).advance(first))
    return np.flatnonzero((rng.random(end - first) < share) == held).astype("int32")
