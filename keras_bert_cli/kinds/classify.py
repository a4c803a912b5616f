"""A label for each text: a `TextClassifier` or `DocumentClassifier`, and tables of texts."""

from keras_bert_suite.heads.base.label_scores import count_confusions

from ..ask_saved_model import SavedModel
from ..command_flags import UsageError
from ..feature_columns import (
    choose_features,
    define_feature_flag,
    find_features,
    name_columns,
    name_features,
    read_rows,
    split_flag,
)
from ..table_flags import (
    choose_text_columns,
    is_table,
    read_examples,
    to_field,
)
from .kind import Kind

#: The flags that classes, sets of labels and numbers have in common.
TEXT_FLAGS = (
    *("window_pooling", "max_windows", "training_windows", "truncation", "augment"),
    *("label_columns", "left_out_labels", "feature_columns"),
)

#: Values of --window_pooling -> `window_pooling` of `DocumentClassifier`, before Keras is imported.
POOLINGS = {
    "mean": "mean",
    "max": "max",
    "attention": {"class_name": "keras_bert_suite>AttentionPooling", "config": {}},
    "transformer": {"class_name": "keras_bert_suite>WindowTransformer", "config": {}},
}


class ClassifyKind(Kind):
    """Texts, or pairs of texts, with a label each."""

    name = "classify"
    about = "a label for each text"
    own_flags = (*TEXT_FLAGS, "png", "tuned_label")

    #: `problem_type` of the task.
    has_classes = True
    problem_type = "single_label_classification"

    def __init__(self, values, model=None):
        super().__init__(values, model)
        #: dict of a column -> (name of the feature, kind); None until the training file is read.
        self._features = None
        if model is not None:
            self._features = choose_features(values, model)

    @property
    def feature_names(self):
        return name_features(self.values)

    @property
    def task(self):
        """The class that `finetune` trains."""
        return "DocumentClassifier" if self.values.window_pooling else "TextClassifier"

    @property
    def cuts_texts(self):
        """bool, whether only a part is read of a text that is longer."""
        return not self.values.window_pooling

    @staticmethod
    def define_flags(flags):
        explanation = (
            "Columns with 0 or 1 for each label, or with a number each for --task regress, joined "
            "by commas, in place of --label_column."
        )
        flags.list("label_columns", None, explanation)
        define_feature_flag(flags)

    @staticmethod
    def define_training_flags(flags):
        explanation = (
            "For long texts: read windows of --sequence_length tokens, and pool their vectors in "
            "this way. Default: read one window, the beginning of a text."
        )
        flags.choice("window_pooling", None, list(POOLINGS), explanation)
        explanation = (
            "What stays of a text that is too long: head, its beginning; tail, its end; head_tail, "
            "a quarter of --sequence_length of the beginning, and the end. Default: head."
        )
        flags.choice("truncation", None, ("head", "tail", "head_tail"), explanation)
        explanation = (
            "Change half of the training texts anew in each epoch, where texts are few. words: "
            "swap or delete words; masked_lm: put other words in their place, which --checkpoint "
            "guesses; noise: put in typing errors, so that the model stands them, see "
            "keras-bert evaluate --noise."
        )
        flags.choice("augment", None, ("words", "masked_lm", "noise"), explanation)
        explanation = "Maximum number of windows of a text, with --window_pooling."
        flags.integer("max_windows", 32, explanation)
        explanation = (
            "Windows of a text in a training step, a random sample, with --window_pooling. "
            "Default: all windows."
        )
        flags.integer("training_windows", None, explanation)
        explanation = (
            "Of two labels the one whose F1 on --dev is to be the highest, with --task classify: "
            "it is the answer above the threshold that reaches it. Default: the likelier label is "
            "the answer."
        )
        flags.text("tuned_label", None, explanation)

    @classmethod
    def recognizes(cls, model):
        return super().recognizes(model) and model.problem_type == cls.problem_type

    @property
    def input_names(self):
        """The names of the model's texts. For pairs they are the names of the columns."""
        if not self.values.text_pair_column:
            return ("text",)
        if not self.values.header:
            return ("text_a", "text_b")
        return (self.values.text_column, self.values.text_pair_column)

    def read(self, path, **arguments):
        """Reads `Examples`. The arguments about labels are as for `read_table`."""
        values = self.values
        columns = choose_text_columns(values, self.model and self.model.input_names)
        if values.label_columns and "label_column" in values.given:
            raise UsageError("--label_columns stands in place of --label_column. Leave one out")
        is_training = self._features is None and bool(values.feature_columns)
        kinds = split_flag(values)
        if not is_training:
            kinds = {column: kind for column, (_, kind) in (self._features or {}).items()}
        examples = read_examples(
            values,
            path,
            columns,
            None if values.label_columns else values.label_column,
            problem_type=self.problem_type,
            label_columns=values.label_columns,
            features=kinds,
            left_out_labels=values.left_out_labels,
            **arguments,
        )
        if not kinds:
            return examples
        if is_training:
            found = zip(name_features(values), examples.features.values(), strict=True)
            self._features = dict(zip(kinds, found, strict=True))
            print(f"features: {', '.join(map(' '.join, self._features.values()))}")
        names = self.input_names if self.model is None else self.model.input_names
        return name_columns(examples, names or columns, dict(self._features.values()))

    def read_texts(self):
        if not self._features:
            return super().read_texts()
        if not is_table(self.values, "input"):
            raise UsageError(
                f"--model {self.values.model} reads {', '.join(find_features(self.model))} beside "
                f"the texts, so --input must be a table with these columns, got {self.values.input}"
            )
        # A SavedModel has them among its inputs.
        features = find_features(self.model)
        names = [name for name in self.model.input_names or () if name not in features]
        texts = choose_text_columns(self.values, names)
        return read_rows(self.values, self.values.input, texts, self._features)

    def order_texts(self, columns):
        features = find_features(self.model)
        if not features or isinstance(self.model, SavedModel):
            return super().order_texts(columns)
        texts = {name: column for name, column in columns.items() if name not in features}
        return {**super().order_texts(texts), **{name: columns[name] for name in features}}

    def find_arguments(self, train):
        values = self.values
        if values.tuned_label is not None:
            if values.dev is None:
                raise UsageError("--tuned_label needs --dev, the rows that its F1 is of")
            if len(train.label_names) != 2 or values.tuned_label not in train.label_names:
                raise UsageError(
                    f"--tuned_label must be one of two labels, got {values.tuned_label!r}, and the "
                    f"labels of {train.path} are {', '.join(train.label_names)[:200]}"
                )
        # A new layer on a checkpoint for sets of labels would be for sets of labels, too.
        arguments = {"label_names": train.label_names, "problem_type": self.problem_type}
        if self._features:
            arguments["features"] = dict(self._features.values())
        if values.window_pooling and values.truncation:
            raise UsageError("--window_pooling reads whole texts. Leave out --truncation")
        if values.window_pooling:
            return {
                **arguments,
                "window_pooling": POOLINGS[values.window_pooling],
                "max_windows": values.max_windows,
                "training_windows": values.training_windows,
            }
        for name in ("max_windows", "training_windows"):
            if name in values.given:
                raise UsageError(f"--{name} needs --window_pooling")
        return arguments

    def complete(self, task, dev):
        label = self.values.tuned_label
        if label is not None:
            task.tune_thresholds(dev.x, dev.y, self.values.batch_size, label=label)
        return label is not None

    def score_outputs(self, task, outputs, rows, labels, **arguments):
        names = task.label_names
        return {
            **task.answers.score(outputs, rows, labels, **arguments),
            "label_names": names,
            "confusion_matrix": count_confusions(
                labels, task.answers.choose(outputs), len(names)
            ).tolist(),
        }

    def draw(self, scores, path):
        from keras_bert_suite.pictures import draw_confusions

        draw_confusions(scores["confusion_matrix"], scores["label_names"], path)

    def format_table(self, found):
        rows = zip(found["label"], found["probability"], strict=True)
        lines = (f"{to_field(label)}\t{probability:.6f}\n" for label, probability in rows)
        return ["label\tprobability\n", *lines]
