"""Cuts a batch into the rows of each replica."""

from typing import Any

import keras

from keras_bert_suite.replicas.groups import Group


def take_share(batch: Any, group: Group) -> Any:
    """The rows of a batch that one replica takes: neighbours, and as many as the others take.

    The batch is the same in all processes. So its lengths of padding do not depend on the number of
    replicas. If they do not divide the rows, the shares differ by one row. A share may be empty.

    Args:
        batch: nested dicts and tuples of arrays (k B, ...), or None. The number of rows B is that
            of the shortest array. Where `k` is above 1, each row has `k` entries, such as texts,
            one after the other.
        group: `Group`, which replica of how many.

    Returns:
        the same structure, with the rows of the replica.

    Raises:
        ValueError: if an array has no rows, or if B does not divide its entries.
    """
    if group.count == 1:
        return batch
    sizes = {len(array) if array.shape else 0 for array in _list_arrays(batch)}
    num_rows = min(sizes)
    wrong = [size for size in sizes if size % max(num_rows, 1)]
    if num_rows == 0 or wrong:
        raise ValueError(
            f"A batch for {group.count} replicas is cut by rows, and this one has arrays of "
            f"{sorted(sizes)} entries. Make batches in which each row has the same number of "
            "entries."
        )
    # The first replicas have a row more.
    first, last = (-(-num_rows * (group.index + i) // group.count) for i in (0, 1))

    def cut(array: Any) -> Any:
        if array is None:
            return None
        entries = len(array) // num_rows
        return array[first * entries : last * entries]

    return keras.tree.map_structure(cut, batch, none_is_leaf=True)


def _list_arrays(batch: Any) -> list[Any]:
    return [array for array in keras.tree.flatten(batch) if array is not None]
