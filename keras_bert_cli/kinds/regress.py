"""A number for each text: a `TextClassifier`, and tables of texts and numbers."""

from .classify import TEXT_FLAGS, ClassifyKind
from .kind import Kind


class RegressKind(ClassifyKind):
    """Texts, or pairs of texts, with a number each."""

    name = "regress"
    about = "a number for each text"
    own_flags = TEXT_FLAGS
    problem_type = "regression"
    has_classes = False
    score_outputs = Kind.score_outputs

    def format_table(self, found):
        rows = (row.values() for row in found["scores"])
        lines = ("\t".join(f"{number:.6f}" for number in row) + "\n" for row in rows)
        return ["\t".join(self.model.label_names) + "\n", *lines]
