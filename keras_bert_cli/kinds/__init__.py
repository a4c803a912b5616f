"""The kinds of tasks that the command line knows: a file and a row for each."""

from ..ask_saved_model import SavedModel
from ..command_flags import UsageError
from ..model_paths import is_saved_model, read_saved_task
from .choice import ChoiceKind
from .classify import ClassifyKind
from .embedder import EmbedKind
from .multilabel import MultiLabelKind
from .ner import EntityKind
from .qa import QuestionKind
from .regress import RegressKind
from .seq2seq import Seq2SeqKind

#: The values of --task, in the order of the help. A model that no kind recognizes is of the first.
KINDS = {
    kind.name: kind
    for kind in (
        ClassifyKind,
        MultiLabelKind,
        RegressKind,
        EntityKind,
        QuestionKind,
        ChoiceKind,
        EmbedKind,
        Seq2SeqKind,
    )
}


def define_task_flag(flags, default=None):
    """Defines the flag --task.

    Args:
        flags: `Flags` of the command.
        default: str, or None: the model then decides.
    """
    explanation = " ".join(f"{name}: {kind.about}." for name, kind in KINDS.items())
    if default is None:
        explanation += " Default: the task of the model."
    flags.choice("task", default, list(KINDS), explanation)


def define_kind_flags(flags, method="define_flags"):
    """Defines the flags of single kinds, for a command that reads labelled files.

    Args:
        flags: `Flags` of the command.
        method: str, the name of a method of `Kind`: "define_flags" or "define_training_flags".
    """
    for kind in KINDS.values():
        if method in vars(kind):  # A kind that inherits it has the flags of its base.
            getattr(kind, method)(flags)


def find_kind(values):
    """The `Kind` of a command: of --task, or else of --model.

    Args:
        values: the flags.

    Raises:
        UsageError: if a flag is given that is for other kinds.
    """
    kinds, saved_model = list(KINDS.values()), None
    if values.task:
        chosen = KINDS[values.task]
    elif is_saved_model(values.model):
        saved_model = SavedModel(values.model)
        chosen = next((k for k in kinds if k.serves(saved_model.output_names)), kinds[0])
    else:
        saved = read_saved_task(values.model)
        chosen = next((k for k in kinds if saved is not None and k.recognizes(saved)), kinds[0])
    for name in list_idle_flags(chosen):
        if name in values.given:
            wanted = ", ".join(kind.name for kind in kinds if name in kind.own_flags)
            raise UsageError(f"--{name} is for --task {wanted}, not for --task {chosen.name}")
    return chosen(values, saved_model)


def list_idle_flags(kind):
    """The flags of other kinds that a kind does not read: a list of names."""
    names = dict.fromkeys(name for other in KINDS.values() for name in other.own_flags)
    return [name for name in names if name not in kind.own_flags]
