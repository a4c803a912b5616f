"""Reads ranges of tokens from a corpus."""

import numpy as np


class TokenRanges:
    """Reads tokens of a corpus by their number, counted from the first token of the corpus.

    Args:
        corpus: `TokenCorpus`.
        separator_id: int, the id to put between the tokens of two documents.
    """

    def __init__(self, corpus, separator_id):
        self._corpus = corpus
        self._separator = np.array([separator_id], "int32")
        tokens_before = np.append(0, np.cumsum(corpus.sentence_lengths, dtype="int64"))
        self._document_begins = tokens_before[corpus.document_starts]

    def read(self, starts, lengths):
        """Reads B ranges.

        Args:
            starts, lengths: int (B,), the number of the first token of each range, and how many
                tokens it has.

        Returns:
            `(ids, starts, lengths)`, int32, as `pack_segments` takes a segment: (T,), the tokens
            one after the other; (B,), where each range begins; (B,), how many ids it has,
            separators included.
        """
        documents = np.searchsorted(self._document_begins, starts, side="right") - 1
        begins = starts - self._document_begins[documents]
        last_documents = np.searchsorted(self._document_begins, starts + lengths) - 1
        pieces = []
        for document, last, begin, length in zip(
            documents.tolist(),
            last_documents.tolist(),
            begins.tolist(),
            lengths.tolist(),
            strict=True,
        ):
            tokens = self._corpus.tokens(document)[begin : begin + length]
            while document < last:
                length -= len(tokens)
                document += 1
                pieces += tokens, self._separator
                tokens = self._corpus.tokens(document)[:length]
            pieces.append(tokens)
        lengths = (lengths + last_documents - documents).astype("int32")
        ends = np.cumsum(lengths, dtype="int32")
        return np.concatenate(pieces), ends - lengths, lengths
