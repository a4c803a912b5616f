"""A number for each text: a `TextClassifier`, and tables of texts and numbers."""

from .classify import ClassifyKind
from .kind import Kind, format_json


class RegressKind(ClassifyKind):
    """Texts, or pairs of texts, with a number each."""

    name = "regress"
    about = "a number for each text"
    problem_type = "regression"
    balance = Kind.balance

    @classmethod
    def serves(cls, output_names):
        return "scores" in output_names and len(output_names) == 1

    def find_labels(self, train):
        return {"label_names": train.label_names, "problem_type": self.problem_type}

    def check(self, examples, arguments, source):
        """Any numbers will do."""

    def introduce(self, train, arguments):
        return f"{len(train)} training texts, numbers from {min(train.y):g} to {max(train.y):g}"

    def describe(self, task, examples):
        scores = task.score(examples.x, examples.y, self.values.batch_size)
        return f"Pearson {scores['pearson']:.4f}, Spearman {scores['spearman']:.4f}"

    def score(self):
        from keras_bert_suite.data.label_scores import score_numbers

        texts, examples = self.read_input()
        (numbers,) = self.answer(texts, "scores")
        if numbers.shape[1] > 1:
            raise ValueError(
                f"{self.values.model} answers with {numbers.shape[1]} numbers for each text, and "
                "--input has one. Score it with `TextClassifier.score`."
            )
        scores = score_numbers([[number] for number in examples.y], numbers)
        title = f"Pearson {scores['pearson']:.4f}, Spearman {scores['spearman']:.4f}"
        print(
            f"{title}, mean squared error {scores['mean_squared_error']:.4f}, mean absolute error "
            f"{scores['mean_absolute_error']:.4f}, {len(examples)} texts"
        )

        def draw(path):
            from ..plots import plot_numbers

            plot_numbers(examples.y, numbers[:, 0].tolist(), title, path)

        return {"rows": len(examples), **scores}, draw

    def predict(self, columns):
        (numbers,) = self.answer(columns, "scores")
        names = self.label_names
        if self.values.format != "jsonl":
            lines = ("\t".join(f"{number:.6f}" for number in row) + "\n" for row in numbers)
            return ["\t".join(names) + "\n", *lines]
        rounded = ([round(float(number), 6) for number in row] for row in numbers)
        answers = ({"scores": dict(zip(names, row, strict=True))} for row in rounded)
        return format_json(columns, answers)
