"""The right ending of a text among several: a `MultipleChoice`, and files of SWAG's form."""

from keras_bert_suite.data.readers import read_swag

from ..command_flags import UsageError
from ..saved_tasks import open_task
from ..table_flags import find_delimiter
from .kind import Kind, format_json


class ChoiceKind(Kind):
    """Prompts with four endings each, of which one is right."""

    name = "choice"
    about = "the right ending among several"
    input_names = ("prompt", "endings")
    #: The columns of a file of SWAG's form have names of their own.
    idle_table_flags = ("text_column", "text_pair_column", "label_column", "header")

    @classmethod
    def serves(cls, output_names):
        return "choices" in output_names

    def read(self, path, labelled=True):
        self.check_table_flags()
        return read_swag(path, labelled, self.values.encoding, find_delimiter(self.values))

    def introduce(self, train, arguments):
        return f"{len(train)} training rows of 4 endings"

    def describe(self, task, examples):
        scores = task.evaluate(
            examples.x, examples.y, self.values.batch_size, verbose=0, return_dict=True
        )
        return f"accuracy {scores['accuracy']:.4f}, loss {scores['loss']:.4f}"

    def score(self):
        rows = self.read(self.values.input)
        choices, _ = self._choose(*rows.x)
        is_right = list(map(int.__eq__, choices, rows.y))
        scores = {"accuracy": sum(is_right) / len(rows), "rows": len(rows)}
        print(f"accuracy {scores['accuracy']:.4f}, {len(rows)} rows")
        return scores, None

    def read_texts(self):
        rows = self.read(self.values.input, labelled=False)
        return dict(zip(self.input_names, rows.x, strict=True))

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

        from keras_bert_suite.tasks.answers.probabilities import softmax

        chooser = open_task(values.model, self.task)
        outputs = chooser.predict((prompts, endings), batch_size=values.batch_size, verbose=0)
        return outputs.argmax(axis=-1).tolist(), softmax(outputs).tolist()
