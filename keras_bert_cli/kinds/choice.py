"""The right ending of a text among several: a `MultipleChoice`, and files of SWAG's form."""

from keras_bert_suite.heads.choices.reader import read_swag

from ..table_flags import report_left_out, table_arguments
from .kind import Kind


class ChoiceKind(Kind):
    """Prompts with four endings each, of which one is right."""

    name = "choice"
    about = "the right ending among several"
    rows = "rows of 4 endings"
    input_names = ("prompt", "endings")
    #: The columns of a file of SWAG's form have fixed names.
    idle_table_flags = ("text_column", "text_pair_column", "label_column", "header")

    def read(self, path, labelled=True):
        self.check_table_flags()
        arguments = table_arguments(self.values)
        del arguments["header"]
        if labelled:
            arguments["errors"] = self.values.row_errors
        examples = read_swag(path, labelled, **arguments)
        report_left_out(examples)
        return examples

    def score(self, task, examples):
        scores = task.predict(examples.x, batch_size=self.values.batch_size, verbose=0)
        return {"accuracy": float((task.answers.choose(scores) == examples.y).mean())}

    def read_texts(self):
        rows = self.read(self.values.input, labelled=False)
        return dict(zip(self.input_names, rows.x, strict=True))

    def show_texts(self, columns):
        return {"prompt": columns["prompt"]}

    def format_table(self, found):
        rows = zip(found["choice"], found["probabilities"], strict=True)
        lines = (f"{choice}\t{shares[choice]:.6f}\n" for choice, shares in rows)
        return ["choice\tprobability\n", *lines]
