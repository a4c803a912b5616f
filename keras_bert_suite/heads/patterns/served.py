"""Patterns in the graph of a SavedModel."""

from keras_bert_suite.heads.base.served import ServedTask


class ServedPatterns(ServedTask):
    """A `PatternClassifier`, whose masks are found by the id of their token."""

    def answer_ids(self, packed):
        """The classes of rows, from packed texts in the pattern."""
        return super().answer_ids(self.data.add_places(packed))
