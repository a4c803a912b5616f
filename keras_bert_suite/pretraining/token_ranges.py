"""Reads ranges of tokens from a corpus."""

import numpy as np


class TokenRanges:
    """Reads tokens of some documents by their number, counted from the first of these tokens.

    Args:
        corpus: `TokenCorpus`.
        documents: int64 (D,), the number of each document in the corpus.
        document_begins: int64 (D + 1,), the tokens before each document, then all tokens.
        separator_id: int, the id to put between the tokens of two documents.
    """

    def __init__(self, corpus, documents, document_begins, separator_id):
        self._corpus = corpus
        self._documents = documents
        self._document_begins = document_begins
        self._separator = np.array([separator_id], "int32")

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
            tokens = self._read(document)[begin : begin + length]
            while document < last:
                length -= len(tokens)
                document += 1
                pieces += tokens, self._separator
                tokens = self._read(document)[:length]
            pieces.append(tokens)
        lengths = (lengths + last_documents - documents).astype("int32")
        ends = np.cumsum(lengths, dtype="int32")
        return np.concatenate(pieces), ends - lengths, lengths

    def _read(self, document):
        return self._corpus.tokens(int(self._documents[document]))
