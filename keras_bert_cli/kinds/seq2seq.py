"""A text from a text, such as a title from an article: a `Seq2Seq`, and tables of both."""

import json
import statistics

from absl import flags

from ..command_flags import UsageError
from ..example_groups import group_by_number
from ..labelled_tables import check_texts
from ..model_paths import find_input_names
from ..outputs import write_json, write_picture
from ..predictor import open_saved_model, order_texts
from ..saved_tasks import open_task
from ..table_flags import choose_text_columns, read_columns
from .kind import Kind


class Seq2Seq(Kind):
    """Sources, and the targets that are to be written from them."""

    name = "seq2seq"
    about = "a text written from a text"
    task = "Seq2Seq"
    unit = "rows"
    sequence_length = 256
    own_flags = ("target_column", "max_target_length", "num_beams")

    @staticmethod
    def define_flags(values):
        explanation = "Column of the texts to write, with --task seq2seq."
        flags.DEFINE_string("target_column", "target", explanation, flag_values=values)

    @staticmethod
    def define_training_flags(values):
        explanation = "Maximum number of tokens in a written text, with --task seq2seq."
        flags.DEFINE_integer("max_target_length", 32, explanation, 2, flag_values=values)
        explanation = (
            "Number of beams of the search for a text, with --task seq2seq. 1 is a greedy search."
        )
        flags.DEFINE_integer("num_beams", 1, explanation, 1, flag_values=values)

    @classmethod
    def serves(cls, output_names):
        return "target_ids" in output_names

    @property
    def input_names(self):
        return (self.values.text_column if self.values.header else "text",)

    def read(self, path, input_names=None):
        """Reads a `Table` of sources and targets.

        Args:
            path: str.
            input_names: names of the texts of the model, or None if they are unknown.
        """
        values = self.values
        for name in ("text_pair_column", "label_column"):
            if values[name].present:
                raise UsageError(
                    f"--{name} is for other tasks. With --task seq2seq the texts to write are in "
                    "the --target_column"
                )
        columns = choose_text_columns(values, input_names)
        table = read_columns(values, path, {**columns, "target_column": values.target_column})
        for column in table.columns:
            check_texts(table, column)
        return table

    def find_arguments(self, train):
        return {"max_target_length": self.values.max_target_length}

    def find_compile_arguments(self):
        if self.values.num_beams == 1:
            return {"sampler": "greedy"}
        import keras_hub

        return {"sampler": keras_hub.samplers.BeamSampler(num_beams=self.values.num_beams)}

    def check(self, examples, arguments, source):
        """There is nothing to compare: any texts will do."""

    def introduce(self, train, arguments):
        return f"{len(train)} training rows of a text and its target"

    def columns_of(self, examples):
        return tuple(examples.columns.values())

    def balance(self, train):
        raise UsageError("--class_weight is for labels. Leave it out with --task seq2seq")

    def describe(self, task, examples):
        sources, targets = self.columns_of(examples)
        return _format_scores(_score(targets, task.predict(sources, self.values.batch_size)))

    def evaluate(self):
        values = self.values
        if values.png:
            from ..text_plots import plot_groups
        table = self.read(values.input, find_input_names(values.model))
        sources, targets = self.columns_of(table)
        written = self._write({next(iter(table.columns)): sources})
        scores = _score(targets, written)
        print(f"{_format_scores(scores)}, {len(table)} rows")
        if values.json:
            write_json(values.json, scores, values.overwrite)
        if values.png:
            panels = _score_groups(sources, targets, written)
            write_picture(values.png, lambda path: plot_groups(panels, path), values.overwrite)

    def predict(self, columns, saved_model=None):
        written = self._write(columns, saved_model)
        if self.values.format == "jsonl":
            return _format_json(columns, written)
        return _format_tsv(written)

    def _write(self, columns, saved_model=None):
        """list of str, what the model writes from the sources of a column."""
        path, batch_size = self.values.model, self.values.batch_size
        saved_model = open_saved_model(path, saved_model)
        if saved_model is not None:
            saved_model.check_kind(Seq2Seq)
            batches = saved_model.answer(columns, batch_size)
            return [text.decode() for batch in batches for text in batch["texts"].tolist()]
        writer = open_task(path, self.task)
        return writer.predict(order_texts(path, writer.input_names, columns), batch_size)


def _score(references, predictions):
    from keras_bert_suite.data.target_scores import score_targets

    return score_targets(references, predictions)


def _score_groups(sources, references, predictions):
    """The scores of groups of rows by the length of their sources, as `plot_groups` takes them."""
    lengths = [len(source) for source in sources]
    quarters = statistics.quantiles(lengths, n=4) if len(lengths) > 1 else []
    ends = sorted({*map(int, quarters), max(lengths)})
    bars = {}
    for name, rows in group_by_number(lengths, ends).items():
        scores = _score(*([column[row] for row in rows] for column in (references, predictions)))
        bars[f"{name} ({len(rows)})"] = {
            "ROUGE-L": scores["rouge_l"],
            "exact match": scores["exact_match"],
        }
    return {"By the characters of the source": bars}


def _format_scores(scores):
    names = {"rouge_1": "ROUGE-1", "rouge_2": "ROUGE-2", "rouge_l": "ROUGE-L"}
    named = [f"{title} {scores[name]:.2f}" for name, title in names.items()]
    return ", ".join([*named, f"exact match {scores['exact_match']:.2f}"])


def _format_tsv(written):
    """Yields a line for each text that was written, without its tabs and line ends."""
    yield "target\n"
    for text in written:
        yield f"{' '.join(text.split())}\n"


def _format_json(columns, written):
    """Yields a line of JSON for each row."""
    for row, text in enumerate(written):
        line = {name: texts[row] for name, texts in columns.items()}
        yield json.dumps({**line, "target": text}, ensure_ascii=False) + "\n"
