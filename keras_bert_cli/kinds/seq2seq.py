"""A text from a text, such as a title from an article: a `Seq2Seq`, and tables of both."""

from ..table_flags import choose_text_columns, read_examples
from .writing import RULES, SAMPLING, SEARCH, WritingKind, define_rule_flags


class Seq2SeqKind(WritingKind):
    """Sources, and the targets that are to be written from them."""

    name = "seq2seq"
    about = "a text written from a text"
    rows = "rows of a text and its target"
    own_flags = ("target_column", *RULES, *SEARCH)
    asking_flags = (*RULES, *SEARCH, *SAMPLING)
    idle_table_flags = ("text_pair_column", "label_column")
    answer_name = "target"

    @staticmethod
    def define_flags(flags):
        flags.text("target_column", "target", "Column of the texts to write, with --task seq2seq.")

    @staticmethod
    def define_training_flags(flags):
        define_rule_flags(flags, max_target_length=32, num_beams=1)

    @property
    def input_names(self):
        return (self.values.text_column if self.values.header else "text",)

    def read(self, path):
        values = self.values
        self.check_table_flags()
        columns = choose_text_columns(values, self.model and self.model.input_names)
        return read_examples(values, path, columns, values.target_column, problem_type=None)

    def find_arguments(self, train):
        given = self.values.given
        rules = {name: getattr(self.values, name) for name in RULES if name in given}
        return {"max_target_length": self.values.max_target_length, **rules}

    def score(self, task, examples):
        from keras_bert_suite.heads.targets.scores import score_targets

        return score_targets(examples.y, task.predict(examples.x, self.values.batch_size))
