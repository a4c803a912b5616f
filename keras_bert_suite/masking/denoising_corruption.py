"""BART's pretraining: noises change a text, and a decoder writes the text as it was."""

import warnings
from collections.abc import Callable, Sequence

import keras
import numpy as np

from keras_bert_suite.argument_checks import check_choice, with_article
from keras_bert_suite.masking.corruption import Corruption, Draw
from keras_bert_suite.masking.maskable_units import MaskVocabulary, UnitFinder
from keras_bert_suite.masking.noises import Noise, SentencePermutation, TextInfilling
from keras_bert_suite.masking.ragged_rows import RaggedRows
from keras_bert_suite.masking.word_segmenters import find_segmenter, name_segmenter
from keras_bert_suite.tokenizers.text_tokenizer import TextTokenizer

#: The noises of the published run, see facebookresearch/fairseq#1899.
BART_NOISES = (SentencePermutation(1.0), TextInfilling(0.3, mean_length=3.5, random_token_rate=0.1))

UNITS = ("token", "word")


class DenoisingCorruption(Corruption):
    """Changes texts by noises. A decoder learns to write the texts as they were.

    The noises are applied in their order. fairseq's order is sentences, spans, insertions,
    rotation. The source is the changed text. The target is the whole text: the decoder reads it
    from the start token on, and writes it up to the end token.

    ```python
    corruption = DenoisingCorruption(tokenizer)  # as BART
    corruption = DenoisingCorruption(tokenizer, [TextInfilling(0.35), DocumentRotation(0.5)])
    batches = PretrainingBatches(corpus, corruption, 128, batch_size=32, mode="doc_sentences")
    backbone = BertEncoderDecoder.from_backbones(bert, bert)
    Seq2SeqPretrainer(backbone, preprocessor=packer).fit(batches)
    ```

    Args:
        tokenizer: a tokenizer of this package whose vocabulary has the mask token.
        noises: `Noise`s; None for those of the published BART: all sentences are permuted, and
            spans are filled in with a rate of 0.3. An empty list teaches to copy.
        unit: "token" or "word", what the rates and the lengths of noises count. Words are those of
            `TokenMasker`.
        word_segmenter: as for `TokenMasker`, for words of Chinese characters.
        starts_with_end: bool, whether the decoder reads the last token of a row first, and writes
            the whole row, as that of BART: `</s> <s> a b` to `<s> a b </s>`.
        seed, dynamic: as for `Corruption`.

    Random tokens are no special tokens and no unused tokens. fairseq draws from the whole
    vocabulary except the first token.

    Arrays: the packed sources, int32 (B, L); `decoder_token_ids` and `decoder_padding_mask`, int32
    (B, T), T = L - 1, or L with `starts_with_end`; labels of an output `mlm`.

    Source: Lewis et al., 2020 (https://arxiv.org/abs/1910.13461), and fairseq,
    `denoising_dataset.py`.
    """

    labels = {"mlm": ("target_ids", "target_weights")}

    def __init__(
        self,
        tokenizer: TextTokenizer,
        noises: Sequence[Noise] | None = None,
        unit: str = "token",
        word_segmenter: str | Callable[[str], list[str]] | None = None,
        starts_with_end: bool = False,
        seed: int = 0,
        dynamic: bool = True,
    ) -> None:
        super().__init__(tokenizer, seed, dynamic)
        if isinstance(noises, Noise):
            raise ValueError(f"noises must be a list of noises, got {noises!r}. Pass [{noises!r}].")
        noises = BART_NOISES if noises is None else tuple(noises)
        for noise in noises:
            if not isinstance(noise, Noise):
                raise ValueError(
                    "noises must be objects such as TextInfilling(0.3), got "
                    f"{with_article(noise)}, {noise!r}."
                )
        check_choice("unit", unit, UNITS)
        if word_segmenter is not None and unit == "token":
            raise ValueError('unit="token" has no use for word_segmenter; choose unit="word".')
        if word_segmenter is not None and not tokenizer.has_cjk_pieces:
            raise ValueError(
                f"word_segmenter joins tokens that are one Chinese character, and "
                f"{with_article(tokenizer)} has none. Leave the segmenter out."
            )
        self.noises = noises
        self.unit = unit
        self.starts_with_end = starts_with_end
        self._vocabulary = MaskVocabulary(tokenizer, ordinary_only=True)
        self._units = UnitFinder(self._vocabulary, find_segmenter(name_segmenter(word_segmenter)))

    def corrupt(self, rows: RaggedRows, draw: Draw) -> tuple[RaggedRows, RaggedRows]:
        """Args, Returns: as for `Corruption.corrupt`."""
        source = rows.change(word_starts=self._find_word_starts(rows))
        for noise in self.noises:
            source = noise.apply(source, draw, self._vocabulary)
        return source, self._make_target(rows)

    def _make_target(self, rows: RaggedRows) -> RaggedRows:
        """What the decoder reads: marks and the text; and writes: the same from the second on."""
        start, end = self.tokenizer.start_token_id, self.tokenizer.end_token_id
        before, after = [start], [end]
        if self.starts_with_end and self.tokenizer.summary_place == "first":
            before = [end, start]
        elif self.starts_with_end:  # A row of mBART ends with its language.
            after = [end, start]
        whole = RaggedRows({}, rows.lengths + len(before) + len(after))
        left = whole.lengths[whole.numbers] - whole.places
        ids = np.zeros(len(left), "int32")
        for place, mark in enumerate(before):
            ids[whole.places == place] = mark
        for place, mark in enumerate(after):
            ids[left == len(after) - place] = mark
        ids[(whole.places >= len(before)) & (left > len(after))] = rows["token_ids"]
        read = ids[left > 1]
        arrays = {"decoder_token_ids": read, "decoder_padding_mask": np.ones_like(read)}
        return RaggedRows({**arrays, "target_ids": ids[whole.places > 0]}, whole.lengths - 1)

    def count_target(self, sequence_length: int) -> int:
        """int, T: a row without its first token, or the whole row."""
        return sequence_length - 1 + self.starts_with_end

    def check_documents(self, num_documents: int, num_single: int) -> None:
        """Warns if most documents have one sentence, so that there are none to permute.

        Raises a ValueError if nothing else would be changed, so that a decoder learns to copy.
        """
        permute = [isinstance(noise, SentencePermutation) and noise.rate for noise in self.noises]
        if not any(permute) or 2 * num_single < num_documents:
            return
        message = (
            f"{num_single:,} of {num_documents:,} documents have a single sentence, of which "
            "SentencePermutation changes nothing. Use mode='full_sentences', whose rows go on in "
            "the next document, or prepare the corpus with several sentences in a document."
        )
        if num_single == num_documents and all(permute):
            raise ValueError(f"A decoder would learn to copy: {message}")
        warnings.warn(message, stacklevel=3)

    def check_task(self, task: keras.Model) -> None:
        """Raises a ValueError if the decoder of a task begins with another token or position."""
        inputs = getattr(task, "input", None)
        if isinstance(inputs, dict) and "decoder_positions" in inputs:
            raise ValueError(
                "With a DenoisingCorruption a decoder reads whole texts, and this "
                f"{type(task).__name__} has decoder_positions=True, for the segments of MASS. Pass "
                "decoder_positions=False, to its constructor or to from_preset."
            )
        decoder = getattr(task, "decoder", None)
        wanted = getattr(decoder, "starts_with_end", self.starts_with_end)
        if wanted != self.starts_with_end:
            raise ValueError(
                f"The decoder of this {type(task).__name__} needs rows with starts_with_end="
                f"{wanted}, got a DenoisingCorruption with {self.starts_with_end}. Pass "
                f"starts_with_end={wanted} to the DenoisingCorruption."
            )

    def _find_word_starts(self, rows: RaggedRows) -> np.ndarray:
        """bool (T,), the first tokens of words, or all tokens."""
        if self.unit == "token":
            return np.ones(len(rows["token_ids"]), bool)
        padded = rows.change(is_token=np.ones(len(rows["token_ids"]))).pad(rows.lengths.max())
        token_ids = padded["token_ids"]
        eligible = self._vocabulary.eligible[token_ids] & (padded["is_token"] != 0)
        words, _ = self._units.find(token_ids, eligible)
        return words[rows.numbers, rows.places]
