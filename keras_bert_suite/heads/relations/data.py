"""Texts in which markers stand around two entities, with a label for each text."""

import dataclasses

import numpy as np

from keras_bert_suite.heads.base.text_data import TextData
from keras_bert_suite.preprocessing.packing import NUMPY


class RelationData(TextData):
    """Texts with four markers: before and after the first entity, and the second.

    A text that is too long is cut on both sides of its entities.

    Args:
        packer, encoder, labels, input_names: as for `TextData`.
        markers: tuple of 4 str, tokens of the tokenizer.
    """

    takes_graphs = False  # Each text must have its markers, which is checked in Python.
    needs_segment_packer = True

    def __init__(self, packer, encoder, labels, input_names, markers):
        super().__init__(packer, encoder, labels, input_names)
        self.markers = tuple(markers)

    def find_marker_ids(self):
        """list of 4 int, the ids of the markers; None if the tokenizer does not find them all."""
        tokenizer = getattr(self.packer, "tokenizer", None)
        added = {token.content for token in getattr(tokenizer, "added_tokens", ())}
        if not added.issuperset(self.markers):
            return None
        return [tokenizer.token_to_id(marker) for marker in self.markers]

    def check_changed(self, columns, names):
        raise ValueError(
            f"The texts of a RelationClassifier have the markers {' '.join(self.markers)} around "
            "their entities, which changed characters would break. Change the texts before you "
            "mark the entities."
        )

    def order(self, inputs, names):
        if len(inputs) != 1:
            raise ValueError(
                f"Both entities of a relation are in one text, got rows of {len(inputs)} texts. "
                "Join the texts of a row."
            )
        return super().order(inputs, names)

    def window(self, rows):
        """Tokenizes the texts, and cuts them around their entities.

        A text that has a marker not once, an end before its start, or entities that are too far
        apart is a ValueError.
        """
        if rows.is_packed:
            return rows
        self.check_can_pack()
        ids = self.find_marker_ids()
        if ids is None:
            raise ValueError(
                f"The tokenizer does not know the markers {', '.join(self.markers)}. Open the task "
                "with from_preset; or call tokenizer.add_tokens(markers, special=True), and build "
                "the task on backbone.resize_vocabulary(tokenizer.vocabulary_size())."
            )
        tokens, lengths = self.packer.tokenizer.tokenize_flat(list(rows.inputs[0]))
        starts = np.cumsum(lengths) - lengths
        counts, places = _find(tokens, np.repeat(np.arange(len(lengths)), lengths), starts, ids)
        room = self.packer.count_places()
        self._check(rows, counts, places, room)
        offsets = cut_around(NUMPY, lengths, places.min(axis=1), places.max(axis=1), room)
        cut = np.empty(len(lengths), object)
        for row, (start, length) in enumerate(zip(starts + offsets, lengths, strict=True)):
            cut[row] = tokens[start : start + min(length, room)]
        return dataclasses.replace(rows, inputs=(cut,))

    def pack(self, rows, labelled=False):
        if rows.is_packed:
            return super().pack(rows)
        inputs, _ = self.pack_tokens(*rows.inputs)
        return inputs, rows.labels, rows.weights

    def _check(self, rows, counts, places, room):
        """Raises a ValueError for the first row whose markers are wrong."""
        ends_first = (places[:, 0::2] > places[:, 1::2]).any(axis=1)
        is_far = np.ptp(places, axis=1) >= room
        wrong = np.flatnonzero((counts != 1).any(axis=1) | ends_first | is_far)
        if not len(wrong):
            return
        row = wrong[0]
        where = f"Row {rows.sources[row]}, {str(rows.inputs[0][row])[:60]!r},"
        if (counts[row] != 1).any():
            marker = int(np.argmax(counts[row] != 1))
            first, end, second, last = self.markers
            raise ValueError(
                f"{where} has the marker {self.markers[marker]} {counts[row, marker]} times, "
                "wanted once. Mark the two entities of each text: "
                f"The {first}child{end} was in the {second}cradle{last}."
            )
        if ends_first[row]:
            raise ValueError(f"{where} has an end marker before its start marker. Swap them.")
        raise ValueError(
            f"{where} has {np.ptp(places[row]) + 1} tokens from its first marker to its last, more "
            f"than the {room} that sequence_length={self.packer.sequence_length} has room for. Set "
            "a higher `preprocessor.sequence_length`, or shorten the text between the entities."
        )


def cut_around(xp, lengths, first, last, room):
    """The first token to keep of each row, int (N,), so that its entities are in the middle.

    Rows have `lengths` tokens, and markers from `first` to `last`, all int (N,). A row that has
    room keeps all.
    """
    spare = room - (last - first + 1)
    longest = xp.maximum(lengths - room, xp.zeros_like(lengths))
    return xp.clip(first - spare // 2, xp.zeros_like(lengths), longest)


def _find(tokens, row_ids, starts, ids):
    """(int (N, 4), how often each marker is in each row; int (N, 4), its last place there)."""
    counts, places = (np.zeros((len(starts), len(ids)), "int64") for _ in range(2))
    for marker, marker_id in enumerate(ids):
        found = np.flatnonzero(tokens == marker_id)
        np.add.at(counts[:, marker], row_ids[found], 1)
        places[row_ids[found], marker] = found - starts[row_ids[found]]
    return counts, places
