"""The kinds of heads. For a new head, add a record here and a task in `tasks`."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from keras_bert_suite.checkpoints.head_types.head_fields import (
    read_choices,
    read_text_labels,
    read_word_labels,
    write_text_labels,
    write_word_labels,
)


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
        labels: str, the things with labels, in messages, such as "texts". None for a head without
            labels. A head with labels must be in a checkpoint, or be asked for. Another head is
            new, with a warning, if the checkpoint lacks it.
        hugging_face: str, the name of the layer in transformers, for a head that has one name in
            most kinds of model. The table of a kind may have another name, see
            `hugging_face_heads` in `name_table`. The heads of pretraining are in these tables.
        ending: str, the end of the name of its classes in transformers, or None if transformers has
            none. The first head that a model has counts.
        drops_pooler: bool, whether its classes in transformers have no pooler. Then a pooler that
            no output depends on is not written.
        google_tf1: str, the beginning of its names in the checkpoints of google-research/bert.
        read: function from (`ConfigValues` of config.json, number of outputs, dropout rate) to dict
            of the arguments of the task. None instead of the dict if the layer is not this head.
        write: function from (task, number of outputs) to the fields of config.json that `read`
            reads, beside the dropout rate.
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
    commands: tuple[str, ...] = ()
    flag: str | None = None

    @property
    def path(self):
        """str, the path of the weight that tells the head."""
        return f"{self.layer}/{self.weight}"


TEXTS = HeadType(
    task="TextClassifier",
    layer="classifier",
    labels="texts",
    hugging_face="classifier",
    ending="ForSequenceClassification",
    google_tf1="",  # run_classifier.py writes its head at the root.
    read=read_text_labels,
    write=write_text_labels,
    commands=("classify", "multilabel", "regress"),
)
DOCUMENTS = replace(TEXTS, task="DocumentClassifier")
ENTAILMENTS = replace(TEXTS, task="ZeroShotClassifier", commands=())
# Its exits have the names of their blocks, such as exit_2 and exit_2_pooler.
EXITS = replace(TEXTS, task="EarlyExitClassifier", ending=None, commands=("classify", "regress"))

ATTRIBUTES = HeadType(
    task="AttributeClassifier",
    layer="attribute_classifier",
    labels="attributes",
    commands=("attributes",),
)

TOKENS = HeadType(
    task="TokenClassifier",
    layer="token_classifier",
    labels="tokens",
    hugging_face="classifier",
    ending="ForTokenClassification",
    drops_pooler=True,
    read=read_word_labels,
    write=write_word_labels,
    commands=("ner",),
    flag="softmax",
)
CHAINS = replace(
    TOKENS,
    task="CrfTokenClassifier",
    more_layers=("crf",),
    flag="crf",
)
ENTITY_SPANS = HeadType(
    task="EntitySpanClassifier",
    layer="entity_spans",
    labels="spans",
    commands=("ner",),
    flag="global_pointer",
)

RELATIONS = HeadType(
    task="RelationClassifier",
    layer="relation_classifier",
    more_layers=("entity_averages",),
    labels="entities",
    commands=("relation",),
)

QUESTIONS = HeadType(
    task="QuestionAnswerer",
    layer="span_labeler",
    hugging_face="qa_outputs",
    ending="ForQuestionAnswering",
    drops_pooler=True,
    google_tf1="cls/squad/",
    commands=("qa",),
)
CHOICES = HeadType(
    task="MultipleChoice",
    layer="choice_scorer",
    hugging_face="classifier",
    ending="ForMultipleChoice",
    read=read_choices,
    commands=("choice",),
)
RANKINGS = replace(TEXTS, task="TextRanker", commands=("ranking",))
VECTORS = HeadType(task="TextEmbedder", commands=("embed",))
TOWERS = HeadType(task="TwoTowerRanker", layer="pair_score", weight="score/kernel")

PAIRS = HeadType(
    task="Pretrainer",
    layer="next_sentence",
    ending="ForPreTraining",
    google_tf1="cls/seq_relationship/",
)
REPLACED_TOKENS = HeadType(
    task="ElectraPretrainer",
    layer="replaced_tokens",
    weight="scorer/kernel",
    ending="ForPreTraining",
    drops_pooler=True,
)
NEIGHBORS = HeadType(task="ElmoPretrainer", layer="language_model")
HIDDEN_FRAMES = HeadType(
    task="FramePretrainer", layer="frame_predictions", more_layers=("frame_head",)
)
#: It keeps an idle pooler, with which a fine-tuning may begin.
MASKED_TOKENS = HeadType(task="Pretrainer", layer="masked_lm", weight="bias", ending="ForMaskedLM")
MASKS = replace(MASKED_TOKENS, task="MaskedLM")
PATTERNS = replace(MASKED_TOKENS, task="PatternClassifier")
TARGETS = replace(
    MASKED_TOKENS,
    task="Seq2Seq",
    commands=("seq2seq",),
)
CORRUPTED_TEXTS = replace(MASKED_TOKENS, task="Seq2SeqPretrainer")
CONTINUATIONS = replace(MASKED_TOKENS, task="CausalLM", commands=("causal_lm",))
SPAN_BOUNDARY = HeadType(task="Pretrainer", layer="span_boundary")

#: All records above, in their order. A head that stands before another is preferred, where a model
#: or a file has both, and the command line has the values of `--task` in this order.
HEAD_TYPES = tuple(record for record in [*globals().values()] if isinstance(record, HeadType))

#: The first record of each layer of a head.
HEADS_BY_LAYER: dict[str, HeadType] = {}
for _head in HEAD_TYPES:
    if _head.layer:
        HEADS_BY_LAYER.setdefault(_head.layer, _head)

#: The layers of all heads, also of heads that only our files have.
HEAD_LAYERS = tuple(
    dict.fromkeys([*HEADS_BY_LAYER, *(name for head in HEAD_TYPES for name in head.more_layers)])
)

#: The heads that transformers fine-tunes.
FINE_TUNED = tuple(head for head in HEADS_BY_LAYER.values() if head.hugging_face)


def find_head(paths):
    """The `HeadType` as which transformers knows a model with weights at these paths, or None."""
    return next((head for head in HEAD_TYPES if head.ending and head.path in paths), None)


def heads_of_task(task):
    """list of `HeadType`, the records of a class of task, which is given by name."""
    return [head for head in HEAD_TYPES if head.task == task]


def heads_of_command(name):
    """list of `HeadType`, the records of a value of `--task`. The first one is the default."""
    return [head for head in HEAD_TYPES if name in head.commands]
