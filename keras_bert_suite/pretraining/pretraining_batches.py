"""Makes masked pretraining batches from a tokenized corpus while a training runs."""

import functools
from collections.abc import Mapping
from typing import Any

import grain
import keras
import numpy as np

from keras_bert_suite.argument_checks import check_integer, with_article
from keras_bert_suite.corpus.preparation_plan import describe_tokenizer, read_vocabulary
from keras_bert_suite.corpus.token_corpus import TokenCorpus
from keras_bert_suite.data.row_orders import find_batch
from keras_bert_suite.masking import Corruption
from keras_bert_suite.masking.masking_layer import MaskingLayer
from keras_bert_suite.pretraining.epoch_sections import (
    EpochSections,
    SectionPlans,
    count_instances,
    divide_blocks,
)
from keras_bert_suite.pretraining.instance_planner import InstancePlanner
from keras_bert_suite.pretraining.objectives import CONTEXT_MODE, PAIR_MODES
from keras_bert_suite.pretraining.token_ranges import StreamRanges, TokenRanges

#: The blocks that are shuffled together: up to 8 million sentences, some 200 million tokens.
SHUFFLE_BLOCKS = 8


class PretrainingBatches(grain.MapDataset):
    """A Grain dataset of batches for a pretraining, with or without sentence pairs.

    Rows are cut from a corpus, and a masker or a corruption makes arrays of them. The arrays reach
    the model by their names: as its inputs, and as the labels of its outputs, as the `labels` of
    the masker or corruption say. A model leaves out inputs that it does not have.

    Every epoch has other instances and masks, in another order. Element i is a pure function of the
    arguments and i. So it does not depend on threads, on processes, or on a resume at i. Elements
    past the length belong to later epochs, which `repeat` reads.

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
    plans the next section. Each of the two plans takes 29 bytes for each instance, or 40 with
    contexts. The lengths of sentences are read for a plan, and kept only for a corruption, 8 bytes
    for each sentence.

    If there are several sections, each has a fixed number of batches. It leaves instances out or
    uses some again, as an epoch does. In a corpus of more than 32 blocks, the instances of 32
    blocks are counted, and the rest is estimated.

    Args:
        corpus: `TokenCorpus`.
        masker: `TokenMasker`, `TokenShuffler` or `LanguageModelMixture` around one,
            `NextTokenTargets`, `PermutationTargets`, `BidirectionalTargets`, `DenoisingCorruption`
            or `MassCorruption`, or a `MaskingLayer` or a `Corruption` of your own. Rows are packed
            with the special tokens of its tokenizer.
        sequence_length: int, L. All rows are padded to it.
        batch_size: int, B.
        mode: "pairs", "sop", "relations", "full_sentences", "doc_sentences" or, for
            `PermutationTargets`, "context_pairs"; see `InstancePlanner`. A corruption takes
            "full_sentences" or "doc_sentences".
        short_seq_prob: float, how often to aim at a random shorter length.
        seed: int, not negative, the seed of the instances and of their order. The masker or
            corruption has another seed, for its random numbers.
        shuffle_blocks: int, the maximum number of blocks of the corpus that are shuffled together.
            A block takes some 40 MB. None shuffles the whole corpus.

    Raises:
        ValueError: if an argument is out of its range, the corpus and the masker have different
            vocabularies, the masker reads no tokens, an epoch does not fill a batch, or `mode`
            makes pairs and no document has two sentences, or a corruption takes no pairs.

    Example:
    ```python
    batches = PretrainingBatches(corpus, masker, sequence_length=128, batch_size=256)
    x, y, sample_weight = batches[0]
    ```
    """

    def __init__(
        self,
        corpus: TokenCorpus,
        masker: MaskingLayer | Corruption,
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
        _check_masker(masker, corpus, mode)
        context_length = _count_context(masker, mode, sequence_length)
        planner = InstancePlanner(
            corpus,
            sequence_length,
            mode,
            short_seq_prob,
            seed,
            masker.tokenizer.num_separators,
            masker.reads_sentences,
            context_length,
        )
        self._corpus = corpus
        self._masker = masker
        self._ranges = StreamRanges if mode == CONTEXT_MODE else TokenRanges
        self.batch_size = batch_size
        self._sequence_length = sequence_length
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
        if mode in (*PAIR_MODES, "doc_sentences"):
            # A section within a long document has no instances.
            first, _, _ = self._sections.locate(0, 0)
            first_blocks = divide_blocks(corpus.num_blocks, num_sections, seed, 0)[first]
            num_documents, num_single = _count_documents(corpus, first_blocks)
            if mode == "doc_sentences":
                masker.check_documents(num_documents, num_single)
            elif num_single == num_documents:
                _refuse_pairs(mode)

    def __len__(self) -> int:
        return self._sections.num_batches

    def __getitem__(self, index: Any) -> Any:
        """One batch.

        Returns:
            `(x, y, sample_weight)`, NumPy arrays in dicts. With a `TokenMasker`:
            x: `token_ids`, `segment_ids` (not for RoBERTa), `padding_mask` int32 (B, L);
            `mask_positions` int32 (B, P).
            y: `mlm` int32 (B, P), the original tokens at `mask_positions`; with pairs also `nsp`
            int32 (B,), 0 if B follows A, 1 if not, and in mode "relations" 2 if B precedes A.
            sample_weight: `mlm` float32 (B, P), 1 for predictions and 0 in unused slots; with
            pairs also `nsp` float32 (B,), 1 where the masker does not say otherwise.
            With another masker or a corruption, its arrays by its names.
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
        ranges = self._ranges(
            self._corpus,
            plan.documents,
            plan.document_begins,
            self._masker.separator_id,
            plan.sentence_begins,
        )
        texts = [
            ranges.read(starts, lengths)
            for starts, lengths in zip(plan.starts[rows].T, plan.lengths[rows].T, strict=True)
        ]
        # No two rows of an epoch have the same number, since a section has less than 2**32 rows.
        row_ids = (section << 32) + rows.astype("int64")
        arrays = self._masker.make_arrays(texts, self._sequence_length, row_ids, epoch)
        if plan.labels is not None:
            arrays = {**arrays, "pair_labels": plan.labels[rows].astype("int32")}
        return name_arrays(arrays, self._masker.labels)

    def _locate(self, index: int) -> tuple[int, int, int, int]:
        """The epoch of a batch, and the result of `EpochSections.locate`."""
        epoch, place = find_batch(index, len(self))
        # With static masks all epochs have the sections of epoch 0.
        division = epoch if self._masker.dynamic else 0
        return epoch, *self._sections.locate(division, place)

    def check_task(self, task: keras.Model) -> None:
        """Raises a ValueError if a task cannot learn from the rows of the masker or corruption.

        `fit` and `evaluate` of a task call it.
        """
        self._masker.check_task(task)


def name_arrays(
    arrays: Mapping[str, np.ndarray],
    labels: Mapping[str, tuple[str, str]] = MaskingLayer.labels,
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Arranges the arrays of a batch as `fit` takes them: (inputs, labels, weights) by name.

    `labels` come from a masker or a corruption. Outputs whose labels are not among the arrays are
    left out.
    """
    of_loss = {name for names in labels.values() for name in names}
    x = {name: array for name, array in arrays.items() if name not in of_loss}
    y = {output: arrays[name] for output, (name, _) in labels.items() if name in arrays}
    sample_weight = {
        output: arrays.get(labels[output][1], np.ones(array.shape, "float32"))
        for output, array in y.items()
    }
    return x, y, sample_weight


def check_vocabulary(corpus, tokenizer):
    """Checks that the token ids of a corpus come from a tokenizer."""
    if corpus.vocabulary is None:
        return
    described = describe_tokenizer(tokenizer, tokenizer.asset_contents())
    if corpus.vocabulary != read_vocabulary(described):
        raise ValueError(
            "The corpus was prepared with another vocabulary than that of the masker's "
            f"{type(tokenizer).__name__}. Take the tokenizer that keras_bert_suite.corpus."
            "read_tokenizer reads from the corpus, or prepare the corpus with this one."
        )


def _check_masker(masker, corpus, mode):
    """Raises a ValueError if a masker cannot read the tokens of a corpus, or pairs of texts."""
    if masker.tokenizer is None:
        raise ValueError(
            f"PretrainingBatches masks the tokens of a corpus, got {with_article(masker)}, "
            "which reads no tokens. Make batches of rows of frames with FrameBatches."
        )
    check_vocabulary(corpus, masker.tokenizer)
    if masker.reads_sentences and mode in PAIR_MODES:
        raise ValueError(
            f"{with_article(masker, 'A')} takes rows of one text, and mode={mode!r} makes "
            "pairs. Use mode='full_sentences' or 'doc_sentences'."
        )


def _count_context(masker, mode, sequence_length):
    """int, how many tokens of a row are its context: 0 in other modes than that of contexts."""
    if mode != CONTEXT_MODE:
        return 0
    context_length = masker.count_context(sequence_length)
    if not context_length:
        raise ValueError(
            f"mode={mode!r} makes rows that begin with a context, and this "
            f"{type(masker).__name__} has none. Use PermutationTargets with a reuse_length "
            "over 0, or another mode."
        )
    return context_length


def _count_documents(corpus, blocks):
    """The documents of some blocks, and how many of them have a single sentence: two int."""
    starts = (corpus.read_block(block).document_starts for block in blocks)
    counts = np.concatenate([np.diff(of_block) for of_block in starts])
    return len(counts), np.count_nonzero(counts == 1)


def _refuse_pairs(mode):
    """Raises a ValueError, because no document has two sentences."""
    raise ValueError(
        f"mode={mode!r} makes pairs of the sentences of a document, and each document has a single "
        "sentence, so every second text would be random. Use mode='full_sentences' or "
        "'doc_sentences', or prepare the corpus with several sentences in a document. In format "
        "'sentences' each line is a sentence, and a blank line ends a document."
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
