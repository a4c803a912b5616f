"""The kinds of tasks that the command line knows: a file for each, named as the value of --task."""

import importlib

from keras_bert_suite.argument_checks import with_article
from keras_bert_suite.checkpoints.head_types.records import HEAD_TYPES, heads_of_command
from keras_bert_suite.heads.base.head import read_heads

from ..ask_saved_model import SavedModel
from ..command_flags import UsageError
from ..model_paths import is_runtime_folder, is_saved_model
from ..saved_tasks import open_task


def find_kind(name):
    """The `Kind` of a value of --task, from the file of this name."""
    values = vars(importlib.import_module(f"{__name__}.{name}")).values()
    return next(value for value in values if getattr(value, "name", None) == name)


#: The values of --task -> kinds, in the order of the records of heads, which is that of the help.
KINDS = {name: find_kind(name) for head in HEAD_TYPES for name in head.commands}


def define_task_flag(flags):
    """Defines the flag --task."""
    explanation = " ".join(f"{name}: {kind.about}." for name, kind in KINDS.items())
    # The values would be a line that is too long.
    flags.choice("task", "classify", list(KINDS), explanation, metavar="TASK")


def define_kind_flags(flags, method="define_flags"):
    """Defines the flags of single kinds: "define_flags" of `Kind`, or "define_training_flags"."""
    for kind in KINDS.values():
        if method in vars(kind):  # A kind that inherits it has the flags of its base.
            getattr(kind, method)(flags)


def describe_defaults(field):
    """str, the values of a field of `Head`, with the tasks that have them.

    >>> describe_defaults("sequence_length")
    '128; 384 with --task qa; 256 with --task seq2seq.'
    """
    tasks = {}
    for name in KINDS:
        for head in heads_of_command(name):
            task = f"{name} --head {head.flag}" if head.flag else name
            tasks.setdefault(getattr(read_heads()[head.task], field), {})[task] = None
    (common, _), *others = sorted(tasks.items(), key=lambda item: -len(item[1]))
    others = [f"{value} with --task {', '.join(names)}" for value, names in others]
    return f"{'; '.join([str(common), *others])}."


def choose_kind(values):
    """The `Kind` of --task. Flags that are not given get the values of its `Head`.

    A flag that is for other kinds is a `UsageError`.
    """
    kind = make_kind(KINDS[values.task], values)
    for name in ("learning_rate", "warmup_ratio", "batch_size"):
        if getattr(values, name) is None:
            setattr(values, name, getattr(kind.head, name))
    return kind


def open_kind(values):
    """The `Kind` of --model, a model that is opened. A model of no kind is a ValueError."""
    model = open_model(
        values.models, getattr(values, "base", None), getattr(values, "adapter", None)
    )
    chosen = [kind for kind in KINDS.values() if kind.recognizes(model)]
    if not chosen:
        export = getattr(model, "description", None)
        found = f"the export of a {export['task']}" if export else with_article(model)
        raise ValueError(
            f"{values.model} holds {found}. Wanted a model that keras-bert finetune trains: --task "
            f"{', '.join(KINDS)}. A model that guesses masked tokens is for keras-bert fill-mask."
        )
    return make_kind(chosen[0], values, model)


def open_model(paths, base=None, adapter=None):
    """The task, the `Ensemble`, the `SavedModel` or the `TaskRuntime` of --model.

    Args:
        paths: list of str.
        base: str, the checkpoint of a folder of an adapter.
        adapter: str, the adapter of a SavedModel of several.
    """
    if len(paths) > 1:
        from keras_bert_suite import Ensemble

        return Ensemble([open_task(path, base=base) for path in paths])
    (path,) = paths
    if is_saved_model(path):
        return SavedModel(path, adapter)
    if is_runtime_folder(path):
        from keras_bert_suite import open_runtime

        return open_runtime(path)
    return open_task(path, base=base)


def make_kind(cls, values, model=None):
    """A `Kind` of a class. A flag that is for other kinds is a `UsageError`."""
    for name in sorted(values.given - set(cls.own_flags)):
        if wanted := [kind.name for kind in KINDS.values() if name in kind.own_flags]:
            raise UsageError(
                f"--{name} is for --task {', '.join(wanted)}, not for --task {cls.name}"
            )
    return cls(values, model)
