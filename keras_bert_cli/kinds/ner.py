"""A tag for each word, or spans of words, and files of CoNLL's form."""

import dataclasses

from keras_bert_suite.checkpoints.head_types.records import (
    ENTITY_SPANS,
    heads_of_command,
    heads_of_task,
)
from keras_bert_suite.data import tag_schemes
from keras_bert_suite.data.readers import read_conll

from ..command_flags import UsageError
from ..label_checks import list_labels, weigh_labels
from ..model_paths import find_class, is_saved_model
from ..saved_tasks import open_task
from ..scores import print_score_table
from ..table_flags import TABLE_FLAGS
from .kind import Kind, format_json

#: The values of --head, and the class of each.
HEADS = {head.flag: head.task for head in heads_of_command("ner")}


class EntityKind(Kind):
    """Sentences with a tag on each word."""

    name = "ner"
    about = "a tag for each word"
    input_names = ("text",)
    own_flags = ("word_column", "tag_column", "tag_scheme", "max_tags", "head", "png")
    idle_table_flags = TABLE_FLAGS

    @property
    def task(self):
        """The class of --head, or else of --model."""
        if "head" in self.values:
            return HEADS[self.values.head]
        saved = find_class(self.values.model)
        return saved if saved in HEADS.values() else HEADS["softmax"]

    @property
    def finds_spans(self):
        """bool, whether the labels of the task are spans, and not tags."""
        return heads_of_task(self.task)[0].labels == ENTITY_SPANS.labels

    @staticmethod
    def define_flags(flags):
        explanation = (
            "Column of the words with --task ner: its number, or its name in CoNLL-U or in the "
            "first line. Default: the first that does not count the words."
        )
        flags.text("word_column", None, explanation)
        explanation = "Column of the tags with --task ner, as --word_column. Default: the last."
        flags.text("tag_column", None, explanation)
        explanation = "The most different tags with --task ner. More are likely another column."
        flags.integer("max_tags", 100, explanation)
        explanation = "Scheme that tags are converted to with --task ner. Default: no conversion."
        flags.choice("tag_scheme", None, tag_schemes.SCHEMES, explanation)

    @staticmethod
    def define_training_flags(flags):
        explanation = (
            "With --task ner: softmax, a tag for each word by itself; crf, the best tags for the "
            "sentence; global_pointer, spans of words, which may lie within each other."
        )
        flags.choice("head", "softmax", list(HEADS), explanation)

    @classmethod
    def serves(cls, output_names):
        return "num_entities" in output_names

    def read(self, path):
        self.check_table_flags()
        values = self.values
        scheme = "spans" if self.finds_spans else values.tag_scheme
        columns = (values.word_column, values.tag_column)
        return read_conll(path, *columns, values.encoding, scheme, values.max_tags)

    def find_arguments(self, train):
        self._check_head(train)
        label_names = train.label_names
        if self.finds_spans and not label_names:
            raise ValueError(
                f"{train.path} has no entities: every tag is O. --tag_column names the column of "
                "the tags."
            )
        if not self.finds_spans and len(label_names) < 2:
            raise ValueError(
                f"Every word of {train.path} has the tag {label_names[0]!r}. Wanted two or more "
                "different tags; --tag_column names their column."
            )
        return {"label_names": label_names}

    def _check_head(self, train):
        """Checks before anything is loaded that the flags and the tags fit --head."""
        head = self.values.head
        if head != "softmax" and self.values.class_weight != "none":
            raise UsageError(f"--class_weight is for --head softmax, not for --head {head}")
        if head == "crf" and tag_schemes.detect_scheme(train.y) == "IOB1":
            raise UsageError(
                f"The tags of {train.path} are IOB1, in which an entity begins with I. "
                "With --head crf pass --tag_scheme BIO"
            )

    def check(self, examples, arguments, source):
        check_tags(examples, arguments["label_names"], source, spans=self.finds_spans)

    def introduce(self, train, arguments):
        return f"{len(train)} training sentences, labels {list_labels(arguments['label_names'])}"

    def optimizer_arguments(self):
        # As `CrfTokenClassifier.compile`: transitions learn faster than the encoder.
        return {"rate_multipliers": [("(^|/)crf/", 100.0)]} if self.values.head == "crf" else {}

    def balance(self, train):
        return {"class_weight": weigh_labels([tag for row in train.y for tag in row])}

    def callbacks(self, dev):
        import keras_bert_suite as kbs

        return [] if dev is None else [kbs.EntityF1(dev.x, dev.y, self.values.batch_size)]

    def describe(self, task, examples):
        scores = task.score(examples.x, examples.y, self.values.batch_size)
        figures = (f"{kind} {scores[kind]:.4f}" for kind in ("precision", "recall"))
        return f"entity F1 {scores['f1']:.4f}, {', '.join(figures)}"

    def score(self):
        values = self.values
        if is_saved_model(values.model):
            raise UsageError(
                f"--model {values.model} is a SavedModel. It splits texts into words of its own, "
                "which may differ from the words of the file. Evaluate the model that it was "
                "exported from"
            )
        sentences = self.read(values.input)
        tagger = open_task(values.model, self.task)
        self.check(sentences, {"label_names": tagger.label_names}, source=values.model)
        scores = tagger.score(sentences.x, sentences.y, values.batch_size)
        scores = {"sentences": len(sentences), **scores}
        print(f"entity F1 {scores['f1']:.4f}, {scores['sentences']} sentences")
        rows = [*scores["types"].items(), ("all", scores)]
        print_score_table("type", "entities", "entities", rows)

        def draw(path):
            from ..plots import plot_label_scores

            plot_label_scores(scores["types"], path, "entities", "F1 of each type (entities)")

        return scores, draw

    def predict(self, columns):
        if self.values.format == "tsv":
            raise UsageError(
                "--format tsv has one label for each text. Choose --format jsonl for entities"
            )
        answers = self._find_entities(columns)
        texts = next(iter(columns.values()))
        rounded = (
            [{**entity, "score": round(entity["score"], 6)} for entity in row] for row in answers
        )
        return format_json({"text": texts}, ({"entities": row} for row in rounded))

    def _find_entities(self, columns):
        """For each text a list of dicts of `label`, `text`, `start`, `end` and `score`."""
        if self.saved_model is not None:
            return self.saved_model.find_entities(columns, self.values.batch_size)
        texts = self.order_texts(self.input_names, columns)
        tagger = open_task(self.values.model, self.task)
        answers = tagger.predict(texts, batch_size=self.values.batch_size, verbose=0)
        return [[dataclasses.asdict(entity) for entity in entities] for entities in answers]


def check_tags(sentences, label_names, source, spans=False):
    """Raises a `ValueError` unless the model knows all tags, naming the line and the word.

    Args:
        sentences: `Examples` of `read_conll`.
        label_names: list of str, the tags of the model; or the types of its spans.
        source: str, the source of `label_names`: the training file, or the model.
        spans: bool, whether the labels are spans.
    """
    noun = "type" if spans else "tag"
    for row, labels in enumerate(sentences.y):
        named = ((start, kind) for start, _, kind in labels) if spans else enumerate(labels)
        for number, label in named:
            if label not in label_names:
                raise ValueError(
                    f"{sentences.locate(row)}, word {number + 1} of the sentence "
                    f"({sentences.x[row][number]!r}): the {noun} {label!r} does not occur in "
                    f"{source}, whose {noun}s are {list_labels(label_names)}. Correct it, or train "
                    "with sentences that have it."
                )
