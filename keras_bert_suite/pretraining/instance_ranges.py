"""Plans the instances of some documents at once.

For every sentence this module computes where an instance would end if it began with this sentence,
and where the next instance would begin. It then goes from instance to instance, beginning with the
first sentence. `InstancePlanner` explains the modes. D documents, S sentences, N instances.
"""

import numpy as np

from keras_bert_suite.preprocessing.packing import NUMPY, kept_lengths
from keras_bert_suite.pretraining.objectives import PAIR_MODES


def plan_pairs(rng, tokens_before, document_starts, documents, budget, short_seq_prob, mode):
    """Plans pairs of segments: starts int64 (N, 2), lengths (N, 2) and labels int8 (N,).

    Args:
        rng: `np.random.Generator`.
        tokens_before: int64 (S + 1,), the tokens before each sentence of the corpus.
        document_starts: int64 (D + 1,), the first sentence of each document, then S.
        documents: `(first, end)`, the documents to plan.
        budget: int, the maximum number of tokens of a row, without special ones.
        short_seq_prob: float.
        mode: a key of `PAIR_MODES`.
    """
    bounds = document_starts[documents[0] : documents[1] + 1]
    first, end = bounds[0], bounds[-1]
    num_sentences = np.diff(bounds)
    targets = draw_targets(rng, len(num_sentences), budget, short_seq_prob)
    targets = np.repeat(targets, num_sentences)
    begins = np.arange(first, end)
    # A gathering has the sentences from `begins` to `ends`. A has its sentences up to `a_ends`.
    ends = first + np.searchsorted(tokens_before[first : end + 1], tokens_before[begins] + targets)
    ends = np.minimum(ends, np.repeat(bounds[1:], num_sentences))
    sizes = ends - begins
    a_ends = begins + 1 + (rng.random(len(begins)) * (sizes - 1)).astype("int64")
    labels = draw_relations(rng, sizes, PAIR_MODES[mode])
    random_next = sizes == 1 if mode == "sop" else labels == 1

    chosen = follow(np.where(random_next, a_ends, ends) - first)
    begins, ends, a_ends = begins[chosen], ends[chosen], a_ends[chosen]
    targets, labels, random_next = targets[chosen], labels[chosen], random_next[chosen]
    a_lengths = tokens_before[a_ends] - tokens_before[begins]
    b_begins, b_ends = a_ends.copy(), ends
    b_begins[random_next], b_ends[random_next] = _draw_next(
        rng,
        tokens_before,
        document_starts,
        begins[random_next],
        (targets - a_lengths)[random_next],
    )
    starts = np.stack([tokens_before[begins], tokens_before[b_begins]], axis=1)
    lengths = np.stack([a_lengths, tokens_before[b_ends] - tokens_before[b_begins]], axis=1)
    swapped = (labels > 0) & ~random_next  # false everywhere in "pairs"
    starts[swapped] = starts[swapped, ::-1]
    lengths[swapped] = lengths[swapped, ::-1]

    kept = np.stack(kept_lengths(NUMPY, list(lengths.T), budget, "longest_first"), axis=1)
    starts += rng.binomial(lengths - kept, 0.5)  # the number of tokens cut at the front
    return starts, kept, labels


def draw_relations(rng, sizes, num_relations):
    """Draws how the texts of each pair are related: int8 (n,), each with probability 1/R.

    Where there is a single sentence, by `sizes`, int (n,), it is 1.
    """
    draws = rng.random(len(sizes))
    if num_relations == 2:
        relations = draws < 0.5
    else:
        relations = draws * num_relations
    return np.where(sizes == 1, 1, relations).astype("int8")


def _draw_next(rng, tokens_before, document_starts, begins, targets):
    """Draws a random B for instances that begin with the sentences `begins`, (n,).

    It is int64 (n,) twice: the first sentence of B, and the sentence after its last one.
    """
    documents = np.searchsorted(document_starts, begins, side="right") - 1
    num_documents = len(document_starts) - 1
    if num_documents > 1:
        others = rng.integers(0, num_documents - 1, len(begins))
        documents = others + (others >= documents)
    document_ends = document_starts[documents + 1]
    first = rng.integers(document_starts[documents], document_ends)
    wanted = tokens_before[first] + np.maximum(targets, 1)
    ends = np.empty_like(first)
    # In the order of the sentences: each search then finds the memory that it reads in a cache.
    order = np.argsort(first)
    ends[order] = np.searchsorted(tokens_before, wanted[order])
    return first, np.minimum(ends, document_ends)


def plan_rows(rng, tokens_before, document_starts, documents, budget, short_seq_prob, mode):
    """Plans rows of whole sentences: starts int64 (N, 1) and lengths (N, 1); see `plan_pairs`."""
    bounds = document_starts[documents[0] : documents[1] + 1]
    lengths = np.diff(tokens_before[bounds[0] : bounds[-1] + 1])
    # A part is a sentence, or as much of it as fills a row, if it is longer than a row.
    num_parts = -(-lengths // budget)
    part_ends = np.cumsum(num_parts)
    parts = np.full(num_parts.sum(), budget)
    parts[part_ends - 1] = lengths - (num_parts - 1) * budget
    document_begins = np.append(0, part_ends)[bounds - bounds[0]]
    # The [SEP] between two documents is counted with the part after it.
    separators = np.zeros_like(parts)
    if mode == "full_sentences":
        separators[document_begins[:-1]] = 1
    offsets = np.append(0, np.cumsum(parts + separators))
    targets = draw_targets(rng, len(parts), budget, short_seq_prob)
    ends = np.searchsorted(offsets, offsets[:-1] + separators + targets, side="right") - 1
    ends = np.maximum(ends, np.arange(len(parts)) + 1)
    if mode == "doc_sentences":
        ends = np.minimum(ends, np.repeat(document_begins[1:], np.diff(document_begins)))

    begins = follow(ends)
    before = tokens_before[bounds[0]] + np.append(0, np.cumsum(parts))
    starts = before[begins]
    return starts[:, None], (before[ends[begins]] - starts)[:, None]


def plan_context_pairs(rng, tokens_before, document_starts, documents, budget, context_length):
    """Plans contexts and pairs: starts int64 (N, 3) and lengths (N, 3).

    `budget` is the number of tokens of each pair. See `plan_pairs` for the other arguments;
    `tokens_before` counts the separators between documents.
    """
    first, end = tokens_before[document_starts[list(documents)]].tolist()
    spare = end - first - context_length - budget
    if spare < 0:
        return np.zeros((0, 3), "int64"), np.zeros((0, 3), "int64")
    contexts = np.arange(first + rng.integers(min(spare + 1, context_length)), first + spare + 1)
    stream = 0, tokens_before[-1]
    contexts = contexts[::context_length]
    return draw_context_pairs(rng, tokens_before, contexts, stream, budget, context_length)


def draw_context_pairs(rng, tokens_before, contexts, stream, budget, context_length):
    """Draws the pairs behind some contexts: starts int64 (N, 3) and lengths (N, 3).

    Args:
        rng, tokens_before: as for `plan_pairs`.
        contexts: int64 (N,), the first token of each context.
        stream: (first, end) of the tokens that the texts of a row may have, int or int64 (N,).
        budget, context_length: as for `plan_context_pairs`.
    """
    firsts, lasts = (np.broadcast_to(bound, contexts.shape) for bound in stream)
    begins = contexts + context_length
    # A may end at one of these sentence ends. The next one is the end of what is gathered.
    before = np.searchsorted(tokens_before, begins, side="right")
    ends = np.searchsorted(tokens_before, begins + budget)
    choices = ends - before
    is_random = (rng.random(len(begins)) < 0.5) | (choices == 0)
    cuts = before + (rng.random(len(begins)) * choices).astype("int64")
    a_ends = np.minimum(tokens_before[cuts], lasts)
    b_begins, b_ends = a_ends.copy(), np.minimum(tokens_before[ends], lasts)
    b_begins[is_random], b_ends[is_random] = _draw_sentences(
        rng,
        tokens_before,
        (firsts[is_random], lasts[is_random]),
        budget - (a_ends - begins)[is_random],
    )
    kept = kept_lengths(NUMPY, [a_ends - begins, b_ends - b_begins], budget, "longest_first")
    lengths = np.stack([np.full_like(begins, context_length), *kept], axis=1)
    return np.stack([contexts, begins, b_begins], axis=1), lengths


def _draw_sentences(rng, tokens_before, stream, sizes):
    """Draws places of some tokens, at least 1 each, and completes their first and last sentence.

    It is int64 (n,) twice: the first token, and the token after the last one. Both are within the
    `stream`, (first, end) int64 (n,).
    """
    sizes, (firsts, lasts) = np.maximum(sizes, 1), stream
    places = firsts + (rng.random(len(sizes)) * (lasts - firsts - sizes + 1)).astype("int64")
    begins = tokens_before[np.searchsorted(tokens_before, places, side="right") - 1]
    ends = tokens_before[np.searchsorted(tokens_before, places + sizes)]
    return np.maximum(begins, firsts), np.minimum(ends, lasts)


def draw_targets(rng, count, budget, short_seq_prob):
    """Draws the numbers of tokens to aim at, int64 (count,).

    Each is `budget`, or with probability `short_seq_prob` an even draw from 2 to `budget`.
    """
    short = rng.random(count) < short_seq_prob
    return np.where(short, rng.integers(2, budget, count, endpoint=True), budget)


def follow(successors):
    """Follows `successors` from 0 to its end, and returns the numbers on the way.

    >>> follow(np.array([2, 2, 3, 5, 5]))
    array([0, 2, 3])

    Each number has a greater one, at most n.
    """
    successors = successors.tolist()
    met, number = [], 0
    while number < len(successors):
        met.append(number)
        number = successors[number]
    return np.array(met, "int64")
