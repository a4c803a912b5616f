"""A text from a text, such as a title from an article: a `Seq2Seq`, and tables of both."""

from ..model_paths import find_input_names
from ..saved_tasks import open_task
from ..table_flags import choose_text_columns, read_examples
from .kind import Kind, format_json


class Seq2SeqKind(Kind):
    """Sources, and the targets that are to be written from them."""

    name = "seq2seq"
    about = "a text written from a text"
    sequence_length = 256
    own_flags = ("target_column", "max_target_length", "num_beams")
    idle_table_flags = ("text_pair_column", "label_column")

    @staticmethod
    def define_flags(flags):
        flags.text("target_column", "target", "Column of the texts to write, with --task seq2seq.")

    @staticmethod
    def define_training_flags(flags):
        explanation = "Maximum number of tokens in a written text, with --task seq2seq."
        flags.integer("max_target_length", 32, explanation, 2)
        explanation = (
            "Number of beams of the search for a text, with --task seq2seq. 1 is a greedy search."
        )
        flags.integer("num_beams", 1, explanation, 1)

    @classmethod
    def serves(cls, output_names):
        return "target_ids" in output_names

    @property
    def input_names(self):
        return (self.values.text_column if self.values.header else "text",)

    def read(self, path, input_names=None):
        """Reads `Examples` of sources and targets.

        Args:
            path: str.
            input_names: names of the texts of the model, or None if they are unknown.
        """
        values = self.values
        self.check_table_flags()
        columns = choose_text_columns(values, input_names)
        return read_examples(values, path, columns, "target_column", problem_type=None)

    def find_arguments(self, train):
        return {"max_target_length": self.values.max_target_length}

    def find_compile_arguments(self):
        if self.values.num_beams == 1:
            return {"sampler": "greedy"}
        import keras_hub

        return {"sampler": keras_hub.samplers.BeamSampler(num_beams=self.values.num_beams)}

    def introduce(self, train, arguments):
        return f"{len(train)} training rows of a text and its target"

    def describe(self, task, examples):
        written = task.predict(examples.x, self.values.batch_size)
        return _format_scores(_score(examples.y, written))

    def score(self):
        input_names = find_input_names(self.values.model)
        examples = self.read(self.values.input, input_names)
        (column,) = choose_text_columns(self.values, input_names).values()
        scores = _score(examples.y, self._write_texts({column: examples.x}))
        print(f"{_format_scores(scores)}, {len(examples)} rows")
        return scores, None

    def predict(self, columns):
        written = self._write_texts(columns)
        if self.values.format == "jsonl":
            return format_json(columns, ({"target": text} for text in written))
        # Without the tabs and line ends of a text.
        return ["target\n", *(f"{' '.join(text.split())}\n" for text in written)]

    def _write_texts(self, columns):
        """list of str, what the model writes from the sources of a column."""
        batch_size = self.values.batch_size
        if self.saved_model is not None:
            batches = self.saved_model.answer(columns, batch_size)
            return [text.decode() for batch in batches for text in batch["texts"].tolist()]
        writer = open_task(self.values.model, self.task)
        return writer.predict(self.order_texts(writer.input_names, columns), batch_size)


def _score(references, predictions):
    from keras_bert_suite.data.target_scores import score_targets

    return score_targets(references, predictions)


def _format_scores(scores):
    names = {"rouge_1": "ROUGE-1", "rouge_2": "ROUGE-2", "rouge_l": "ROUGE-L"}
    named = [f"{title} {scores[name]:.2f}" for name, title in names.items()]
    return ", ".join([*named, f"exact match {scores['exact_match']:.2f}"])
