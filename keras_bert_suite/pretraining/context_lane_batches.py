"""Batches of permutation language modelling whose rows continue the rows of the batch before."""

from typing import Any

import grain
import keras
import numpy as np

from keras_bert_suite.argument_checks import check_integer
from keras_bert_suite.corpus.token_corpus import TokenCorpus
from keras_bert_suite.data.row_orders import find_batch
from keras_bert_suite.masking import PermutationTargets
from keras_bert_suite.preprocessing.packing import count_places, count_special_tokens
from keras_bert_suite.pretraining.instance_ranges import draw_context_pairs
from keras_bert_suite.pretraining.pretraining_batches import check_vocabulary, name_arrays
from keras_bert_suite.pretraining.token_ring import TokenRing


class ContextLaneBatches(grain.MapDataset):
    """A Grain dataset of XLNet's own batches, for a model that remembers the rows before.

    The rows are those of `PretrainingBatches(mode="context_pairs")`: a context of R tokens, and a
    pair of texts behind it. The documents of a corpus, with a separator behind each, are one ring
    of tokens, which is cut into as many lanes as a batch has rows. Row i of a batch has the next R
    tokens of lane i as its context. So the memory of these tokens, which the batch before has left,
    ends where the row begins. A random second text comes from the lane of its row.

    An epoch has the contexts of all rows that fit into a lane. Each epoch cuts the ring at another
    token. Element i is a pure function of the arguments and i.

    The original reads half of the rows of a batch from the end. `MixedBatches` joins the batches of
    a corpus and of its `ReversedCorpus`.

    Args:
        corpus: `TokenCorpus`. Memory holds 8 bytes for each document and 16 for each sentence.
        masker: `PermutationTargets`. Its `reuse_length`, R, is that of the backbone.
        sequence_length: int, L.
        batch_size: int, B, the number of lanes.
        seed: int, not negative, for the places of the lanes and for the pairs.

    Raises:
        ValueError: if an argument is out of its range, the corpus has another vocabulary, or a lane
            is shorter than a row.

    Example:
    ```python
    forward, backward = (
        ContextLaneBatches(
            part, PermutationTargets(tokenizer, backward=part is not corpus), 512, batch_size=8
        )
        for part in (corpus, ReversedCorpus(corpus))
    )
    backbone = XLNetBackbone(
        *sizes,
        attention_pattern="permuted",
        reversed_rows=True,
        memory_length=384,
        reuse_length=256,
    )
    pretrainer = Pretrainer(backbone, next_sentence=False)
    pretrainer.compile(technique=CarriedMemory(lanes=16))
    pretrainer.fit(MixedBatches([forward, backward]), epochs=10)
    ```

    Source: Yang et al., 2019 (https://arxiv.org/abs/1906.08237), and zihangdai/xlnet,
    data_utils.py, `create_tfrecords`. The original cuts its lanes anew in each pass, after it has
    shuffled the files. Its backward lanes are the forward lanes, reversed; here they begin at other
    tokens. It begins with a memory of zeros once, here each epoch does.
    """

    def __init__(
        self,
        corpus: TokenCorpus,
        masker: PermutationTargets,
        sequence_length: int,
        batch_size: int,
        seed: int = 0,
    ) -> None:
        super().__init__()
        check_vocabulary(corpus, masker.tokenizer)
        context_length = masker.count_context(sequence_length)
        if not context_length:
            raise ValueError(
                "A row of ContextLaneBatches begins with a context, and this "
                f"{type(masker).__name__} has none. Use PermutationTargets with a reuse_length "
                "over 0, or LaneBatches for a left-to-right model."
            )
        separators = masker.tokenizer.num_separators
        shortest = context_length + count_special_tokens(2, separators) + 2
        check_integer("sequence_length", sequence_length, at_least=shortest)
        self._context_length = context_length
        self._budget = count_places(sequence_length - context_length, 2, separators)
        self._row_length = context_length + self._budget
        self._ring = TokenRing(
            corpus, masker.separator_id, batch_size, self._row_length, seed, keeps_sentences=True
        )
        self._masker = masker
        self._sequence_length = sequence_length
        self._seed = seed
        self.batch_size = batch_size

    def __len__(self) -> int:
        return 1 + (self._ring.lane_length - self._row_length) // self._context_length

    def __getitem__(self, index: Any) -> Any:
        """One batch.

        Returns:
            `(x, y, sample_weight)` as of `PretrainingBatches`, and in x also `continues` int32
            (B, 1), 0 in the first batch of an epoch, otherwise 1.
        """
        if isinstance(index, slice):
            return self.slice(index)
        epoch, batch = find_batch(index, len(self))
        drawn = epoch if self._masker.dynamic else 0
        lanes = self._ring.cut(drawn)
        rng = np.random.default_rng([self._seed, drawn, batch + 1])
        starts, lengths = draw_context_pairs(
            rng,
            self._ring.sentence_begins,
            lanes + batch * self._context_length,
            (lanes, lanes + self._ring.lane_length),
            self._budget,
            self._context_length,
        )
        texts = [self._ring.read(*of_text) for of_text in zip(starts.T, lengths.T, strict=True)]
        row_ids = batch * self.batch_size + np.arange(self.batch_size)
        arrays = self._masker.make_arrays(texts, self._sequence_length, row_ids, epoch)
        continues = np.full((self.batch_size, 1), batch > 0, "int32")
        return name_arrays({**arrays, "continues": continues}, self._masker.labels)

    def check_task(self, task: keras.Model) -> None:
        """Raises a ValueError if a task cannot learn from the rows, or remembers other tokens."""
        self._masker.check_task(task)
        backbone = task.backbone
        remembered = getattr(backbone, "memory_length", None)
        if remembered is not None and backbone.reuse_length != self._context_length:
            raise ValueError(
                f"Each row of these batches begins {self._context_length} tokens behind the row "
                f"before it, and the backbone remembers reuse_length={backbone.reuse_length} "
                f"tokens of a row. Pass reuse_length={self._context_length} to the backbone and to "
                "PermutationTargets."
            )
