"""The right ending of a text among several: a `MultipleChoice`, and files of SWAG's form."""

from keras_bert_suite.data import swag, tables

from ..command_flags import UsageError
from ..saved_tasks import open_task
from ..table_flags import DELIMITERS
from .kind import Kind, format_json


class Choices(Kind):
    """Prompts with four endings each, of which one is right."""

    name = "choice"
    about = "the right ending among several"
    task = "MultipleChoice"
    input_names = ("prompt", "endings")
    #: The columns of a file of SWAG's form have names of their own.
    idle_table_flags = ("text_column", "text_pair_column", "label_column", "header")

    @classmethod
    def serves(cls, output_names):
        return "choices" in output_names

    def read(self, path, labelled=True):
        """Reads `SwagRows`."""
        self.check_table_flags()
        delimiter = DELIMITERS.get(self.values.delimiter, self.values.delimiter)
        columns = swag.list_columns(labelled)
        table = tables.read_table(path, columns, self.values.encoding, delimiter)
        return swag.make_rows(table, labelled)

    def introduce(self, train, arguments):
        return f"{len(train)} training rows of 4 endings"

    def columns_of(self, examples):
        return (examples.prompts, examples.endings), examples.labels

    def describe(self, task, examples):
        scores = task.evaluate(
            *self.columns_of(examples), self.values.batch_size, verbose=0, return_dict=True
        )
        return f"accuracy {scores['accuracy']:.4f}, loss {scores['loss']:.4f}"

    def score(self):
        rows = self.read(self.values.input)
        choices, _ = self._choose(rows.prompts, rows.endings)
        is_right = list(map(int.__eq__, choices, rows.labels))
        scores = {"accuracy": sum(is_right) / len(rows), "rows": len(rows)}
        print(f"accuracy {scores['accuracy']:.4f}, {len(rows)} rows")
        return scores, None

    def read_texts(self):
        rows = self.read(self.values.input, labelled=False)
        return {"prompt": rows.prompts, "endings": rows.endings}

    def predict(self, columns):
        if set(columns) != set(self.input_names):
            raise UsageError(
                "a prompt needs its endings: pass a file of SWAG's form, and --task choice"
            )
        prompts, endings = (columns[name] for name in self.input_names)
        choices, probabilities = self._choose(prompts, endings)
        if self.values.format != "jsonl":
            rows = zip(choices, probabilities, strict=True)
            lines = (f"{choice}\t{row[choice]:.6f}\n" for choice, row in rows)
            return ["choice\tprobability\n", *lines]
        answers = (
            {
                "choice": choice,
                "ending": texts[choice],
                "probabilities": [round(probability, 6) for probability in row],
            }
            for choice, texts, row in zip(choices, endings, probabilities, strict=True)
        )
        return format_json({"prompt": prompts}, answers)

    def _choose(self, prompts, endings):
        """(list of N int, the chosen endings; list of N lists of K probabilities)."""
        values = self.values
        if self.saved_model is not None:
            columns = {"prompt": prompts, "endings": endings}
            choices, probabilities = [], []
            for outputs in self.saved_model.answer(columns, values.batch_size):
                choices += outputs["choices"].tolist()
                probabilities += outputs["probabilities"].tolist()
            return choices, probabilities

        from keras_bert_suite.tasks.base.predicting import softmax

        chooser = open_task(values.model, self.task)
        outputs = chooser.predict((prompts, endings), batch_size=values.batch_size, verbose=0)
        return outputs.argmax(axis=-1).tolist(), softmax(outputs).tolist()
