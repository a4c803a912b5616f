"""A text that goes on: a `CausalLM`, and files of texts without labels."""

from keras_bert_suite.data.readers import Examples
from keras_bert_suite.data.readers.text_files import read_lines

from ..command_flags import UsageError
from ..table_flags import TABLES, choose_text_columns, read_examples, report_left_out
from .writing import SAMPLING, SEARCH, WritingKind


class CausalLMKind(WritingKind):
    """Texts, each token of which predicts the next one."""

    name = "causal_lm"
    about = "what follows a text"
    cuts_texts = True
    own_flags = ("max_length", *SEARCH)
    asking_flags = ("max_length", "stop", *SEARCH, *SAMPLING)
    idle_table_flags = ("text_pair_column", "label_column")

    @staticmethod
    def define_training_flags(flags):
        explanation = "Maximum number of tokens that follow a text, with --task causal_lm."
        flags.integer("max_length", 32, explanation)

    @property
    def input_names(self):
        return (self.values.text_column if self.values.header else "text",)

    def read(self, path):
        self.check_table_flags()
        values = self.values
        if values.delimiter is not None or path.lower().endswith(TABLES):
            columns = choose_text_columns(values, self.model and self.model.input_names)
            return read_examples(values, path, columns, problem_type=None)
        if given := sorted(values.given & {"text_column", "header", "quoting"}):
            raise UsageError(f"--{given[0]} is for tables, and {path} has a text in each line")
        lines = read_lines(path, values.encoding)
        numbers = [number for number, line in enumerate(lines, 1) if line.strip()]
        empty = [number for number, line in enumerate(lines, 1) if not line.strip()]
        left_out = {"no text": empty} if empty else {}
        texts = [lines[number - 1] for number in numbers]
        examples = Examples(path=path, x=texts, lines=numbers, left_out=left_out)
        report_left_out(examples)
        return examples

    def find_arguments(self, train):
        return {"max_length": self.values.max_length}

    def score(self, task, examples):
        return task.score(examples.x, self.values.batch_size)
