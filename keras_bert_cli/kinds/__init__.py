"""The kinds of tasks that the command line knows: a file and a row for each."""

from absl import flags

from ..command_flags import UsageError
from ..model_paths import read_saved_task
from .choice import Choices
from .classify import Classify
from .embed import Embed
from .multilabel import MultiLabel
from .ner import NamedEntities
from .qa import Questions
from .regress import Regress
from .seq2seq import Seq2Seq

#: The values of --task, in the order of the help. A model that no kind recognizes is of the first.
KINDS = {
    kind.name: kind
    for kind in (Classify, MultiLabel, Regress, NamedEntities, Questions, Choices, Embed, Seq2Seq)
}


def define_task_flag(values, default=None):
    """Defines the flag --task.

    Args:
        values: `absl.flags.FlagValues`.
        default: str, or None: the model then decides.
    """
    explanation = " ".join(f"{name}: {kind.about}." for name, kind in KINDS.items())
    if default is None:
        explanation += " Default: the task of the model."
    flags.DEFINE_enum("task", default, list(KINDS), explanation, flag_values=values)


def define_kind_flags(values):
    """Defines the flags of single kinds, for a command that reads labelled files."""
    for define in _list_own("define_flags"):
        define(values)


def define_training_flags(values):
    """Defines the flags of single kinds for `finetune`."""
    for define in _list_own("define_training_flags"):
        define(values)


def _list_own(name):
    """The functions of a name that kinds have not inherited, so that each is called once."""
    return [getattr(kind, name) for kind in KINDS.values() if name in vars(kind)]


def find_kind(values):
    """The `Kind` of a command: of --task, or else of --model.

    Args:
        values: the flags.

    Raises:
        UsageError: if a flag is given that is for other kinds.
    """
    saved = None if values.task else read_saved_task(values.model)
    return _choose_kind(values, lambda kind: saved is not None and kind.recognizes(saved))


def find_served_kind(values, saved_model):
    """The `Kind` of a command whose --model is a SavedModel.

    Args:
        values: the flags.
        saved_model: `SavedModel`.

    Raises:
        UsageError: as `find_kind`.
    """
    return _choose_kind(values, lambda kind: kind.serves(saved_model.output_names))


def list_idle_flags(kind):
    """The flags of other kinds that a kind does not read: a list of names."""
    names = dict.fromkeys(name for other in KINDS.values() for name in other.own_flags)
    return [name for name in names if name not in kind.own_flags]


def _choose_kind(values, fits):
    """The `Kind` of --task, or else the first one that fits, or else the first of all."""
    kinds = list(KINDS.values())
    chosen = KINDS[values.task] if values.task else next(filter(fits, kinds), kinds[0])
    for name in list_idle_flags(chosen):
        if name in values and values[name].present:
            wanted = ", ".join(kind.name for kind in kinds if name in kind.own_flags)
            raise UsageError(f"--{name} is for --task {wanted}, not for --task {chosen.name}")
    return chosen(values)
