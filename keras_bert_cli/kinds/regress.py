"""A number for each text: a `TextClassifier`, and tables of texts and numbers."""

from ..labelled_tables import columns_of, is_finite
from .classify import Classify
from .kind import Kind, format_json


class Regress(Classify):
    """Texts, or pairs of texts, with a number each."""

    name = "regress"
    about = "a number for each text"
    problem_type = "regression"
    balance = Kind.balance

    @classmethod
    def serves(cls, output_names):
        return "scores" in output_names and len(output_names) == 1

    def read(self, path, text_columns=None):
        """Reads a `Table`, in which every row has its texts and a number."""
        table = super().read(path, text_columns)
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

    def describe(self, task, examples):
        scores = task.score(*self.columns_of(examples), self.values.batch_size)
        return f"Pearson {scores['pearson']:.4f}, Spearman {scores['spearman']:.4f}"

    def score(self):
        from keras_bert_suite.data.label_scores import score_numbers

        texts, table = self.read_input()
        targets = self.columns_of(table)[1]
        (numbers,) = self.answer(texts, "scores")
        if numbers.shape[1] > 1:
            raise ValueError(
                f"{self.values.model} answers with {numbers.shape[1]} numbers for each text, and "
                "--input has one. Score it with `TextClassifier.score`."
            )
        scores = score_numbers([[target] for target in targets], numbers)
        title = f"Pearson {scores['pearson']:.4f}, Spearman {scores['spearman']:.4f}"
        print(
            f"{title}, mean squared error {scores['mean_squared_error']:.4f}, mean absolute error "
            f"{scores['mean_absolute_error']:.4f}, {len(table)} texts"
        )

        def draw(path):
            from ..plots import plot_numbers

            plot_numbers(targets, numbers[:, 0].tolist(), title, path)

        return {"rows": len(table), **scores}, draw

    def predict(self, columns):
        (numbers,) = self.answer(columns, "scores")
        names = self.label_names
        if self.values.format != "jsonl":
            lines = ("\t".join(f"{number:.6f}" for number in row) + "\n" for row in numbers)
            return ["\t".join(names) + "\n", *lines]
        rounded = ([round(float(number), 6) for number in row] for row in numbers)
        answers = ({"scores": dict(zip(names, row, strict=True))} for row in rounded)
        return format_json(columns, answers)
