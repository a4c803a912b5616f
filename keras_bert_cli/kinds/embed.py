"""A vector for each text: a `TextEmbedder`, and tables of pairs of texts."""

import json

from absl import flags

from ..command_flags import UsageError
from ..labelled_tables import check_texts
from ..outputs import write_json
from ..saved_tasks import open_embedder
from ..table_flags import choose_text_columns, read_columns
from .kind import Kind

POOLINGS = ("mean", "cls", "max", "first_last_average")


class Embed(Kind):
    """Pairs of texts that match, or pairs with a score each."""

    name = "embed"
    about = "a vector for each text, from pairs"
    task = "TextEmbedder"
    unit = "pairs"
    input_names = ("text",)
    own_flags = ("negative_column",)

    @staticmethod
    def define_flags(values):
        explanation = (
            "Column of texts that do not match, with --task embed. Default: the texts of the "
            "other pairs of a batch are the only ones."
        )
        flags.DEFINE_string("negative_column", None, explanation, flag_values=values)

    @classmethod
    def serves(cls, output_names):
        return "embedding" in output_names

    @property
    def has_scores(self):
        """bool, whether --label_column was given. It names the scores."""
        return bool(self.values["label_column"].present)

    def read(self, path):
        """Reads a `Table` of pairs, with scores as floats if there is a --label_column."""
        values = self.values
        columns = choose_text_columns(values)
        if "text_pair_column" not in columns:
            raise UsageError(
                "--task embed learns from pairs of texts. Name the second texts with "
                "--text_pair_column, and scores, if there are any, with --label_column"
            )
        if values.negative_column:
            if self.has_scores:
                raise UsageError(
                    "--negative_column is for pairs without scores; leave out one of "
                    "--negative_column and --label_column"
                )
            columns["negative_column"] = values.negative_column
        wanted = dict(columns)
        if self.has_scores:
            wanted["label_column"] = values.label_column
        table = read_columns(values, path, wanted)
        for column in columns.values():
            check_texts(table, column)
        if self.has_scores:
            table.columns[values.label_column] = _read_scores(table, values.label_column)
        return table

    def find_arguments(self, train):
        return {}

    def find_compile_arguments(self):
        if not self.has_scores:
            return {}
        import keras_bert_suite as kbs

        return {"loss": kbs.CoSENT()}

    def check(self, examples, arguments, source):
        """There is nothing to compare: pairs have no labels."""

    def introduce(self, train, arguments):
        kind = "with scores" if self.has_scores else "that match"
        return f"{len(train)} training pairs {kind}"

    def columns_of(self, examples):
        columns = list(examples.columns.values())
        scores = columns.pop() if self.has_scores else None
        return tuple(columns), scores

    def balance(self, train):
        raise UsageError("--class_weight balanced is for classes. Leave it out with --task embed")

    def describe(self, task, examples):
        return _format_scores(self._score(task, examples))

    def evaluate(self):
        values = self.values
        if values.png:
            raise UsageError("--png is a picture of classes. Leave it out with --task embed")
        table = self.read(values.input)
        scores = {"pairs": len(table), **self._score(open_embedder(values.model), table)}
        print(f"{_format_scores(scores)}, {len(table)} pairs")
        if values.json:
            write_json(values.json, scores, values.overwrite)

    def _score(self, task, table):
        """dict of correlations with the scores, or of how well second texts are found."""
        (first, second, *_), scores = self.columns_of(table)
        if scores is not None:
            return task.score((first, second), scores)
        # A text of several pairs is one document, and one query with several answers.
        queries = {text: text for text in first}
        relevant = {}
        for query, document in zip(first, second, strict=True):
            relevant.setdefault(query, set()).add(document)
        return task.score_retrieval(queries, {text: text for text in second}, relevant)

    def predict(self, columns, saved_model=None):
        if self.values.format == "tsv":
            raise UsageError("--format tsv has labels. Choose --format jsonl for vectors")
        if saved_model is not None:
            raise UsageError(
                f"--model {self.values.model} is a SavedModel of an embedder. Ask the model that "
                "it was exported from"
            )
        embedder = open_embedder(self.values.model)
        (texts, *_) = columns.values()
        for text, vector in zip(
            texts, embedder.predict(texts, self.values.batch_size, verbose=0), strict=True
        ):
            answer = {"text": text, "embedding": [round(float(x), 6) for x in vector]}
            yield json.dumps(answer, ensure_ascii=False) + "\n"


def _read_scores(table, column):
    scores = []
    for row, text in enumerate(table.columns[column]):
        try:
            scores.append(float(text))
        except ValueError:
            raise ValueError(
                f"{table.locate(row)}: the score in the column {column!r} must be a number, got "
                f"{text[:40]!r}. Correct it, or name another column with --label_column."
            ) from None
    return scores


def _format_scores(scores):
    return ", ".join(f"{name} {value:.4f}" for name, value in scores.items() if name != "pairs")
