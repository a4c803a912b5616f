"""A number for each text: a `TextClassifier`, and tables of texts and numbers."""

from .classify import TEXT_FLAGS, ClassifyKind
from .kind import Kind, format_json, list_rows


class RegressKind(ClassifyKind):
    """Texts, or pairs of texts, with a number each."""

    name = "regress"
    about = "a number for each text"
    own_flags = TEXT_FLAGS
    problem_type = "regression"
    has_classes = False
    score_outputs = Kind.score_outputs

    def predict(self, columns):
        names, numbers = self.label_names, self.answer(columns, "scores")["scores"]
        if self.values.format != "jsonl":
            lines = ("\t".join(f"{number:.6f}" for number in row) + "\n" for row in numbers)
            return ["\t".join(names) + "\n", *lines]
        from keras_bert_suite.serving.named_answers import name_numbers

        return format_json(columns, list_rows(name_numbers(names, numbers)))
