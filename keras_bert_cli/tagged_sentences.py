"""Reads sentences with a tag on each word from files of CoNLL's form, for a `TokenClassifier`."""

import dataclasses

from absl import flags

from .command_flags import UsageError
from .labelled_tables import list_labels
from .model_paths import labels_words
from .standalone import conll, tag_schemes
from .text_examples import weigh_labels

#: Flags of tables, which do not go with a file of sentences.
_TABLE_FLAGS = ("text_column", "text_pair_column", "label_column", "header", "delimiter")


def define_task_flag(values):
    """Defines the flag --task of a command that opens a model. By default the model decides."""
    explanation = (
        "texts: a label for each text. ner: a label for each word. Default: the task of the model."
    )
    flags.DEFINE_enum("task", None, ("texts", "ner"), explanation, flag_values=values)


def find_data_kind(values):
    """ "texts" or "ner": the value of --task, or else the task of the model."""
    return values.task or ("ner" if labels_words(values.model) else "texts")


def define_sentence_flags(values):
    """Defines the flags of a command that reads tagged sentences."""
    explanation = "Column of the words with --task ner, 1 for the first."
    flags.DEFINE_integer("word_column", 1, explanation, flag_values=values)
    explanation = "Column of the tags with --task ner, -1 for the last."
    flags.DEFINE_integer("tag_column", -1, explanation, flag_values=values)
    explanation = "Scheme that tags are converted to with --task ner. Default: no conversion."
    flags.DEFINE_enum("tag_scheme", None, tag_schemes.SCHEMES, explanation, flag_values=values)


@dataclasses.dataclass(frozen=True)
class Sentences:
    """The words of sentences and their tags, and the path of their file."""

    path: str
    words: list
    tags: list

    def __len__(self):
        return len(self.words)


def read_sentences(values, path):
    """Reads a file of tagged sentences, as the flags say.

    Returns:
        `Sentences`.

    Raises:
        UsageError: if a flag is for tables only.
        ValueError: as `read_conll`.
    """
    for name in _TABLE_FLAGS:
        if values[name].present:
            raise UsageError(f"--{name} is for tables of texts, not for --task ner")
    words, tags = conll.read_conll(path, values.word_column, values.tag_column, values.encoding)
    if values.tag_scheme:
        tags = [tag_schemes.convert_tags(row, values.tag_scheme) for row in tags]
    return Sentences(path, words, tags)


class TaggedSentences:
    """Sentences with a tag on each word, for `finetune`. The methods are those of `TextExamples`.

    Args:
        values: the flags.
    """

    task = "TokenClassifier"
    unit = "sentences"
    input_names = ("text",)

    def __init__(self, values):
        self._values = values

    def read(self, path):
        return read_sentences(self._values, path)

    def find_label_names(self, train):
        label_names = conll.list_tags(train.tags)
        if len(label_names) < 2:
            raise ValueError(
                f"Every word of {train.path} has the tag {label_names[0]!r}. Wanted two or more "
                "different tags; --tag_column names their column."
            )
        return label_names

    def check_labels(self, examples, label_names, source):
        check_tags(examples, label_names, source)

    def columns_of(self, examples):
        return examples.words, examples.tags

    def balance(self, train):
        return {"class_weight": weigh_labels([tag for row in train.tags for tag in row])}

    def callbacks(self, dev):
        import keras_bert_suite as kbs

        return [] if dev is None else [kbs.EntityF1(dev.words, dev.tags)]

    def describe(self, tagger, examples):
        scores = tagger.score(examples.words, examples.tags)
        figures = (f"{kind} {scores[kind]:.4f}" for kind in ("precision", "recall"))
        return f"entity F1 {scores['f1']:.4f}, {', '.join(figures)}"


def check_tags(sentences, label_names, source):
    """Raises a `ValueError` if a tag is not one that the model knows, naming sentence and word."""
    known = set(label_names)
    for row, tags in enumerate(sentences.tags):
        for place, tag in enumerate(tags):
            if tag not in known:
                raise ValueError(
                    f"{sentences.path}, sentence {row + 1}, word {place + 1} "
                    f"({sentences.words[row][place]!r}): the tag {tag!r} does not occur in "
                    f"{source}, whose tags are {list_labels(label_names)}. Correct it, or train "
                    "with sentences that have it."
                )
