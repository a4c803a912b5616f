"""The names of tensors without the prefixes of modules that were wrapped around a model."""

import re

#: What DataParallel and `torch.compile` put before the names of the module in them.
_WRAPPERS = re.compile(r"(?<![^.])(module|_orig_mod)\.")
#: What a class of one's own, such as a LightningModule, calls the model in it.
_OWNER = "model."


def unwrap_names(tensors, table):
    """The tensors of a file, under the names that the model in it has by itself.

    `table` is the `NameTable` of the model. Some models have names that begin with "model.".
    """
    names = [*tensors.shapes]
    candidates = [names]
    while (shorter := _shorten(candidates[-1])) != candidates[-1]:
        candidates.append(shorter)
    # Names that become equal were not of one wrapped model.
    candidates = [candidate for candidate in candidates if len({*candidate}) == len(names)]
    if len(candidates) == 1:
        return tensors
    # Of names that are known alike the shorter ones are plain: readers of heads compare them.
    best = max(reversed(candidates), key=lambda candidate: _count_known(candidate, table))
    return _RenamedTensors(tensors, dict(zip(best, names, strict=True)))


def _shorten(names):
    shorter = [_WRAPPERS.sub("", name) for name in names]
    if shorter == names and all(name.startswith(_OWNER) for name in names):
        return [name.removeprefix(_OWNER) for name in names]
    return shorter


def _count_known(names, table):
    return sum(table.our_path(table.spell(name)) is not None for name in names)


class _RenamedTensors:
    """Tensors of a file under other names, dict of name -> the name in the file."""

    def __init__(self, tensors, names):
        self._tensors = tensors
        self._names = names
        self.shapes = {name: tensors.shapes[old] for name, old in names.items()}

    def tensor(self, name):
        """The tensor called `name`."""
        return self._tensors.tensor(self._names[name])
