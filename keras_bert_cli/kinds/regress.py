"""A number for each text: a `TextClassifier`, and tables of texts and numbers."""

import json

from ..command_flags import UsageError
from ..labelled_tables import columns_of, is_finite, read_examples
from ..model_paths import find_input_names
from ..outputs import write_json, write_picture
from ..predictor import open_classifier, open_saved_model, order_texts, read_label_names
from ..table_flags import choose_text_columns
from .classify import Classify


class Regress(Classify):
    """Texts, or pairs of texts, with a number each."""

    name = "regress"
    about = "a number for each text"
    problem_type = "regression"

    @classmethod
    def serves(cls, output_names):
        return "scores" in output_names and len(output_names) == 1

    def read(self, path):
        """Reads a `Table`, in which every row has its texts and a number."""
        return self._read(path, choose_text_columns(self.values))

    def _read(self, path, text_columns):
        table = read_examples(self.values, path, text_columns)
        for row, label in enumerate(columns_of(table)[1]):
            if not is_finite(label):
                raise ValueError(
                    f"{table.locate(row)}: the number of the text is {label[:40]!r}. Wanted a "
                    "finite number, such as 4.5. Correct it, or name another column with "
                    "--label_column."
                )
        return table

    def find_labels(self, train):
        name = self.values.label_column if self.values.header else "score"
        return {"label_names": [name], "problem_type": self.problem_type}

    def check(self, examples, arguments, source):
        """Any numbers will do."""

    def introduce(self, train, arguments):
        numbers = self.columns_of(train)[1]
        return f"{len(train)} training texts, numbers from {min(numbers):g} to {max(numbers):g}"

    def columns_of(self, examples):
        texts, labels = columns_of(examples)
        return texts, list(map(float, labels))

    def balance(self, train):
        raise UsageError("--class_weight=balanced is for labels, not for --task regress")

    def describe(self, task, examples):
        scores = task.score(*self.columns_of(examples))
        return f"Pearson {scores['pearson']:.4f}, Spearman {scores['spearman']:.4f}"

    def evaluate(self):
        values = self.values
        if values.png:
            from ..plots import plot_numbers
        text_columns = choose_text_columns(values, find_input_names(values.model))
        table = self._read(values.input, text_columns)
        targets = self.columns_of(table)[1]
        texts = {name: table.columns[name] for name in text_columns.values()}
        numbers, names = answer_numbers(values.model, texts, values.batch_size)
        if len(names) > 1:
            raise ValueError(
                f"{values.model} answers with {len(names)} numbers for each text, and --input has "
                "one. Score it with `TextClassifier.score`."
            )

        from keras_bert_suite.data.label_scores import score_numbers

        scores = score_numbers([[target] for target in targets], numbers)
        print(
            f"Pearson {scores['pearson']:.4f}, Spearman {scores['spearman']:.4f}, mean squared "
            f"error {scores['mean_squared_error']:.4f}, mean absolute error "
            f"{scores['mean_absolute_error']:.4f}, {len(table)} texts"
        )
        if values.json:
            write_json(values.json, {"rows": len(table), **scores}, values.overwrite)
        if values.png:
            title = f"Pearson {scores['pearson']:.4f}, Spearman {scores['spearman']:.4f}"
            write_picture(
                values.png,
                lambda path: plot_numbers(targets, numbers[:, 0].tolist(), title, path),
                values.overwrite,
            )

    def predict(self, columns, saved_model=None):
        path, batch_size = self.values.model, self.values.batch_size
        numbers, names = answer_numbers(path, columns, batch_size, saved_model)
        return _format_lines(self.values.format or "tsv", columns, numbers, names)


def answer_numbers(path, columns, batch_size, saved_model=None):
    """Answers texts with numbers.

    Args:
        path, columns, batch_size, saved_model: as for `multilabel.answer_sets`.

    Returns:
        (float32 (N, C); list of C names).
    """
    import numpy as np

    saved_model = open_saved_model(path, saved_model)
    if saved_model is not None:
        saved_model.check_kind(Regress)
        batches = [batch["scores"] for batch in saved_model.answer(columns, batch_size)]
        return np.concatenate(batches), read_label_names(path)
    task = open_classifier(path, "regression")
    texts = order_texts(path, task.input_names, columns)
    return task.predict(texts, batch_size=batch_size, verbose=0), task.label_names


def _format_lines(style, columns, numbers, names):
    """Yields the lines of the output."""
    if style == "tsv":
        yield "\t".join(names) + "\n"
    for row, scores in enumerate(numbers):
        if style == "tsv":
            yield "\t".join(f"{score:.6f}" for score in scores) + "\n"
            continue
        answer = {name: texts[row] for name, texts in columns.items()}
        rounded = (round(float(score), 6) for score in scores)
        answer["scores"] = dict(zip(names, rounded, strict=True))
        yield json.dumps(answer, ensure_ascii=False) + "\n"
