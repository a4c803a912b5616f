"""A tokenized corpus: documents of sentences of token ids."""

import abc
import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

#: A block has the documents that begin within so many consecutive sentences.
SENTENCES_PER_BLOCK = 1 << 20


@dataclasses.dataclass(frozen=True)
class CorpusBlock:
    """The lengths of consecutive documents of a corpus. D documents, S sentences.

    Attributes:
        first_document: int, the number of the first document in the corpus.
        document_starts: int64 (D + 1,), the first sentence of each document, counted from the
            first sentence of the block, then S.
        sentence_lengths: (S,), how many tokens each sentence has.
    """

    first_document: int
    document_starts: np.ndarray
    sentence_lengths: np.ndarray


class TokenCorpus(abc.ABC):
    """The documents that pretraining instances are cut from.

    A corpus is stored in shards of whole documents. Only the counts of the shards are in memory.
    Lengths and tokens are read when they are needed. A document has at least one sentence, and a
    sentence at least one token.

    A corpus is read block by block. Block k has the documents whose first sentence is one of the
    `SENTENCES_PER_BLOCK` sentences from sentence k * `SENTENCES_PER_BLOCK` on. So the blocks of a
    corpus do not depend on its shards.

    Args:
        shard_documents, shard_sentences: int, one number for each shard: how many documents
            and sentences it has.

    Attributes:
        num_shards, num_documents, num_sentences: int.
        vocabulary: the origin of the token ids of a prepared corpus; else None.

    Example:
    ```python
    corpus = TokenCorpus.from_documents([[[7, 8], [9]], [[5, 6]]])
    corpus.tokens(0)         # array([7, 8, 9])
    corpus.sentences(0)      # array([2, 1]), their lengths
    ```
    """

    vocabulary: tuple[Any, ...] | None = None

    def __init__(self, shard_documents: ArrayLike, shard_sentences: ArrayLike) -> None:
        self.shard_documents = np.asarray(shard_documents, "int64")
        self.shard_sentences = np.asarray(shard_sentences, "int64")
        # The documents, and the sentences, before each shard; then all of them.
        self._documents_before = np.append(0, np.cumsum(self.shard_documents))
        self._sentences_before = np.append(0, np.cumsum(self.shard_sentences))
        self.num_shards = len(self.shard_documents)
        self.num_documents = int(self._documents_before[-1])
        self.num_sentences = int(self._sentences_before[-1])

    @staticmethod
    def from_documents(documents: Iterable[Sequence[Sequence[int]]]) -> "MemoryCorpus":
        """Makes a corpus in memory. A document is a list of sentences, a sentence a list of ids.

        Empty sentences are left out, and so are documents that have empty sentences only.
        """
        documents = [[sentence for sentence in document if len(sentence)] for document in documents]
        return MemoryCorpus([document for document in documents if document])

    @abc.abstractmethod
    def read_lengths(self, shard: int) -> tuple[np.ndarray, np.ndarray]:
        """The lengths of the sentences of a shard, (S,), and how many each document has, (D,)."""

    @abc.abstractmethod
    def tokens(self, document: int) -> np.ndarray:
        """int32, the ids of a document's sentences one after the other."""

    @property
    def num_blocks(self) -> int:
        """int."""
        return -(-self.num_sentences // SENTENCES_PER_BLOCK)

    @property
    def block_sentences(self) -> np.ndarray:
        """int64 (K,), about how many sentences the documents of each block have.

        It is the number of sentences that the block reaches over. No document begins in a block
        within a long document, so it has 0, and its sentences count for the block in which the
        document begins.
        """
        bounds = np.minimum(
            np.arange(self.num_blocks + 1) * SENTENCES_PER_BLOCK, self.num_sentences
        )
        filled = np.flatnonzero(self._count_document_starts(bounds))
        sentences = np.zeros(self.num_blocks, "int64")
        sentences[filled] = np.diff(bounds[np.append(filled, self.num_blocks)])
        return sentences

    def _count_document_starts(self, bounds: np.ndarray) -> np.ndarray:
        """int64 (K,), at least 1 for each block in which a document begins.

        `bounds`, int64 (K + 1,), are the first sentence of each block, then all sentences.
        """
        # A shard begins with a document. Only shards that hold a whole block are looked at.
        counts = np.diff(np.searchsorted(self._sentences_before[:-1], bounds))
        blocks = np.flatnonzero(counts == 0)
        shards = np.searchsorted(self._sentences_before, bounds[blocks], side="right") - 1
        for shard in np.unique(shards).tolist():
            ends = np.cumsum(self.read_lengths(shard)[1], dtype="int64")
            starts = self._sentences_before[shard] + ends[:-1]
            inner = blocks[shards == shard]
            first, end = (np.searchsorted(starts, bounds[inner + i]) for i in (0, 1))
            counts[inner] = end - first
        return counts

    def documents_of(self, shard: int) -> tuple[int, int]:
        """The number of the first document of a shard, and of the first document after it."""
        first, end = self._documents_before[shard : shard + 2].tolist()
        return first, end

    def locate(self, document: int) -> tuple[int, int]:
        """The shard of a document, and the number of the document in the shard.

        Raises:
            IndexError: if there is no such document.
        """
        if not 0 <= document < self.num_documents:
            raise IndexError(f"document {document} of a corpus of {self.num_documents:,}")
        shard = int(np.searchsorted(self._documents_before, document, side="right")) - 1
        return shard, int(document - self._documents_before[shard])

    def sentences(self, document: int) -> np.ndarray:
        """int32, the lengths of a document's sentences."""
        shard, number = self.locate(document)
        lengths, counts = self.read_lengths(shard)
        end = int(counts[: number + 1].sum())
        return lengths[end - int(counts[number]) : end].astype("int32")

    def read_block(self, block: int) -> CorpusBlock:
        """Reads the lengths of the documents of a block.

        Args:
            block: int from 0 to `num_blocks` - 1.
        """
        # The documents of the block begin with one of these sentences.
        reach = np.array([block, block + 1]) * SENTENCES_PER_BLOCK
        first_shard = int(np.searchsorted(self._sentences_before, reach[0], side="right")) - 1
        end_shard = int(np.searchsorted(self._sentences_before[:-1], reach[1]))
        documents, counts, lengths = [], [], []
        for shard in range(first_shard, end_shard):
            shard_lengths, shard_counts = self.read_lengths(shard)
            starts = np.append(0, np.cumsum(shard_counts, dtype="int64"))
            first, end = np.searchsorted(starts[:-1], reach - self._sentences_before[shard])
            documents.append(int(self._documents_before[shard] + first))
            counts.append(shard_counts[first:end])
            lengths.append(shard_lengths[starts[first] : starts[end]])
        document_starts = np.append(0, np.cumsum(np.concatenate(counts), dtype="int64"))
        return CorpusBlock(documents[0], document_starts, np.concatenate(lengths))

    def count_tokens(self, vocabulary_size: int) -> np.ndarray:
        """Counts each id in the whole corpus, which it reads once. int64 (V,)."""
        counts = np.zeros(vocabulary_size, "int64")
        # Many documents at a time, because each count makes an array (V,).
        read, size = [], 0
        for document in range(self.num_documents):
            read.append(self.tokens(document))
            size += len(read[-1])
            if size > 8 * vocabulary_size or document + 1 == self.num_documents:
                counts += np.bincount(np.concatenate(read), minlength=vocabulary_size)
                read, size = [], 0
        return counts


class MemoryCorpus(TokenCorpus):
    """A corpus of a single shard in memory. No document is empty, and no sentence."""

    def __init__(self, documents: Sequence[Sequence[Sequence[int]]]) -> None:
        lengths = [len(sentence) for document in documents for sentence in document]
        super().__init__([len(documents)], [len(lengths)])
        self.sentence_lengths = np.array(lengths, "int32")
        self.document_starts = np.cumsum([0, *map(len, documents)])
        self._tokens = [np.concatenate(document).astype("int32") for document in documents]

    def read_lengths(self, shard: int) -> tuple[np.ndarray, np.ndarray]:
        return self.sentence_lengths, np.diff(self.document_starts)

    def tokens(self, document: int) -> np.ndarray:
        return self._tokens[document]
