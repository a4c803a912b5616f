"""The tokens of a corpus as a ring, which is cut into lanes."""

import numpy as np

from keras_bert_suite.argument_checks import check_integer
from keras_bert_suite.corpus.token_corpus import TokenCorpus
from keras_bert_suite.masking.ragged_rows import RaggedRows
from keras_bert_suite.pretraining.token_ranges import StreamRanges


class TokenRing:
    """The documents of a corpus, with a separator behind each, as one ring of T tokens.

    It is cut into as many lanes as a batch has rows. Each epoch cuts it at another token.

    Args:
        corpus: `TokenCorpus`. Memory holds 8 bytes for each document.
        separator_id: int.
        batch_size: int, B, the number of lanes.
        row_length: int, the tokens of the corpus in a row. No lane may be shorter.
        seed: int, not negative.
        keeps_sentences: bool, whether there are `sentence_begins`, 16 bytes for each sentence.

    Attributes:
        lane_length: int, the tokens of a lane.
        sentence_begins: int64 (2 S + 1,), the tokens before each sentence of two rounds of the
            ring, then 2 T. A separator belongs to the sentence before it.

    Raises:
        ValueError: if an argument is out of its range, or a lane is shorter than a row.
    """

    def __init__(
        self,
        corpus: TokenCorpus,
        separator_id: int,
        batch_size: int,
        row_length: int,
        seed: int,
        keeps_sentences: bool = False,
    ) -> None:
        check_integer("batch_size", batch_size, at_least=1)
        check_integer("seed", seed)
        documents, sentences = [np.zeros(0, "int64")], [np.zeros(0, "int64")]
        for number in range(corpus.num_blocks):
            block = corpus.read_block(number)
            lengths = block.sentence_lengths.astype("int64")
            lengths[block.document_starts[1:] - 1] += 1
            documents.append(np.add.reduceat(lengths, block.document_starts[:-1]))
            sentences.append(lengths if keeps_sentences else lengths[:0])
        begins = np.append(0, np.cumsum(np.concatenate(documents)))
        self.sentence_begins = np.append(0, np.cumsum(np.concatenate(sentences * 2)))
        self._num_tokens = int(begins[-1])
        self.lane_length = self._num_tokens // batch_size
        if self.lane_length < row_length:
            raise ValueError(
                f"batch_size={batch_size} makes lanes of {self.lane_length} tokens, which are "
                f"shorter than a row of {row_length} tokens. Use a smaller batch, shorter rows, or "
                "a larger corpus."
            )
        self._ranges = StreamRanges(corpus, np.arange(corpus.num_documents), begins, separator_id)
        self._batch_size = batch_size
        self._seed = seed

    def cut(self, epoch: int) -> np.ndarray:
        """int64 (B,), the first token of each lane, from 0 to 2 T."""
        offset = np.random.default_rng([self._seed, epoch]).integers(self._num_tokens)
        return offset + np.arange(self._batch_size) * self.lane_length

    def read(self, starts: np.ndarray, lengths: np.ndarray) -> RaggedRows:
        """`RaggedRows` of `token_ids` int32: some tokens, from each of some tokens on."""
        return self._ranges.read(starts % self._num_tokens, lengths)
