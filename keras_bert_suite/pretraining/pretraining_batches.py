"""Makes masked pretraining batches from a tokenized corpus while a training runs."""

import functools
from typing import Any

import grain
import keras
import numpy as np

from keras_bert_suite.argument_checks import check_integer
from keras_bert_suite.corpus.preparation_plan import describe_tokenizer, read_vocabulary
from keras_bert_suite.corpus.token_corpus import TokenCorpus
from keras_bert_suite.masking.masking_layer import MaskingLayer
from keras_bert_suite.preprocessing.packing import NUMPY, pack_segments
from keras_bert_suite.pretraining.epoch_sections import (
    EpochSections,
    SectionPlans,
    count_instances,
    divide_blocks,
)
from keras_bert_suite.pretraining.instance_planner import PAIR_MODES, InstancePlanner

#: The blocks that are shuffled together: up to 8 million sentences, some 200 million tokens.
SHUFFLE_BLOCKS = 8

#: The arrays of a masker that are no inputs of a model.
_OF_LOSS = ("mask_ids", "mask_weights", "pair_weights")


class PretrainingBatches(grain.MapDataset):
    """A Grain dataset of batches for masked language modelling, with or without sentence pairs.

    Every epoch has its own instances and masks, in its own order. Element i is a pure function of
    the arguments and i. So it does not depend on threads, on processes, or on a resume at i.
    Elements past the length belong to later epochs, which `repeat` reads.

    Every epoch has the same number of batches: as many as the instances of epoch 0 fill. The number
    of instances differs from epoch to epoch, by some percent with a thousand documents and by less
    with more documents. If an epoch has more instances than its batches hold, the last instances
    are left out. If it has fewer, its first instances are used again.

    With a masker of `dynamic=False` every epoch has the same instances and masks, in another order.
    `evaluate` always begins at element 0, so it always sees the same batches.

    An epoch is planned and shuffled part by part. A part is called a section. It has the instances
    of up to `shuffle_blocks` blocks of a million sentences, in a shuffled order. The blocks of a
    section come from equal parts of the corpus, so a batch mixes documents of the whole corpus. A
    corpus of up to `shuffle_blocks` blocks is one section.

    The plan of a section is made before its first batch. From the middle of a section on, a thread
    plans the next section. Each of the two plans takes 29 bytes for each instance. The lengths of
    sentences are read for a plan, and not kept.

    If there are several sections, each has a fixed number of batches. It leaves instances out or
    uses some again, as an epoch does. In a corpus of more than 32 blocks, the instances of 32
    blocks are counted, and those of the others are estimated.

    Args:
        corpus: `TokenCorpus`.
        masker: `TokenMasker`, `TokenShuffler` or `LanguageModelMixture` around one, or
            `NextTokenTargets`, or a `MaskingLayer` of your own. Rows are packed with the special
            tokens of its tokenizer. Further arrays of it reach the inputs of the model by name.
        sequence_length: int, L. All rows are padded to it.
        batch_size: int, B.
        mode: "pairs", "sop", "relations", "full_sentences" or "doc_sentences"; see
            `InstancePlanner`.
        short_seq_prob: float, how often to aim at a random shorter length.
        seed: int, not negative, the seed of the instances and of their order. The masker has a seed
            of its own for the masks.
        shuffle_blocks: int, the maximum number of blocks of the corpus that are shuffled together.
            A block takes some 40 MB. None shuffles the whole corpus.

    Raises:
        ValueError: if an argument is out of its range, the corpus was prepared with another
            vocabulary than that of the masker, an epoch does not fill a batch, or `mode` makes
            pairs and no document has two sentences.

    Example:
    ```python
    batches = PretrainingBatches(corpus, masker, sequence_length=128, batch_size=256)
    x, y, sample_weight = batches[0]
    ```
    """

    def __init__(
        self,
        corpus: TokenCorpus,
        masker: MaskingLayer,
        sequence_length: int,
        batch_size: int,
        mode: str = "pairs",
        short_seq_prob: float = 0.1,
        seed: int = 0,
        shuffle_blocks: int | None = SHUFFLE_BLOCKS,
    ) -> None:
        super().__init__()
        check_integer("batch_size", batch_size, at_least=1)
        if shuffle_blocks is not None:
            check_integer("shuffle_blocks", shuffle_blocks, at_least=1)
        tokenizer = masker.tokenizer
        _check_vocabulary(corpus, tokenizer)
        planner = InstancePlanner(
            corpus, sequence_length, mode, short_seq_prob, seed, tokenizer.num_separators
        )
        self._corpus = corpus
        self._masker = masker
        self.batch_size = batch_size
        self._packing: dict[str, Any] = {
            "template": tokenizer.row_template,
            "sequence_length": sequence_length,
            "allowed_lengths": (sequence_length,),
        }
        num_sections = -(-corpus.num_blocks // (shuffle_blocks or corpus.num_blocks))
        plan_section = functools.partial(_plan_section, planner, num_sections, masker.dynamic)
        self._plans = SectionPlans(plan_section)
        if num_sections == 1:
            block_counts = np.array([len(self._plans(0)[0])])
        else:
            block_counts = count_instances(planner, corpus.block_sentences)
        self._sections = EpochSections(block_counts, num_sections, batch_size, seed)
        self._num_sections = num_sections
        if not len(self):
            raise ValueError(
                f"batch_size={batch_size} is more than the {block_counts.sum()} instances of an "
                "epoch. Use a smaller batch, or a larger corpus."
            )
        if mode in PAIR_MODES:
            # A section within a long document has no instances.
            first, _, _ = self._sections.locate(0, 0)
            first_blocks = divide_blocks(corpus.num_blocks, num_sections, seed, 0)[first]
            _check_pairs(corpus, first_blocks, mode)

    def __len__(self) -> int:
        return self._sections.num_batches

    def __getitem__(self, index: Any) -> Any:
        """One batch.

        Returns:
            `(x, y, sample_weight)`, NumPy arrays in dicts:
            x: `token_ids`, `segment_ids` (not for RoBERTa), `padding_mask` int32 (B, L);
            `mask_positions` int32 (B, P); and other arrays that the masker makes.
            y: `mlm` int32 (B, P), the original tokens at `mask_positions`; with pairs also `nsp`
            int32 (B,), 0 if B follows A, 1 if not, and in mode "relations" 2 if B precedes A.
            sample_weight: `mlm` float32 (B, P), 1 for predictions and 0 in unused slots; with
            pairs also `nsp` float32 (B,), 1 where the masker does not say otherwise.
        """
        if isinstance(index, slice):
            return self.slice(index)
        epoch, section, batch, num_batches = self._locate(index)
        plan, order = self._plans(epoch * self._num_sections + section)
        if 2 * batch >= num_batches:
            # A section may have no batch. The next one that is read begins with this batch.
            next_epoch, next_section, _, _ = self._locate(index - batch + num_batches)
            self._plans.prepare(next_epoch * self._num_sections + next_section)
        numbers = np.arange(batch * self.batch_size, (batch + 1) * self.batch_size)
        rows = order[numbers % len(order)]
        ranges = TokenRanges(
            self._corpus, plan.documents, plan.document_begins, self._masker.tokenizer.end_token_id
        )
        segments = [
            ranges.read(starts, lengths)
            for starts, lengths in zip(plan.starts[rows].T, plan.lengths[rows].T, strict=True)
        ]
        packed = pack_segments(NUMPY, segments, **self._packing)
        # No two rows of an epoch have the same number, since a section has less than 2**32 rows.
        masked = self._masker(packed, row_ids=(section << 32) + rows.astype("int64"), epoch=epoch)
        labels = None if plan.labels is None else plan.labels[rows].astype("int32")
        return name_arrays(masked, labels)

    def _locate(self, index: int) -> tuple[int, int, int, int]:
        """The epoch of a batch, and the result of `EpochSections.locate`."""
        epoch, place = divmod(index, len(self))
        # With static masks all epochs have the sections of epoch 0.
        division = epoch if self._masker.dynamic else 0
        return epoch, *self._sections.locate(division, place)

    def check_task(self, task: keras.Model) -> None:
        """Raises a ValueError if a task cannot learn from the rows of the masker.

        `fit` and `evaluate` of a task call it.
        """
        if hasattr(self._masker, "check_task"):
            self._masker.check_task(task)


def name_arrays(
    masked: dict[str, np.ndarray], labels: np.ndarray | None
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Arranges the arrays of a batch of a masker as `fit` takes them, see `PretrainingBatches`.

    A masker has the labels and weights `mask_ids` and `mask_weights`; `pair_weights` float32 (B,)
    if the pairs of some rows do not count; and any inputs. A model leaves out those that it does
    not have. `labels`, int32 (B,), is None without pairs.
    """
    x = {name: array for name, array in masked.items() if name not in _OF_LOSS}
    y, sample_weight = {"mlm": masked["mask_ids"]}, {"mlm": masked["mask_weights"]}
    if labels is not None:
        y["nsp"] = labels
        sample_weight["nsp"] = masked.get("pair_weights", np.ones(len(labels), "float32"))
    return x, y, sample_weight


def _check_vocabulary(corpus, tokenizer):
    """Checks that the token ids of a corpus are those of a tokenizer."""
    if corpus.vocabulary is None:
        return
    described = describe_tokenizer(tokenizer, tokenizer.asset_contents())
    if corpus.vocabulary != read_vocabulary(described):
        raise ValueError(
            "The corpus was prepared with another vocabulary than that of the masker's "
            f"{type(tokenizer).__name__}. Take the tokenizer that keras_bert_suite.corpus."
            "read_tokenizer reads from the corpus, or prepare the corpus with this one."
        )


def _check_pairs(corpus, blocks, mode):
    """Raises a ValueError if no document of some blocks has two sentences."""
    starts = [corpus.read_block(block).document_starts for block in blocks]
    if all((np.diff(of_block) == 1).all() for of_block in starts):
        raise ValueError(
            f"mode={mode!r} makes pairs of the sentences of a document, and each document has a "
            "single sentence, so every second text would be random. Use mode='full_sentences' or "
            "'doc_sentences', or prepare the corpus with several sentences in a document. In "
            "format 'sentences' each line is a sentence, and a blank line ends a document."
        )


def _plan_section(planner, num_sections, dynamic, number):
    """The `InstancePlan` of a section, and the order in which to visit its instances.

    Sections are counted from the first section of epoch 0. An epoch has `num_sections`.
    """
    epoch, section = divmod(number, num_sections)
    planned = epoch if dynamic else 0
    blocks = divide_blocks(planner.corpus.num_blocks, num_sections, planner.seed, planned)[section]
    plan = planner.plan(planned, blocks)
    seed = [planner.seed, epoch, 0, section]
    return plan, np.random.default_rng(seed).permutation(len(plan)).astype("uint32")


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
        """Reads B ranges, by the number of the first token of each, and how many tokens it has.

        The result is a segment as `pack_segments` takes it, separators included.
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
        ends = np.cumsum(lengths, dtype="int32")
        return np.concatenate(parts), ends - lengths, lengths

    def _read(self, document):
        return self._corpus.tokens(int(self._documents[document]))
