"""A tag for each word, or spans, and files of CoNLL's form or of annotation tools."""

from keras_bert_suite.checkpoints.head_types.records import ENTITY_SPANS, heads_of_command
from keras_bert_suite.data.readers.text_places import ERRORS
from keras_bert_suite.heads.tags import tag_forms, tag_schemes
from keras_bert_suite.heads.tags.annotations import read_annotations
from keras_bert_suite.heads.tags.conll.reader import read_conll
from keras_bert_suite.heads.tags.scores import MODES

from .. import head_layers
from ..command_flags import UsageError
from ..table_flags import TABLE_FLAGS, report_left_out
from .kind import Kind

#: The ends of the names of files of annotation tools, and the flags that are for other files.
ANNOTATIONS = (".json", ".jsonl")
CONLL_FLAGS = ("word_column", "tag_column", "max_tags", "outside", "row_errors")

#: The values of --head, and the class of each.
HEADS = {head.flag: head.task for head in heads_of_command("ner")}


class EntityKind(Kind):
    """Sentences with a tag on each word."""

    name = "ner"
    about = "a tag for each word"
    rows = "sentences"
    input_names = ("text",)
    has_classes = True
    own_flags = (
        "word_column",
        "tag_column",
        "tag_scheme",
        "max_tags",
        "outside",
        "span_errors",
        "entity_mode",
        "head",
        "head_layers",
        "png",
    )
    idle_table_flags = tuple(name for name in TABLE_FLAGS if name != "row_errors")
    answer_format = "jsonl"
    no_table = "--format tsv has one label for each text. Choose --format jsonl for entities"

    @property
    def task(self):
        """The class of --head."""
        return HEADS[self.values.head]

    @property
    def finds_spans(self):
        """bool, whether the labels of the task are spans, and not tags."""
        if self.model is None:
            return self.task == ENTITY_SPANS.task
        import keras_bert_suite as kbs
        from keras_bert_suite.heads.base.ensemble import members_of

        return isinstance(members_of(self.model)[0], kbs.EntitySpanClassifier)

    @staticmethod
    def define_flags(flags):
        explanation = (
            "Column of the words with --task ner: its number, or its name in CoNLL-U or in the "
            "first line. Default: the first that does not count the words."
        )
        flags.text("word_column", None, explanation)
        explanation = (
            "Column of the tags with --task ner, as --word_column. Default: the last, if it has "
            "tags of entities. Parts of speech need this flag."
        )
        flags.text("tag_column", None, explanation)
        explanation = "The most different tags with --task ner. More are likely another column."
        flags.integer("max_tags", 100, explanation)
        explanation = "The tag of words outside of entities with --task ner, such as 0 or other."
        flags.text("outside", tag_forms.OUTSIDE, explanation)
        explanation = (
            "Scheme that tags are converted to with --task ner. Default: no conversion; BIO for "
            "the files of annotation tools."
        )
        flags.choice("tag_scheme", None, tag_schemes.SCHEMES, explanation)

        explanation = (
            "What becomes of wrong spans in the files of annotation tools with --task ner: raise; "
            "fix trims, moves or widens them; skip leaves them out."
        )
        flags.choice("span_errors", "raise", ERRORS, explanation)
        explanation = (
            "How tags are scored that break the rules of their scheme, with --task ner: lenient, "
            "an I after O begins an entity; strict, it is none, as seqeval's mode='strict'."
        )
        flags.choice("entity_mode", "lenient", MODES, explanation)

    @staticmethod
    def define_training_flags(flags):
        explanation = (
            "With --task ner: softmax, a tag for each word by itself; crf, the best tags for the "
            "sentence; global_pointer, spans of words, which may lie within each other."
        )
        flags.choice("head", "softmax", list(HEADS), explanation)
        flags.list("head_layers", None, head_layers.EXPLANATION)

    def read(self, path):
        self.check_table_flags()
        values = self.values
        is_annotated = path.lower().endswith(ANNOTATIONS)
        for name in CONLL_FLAGS if is_annotated else ("span_errors",):
            if name in values.given:
                wanted = "words and tags" if is_annotated else f"{', '.join(ANNOTATIONS)} files"
                raise UsageError(f"--{name} is for {wanted}, and got the file {path}")
        if self.finds_spans and "entity_mode" in values.given:
            raise UsageError("--entity_mode is for tags, and the answers of the model are spans")
        if is_annotated:
            scheme = None if self.finds_spans else values.tag_scheme or self._find_scheme()
            return read_annotations(path, scheme, values.span_errors, encoding=values.encoding)
        scheme = "spans" if self.finds_spans else values.tag_scheme
        examples = read_conll(
            path,
            values.word_column,
            values.tag_column,
            values.encoding,
            scheme,
            values.max_tags,
            values.outside,
            values.row_errors,
        )
        if values.row_errors == "skip":
            report_left_out(examples)
        return examples

    def _find_scheme(self):
        """The scheme of the tags of the model, or BIO."""
        names = [] if self.model is None else self.model.label_names
        return tag_schemes.infer_scheme(names) or "BIO"

    def find_arguments(self, train):
        """Checks that the flags and the tags fit --head, and returns the `label_names`."""
        head = self.values.head
        if head != "softmax" and self.values.class_weight != "none":
            raise UsageError(f"--class_weight is for --head softmax, not for --head {head}")
        if head == "crf" and tag_schemes.detect_scheme(train.y) == "IOB1":
            raise UsageError(
                f"The tags of {train.path} are IOB1, in which an entity begins with I. "
                "With --head crf pass --tag_scheme BIO"
            )
        layers = head_layers.read_head_layers(self.values.head_layers)
        return {"label_names": train.label_names, "head_layers": layers}

    def callbacks(self, dev):
        import keras_bert_suite as kbs

        return [] if dev is None else [kbs.EntityF1(dev.x, dev.y, self.values.batch_size)]

    def score_outputs(self, task, outputs, rows, labels):
        arguments = {} if self.finds_spans else {"mode": self.values.entity_mode}
        return task.answers.score(outputs, rows, labels, **arguments)

    def draw(self, scores, path):
        from ..plots import plot_label_scores

        plot_label_scores(scores["types"], path, "entities", "F1 of each type (entities)")

    def show_texts(self, columns):
        return {"text": next(iter(columns.values()))}
