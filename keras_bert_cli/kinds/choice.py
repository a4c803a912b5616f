"""The right ending of a text among several: a `MultipleChoice`, and files of SWAG's form."""

import json

from keras_bert_suite.data import swag, tables

from ..command_flags import UsageError
from ..example_groups import group_by_number
from ..outputs import write_json, write_picture
from ..predictor import open_saved_model
from ..saved_tasks import open_task
from ..table_flags import DELIMITERS
from .kind import Kind

#: The columns of a file of SWAG's form have names of their own.
_COLUMN_FLAGS = ("text_column", "text_pair_column", "label_column", "header")

#: The groups of the picture of `evaluate`.
PROBABILITIES = (0.4, 0.6, 0.8, 0.95, 1.0)


class Choices(Kind):
    """Prompts with four endings each, of which one is right."""

    name = "choice"
    about = "the right ending among several"
    task = "MultipleChoice"
    unit = "rows"
    input_names = ("prompt", "endings")

    @classmethod
    def serves(cls, output_names):
        return "choices" in output_names

    def read(self, path, labelled=True):
        """Reads `SwagRows`."""
        values = self.values
        for name in _COLUMN_FLAGS:
            if name in values and values[name].present:
                raise UsageError(
                    f"--{name} is for other tables of texts. With --task choice the columns are "
                    f"{', '.join(swag.list_columns(labelled))}"
                )
        if values.delimiter is None and not path.lower().endswith((".tsv", ".csv")):
            raise UsageError(
                f"--task choice reads tables of SWAG's form, with the columns "
                f"{', '.join(swag.list_columns(labelled))}. Pass a .csv or .tsv file, or name the "
                f"--delimiter of {path!r}"
            )
        delimiter = DELIMITERS.get(values.delimiter, values.delimiter)
        columns = swag.list_columns(labelled)
        table = tables.read_table(path, columns, values.encoding, delimiter)
        return swag.make_rows(table, labelled)

    def find_arguments(self, train):
        return {}

    def check(self, examples, arguments, source):
        """Every label of SWAG's form is a label of all its files."""

    def introduce(self, train, arguments):
        return f"{len(train)} training rows of 4 endings"

    def columns_of(self, examples):
        return (examples.prompts, examples.endings), examples.labels

    def balance(self, train):
        raise UsageError("--class_weight is for labels. Leave it out with --task choice")

    def describe(self, task, examples):
        scores = task.evaluate(*self.columns_of(examples), verbose=0, return_dict=True)
        return f"accuracy {scores['accuracy']:.4f}, loss {scores['loss']:.4f}"

    def evaluate(self):
        values = self.values
        if values.png:
            from ..text_plots import plot_groups
        rows = self.read(values.input)
        choices, probabilities = self._choose(rows.prompts, rows.endings)
        is_right = list(map(int.__eq__, choices, rows.labels))
        scores = {"accuracy": sum(is_right) / len(rows), "rows": len(rows)}
        print(f"accuracy {scores['accuracy']:.4f}, {len(rows)} rows")
        if values.json:
            write_json(values.json, scores, values.overwrite)
        if values.png:
            groups = group_by_number(
                [min(max(row), 1.0) for row in probabilities], PROBABILITIES, "{:.0%}"
            )
            bars = {}
            for name, chosen in groups.items():
                share = sum(is_right[row] for row in chosen) / len(chosen)
                bars[f"{name} ({len(chosen)})"] = {"percent of right choices": 100 * share}
            panels = {"By the probability of the chosen ending": bars}
            write_picture(values.png, lambda path: plot_groups(panels, path), values.overwrite)

    def read_texts(self):
        rows = self.read(self.values.input, labelled=False)
        return {"prompt": rows.prompts, "endings": rows.endings}

    def predict(self, columns, saved_model=None):
        if set(columns) != set(self.input_names):
            raise UsageError(
                "a prompt needs its endings: pass a file of SWAG's form, and --task choice"
            )
        prompts, endings = (columns[name] for name in self.input_names)
        choices, probabilities = self._choose(prompts, endings, saved_model)
        if self.values.format == "jsonl":
            return _format_json(prompts, endings, choices, probabilities)
        return _format_tsv(choices, probabilities)

    def _choose(self, prompts, endings, saved_model=None):
        """(list of N int, the chosen endings; list of N lists of K probabilities)."""
        saved_model = open_saved_model(self.values.model, saved_model)
        if saved_model is not None:
            columns = {"prompt": prompts, "endings": endings}
            return saved_model.choose(columns, self.values.batch_size)

        from keras_bert_suite.tasks.base.predicting import softmax

        chooser = open_task(self.values.model, self.task)
        outputs = chooser.predict((prompts, endings), batch_size=self.values.batch_size, verbose=0)
        return outputs.argmax(axis=-1).tolist(), softmax(outputs).tolist()


def _format_tsv(choices, probabilities):
    """Yields a line for each row: the number of its ending, from 0, and its probability."""
    yield "choice\tprobability\n"
    for choice, row in zip(choices, probabilities, strict=True):
        yield f"{choice}\t{row[choice]:.6f}\n"


def _format_json(prompts, endings, choices, probabilities):
    """Yields a line of JSON for each row."""
    for prompt, texts, choice, row in zip(prompts, endings, choices, probabilities, strict=True):
        line = {"prompt": prompt, "choice": choice, "ending": texts[choice]}
        line["probabilities"] = [round(probability, 6) for probability in row]
        yield json.dumps(line, ensure_ascii=False) + "\n"
