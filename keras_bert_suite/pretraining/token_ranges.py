"""Reads ranges of tokens of a corpus."""

import numpy as np

from keras_bert_suite.masking.ragged_rows import RaggedRows


class TokenRanges:
    """Reads tokens of some documents by their number, counted from the first of these tokens.

    Args:
        corpus: `TokenCorpus`.
        documents: int64 (D,), the number of each document in the corpus.
        document_begins: int64 (D + 1,), the tokens before each document, then all tokens.
        separator_id: int, the id to put between the tokens of two documents.
        sentence_begins: int64 (S + 1,), the tokens before each sentence, then all tokens; or None.
    """

    def __init__(self, corpus, documents, document_begins, separator_id, sentence_begins=None):
        self._corpus = corpus
        self._documents = documents
        self._document_begins = document_begins
        self._separator = np.array([separator_id], "int32")
        self._sentence_begins = sentence_begins

    def read(self, starts, lengths):
        """Reads B ranges, by the number of the first token of each, and how many tokens it has.

        The result is `RaggedRows` of `token_ids` int32, separators included, and with
        `sentence_begins` also of `sentences` int32, see `Corruption.corrupt`.
        """
        documents = np.searchsorted(self._document_begins, starts, side="right") - 1
        begins = starts - self._document_begins[documents]
        last_documents = np.searchsorted(self._document_begins, starts + lengths) - 1
        parts = []
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
                parts += tokens, self._separator
                tokens = self._read(document)[:length]
            parts.append(tokens)
        lengths = (lengths + last_documents - documents).astype("int32")
        rows = RaggedRows({"token_ids": np.concatenate(parts)}, lengths)
        if self._sentence_begins is None:
            return rows
        return rows.change(sentences=self._number_sentences(rows, starts, parts))

    def _number_sentences(self, rows, starts, parts):
        """int32 (T,), the number of each token's sentence in its row, from 0."""
        is_separator = np.concatenate(
            [np.full(len(part), part is self._separator) for part in parts]
        )
        # A separator has the place of the token before it.
        before = np.cumsum(is_separator)
        first = rows.starts
        before -= np.repeat(before[first], rows.lengths)
        tokens = np.repeat(starts, rows.lengths) + rows.places - before
        sentences = np.searchsorted(self._sentence_begins, tokens, side="right")
        return (sentences - np.repeat(sentences[first], rows.lengths)).astype("int32")

    def _read(self, document):
        return self._corpus.tokens(int(self._documents[document]))


class StreamRanges(TokenRanges):
    """The same for documents whose last token is a separator, which `document_begins` count.

    The first document follows the last one.
    """

    def read(self, starts, lengths):
        """As `TokenRanges.read`. A range may begin or end with a separator."""
        documents = np.searchsorted(self._document_begins, starts, side="right") - 1
        begins = starts - self._document_begins[documents]
        parts = []
        for document, begin, left in zip(
            documents.tolist(), begins.tolist(), lengths.tolist(), strict=True
        ):
            while left > 0:
                tokens = self._read(document)[begin : begin + left]
                parts += tokens, self._separator[: left - len(tokens)]
                left -= len(tokens) + 1
                document, begin = (document + 1) % len(self._documents), 0
        return RaggedRows({"token_ids": np.concatenate(parts)}, lengths.astype("int32"))
