"""Finds sequences of token ids, such as phrases, at many positions of a batch at once."""

from collections.abc import Sequence

import numpy as np

from keras_bert_suite.files.messages import list_names


class TokenSequences:
    """A set of sequences of token ids, as a trie in sorted arrays.

    A sequence is a way through the trie, and a token a step from a node to the next. Node 0 is the
    root, and node n + 1 is where step n leads to. No sequence is empty. Of equal ones the first
    counts.
    """

    def __init__(self, sequences: Sequence[Sequence[int]], vocabulary_size: int) -> None:
        self._vocabulary_size = vocabulary_size
        lengths = np.array([len(sequence) for sequence in sequences], "int64")
        self._longest = int(lengths.max(initial=0))
        starts = np.cumsum(lengths) - lengths
        tokens = np.fromiter((id for row in sequences for id in row), "int64", int(lengths.sum()))
        # Nodes are numbered by their depth, so the keys of all steps, node * V + token, ascend.
        nodes, steps, num_steps = np.zeros(len(lengths), "int64"), [], 0
        for depth in range(self._longest):
            inside = np.flatnonzero(lengths > depth)
            keys = nodes[inside] * vocabulary_size + tokens[starts[inside] + depth]
            unique, which = np.unique(keys, return_inverse=True)
            nodes[inside] = num_steps + 1 + which
            steps.append(unique)
            num_steps += len(unique)
        self._steps = np.concatenate([*steps, np.zeros(0, "int64")])
        # int64 (nodes,), the number of the sequence that ends at a node, or -1.
        self._ends = np.full(num_steps + 1, -1)
        self._ends[nodes[::-1]] = np.arange(len(nodes))[::-1]
        self._roots = np.zeros(vocabulary_size, bool)
        self._roots[self._steps[self._steps < vocabulary_size]] = True

    def match(
        self, token_ids: np.ndarray, starts: np.ndarray, limits: np.ndarray, may_end: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Finds the longest sequence at each of n positions `starts` in `token_ids`, int (T,).

        `limits`, int (n,), are the most tokens of a sequence at each position, and `may_end`, bool
        (T,), the tokens that may be its last one. The result is int64 (n,) twice: which sequence
        begins there, or -1; the number of its tokens, or 0.
        """
        numbers, lengths = np.full(len(starts), -1), np.zeros(len(starts), "int64")
        active = np.flatnonzero(self._roots[token_ids[starts]])
        nodes = np.zeros(len(active), "int64")
        for depth in range(self._longest):
            inside = limits[active] > depth
            active, nodes = active[inside], nodes[inside]
            places = starts[active] + depth
            keys = nodes * self._vocabulary_size + token_ids[places]
            steps = np.searchsorted(self._steps, keys)
            known = self._steps[np.minimum(steps, len(self._steps) - 1)] == keys
            active, nodes, places = active[known], steps[known] + 1, places[known]
            if not len(active):
                break
            ends = (self._ends[nodes] >= 0) & may_end[places]
            numbers[active[ends]] = self._ends[nodes[ends]]
            lengths[active[ends]] = depth + 1
        return numbers, lengths

    def match_units(self, token_ids: np.ndarray, begins: np.ndarray) -> np.ndarray:
        """int64 (B, L): which sequence the unit is, as a whole, that begins there, or -1.

        `begins`, bool (B, L), is true in the first column.
        """
        starts = np.flatnonzero(begins)
        sizes = np.diff(starts, append=begins.size)
        may_end = np.zeros(begins.size, bool)
        may_end[starts + sizes - 1] = True
        found = np.full(begins.size, -1)
        found[starts], _ = self.match(token_ids.ravel(), starts, sizes, may_end)
        return found.reshape(begins.shape)


def tokenize_in_text(tokenizer, texts, name):
    """The token ids of words or phrases, as they may stand in a text.

    A byte-level tokenizer gives a word other ids at the beginning of a text than after a space, and
    SentencePiece other ids after punctuation or within a text that has no spaces. The result is
    three lists of N lists of ids: after a space, at the beginning, and after a comma. A list is
    empty for a text without tokens, and for one with an unknown token. If all are empty, that is a
    ValueError with `name`, the argument that the texts are from.
    """
    wrong = [text for text in texts if not isinstance(text, str)]
    if wrong:
        raise ValueError(f"{name} must hold strings, got {type(wrong[0]).__name__} {wrong[0]!r}.")
    special = set(tokenizer.special_token_ids)
    variants = []
    for prefix in (" ", "", ","):
        # The first row is the prefix alone.
        ids, lengths = tokenizer.tokenize_flat([prefix + text for text in ("", *texts)])
        ids = ids.tolist()
        ends = np.cumsum(lengths).tolist()
        before, *rows = [ids[start:end] for start, end in zip([0, *ends], ends, strict=False)]
        if prefix == ",":
            size = len(before)
            rows = [row[size:] if row[:size] == before else [] for row in rows]
        variants.append([row if special.isdisjoint(row) else [] for row in rows])
    if not any(map(any, variants)):
        raise ValueError(
            f"None of the {len(texts)} texts in {name} has tokens that are all in the vocabulary, "
            f"so no text can match them: {list_names(map(repr, texts))}."
        )
    return variants
