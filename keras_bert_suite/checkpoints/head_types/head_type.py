"""Describes a kind of head for readers, writers, exports and the command line."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class HeadType:
    """A head, and the task that has it.

    It holds names of classes, because `checkpoints` must not import classes. Two tasks that share a
    head have two records with the same `layer`. A task with several heads has a record for each.

    Args:
        task: str, the class of the task, a name in `keras_bert_suite`.
        layer: str, the name of the layer. The paths of the weights begin with it. None if the task
            has no layers on top of the pooled encoder.
        weight: str, the weight that tells the head, after the name of its layer.
        more_layers: tuple of str, layers of the head that files of other libraries do not have.
        labels: str, what has labels, in messages, such as "texts". None for a head without labels.
            A head with labels must be in a checkpoint, or be asked for. Another head is new, with a
            warning, if the checkpoint lacks it.
        hugging_face: str, the name of the layer in transformers, for a head that has one name in
            most kinds of model. The table of a kind may have another name, see
            `name_tables.bert.hugging_face_heads`. The heads of pretraining are in these tables.
        ending: str, the end of the name of its classes in transformers, or None if transformers has
            none. The first head that a model has counts.
        drops_pooler: bool, whether its classes in transformers have no pooler. Then a pooler that
            no output depends on is not written.
        google_tf1: str, the beginning of its names in the checkpoints of google-research/bert.
        read: function from (`ConfigValues` of config.json, number of outputs, dropout rate) to dict
            of the arguments of the task. None in place of the dict if the layer is not this head.
        write: function from (task, number of outputs) to the fields of config.json that `read`
            reads, beside the dropout rate.
        served: str, the module and the class in `serving`, as "row_answers.ServedChoices". None is
            `ServedTask`, which returns what the task's `answers` serve.
        commands: tuple of str, the values of `--task` of the command line.
        flag: str, the value of its `--head`, if a value of `--task` has several heads.
    """

    task: str
    layer: str | None = None
    weight: str = "kernel"
    more_layers: tuple[str, ...] = ()
    labels: str | None = None
    hugging_face: str | None = None
    ending: str | None = None
    drops_pooler: bool = False
    google_tf1: str | None = None
    read: Callable = lambda config, num_outputs, dropout: {}
    write: Callable = lambda task, num_outputs: {}
    served: str | None = None
    commands: tuple[str, ...] = ()
    flag: str | None = None

    @property
    def path(self):
        """str, the path of the weight that tells the head."""
        return f"{self.layer}/{self.weight}"
