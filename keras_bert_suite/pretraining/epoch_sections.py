"""Divides an epoch into sections: parts with the instances of a few blocks of the corpus."""

import functools
import threading
from concurrent.futures import Future

import numpy as np

#: Blocks that are counted to find how many instances a corpus has. A block of a million sentences
#: takes a third of a second.
BLOCKS_COUNTED = 32

#: The last batches of a section and the first batches of the next are read at the same time.
PLANS_KEPT = 2


@functools.lru_cache(8)
def divide_blocks(num_blocks, num_sections, seed, epoch):
    """Divides the blocks of a corpus among the T sections of an epoch: a sorted array for each.

    The corpus is cut into parts of T consecutive blocks. Each section gets one block of each part,
    by chance. So each section has blocks of the whole corpus, also if the corpus has different
    kinds of text one after the other. If the last part has less than T blocks, some sections have
    one block less.
    """
    # The seeds of the instances and of their order have fewer words.
    rng = np.random.default_rng([seed, epoch, 0, 0, 1])
    num_parts = -(-num_blocks // num_sections)
    parts = np.arange(num_parts * num_sections).reshape(num_parts, num_sections)
    return [blocks[blocks < num_blocks] for blocks in rng.permuted(parts, axis=1).T]


class EpochSections:
    """Says in which section of an epoch a batch is.

    The batches of an epoch are shared among its sections in proportion to their instances, in
    whole batches. `block_counts`, int64 (K,), says how many instances each block has. All epochs
    have equally many batches, `num_batches`.
    """

    def __init__(self, block_counts, num_sections, batch_size, seed):
        self._block_counts = block_counts
        self._division = len(block_counts), num_sections, seed
        self._batch_size = batch_size
        self._latest = ()
        self.num_batches = int(block_counts.sum()) // batch_size

    def locate(self, epoch, batch):
        """Finds a batch of an epoch, from 0: three ints, its section, its number there, and how
        many batches the section has.
        """
        ends = self._end_sections(epoch)
        section = int(np.searchsorted(ends[1:], batch, side="right"))
        first, end = ends[section : section + 2].tolist()
        return section, batch - first, end - first

    def _end_sections(self, epoch):
        """int64 (T + 1,), the batches before each section, then `num_batches`."""
        latest = self._latest
        for known, ends in latest:
            if known == epoch:
                return ends
        sections = divide_blocks(*self._division, epoch)
        counts = [0, *(self._block_counts[blocks].sum() for blocks in sections)]
        ends = np.cumsum(counts) // self._batch_size
        # At the end of an epoch the next is asked for, too. One assignment, since threads share
        # this object.
        self._latest = (*latest[-1:], (epoch, ends))
        return ends


def count_instances(planner, block_sentences):
    """Counts the instances that each of K blocks has in epoch 0, int64 (K,).

    If there are more than `BLOCKS_COUNTED` blocks, as many are counted, at equal distances. The
    instances of the other blocks are interpolated, in proportion to their sentences.
    """
    filled = np.flatnonzero(block_sentences)
    chosen = np.linspace(0, len(filled) - 1, min(len(filled), BLOCKS_COUNTED)).astype("int64")
    counted = filled[chosen]
    counts = np.array([planner.count(block) for block in counted.tolist()])
    shares = np.interp(np.arange(len(block_sentences)), counted, counts / block_sentences[counted])
    return np.rint(shares * block_sentences).astype("int64")


class SectionPlans:
    """Keeps the result of `make_plan` for the number of a section while the section lasts.

    Many threads may ask for a plan. Each plan is made once, on a separate thread. A copy that is
    sent to another process has `make_plan`, but no plan.
    """

    def __init__(self, make_plan):
        self._make_plan = make_plan
        self._lock = threading.Lock()
        self._plans = {}

    def __call__(self, section):
        """The plan of a section. Waits until the plan is made."""
        return self.prepare(section).result()

    def prepare(self, section):
        """Begins to make the plan of a section if it is not there, and returns its `Future`."""
        with self._lock:
            if section not in self._plans:
                if len(self._plans) == PLANS_KEPT:
                    del self._plans[next(iter(self._plans))]
                self._plans[section] = plan = Future()
                threading.Thread(target=self._fulfil, args=(plan, section), daemon=True).start()
            return self._plans[section]

    def _fulfil(self, plan, section):
        try:
            plan.set_result(self._make_plan(section))
        except BaseException as error:
            with self._lock:
                if self._plans.get(section) is plan:
                    del self._plans[section]  # The next call tries again.
            plan.set_exception(error)

    def __reduce__(self):
        return SectionPlans, (self._make_plan,)
