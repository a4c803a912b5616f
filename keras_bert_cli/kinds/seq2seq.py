"""A text from a text, such as a title from an article: a `Seq2Seq`, and tables of both."""

from ..table_flags import choose_text_columns, read_examples
from .writing import WritingKind


class Seq2SeqKind(WritingKind):
    """Sources, and the targets that are to be written from them."""

    name = "seq2seq"
    about = "a text written from a text"
    rows = "rows of a text and its target"
    own_flags = ("target_column", "max_target_length", "num_beams")
    idle_table_flags = ("text_pair_column", "label_column")
    answer_name = "target"

    @staticmethod
    def define_flags(flags):
        flags.text("target_column", "target", "Column of the texts to write, with --task seq2seq.")

    @staticmethod
    def define_training_flags(flags):
        explanation = "Maximum number of tokens in a written text, with --task seq2seq."
        flags.integer("max_target_length", 32, explanation, at_least=2)
        explanation = (
            "Number of beams of the search for a text, with --task seq2seq or causal_lm. 1 is a "
            "greedy search."
        )
        flags.integer("num_beams", 1, explanation)

    @property
    def input_names(self):
        return (self.values.text_column if self.values.header else "text",)

    def read(self, path):
        values = self.values
        self.check_table_flags()
        columns = choose_text_columns(values, self.model and self.model.input_names)
        return read_examples(values, path, columns, values.target_column, problem_type=None)

    def find_arguments(self, train):
        return {"max_target_length": self.values.max_target_length}

    def score(self, task, examples):
        from keras_bert_suite.heads.targets.scores import score_targets

        return score_targets(examples.y, task.predict(examples.x, self.values.batch_size))
