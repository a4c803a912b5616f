"""MASS: a segment of a text is masked in the source, and a decoder writes it."""

import keras
import numpy as np

from keras_bert_suite.argument_checks import check_share
from keras_bert_suite.masking.corruption import Corruption, Draw
from keras_bert_suite.masking.maskable_units import MaskVocabulary
from keras_bert_suite.masking.ragged_rows import RaggedRows
from keras_bert_suite.masking.token_replacement import check_replacement, replace_tokens
from keras_bert_suite.tokenizers.text_tokenizer import TextTokenizer

#: How often the segment is at the beginning of a row, and at its end; else it is anywhere.
AT_START, AT_END = 0.2, 0.2


class MassCorruption(Corruption):
    """Masks one segment of each text. A decoder learns to write this segment, and nothing else.

    The segment of a row is at its beginning in 20% of the rows, at its end in 20%, and at a random
    place in the others. In the source 80% of its tokens become the mask token, 10% become a random
    token, and 10% stay. The decoder reads the token before each token that it writes, and has the
    positions that these tokens have in the text, where the start token is at 0. So the decoder of
    a later fine-tuning finds the positions that it knows.

    ```python
    batches = PretrainingBatches(
        corpus, MassCorruption(tokenizer), 128, batch_size=32, mode="doc_sentences"
    )
    pretrainer = Seq2SeqPretrainer.from_preset("path/to/bert", decoder_positions=True)
    pretrainer.fit(batches)
    ```

    Args:
        tokenizer: a tokenizer of this package whose vocabulary has the mask token.
        rate: float over 0, at most 1, the length of the segment as a share of the row, at least one
            token. The code for summaries has 0.15 by default, and the paper 0.5.
        mask_token_rate: float, the share of the segment that becomes the mask token.
        random_token_rate: float, the share that becomes a random token. The rest stays.
        seed, dynamic: as for `Corruption`.

    Arrays: the packed sources, int32 (B, L); `decoder_token_ids`, `decoder_positions` and
    `decoder_padding_mask`, int32 (B, T), T = `rate` * (L - 2); labels of an output `mlm`.

    Source: Song et al., 2019 (https://arxiv.org/abs/1905.02450), and microsoft/MASS. Places and
    lengths are those of `MASS-unsupNMT/src/trainer.py`, where all rows of a batch have one length.
    The code for summaries has a segment in each block of 64 tokens. Both have these positions:
    fairseq counts from `pad_index + 1`, and the code for summaries adds `pad_index` to the index of
    a token that is written, which is the encoder's position of the token before it. The code for
    translation with pairs masks one token more than it predicts, and is no reference.
    """

    labels = {"mlm": ("target_ids", "target_weights")}

    def __init__(
        self,
        tokenizer: TextTokenizer,
        rate: float = 0.5,
        mask_token_rate: float = 0.8,
        random_token_rate: float = 0.1,
        seed: int = 0,
        dynamic: bool = True,
    ) -> None:
        super().__init__(tokenizer, seed, dynamic)
        check_share("rate", rate, positive=True)
        check_replacement(mask_token_rate, random_token_rate, "The rest of the segment stays.")
        self.rate = rate
        self.mask_token_rate = mask_token_rate
        self.random_token_rate = random_token_rate
        self._vocabulary = MaskVocabulary(tokenizer, ordinary_only=True)

    def corrupt(self, rows: RaggedRows, draw: Draw) -> tuple[RaggedRows, RaggedRows]:
        """Args, Returns: as for `Corruption.corrupt`."""
        lengths = self._count_segment(rows.lengths)
        kinds, places = draw(2).T
        last = rows.lengths - lengths
        starts = np.select(
            [kinds < AT_START, kinds < AT_START + AT_END],
            [0, last],
            (places * (last + 1)).astype("int64"),
        )
        begins = starts[rows.numbers]
        inside = (rows.places >= begins) & (rows.places < begins + lengths[rows.numbers])
        ids = rows["token_ids"]
        fates, fillers = (
            draw(int(rows.lengths.max()))[rows.numbers, rows.places] for _ in range(2)
        )
        replaced = replace_tokens(
            ids,
            self._vocabulary.mask_token_id,
            fates,
            fillers,
            self._vocabulary.random_ids,
            self.mask_token_rate,
            self.random_token_rate,
        )
        read = np.where(rows.places == 0, self.tokenizer.start_token_id, np.roll(ids, 1))
        target = RaggedRows(
            {
                "decoder_token_ids": read,
                "decoder_positions": rows.places,  # The start token is before place 0.
                "decoder_padding_mask": np.ones_like(ids),
                "target_ids": ids,
            },
            rows.lengths,
        )
        return rows.change(token_ids=np.where(inside, replaced, ids)), target.keep(inside)

    def count_target(self, sequence_length: int) -> int:
        """int, T, the length of the longest segment."""
        return int(self._count_segment(np.array(max(1, sequence_length - 2))))

    def check_task(self, task: keras.Model) -> None:
        """Raises a ValueError if the decoder of a task would read a segment from position 0 on."""
        inputs = getattr(task, "input", None)
        if not isinstance(inputs, dict) or "decoder_positions" not in inputs:
            raise ValueError(
                "With a MassCorruption the decoder reads at the positions of a segment, and this "
                f"{type(task).__name__} has no input decoder_positions. Train a "
                "Seq2SeqPretrainer(backbone, decoder_positions=True)."
            )
        if getattr(getattr(task, "decoder", None), "starts_with_end", False):
            raise ValueError(
                f"The decoder of this {type(task).__name__} reads an end token first, and "
                "its positions are not those of a MassCorruption. Use a BertEncoderDecoder, such "
                "as Seq2SeqPretrainer.from_preset makes of a BERT, or a DenoisingCorruption."
            )

    def _count_segment(self, lengths: np.ndarray) -> np.ndarray:
        """int64, the tokens of the segments of rows. Halves are rounded to even, as by `round`."""
        return np.maximum(1, np.rint(lengths * self.rate)).astype("int64")
